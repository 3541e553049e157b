#include "runtime/base/Npy.h"

#include "runtime/base/CheckedMath.h"

#include <algorithm>
#include <cstring>

namespace moert {

namespace {

// The header is the text of a Python dictionary: {'descr': '<f4', 'fortran_order': False, 'shape':
// (2, 3), }. This reads exactly the form that numpy writes, in any order of the keys, and nothing
// else of Python.
class HeaderReader {
public:
  explicit HeaderReader(std::string_view text) : text(text) {}

  bool read() {
    if (!take('{'))
      return false;
    bool hasType = false, hasOrder = false, hasShape = false;
    while (!take('}')) {
      std::string key;
      if (!string(key) || !take(':'))
        return false;
      bool *seen;
      bool good;
      if (key == "descr") {
        seen = &hasType;
        good = string(type);
      } else if (key == "fortran_order") {
        seen = &hasOrder;
        good = boolean(fortranOrder);
      } else if (key == "shape") {
        seen = &hasShape;
        good = tuple(shape);
      } else {
        return false;
      }
      if (!good || std::exchange(*seen, true))
        return false;
      if (!take(',') && !peek('}'))
        return false;
    }
    skipSpace();
    return text.empty() && hasType && hasOrder && hasShape;
  }

  std::string type;
  bool fortranOrder = false;
  std::vector<std::int64_t> shape;

private:
  void skipSpace() {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\n'))
      text.remove_prefix(1);
  }
  bool peek(char wanted) {
    skipSpace();
    return !text.empty() && text.front() == wanted;
  }
  bool take(char wanted) {
    if (!peek(wanted))
      return false;
    text.remove_prefix(1);
    return true;
  }
  bool string(std::string &value) {
    skipSpace();
    if (text.empty() || (text.front() != '\'' && text.front() != '"'))
      return false;
    std::size_t end = text.find(text.front(), 1);
    if (end == std::string_view::npos)
      return false;
    value = text.substr(1, end - 1);
    text.remove_prefix(end + 1);
    return true;
  }
  bool boolean(bool &value) {
    skipSpace();
    for (bool candidate : {true, false}) {
      std::string_view word = candidate ? "True" : "False";
      if (text.substr(0, word.size()) == word) {
        text.remove_prefix(word.size());
        value = candidate;
        return true;
      }
    }
    return false;
  }
  bool tuple(std::vector<std::int64_t> &values) {
    if (!take('('))
      return false;
    while (!take(')')) {
      std::int64_t value = 0;
      skipSpace();
      std::size_t digits = 0;
      for (; !text.empty() && text.front() >= '0' && text.front() <= '9'; ++digits) {
        if (!checkedMultiply<std::int64_t>(value, 10, value) ||
            !checkedAdd<std::int64_t>(value, text.front() - '0', value))
          return false;
        text.remove_prefix(1);
      }
      if (digits == 0 || values.size() == 64)
        return false;
      values.push_back(value);
      if (!take(',') && !peek(')'))
        return false;
    }
    return true;
  }

  std::string_view text;
};

struct NumpyName {
  ElementType type;
  char kind;
};

// What numpy itself knows.
constexpr NumpyName numpyNames[] = {
    {ElementType::F16, 'f'}, {ElementType::F32, 'f'}, {ElementType::F64, 'f'},
    {ElementType::I1, 'b'},  {ElementType::I8, 'i'},  {ElementType::I16, 'i'},
    {ElementType::I32, 'i'}, {ElementType::I64, 'i'}, {ElementType::U8, 'u'},
    {ElementType::U16, 'u'}, {ElementType::U32, 'u'}, {ElementType::U64, 'u'},
};

// Bytes that one element of `type` takes in a file.
unsigned fileItemBytes(ElementType type) { return std::max(1u, storageBits(type) / 8); }

std::string typeDescription(char kind, unsigned bytes) {
  // numpy writes raw elements as '<V2' for types that ml_dtypes registers, '|V1' and '|b1' for
  // single bytes.
  return std::string(bytes == 1 ? "|" : "<") + kind + std::to_string(bytes);
}

// Column-major to row-major.
std::vector<std::byte> transpose(const std::vector<std::byte> &data,
                                 std::span<const std::int64_t> shape, unsigned itemBytes) {
  std::vector<std::byte> result(data.size());
  std::vector<std::int64_t> index(shape.size(), 0), strides(shape.size(), 1);
  for (std::size_t i = 1; i < shape.size(); ++i)
    strides[i] = strides[i - 1] * shape[i - 1];
  for (std::size_t at = 0; at < data.size(); at += itemBytes) {
    std::int64_t from = 0;
    for (std::size_t i = 0; i < shape.size(); ++i)
      from += index[i] * strides[i];
    std::memcpy(result.data() + at, data.data() + from * itemBytes, itemBytes);
    for (std::size_t i = shape.size(); i-- > 0;) {
      if (++index[i] < shape[i])
        break;
      index[i] = 0;
    }
  }
  return result;
}

} // namespace

ElementType NpyArray::type() const {
  for (const NumpyName &each : numpyNames)
    if (each.kind == kind && storageBits(each.type) == itemBytes * 8)
      return each.type;
  return ElementType::Unspecified;
}

std::string NpyArray::typeToString() const { return typeDescription(kind, itemBytes); }

Result<NpyArray> readNpy(const File &file, std::uint64_t limit) {
  auto damaged = [&](std::string message) {
    return Status(ErrorCode::InvalidData, std::move(message), file.name());
  };
  std::uint8_t start[12] = {};
  std::size_t startBytes = std::min<std::uint64_t>(sizeof start, file.size());
  MOERT_RETURN_IF_ERROR(file.readAt(std::as_writable_bytes(std::span(start)).first(startBytes), 0));
  if (startBytes < 10 || std::memcmp(start, "\x93NUMPY", 6) != 0)
    return damaged("no .npy file: it does not begin with the bytes \\x93NUMPY");
  unsigned version = start[6];
  if (version < 1 || version > 3)
    return Status(ErrorCode::Unsupported,
                  ".npy format " + std::to_string(version) + " is not known; 1 to 3 are",
                  file.name());
  std::uint64_t prefix = version == 1 ? 10 : 12;
  std::uint64_t headerBytes = start[8] | start[9] << 8;
  if (version > 1)
    headerBytes |= std::uint64_t(start[10]) << 16 | std::uint64_t(start[11]) << 24;
  if (headerBytes > 65536 || !rangeFits(prefix, headerBytes, file.size()))
    return damaged("the header claims " + std::to_string(headerBytes) +
                   " bytes, but the file has " + std::to_string(file.size()) +
                   " (and 65536 are accepted)");
  std::string text(headerBytes, '\0');
  MOERT_RETURN_IF_ERROR(file.readAt(std::as_writable_bytes(std::span(text)), prefix));
  HeaderReader header(text);
  if (!header.read())
    return damaged("the header is not understood: " + inQuotes(text));

  NpyArray array;
  std::string_view type = header.type;
  if (type.size() < 3 || std::string_view("<|=").find(type[0]) == std::string_view::npos ||
      std::string_view("fiubV").find(type[1]) == std::string_view::npos || type.size() > 4)
    return Status(ErrorCode::Unsupported, "element type " + inQuotes(type) + " is not supported",
                  file.name(), "store little-endian numbers");
  for (char digit : type.substr(2)) {
    if (digit < '0' || digit > '9')
      return damaged("element type " + inQuotes(type) + " is not understood");
    array.itemBytes = array.itemBytes * 10 + static_cast<unsigned>(digit - '0');
  }
  array.kind = type[1];
  array.shape = std::move(header.shape);
  if ((array.kind != 'V' && array.type() == ElementType::Unspecified) || array.itemBytes == 0 ||
      array.itemBytes > 8)
    return Status(ErrorCode::Unsupported, "element type " + inQuotes(type) + " is not supported",
                  file.name());
  std::optional<std::int64_t> count = elementCount(array.shape);
  std::int64_t bytes;
  if (!count || !checkedMultiply<std::int64_t>(*count, array.itemBytes, bytes))
    return damaged("shape " + shapeToString(array.shape) + " is too large");
  std::uint64_t found = file.size() - prefix - headerBytes;
  if (static_cast<std::uint64_t>(bytes) != found)
    return damaged("shape " + shapeToString(array.shape) + " of " + header.type + " takes " +
                   std::to_string(bytes) + " bytes, the file holds " + std::to_string(found));
  if (found > limit)
    return damaged("the array has " + std::to_string(found) + " bytes; at most " +
                   std::to_string(limit) + " are accepted");
  array.data.resize(found);
  MOERT_RETURN_IF_ERROR(file.readAt(array.data, prefix + headerBytes));
  if (header.fortranOrder && array.shape.size() > 1)
    array.data = transpose(array.data, array.shape, array.itemBytes);
  return array;
}

Result<std::vector<std::byte>> NpyArray::elements(ElementType wanted) const {
  unsigned width = fileItemBytes(wanted);
  bool numpyKnows = std::any_of(std::begin(numpyNames), std::end(numpyNames),
                                [&](const NumpyName &each) { return each.type == wanted; });
  bool matches = type() == wanted;
  if (!matches && itemBytes == width)
    matches = kind == 'V' || (kind == 'u' && !numpyKnows) ||
              (kind == 'i' && (wanted == ElementType::I4 || wanted == ElementType::I2));
  if (!matches)
    return Status(ErrorCode::InvalidArgument, "expected elements of " +
                                                  std::string(elementTypeName(wanted)) +
                                                  ", found " + typeToString());
  if (!isPacked(wanted))
    return data;
  unsigned bits = storageBits(wanted), perByte = 8 / bits;
  std::vector<std::byte> packed((data.size() + perByte - 1) / perByte);
  for (std::size_t i = 0; i < data.size(); ++i) {
    unsigned value = static_cast<unsigned>(data[i]) & ((1u << bits) - 1);
    packed[i / perByte] |= static_cast<std::byte>(value << (i % perByte * bits));
  }
  return packed;
}

Result<std::vector<std::int64_t>> NpyArray::integers(std::int64_t least, std::int64_t most) const {
  if (kind != 'i' && kind != 'u')
    return Status(ErrorCode::InvalidArgument, "expected integers, found " + typeToString());
  std::vector<std::int64_t> result;
  result.reserve(data.size() / itemBytes);
  for (std::size_t at = 0; at < data.size(); at += itemBytes) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, data.data() + at, itemBytes);
    unsigned unused = 64 - 8 * itemBytes;
    auto value = static_cast<std::int64_t>(bits);
    if (kind == 'i') // spread the sign
      value = static_cast<std::int64_t>(bits << unused) >> unused;
    if (value < least || value > most || (kind == 'u' && value < 0))
      return Status(ErrorCode::InvalidArgument,
                    "element " + std::to_string(result.size()) + " is " +
                        (kind == 'u' ? std::to_string(bits) : std::to_string(value)) +
                        "; expected " + std::to_string(least) + " to " + std::to_string(most));
    result.push_back(value);
  }
  return result;
}

Status writeNpy(const std::string &path, ElementType type, std::span<const std::int64_t> shape,
                std::span<const std::byte> bytes) {
  auto wanted = tensorBytes(type, shape);
  if (!wanted || *wanted != bytes.size())
    return {ErrorCode::InvalidArgument,
            "shape " + shapeToString(shape) + " of " + std::string(elementTypeName(type)) +
                " does not take " + std::to_string(bytes.size()) + " bytes",
            path};
  char kind = 'V';
  for (const NumpyName &each : numpyNames)
    if (each.type == type)
      kind = each.kind;
  std::string header = "{'descr': '" + typeDescription(kind, fileItemBytes(type)) +
                       "', 'fortran_order': False, 'shape': (";
  for (std::int64_t size : shape)
    header += std::to_string(size) + ", ";
  if (shape.size() > 1)
    header.resize(header.size() - 2);
  else if (shape.size() == 1)
    header.resize(header.size() - 1); // a tuple of one element keeps its comma
  header += "), }";
  // The data begins at a multiple of 64; the header ends in a newline.
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  std::string start("\x93NUMPY\x01\x00", 8);
  start += static_cast<char>(header.size() & 255);
  start += static_cast<char>(header.size() >> 8);

  MOERT_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::create(path));
  MOERT_RETURN_IF_ERROR(file.write(start + header));
  if (!isPacked(type)) {
    MOERT_RETURN_IF_ERROR(file.write(bytes));
  } else {
    unsigned bits = storageBits(type), perByte = 8 / bits;
    std::vector<std::byte> unpacked(static_cast<std::size_t>(*elementCount(shape)));
    bool isSigned = type == ElementType::I4 || type == ElementType::I2;
    for (std::size_t i = 0; i < unpacked.size(); ++i) {
      unsigned value = static_cast<unsigned>(bytes[i / perByte]) >> (i % perByte * bits);
      value &= (1u << bits) - 1;
      if (isSigned && value >> (bits - 1)) // ml_dtypes keeps the sign in the whole byte
        value |= 0xffu << bits & 0xff;
      unpacked[i] = static_cast<std::byte>(value);
    }
    MOERT_RETURN_IF_ERROR(file.write(unpacked));
  }
  return file.commit();
}

} // namespace moert
