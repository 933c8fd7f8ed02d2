#pragma once

#include <string>
#include <vector>

#include "lib/api/transform.h"
#include "tests/mapping/models.h"
#include "tests/support/checkpoint_files.h"

/// A small model as files, with the verbs applied to it.
namespace shardtool::test {

class ModelFiles {
 public:
  /// Writes the model into a folder, with different bytes in each tensor.
  explicit ModelFiles(const mapping::TinyModel& model);
  ModelFiles(Tensors tensors, const std::string& config);

  /// Makes a mapping that extends the preset with its own axes ("\"vocab\": null") and members
  /// ("\"tied\": [...]").
  void extend(const std::string& preset, const std::string& axes, const std::string& more = "");

  /// Splits into a folder of this name and returns its path. Uses the mapping of the last `extend`,
  /// or the preset that config.json selects.
  std::string split(const std::string& name, const std::string& mesh) const;
  /// Merges the parts into one checkpoint; `merged` returns its tensors.
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

/// Returns the tensors of a rank.
Tensors shards(const std::string& parts, i64 rank);

/// True if two sets have the same names, shapes and bytes.
bool same_tensors(const Tensors& a, const Tensors& b);

/// Returns these rows of the first axis, in this order.
Bytes rows(const Tensor& tensor, const std::vector<i64>& numbers);

}  // namespace shardtool::test
