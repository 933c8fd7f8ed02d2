#include "lib/format/torch/deepspeed.h"

#include <doctest/doctest.h>

#include "lib/format/checkpoint.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"
#include "tests/support/torch_files.h"

namespace shardtool::format::torch {
namespace {

using test::TempFolder;

/// Writes a file of torch.save with one tensor of this shape.
void write(const TempFolder& folder, const std::string& name, const Shape& shape) {
  folder.write(name, test::torch_zip({{"w", test::numbered_tensor("w", Dtype::kBF16, shape)}}));
}

std::string help_of(const std::string& path) {
  const auto error = testing::error_of([&] { open_checkpoint(path); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kUnsupported);
  REQUIRE_FALSE(error->help_lines().empty());
  return error->help_lines().front();
}

TEST_CASE("the weights of DeepSpeed's ZeRO 1 and 2 are in a file that the advice names") {
  const TempFolder folder;
  write(folder, "bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt", {3});
  write(folder, "bf16_zero_pp_rank_1_mp_rank_00_optim_states.pt", {3});
  write(folder, "mp_rank_00_model_states.pt", {4, 2});
  CHECK(help_of(folder.path()).find("/mp_rank_00_model_states.pt#module ") != std::string::npos);
  CHECK_NOTHROW(open_checkpoint(folder / "mp_rank_00_model_states.pt"));
  write(folder, "mp_rank_01_model_states.pt", {4, 2});
  CHECK(help_of(folder.path()).find("several model-parallel ranks") != std::string::npos);
  CHECK(help_of(folder.path()).find("ds_to_universal") == std::string::npos);
}

TEST_CASE("DeepSpeed's ZeRO 3 leaves no weights in the files of the model, which are refused") {
  const TempFolder folder;
  for (const std::string rank : {"0", "1"}) {
    write(folder, "zero_pp_rank_" + rank + "_mp_rank_00_model_states.pt", {0});
    write(folder, "zero_pp_rank_" + rank + "_mp_rank_00_optim_states.pt", {3});
  }
  CHECK(help_of(folder.path()).find("zero_to_fp32.py") != std::string::npos);
  CHECK(help_of(folder.path()).find("universal checkpoint") != std::string::npos);
  const std::string file = folder / "zero_pp_rank_0_mp_rank_00_model_states.pt";
  CHECK(help_of(file).find("zero_to_fp32.py") != std::string::npos);
}

TEST_CASE("several files that are not DeepSpeed's need an index") {
  const TempFolder folder;
  write(folder, "a.pt", {3});
  write(folder, "b.pt", {3});
  CHECK(help_of(folder.path()).find("pytorch_model.bin.index.json") != std::string::npos);
}

}  // namespace
}  // namespace shardtool::format::torch
