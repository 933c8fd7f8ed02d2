#pragma once

#include <string>

#include "tests/mapping/models.h"
#include "tests/support/checkpoint_files.h"

namespace shardtool::api {

/// A checkpoint on disk, for as long as the object lives.
class StoredModel {
 public:
  /// Leaves out the tensor named `missing`.
  explicit StoredModel(const mapping::TinyModel& model, const std::string& missing = "") {
    test::Tensors tensors;
    for (const TensorSpec& spec : model.tensors) tensors[spec.name] = test::distinct_tensor(spec);
    tensors.erase(missing);
    test::write_checkpoint(folder_.path(), tensors);
    folder_.write("config.json", model.config);
  }
  const std::string& path() const { return folder_.path(); }

 private:
  test::TempFolder folder_;
};

}  // namespace shardtool::api
