// moec-opt: runs single passes and phase pipelines on text, for tests and for looking inside.

#include "moec/InitDialects.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  mlir::moec::registerAllDialects(registry);
  mlir::moec::registerAllPasses();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "moec: runs passes on moe and plan programs\n", registry));
}
