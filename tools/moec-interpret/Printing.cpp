#include "tools/moec-interpret/Printing.h"

#include "moec/Dialect/MoE/Reference/Layout.h"

#include "runtime/base/File.h"
#include "runtime/base/Npy.h"

#include <cmath>
#include <cstring>

using namespace mlir;
using namespace mlir::moec::moe;

//===------------------------------------------------------------------------------------------===//
// Text
//===------------------------------------------------------------------------------------------===//

static void printScalar(llvm::raw_ostream &stream, Scalar scalar, const ScalarType &type) {
  if (!type.isReal())
    stream << scalar.integer;
  else if (std::isnan(scalar.real))
    stream << "nan";
  else if (type.getBits() == 64)
    stream << printReal(scalar.real);
  else
    stream << printReal(static_cast<float>(scalar.real));
}

static void printTensor(llvm::raw_ostream &stream, const ReferenceTensor &tensor) {
  stream << tensor.getElementType() << " " << describeShape(tensor.getShape()) << "\n";
  int64_t width = tensor.getRank() == 0 ? 1 : tensor.getShape().back();
  for (int64_t first = 0; first < tensor.getSize(); first += width) {
    stream << "  [";
    for (int64_t i = 0; i < width; ++i) {
      stream << (i ? ", " : "");
      printScalar(stream, tensor.get(first + i), tensor.getScalarType());
    }
    stream << "]\n";
  }
}

namespace moec {

void printValue(llvm::raw_ostream &stream, llvm::StringRef title, const ReferenceValue &value,
                Type type) {
  stream << title << ": ";
  if (value.isScalar()) {
    stream << type << " ";
    printScalar(stream, value.getScalar(), *ScalarType::get(type));
    stream << "\n";
  } else if (getLayout(type) || value.isTensor()) {
    std::string problem;
    FailureOr<ReferenceTensor> buffer = packLayout(value, type, problem);
    if (succeeded(buffer))
      printTensor(stream, *buffer);
    else
      stream << problem << "\n";
  } else {
    stream << type << "\n";
  }
}

} // namespace moec

//===------------------------------------------------------------------------------------------===//
// .npy
//===------------------------------------------------------------------------------------------===//

static std::optional<moert::ElementType> getFileType(Type type) {
  using moert::ElementType;
  if (type.isF32())
    return ElementType::F32;
  if (type.isF64())
    return ElementType::F64;
  if (type.isBF16())
    return ElementType::BF16;
  if (type.isF16())
    return ElementType::F16;
  if (type.isInteger(1))
    return ElementType::I1;
  if (type.isInteger(8))
    return type.isUnsignedInteger() ? ElementType::U8 : ElementType::I8;
  if (type.isInteger(16))
    return type.isUnsignedInteger() ? ElementType::U16 : ElementType::I16;
  if (type.isInteger(32))
    return type.isUnsignedInteger() ? ElementType::U32 : ElementType::I32;
  if (type.isInteger(64))
    return type.isUnsignedInteger() ? ElementType::U64 : ElementType::I64;
  return std::nullopt;
}

static moert::Result<moert::ElementType> requireFileType(Type type, const std::string &path) {
  if (std::optional<moert::ElementType> known = getFileType(type))
    return *known;
  std::string text;
  llvm::raw_string_ostream(text) << "elements of type " << type << " have no .npy form here";
  return moert::Status(moert::ErrorCode::Unsupported, text, path);
}

namespace moec {

moert::Result<ReferenceTensor> readTensor(const std::string &path, RankedTensorType type) {
  MOERT_ASSIGN_OR_RETURN(moert::ElementType fileType, requireFileType(type.getElementType(), path));
  MOERT_ASSIGN_OR_RETURN(moert::File file, moert::File::open(path));
  MOERT_ASSIGN_OR_RETURN(moert::NpyArray array,
                         moert::readNpy(file, ReferenceTensor::largestBytes));
  moert::Result<std::vector<std::byte>> elements = array.elements(fileType);
  if (!elements.isOk())
    return std::move(elements).status().in(path);
  FailureOr<ReferenceTensor> tensor = ReferenceTensor::create(type.getElementType(), array.shape);
  if (failed(tensor) || tensor->getBytes().size() != elements->size())
    return moert::Status(moert::ErrorCode::InvalidData, "the array is too large", path);
  llvm::copy(*elements, tensor->getMutableBytes().begin());
  return *tensor;
}

moert::Status writeTensor(const std::string &path, const ReferenceTensor &tensor) {
  MOERT_ASSIGN_OR_RETURN(moert::ElementType fileType,
                         requireFileType(tensor.getElementType(), path));
  return moert::writeNpy(path, fileType, {tensor.getShape().data(), tensor.getShape().size()},
                         {tensor.getBytes().data(), tensor.getBytes().size()});
}

} // namespace moec
