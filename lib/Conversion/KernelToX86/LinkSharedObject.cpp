//===- LinkSharedObject.cpp - lld, in this process --------------------------------------------===//

#include "LinkSharedObject.h"

#include "lld/Common/CommonLinkerContext.h"
#include "lld/Common/Driver.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

#include <mutex>
#include <vector>

LLD_HAS_DRIVER(elf)

using namespace mlir;

/// A file in the folder for temporary files, removed at the end.
namespace {
struct TemporaryFile {
  SmallString<128> path;
  ~TemporaryFile() {
    if (!path.empty())
      llvm::sys::fs::remove(path);
  }
};
} // namespace

static LogicalResult writeTemporaryFile(TemporaryFile &file, StringRef suffix, StringRef content,
                                        std::string &error) {
  int descriptor;
  std::error_code code =
      llvm::sys::fs::createTemporaryFile("moec-kernels", suffix, descriptor, file.path);
  if (code) {
    error = "cannot create a temporary file: " + code.message();
    return failure();
  }
  llvm::raw_fd_ostream stream(descriptor, /*shouldClose=*/true);
  stream << content;
  stream.close();
  if (stream.has_error()) {
    error = ("cannot write " + file.path + ": " + stream.error().message()).str();
    stream.clear_error();
    return failure();
  }
  return success();
}

FailureOr<std::string> mlir::moec::linkSharedObject(ArrayRef<SmallVector<char>> objects,
                                                    StringRef exportedSymbol, std::string &error) {
  std::string versions = ("{ global: " + exportedSymbol + "; local: *; };\n").str();
  std::vector<TemporaryFile> inputs(objects.size());
  for (auto [input, object] : llvm::zip(inputs, objects))
    if (failed(writeTemporaryFile(input, "o", StringRef(object.data(), object.size()), error)))
      return failure();
  TemporaryFile script, output;
  if (failed(writeTemporaryFile(script, "ver", versions, error)) ||
      failed(writeTemporaryFile(output, "so", "", error)))
    return failure();

  SmallString<128> scriptOption("--version-script=");
  scriptOption += script.path;
  SmallVector<const char *> arguments = {
      "ld.lld",
      "-shared",
      "-o",
      output.path.c_str(),
      scriptOption.c_str(),
      "--no-undefined", // nothing but this object provides symbols
      "--build-id=none",
      "--hash-style=gnu",
      "--gc-sections",
      "--strip-debug",
      "-znow",
      "-zrelro",
      "-znoexecstack",
      "-soname=moec-kernels", // not the random name of the temporary file
      "--threads=1",
  };
  for (TemporaryFile &input : inputs)
    arguments.push_back(input.path.c_str());
  std::string messages;
  llvm::raw_string_ostream stream(messages);
  {
    // The linker has one context a process.
    static std::mutex mutex;
    std::lock_guard lock(mutex);
    const lld::DriverDef drivers[] = {{lld::Gnu, &lld::elf::link}};
    lld::Result result = lld::lldMain(arguments, stream, stream, drivers);
    if (result.retCode != 0) {
      error = "the linker failed: " + messages;
      return failure();
    }
  }
  auto buffer = llvm::MemoryBuffer::getFile(output.path, /*IsText=*/false,
                                            /*RequiresNullTerminator=*/false);
  if (!buffer) {
    error = "cannot read the linker's output: " + buffer.getError().message();
    return failure();
  }
  return (*buffer)->getBuffer().str();
}
