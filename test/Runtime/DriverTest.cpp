// What is said when there is no use in NVIDIA's driver. A fake one stands in for it
// (FakeCudaDriver.c); the driver is opened once in a process, so each case has a process of its
// own.
#include "runtime/device/cuda/Cubin.h"
#include "runtime/device/cuda/CudaDevice.h"
#include "test/Runtime/TestBundle.h"

#include <cstdio>
#include <cstdlib>

using namespace moert;
using namespace moert::test;

namespace {

// Prints what `use` says with the problem `problem` and ends the process.
template <typename Use>
void sayWith(const char *problem, const Use &use) {
  setenv("FAKE_CUDA", problem, 1);
  std::fprintf(stderr, "%s\n", use().c_str());
  std::_Exit(0);
}

std::string driverError() {
  auto driver = cuda::Driver::get();
  return driver.isOk() ? "it works" : driver.status().toString();
}

std::string missing(int index, bool exact) {
  cuda::Fit fit = cuda::findDevice({8, 0, exact, 0}, index);
  return std::to_string(fit.index) + ": " + fit.missing;
}

class Driver : public testing::Test {
protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
  const testing::ExitedWithCode zero{0};
};

} // namespace

TEST_F(Driver, SaysWhatIsWrong) {
  EXPECT_EXIT(
      sayWith("old", driverError), zero,
      "too old: it is for CUDA 10.2, needed is 11.4 or later\nhint: install a newer driver");
  EXPECT_EXIT(sayWith("none", driverError), zero, "finds no GPU\nhint: check with nvidia-smi");
  EXPECT_EXIT(sayWith("broken", driverError), zero,
              "cuInit failed: CUDA_ERROR_OF_A_FAKE \\(999, nothing works\\)");
  EXPECT_EXIT(sayWith("", driverError), zero, "it works");
}

TEST_F(Driver, SaysWhatAGpuLacks) {
  EXPECT_EXIT(sayWith("weak", [] { return missing(-1, false); }), zero,
              "-1: a GPU of compute capability 8.0 or later; cuda:0 \\(Fake GPU\\) has 5.2");
  EXPECT_EXIT(sayWith("", [] { return missing(-1, false); }), zero, "0: ");
  EXPECT_EXIT(sayWith("", [] { return missing(-1, true); }), zero,
              "-1: a GPU of compute capability 8.0; cuda:0 \\(Fake GPU\\) has 9.0");
  EXPECT_EXIT(sayWith("", [] { return missing(3, false); }), zero, "-1: a device cuda:3");
  EXPECT_EXIT(sayWith("",
                      [] {
                        return cuda::findDevice({8, 0, false, 13000}, -1).missing;
                      }),
              zero, "a driver for CUDA 13.0 or later; this one is for 12.4");
  EXPECT_EXIT(sayWith("none", [] { return missing(-1, false); }), zero,
              "-1: a working driver of NVIDIA \\(NVIDIA's driver finds no GPU\\)");
}

TEST_F(Driver, ADeviceThatCannotBeOpenedIsAnError) {
  auto open = [](int index) {
    return [index] { return cuda::CudaDevice::create(index, 1).status().toString(); };
  };
  EXPECT_EXIT(sayWith("", open(0)), zero, "cuda:0: error: cuDevicePrimaryCtxRetain failed");
  EXPECT_EXIT(sayWith("", open(7)), zero, "there is no device cuda:7; there are 1");
}

TEST(Cubin, MustBeWhole) {
  // Any ELF file that calls itself one.
  std::string code = readFile(testKernelsPath());
  EXPECT_EQ(cuda::cubinProblem(code), "it is no machine code for GPUs of NVIDIA");
  code[18] = static_cast<char>(190);
  code[19] = 0;
  EXPECT_EQ(cuda::cubinProblem(code), "");
  for (std::size_t length = 0; length < code.size(); length += 41)
    EXPECT_NE(cuda::cubinProblem(code.substr(0, length)), "") << length;
  EXPECT_EQ(cuda::cubinProblem("a text"), "it is no ELF file");
  // Whatever the headers say, nothing beyond the end is read.
  std::string header = code.substr(0, 64);
  for (std::size_t i = 16; i < header.size(); ++i)
    for (char value : {'\0', '\x7f', '\xff'}) {
      std::string changed = code;
      changed[i] = value;
      (void)cuda::cubinProblem(changed);
    }
}
