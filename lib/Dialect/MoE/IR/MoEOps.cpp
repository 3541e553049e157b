#include "moec/Dialect/MoE/IR/MoE.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace mlir::moec::moe;

// For moe.kv_append's assembly format.

/// `KEY, CACHE` or `KEY, VALUE, CACHE`: types that come before that of the positions.
static ParseResult parseAppendedTypes(OpAsmParser &parser, Type &key, Type &value, Type &cache) {
  if (parser.parseType(key) || parser.parseComma() || parser.parseType(cache))
    return failure();
  if (isa<CacheType>(cache))
    return success();
  value = cache;
  return failure(parser.parseComma() || parser.parseType(cache));
}

static void printAppendedTypes(OpAsmPrinter &printer, Operation *, Type key, Type value,
                               Type cache) {
  printer << key << ", ";
  if (value)
    printer << value << ", ";
  printer << cache;
}

#define GET_OP_CLASSES
#include "moec/Dialect/MoE/IR/MoEOps.cpp.inc"

void MoEDialect::registerOperations() {
  addOperations<
#define GET_OP_LIST
#include "moec/Dialect/MoE/IR/MoEOps.cpp.inc"
      >();
}
