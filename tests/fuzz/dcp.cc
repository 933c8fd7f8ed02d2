// .metadata of torch.distributed.checkpoint.
#include <algorithm>
#include <string>

#include "lib/format/dcp/metadata.h"
#include "tests/fuzz/property.h"
#include "tests/fuzz/targets.h"

namespace shardtool::fuzz {

void dcp(std::string_view input) {
  const auto read =
      accepted([&] { return format::dcp::parse_metadata(std::string(input), ".metadata"); });
  if (!read) return;
  for (const std::string& file : read->files) {
    holds(!file.empty() && file.front() != '/' && file.front() != '.', "a file outside");
    holds(file.find("/.") == file.npos, "a file outside or hidden");
  }
  for (const auto& tensor : read->tensors) {
    for (const auto& chunk : tensor.chunks) {
      holds(chunk.file < read->files.size(), "a chunk in no file");
      holds(chunk.offset >= 0 && chunk.length >= 0, "a chunk at no place");
      holds(chunk.begin.size() == tensor.shape.size() && chunk.shape.size() == tensor.shape.size(),
            "a chunk of another rank");
      for (size_t axis = 0; axis < chunk.begin.size(); ++axis) {
        holds(chunk.begin[axis] >= 0 && chunk.shape[axis] >= 0 &&
                  chunk.begin[axis] <= tensor.shape[axis] - chunk.shape[axis],
              "a chunk leaves its tensor");
      }
    }
  }
  const auto by_name = [](const auto& a, const auto& b) { return a.name < b.name; };
  holds(std::is_sorted(read->tensors.begin(), read->tensors.end(), by_name), "tensors unsorted");
}

}  // namespace shardtool::fuzz
