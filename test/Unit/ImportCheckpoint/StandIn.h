// Checkpoints without weights: configs and headers as they are, holes in place of the data.
#ifndef MOEC_TEST_UNIT_IMPORTCHECKPOINT_STANDIN_H
#define MOEC_TEST_UNIT_IMPORTCHECKPOINT_STANDIN_H

#include <filesystem>
#include <string>
#include <vector>

bool isShard(const std::string &name);
std::string readFile(const std::filesystem::path &path);
/// The JSON of a shard's header.
std::string readHeader(const std::filesystem::path &path);
/// Writes `content`; that of a shard is its header, and the file is as large as that claims.
void writeStandIn(const std::filesystem::path &path, const std::string &content);

/// Folders below `root`, at any depth, that have a config.json.
std::vector<std::filesystem::path> findCheckpoints(const std::filesystem::path &root);
/// The JSON files and the shards of `from`. -> their names.
std::vector<std::string> copyStandIn(const std::filesystem::path &from,
                                     const std::filesystem::path &to);

#endif
