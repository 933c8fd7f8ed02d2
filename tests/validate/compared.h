#pragma once

#include <memory>
#include <string>

#include "lib/api/proof/bound_side.h"

namespace shardtool::test {

/// A model and its split, prepared for comparison by an engine.
class Compared {
 public:
  Compared(const std::string& model, const std::string& parts);
  const engine::Side& whole() const { return whole_->side(); }
  const engine::Side& shards() const { return shards_->side(); }

 private:
  api::LogicalCheckpoint whole_files_, shards_files_;
  mapping::ModelConfig config_;
  std::unique_ptr<api::BoundSide> whole_, shards_;
};

}  // namespace shardtool::test
