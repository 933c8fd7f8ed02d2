// manifest.json of an output.
#include "lib/format/manifest/manifest.h"

#include <string>

#include "lib/format/names.h"
#include "tests/fuzz/property.h"
#include "tests/fuzz/targets.h"

namespace shardtool::fuzz {

void manifest(std::string_view input) {
  const auto read =
      accepted([&] { return format::parse_manifest(std::string(input), "manifest.json"); });
  if (!read) return;
  for (const auto& file : read->files) {
    holds(format::is_plain_file_name(file.name), "a name that is not plain was accepted");
  }
  for (const auto& tensor : read->tensors) {
    holds(tensor.holders->size() == static_cast<int>(tensor.shards.size()), "a shard of nobody");
    holds(tensor.holders->shape() == tensor.shape, "shards of another tensor");
    holds(tensor.shifts.empty() || tensor.shifts.size() == tensor.shards.size(),
          "shifts of other shards");
    for (const auto& shard : tensor.shards) {
      const auto& file = read->files.at(static_cast<size_t>(shard.file));
      holds(shard.offset >= 0 && shard.bytes >= 0 && shard.offset <= file.bytes - shard.bytes,
            "a shard lies outside its file");
    }
  }
  const std::string written = to_json(*read);
  const auto again = format::parse_manifest(written, "again");
  holds(to_json(again) == written, "written and read again, the manifest differs");
}

}  // namespace shardtool::fuzz
