#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/format/checkpoint.h"
#include "lib/format/names.h"

namespace shardtool::format {

/// Files that an index may name.
struct IndexedFiles {
  bool (*accepts)(std::string_view name);
  std::string_view extension;  ///< for messages
  std::string_view example;
};

/// model.safetensors.index.json or pytorch_model.bin.index.json: the map from tensors to files.
struct HfIndex {
  struct Weight {
    std::string tensor;
    int file = 0;  ///< index into `files`
  };
  std::optional<i64> total_size;   ///< metadata.total_size: bytes of all tensors
  std::vector<std::string> files;  ///< sorted, each once, plain names
  std::vector<Weight> weights;     ///< sorted by tensor, each once
};

inline constexpr IndexedFiles kSafetensorsFiles{is_safetensors_name, ".safetensors",
                                                "model-00001-of-00002.safetensors"};

/// Throws kIndexInvalid with the place. Refuses a file name that is not plain before any code could
/// open it; with a sink that does not throw, its tensors and the total size are left out.
HfIndex parse_index(std::string_view text, const std::string& path,
                    const ProblemSink& report = throw_problem,
                    const IndexedFiles& accepted = kSafetensorsFiles);

/// Compares the index with the headers: every weight is in the file that the index names, and the
/// files hold no other tensors. The files of `tensors` are numbered as in the index; a name in two
/// files is left to report_tensors_in_two_files. Reports kIndexInvalid with the differences;
/// returns a warning when total_size is wrong.
std::vector<Warning> check_index(const HfIndex& index, const std::vector<StoredTensor>& tensors,
                                 const std::string& path,
                                 const ProblemSink& report = throw_problem);

}  // namespace shardtool::format
