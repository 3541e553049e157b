//===- AssemblePTX.cpp - machine code of a GPU, where NVIDIA's assembler is there -------------===//

#include "moec/Conversion/CompileKernels.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"

using namespace mlir;
using namespace mlir::moec;

FailureOr<std::string> mlir::moec::assemblePTX(Location loc, StringRef ptx,
                                               const TargetDescription &target) {
  llvm::ErrorOr<std::string> assembler = llvm::sys::findProgramByName("ptxas");
  if (!assembler)
    return std::string();
  SmallString<128> input, output, messages;
  for (auto [suffix, path] : {std::pair("ptx", &input), {"cubin", &output}, {"txt", &messages}})
    if (std::error_code error = llvm::sys::fs::createTemporaryFile("moec", suffix, *path))
      return emitError(loc) << "cannot make a temporary file for ptxas: " << error.message();
  auto removeFiles = llvm::make_scope_exit([&] {
    for (StringRef path : {input.str(), output.str(), messages.str()})
      llvm::sys::fs::remove(path);
  });
  std::error_code error;
  {
    llvm::raw_fd_ostream stream(input, error);
    stream << ptx;
  }
  if (error)
    return emitError(loc) << input << ": " << error.message();

  std::string architecture = "-arch=" + target.cpu;
  StringRef arguments[] = {*assembler, architecture, input, "-o", output};
  std::optional<StringRef> redirects[] = {std::nullopt, messages.str(), messages.str()};
  int result = llvm::sys::ExecuteAndWait(*assembler, arguments, std::nullopt, redirects);
  auto read = [](StringRef path) -> std::string {
    auto buffer = llvm::MemoryBuffer::getFile(path);
    return buffer ? (*buffer)->getBuffer().str() : std::string();
  };
  if (result != 0) {
    // An old assembler need not know the GPU: the driver compiles the PTX then.
    emitWarning(loc) << *assembler << " does not assemble the code for " << target.name
                     << ", so the bundle holds PTX alone: " << StringRef(read(messages)).trim();
    return std::string();
  }
  return read(output);
}
