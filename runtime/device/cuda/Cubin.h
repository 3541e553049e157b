// Machine code for GPUs, an ELF file.
#ifndef MOERT_DEVICE_CUDA_CUBIN_H
#define MOERT_DEVICE_CUDA_CUBIN_H

#include <string>
#include <string_view>

namespace moert::cuda {

// The driver is given an address without a length, believes what the headers say, and dies when the
// file is shorter. Why `code` is no whole cubin; empty when it is one.
std::string cubinProblem(std::string_view code);

} // namespace moert::cuda

#endif
