#pragma once

#include <string>
#include <vector>

#include "lib/api/transform.h"
#include "tests/mapping/models.h"
#include "tests/support/checkpoint_files.h"

/// A small model as files, and the verbs on it.
namespace shardtool::test {

class ModelFiles {
 public:
  /// Writes the model into a folder, in tensors of bytes that differ from each other's.
  explicit ModelFiles(const mapping::TinyModel& model);
  ModelFiles(Tensors tensors, const std::string& config);

  /// A mapping that extends the preset, with these axes ("\"vocab\": null") and further members
  /// ("\"tied\": [...]") of its own.
  void extend(const std::string& preset, const std::string& axes, const std::string& more = "");

  /// Splits into a folder of this name, whose path it returns; over the mapping of the last
  /// `extend`, or the preset that config.json chooses.
  std::string split(const std::string& name, const std::string& mesh) const;
  /// The parts as one checkpoint; `merged` has its tensors.
  api::TransformReport merge(const std::string& parts) const;
  Tensors merged(const std::string& parts) const;
  std::string reshard(const std::string& parts, const std::string& mesh) const;

  const Tensor& tensor(const std::string& name) const { return whole_.at(name); }
  const Tensors& whole() const { return whole_; }

 private:
  api::MappingChoice choice(const std::string& mesh) const;

  TempFolder folder_;
  Tensors whole_;
  std::string mapping_;
};

/// What a rank holds.
Tensors shards(const std::string& parts, i64 rank);

/// Whether two sets hold the same names with the same shapes and bytes.
bool same_tensors(const Tensors& a, const Tensors& b);

/// These rows of the first axis, in this order.
Bytes rows(const Tensor& tensor, const std::vector<i64>& numbers);

}  // namespace shardtool::test
