//===- OperatorTable.h - which ONNX operators are imported, and by what
//-------------------------===//

#ifndef MOEC_CONVERSION_IMPORTONNX_OPERATORTABLE_H
#define MOEC_CONVERSION_IMPORTONNX_OPERATORTABLE_H

#include "NodeImporter.h"

namespace mlir::moec::onnx_import {

struct OperatorEntry {
  StringLiteral domain; // "" is ai.onnx
  StringLiteral name;
  int64_t since, until; // opset versions of the domain for which the entry holds, both included
  LogicalResult (*handler)(NodeImporter &node);
  StringLiteral attributes; // those that the handler honours, separated by spaces
};

/// Every operator that is imported, sorted by domain and name.
ArrayRef<OperatorEntry> operatorTable();

/// The entry for an operator at an opset version, or null and the reason.
const OperatorEntry *findOperator(StringRef domain, StringRef name, int64_t version,
                                  std::string &why);

} // namespace mlir::moec::onnx_import

#endif
