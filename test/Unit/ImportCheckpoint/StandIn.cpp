#include "StandIn.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include <fcntl.h>
#include <unistd.h>

namespace fs = std::filesystem;

bool isShard(const std::string &name) { return name.ends_with(".safetensors"); }

std::string readFile(const fs::path &path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

std::string readHeader(const fs::path &path) {
  std::ifstream stream(path, std::ios::binary);
  uint64_t length = 0;
  stream.read(reinterpret_cast<char *>(&length), sizeof length);
  std::string header(length, '\0');
  stream.read(header.data(), std::streamsize(length));
  return header;
}

/// Where the last tensor ends, as far as that is a length for a file.
static uint64_t findDataBytes(const std::string &header) {
  constexpr uint64_t most = uint64_t(1) << 42;
  nlohmann::json parsed = nlohmann::json::parse(header, nullptr, false);
  uint64_t end = 0;
  if (parsed.is_object())
    for (const nlohmann::json &tensor : parsed)
      if (tensor.is_object() && tensor.contains("data_offsets") &&
          tensor["data_offsets"].is_array() && tensor["data_offsets"].size() == 2 &&
          tensor["data_offsets"][1].is_number_unsigned())
        end = std::max(end, std::min(most, tensor["data_offsets"][1].get<uint64_t>()));
  return end;
}

void writeStandIn(const fs::path &path, const std::string &content) {
  int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  std::string all;
  uint64_t bytes = content.size();
  if (isShard(path.filename())) {
    all.assign(reinterpret_cast<const char *>(&bytes), sizeof bytes);
    bytes += sizeof bytes + findDataBytes(content);
  }
  all += content;
  if (file < 0 || write(file, all.data(), all.size()) != ssize_t(all.size()) ||
      ftruncate(file, off_t(bytes)) != 0)
    std::abort();
  close(file);
}

std::vector<fs::path> findCheckpoints(const fs::path &root) {
  std::vector<fs::path> folders;
  if (fs::exists(root))
    for (const fs::directory_entry &entry : fs::recursive_directory_iterator(root))
      if (entry.path().filename() == "config.json")
        folders.push_back(entry.path().parent_path());
  return folders;
}

std::vector<std::string> copyStandIn(const fs::path &from, const fs::path &to) {
  std::vector<std::string> names;
  fs::create_directory(to);
  for (const fs::directory_entry &entry : fs::directory_iterator(from)) {
    std::string name = entry.path().filename();
    if (!isShard(name) && entry.path().extension() != ".json")
      continue;
    writeStandIn(to / name, isShard(name) ? readHeader(entry.path()) : readFile(entry.path()));
    names.push_back(name);
  }
  return names;
}
