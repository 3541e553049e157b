//===- ImportONNX.cpp - from an .onnx file to a module
//-------------------------------------------===//

#include "moec/Conversion/ImportONNX.h"

#include "GraphImporter.h"

#include "moec/Dialect/MoE/IR/MoE.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Verifier.h"

#include "onnx-ml.pb.h"

namespace mlir::moec {

FailureOr<OwningOpRef<ModuleOp>> importONNX(StringRef path, const ImportONNXOptions &options,
                                            MLIRContext *context) {
  context->loadDialect<arith::ArithDialect, func::FuncDialect, linalg::LinalgDialect,
                       math::MathDialect, tensor::TensorDialect, moe::MoEDialect>();
  moert::Result<onnx_import::ModelFile> file = onnx_import::ModelFile::open(path.str());
  if (!file.isOk()) {
    const moert::Status &status = file.status();
    InFlightDiagnostic diagnostic =
        emitError(FileLineColLoc::get(context, path, 0, 0), status.message());
    if (!status.hint().empty())
      diagnostic.attachNote() << status.hint();
    return diagnostic;
  }
  onnx_import::GraphImporter importer(*file, options, context);
  FailureOr<OwningOpRef<ModuleOp>> module = importer.run();
  if (failed(module) || failed(verify(**module)))
    return failure();
  return module;
}

} // namespace mlir::moec
