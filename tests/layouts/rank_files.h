#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/support/checkpoint_files.h"
#include "tests/support/temp_folder.h"

/// Folders with a file per rank, as Megatron-LM writes them.
namespace shardtool::api {

/// A small model and its ranks.
struct RankedModel {
  i64 tp = 1;
  std::vector<std::vector<i64>> layers;  ///< by chunk and stage: their number
  i64 groups = 1;                        ///< of heads; a head has one row
  i64 queries = 1;                       ///< per group
  i64 ffn = 1;
  i64 vocab = 3;
  double version = 3;
  bool is_of_old_class = false;  ///< of Megatron's model before megatron-core
};
RankedModel random_ranked_model();
RankedModel two_by_two();

test::Tensor f32(const std::string& name, const Shape& shape, test::Bytes bytes);
void append(test::Bytes& to, const test::Bytes& more);

/// The whole model, under the names of Hugging Face.
test::Tensors whole_model(const RankedModel& model);
/// A file as Megatron-LM's save_checkpoint writes it: the modules of the rank, by their key.
std::string rank_file(const std::map<std::string, test::Tensors>& modules,
                      const RankedModel& model);
/// Writes a file per rank, and config.json, to the folder "iter".
void write_ranks(const test::TempFolder& folder, const test::Tensors& whole,
                 const RankedModel& model);
/// Merges the files of that folder.
test::Tensors merged_ranks(const test::TempFolder& folder);

}  // namespace shardtool::api
