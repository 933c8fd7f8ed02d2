#pragma once

#include <span>
#include <string>
#include <vector>

#include "lib/store/local/output_folder.h"

/// Runs of two ids, and an output of two files.
namespace shardtool::store {

inline const std::string kId(32, 'a');
inline const std::string kOtherId(32, 'b');

/// Files that `fill` writes.
inline const std::vector<WrittenFile> kFilled{{"a", 1}, {"b", 1}};

inline void fill(OutputFolder& output) {
  for (const std::string name : {"a", "b"}) {
    write_exact(output.create(name), std::as_bytes(std::span(name)), 0);
  }
}

inline void write_output(const std::string& path, Existing existing = Existing::kRefuse) {
  OutputFolder output(OutputClaim(path, existing), kId, Leftover::kDiscard);
  fill(output);
  output.publish(kFilled);
}

}  // namespace shardtool::store
