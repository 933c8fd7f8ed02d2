#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/checkpoint/checkpoint.h"

namespace shardtool::checkpoint {

/// model.safetensors.index.json: which file holds which tensor.
struct HfIndex {
  struct Weight {
    std::string tensor;
    int file = 0;  ///< index into `files`
  };
  std::optional<i64> total_size;   ///< metadata.total_size: bytes of all tensors
  std::vector<std::string> files;  ///< sorted, each once, plain names
  std::vector<Weight> weights;     ///< sorted by tensor, each once, not empty
};

/// Throws kIndexInvalid with the place. A file name that is not plain is refused before anything
/// could open it; with a sink that does not throw, its tensors are left out.
HfIndex parse_index(std::string_view text, const std::string& path,
                    const ProblemSink& report = throw_problem);

/// Holds the index against the headers: every weight is in the file that it names, and nothing else
/// is anywhere. `tensors` has names once, with files numbered like the index's.
/// Reports kIndexInvalid and lists what is wrong; returns a warning when total_size is wrong.
std::vector<Warning> check_index(const HfIndex& index, const std::vector<StoredTensor>& tensors,
                                 const std::string& path,
                                 const ProblemSink& report = throw_problem);

}  // namespace shardtool::checkpoint
