#include "moec/Dialect/MoE/IR/MoE.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

#include <charconv>

using namespace mlir;
using namespace mlir::moec::moe;

#include "moec/Dialect/MoE/IR/MoEEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "moec/Dialect/MoE/IR/MoEAttrs.cpp.inc"

void MoEDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "moec/Dialect/MoE/IR/MoEAttrs.cpp.inc"
      >();
}

LogicalResult LayoutAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 ArrayRef<int64_t> tile, ArrayRef<int64_t> order, Swizzle swizzle) {
  if (tile.empty())
    return emitError() << "expects at least one tile dimension";
  for (int64_t size : tile)
    if (size < 1)
      return emitError() << "expects tile sizes of at least 1, got " << size;
  if (order.size() != tile.size())
    return emitError() << "expects an order of " << tile.size() << " dimensions, got "
                       << order.size();
  SmallVector<bool> seen(tile.size(), false);
  for (int64_t dim : order) {
    if (dim < 0 || dim >= static_cast<int64_t>(tile.size()) || seen[dim])
      return emitError() << "expects the order to be a permutation of the tile dimensions";
    seen[dim] = true;
  }
  if (swizzle == Swizzle::pairs && (tile.size() != 2 || tile[1] % 2 != 0))
    return emitError() << "expects a two-dimensional tile with an even last size for 'pairs'";
  if (swizzle == Swizzle::nibble_words &&
      (tile.size() != 2 || tile[0] != 16 || tile[1] != 32 || order[0] != 0))
    return emitError() << "expects tile = [16, 32] and order = [0, 1] for 'nibble_words'";
  if (isFragments(swizzle) &&
      (tile.size() != 2 || tile[0] != 64 || tile[1] != 64 || order[0] != 0))
    return emitError() << "expects tile = [64, 64] and order = [0, 1] for '"
                       << stringifySwizzle(swizzle) << "'";
  return success();
}

SmallVector<int64_t> LayoutAttr::getStorageShape(ArrayRef<int64_t> shape) const {
  ArrayRef<int64_t> tile = getTile();
  assert(shape.size() >= tile.size() && "layout has more dimensions than the shape");
  size_t leading = shape.size() - tile.size();
  SmallVector<int64_t> storage(shape.take_front(leading));
  for (auto [size, tileSize] : llvm::zip_equal(shape.drop_front(leading), tile))
    storage.push_back(ShapedType::isDynamic(size) ? size : llvm::divideCeil(size, tileSize));
  switch (getSwizzle()) {
  case Swizzle::none:
    for (int64_t dim : getOrder())
      storage.push_back(tile[dim]);
    break;
  case Swizzle::pairs:
    storage.append({tile[1] / 2, tile[0], 2});
    break;
  case Swizzle::nibble_words:
    storage.push_back(272); // 16 x 32 codes of half a byte and 16 scales
    break;
  case Swizzle::fragments:
  case Swizzle::fragments_of_halves: {
    // For each tile 64 x 64 codes of half a byte and 128 scales; then 64 factors of 4 bytes.
    int64_t tiles = storage.pop_back_val();
    storage.push_back(tiles * 2176 + 256);
    break;
  }
  }
  return storage;
}

LogicalResult ActivationAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                     ActivationKind kind, Real alpha, Real beta, Real limit,
                                     bool interleaved) {
  if (!(limit >= 0))
    return emitError() << "expects a limit of at least 0 (0: none), got " << limit;
  if (kind == ActivationKind::situ && !(beta > 0))
    return emitError() << "expects a positive beta for 'situ', got " << beta;
  return success();
}

//===------------------------------------------------------------------------------------------===//
// RotaryAttr: #moe.rotary<[f0, f1, ...], magnitude = m, offset = o, interleaved>
//===------------------------------------------------------------------------------------------===//

Attribute RotaryAttr::parse(AsmParser &parser, Type) {
  SmallVector<float> frequencies;
  double magnitude = 1.0;
  int64_t offset = 0;
  bool interleaved = false;
  auto parseFrequency = [&]() -> ParseResult {
    double value;
    if (parser.parseFloat(value))
      return failure();
    frequencies.push_back(static_cast<float>(value));
    return success();
  };
  if (parser.parseLess() ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseFrequency))
    return {};
  while (succeeded(parser.parseOptionalComma())) {
    StringRef keyword;
    SMLoc loc = parser.getCurrentLocation();
    if (parser.parseKeyword(&keyword))
      return {};
    if (keyword == "magnitude") {
      if (parser.parseEqual() || parser.parseFloat(magnitude))
        return {};
    } else if (keyword == "offset") {
      if (parser.parseEqual() || parser.parseInteger(offset))
        return {};
    } else if (keyword == "interleaved") {
      interleaved = true;
    } else {
      parser.emitError(loc) << "expected 'magnitude', 'offset' or 'interleaved', got '" << keyword
                            << "'";
      return {};
    }
  }
  if (parser.parseGreater())
    return {};
  return RotaryAttr::get(parser.getContext(),
                         DenseF32ArrayAttr::get(parser.getContext(), frequencies), magnitude,
                         offset, interleaved);
}

template <typename T>
static std::string printShortest(T value) {
  char text[64];
  auto [end, error] =
      std::to_chars(text, text + sizeof(text), value, std::chars_format::scientific);
  std::string result(text, end);
  // MLIR reads "1.0e+00" as a float but "1e+00" as an integer followed by a word.
  if (size_t exponent = result.find('e');
      exponent != std::string::npos && result.find('.') == std::string::npos)
    result.insert(exponent, ".0");
  return result;
}

std::string mlir::moec::moe::printReal(double value) { return printShortest(value); }
std::string mlir::moec::moe::printReal(float value) { return printShortest(value); }

void RotaryAttr::print(AsmPrinter &printer) const {
  printer << "<[";
  llvm::interleaveComma(getFrequencies().asArrayRef(), printer.getStream(),
                        [&](float value) { printer.getStream() << printReal(value); });
  printer << "]";
  if (getMagnitude().value != 1.0) {
    printer << ", magnitude = ";
    printer << getMagnitude();
  }
  if (getOffset() != 0)
    printer << ", offset = " << getOffset();
  if (getInterleaved())
    printer << ", interleaved";
  printer << ">";
}
