// Checkpoints of Megatron with a file per rank, which hold the parameters of the rank's module.
#include "lib/api/transfer/sources/rank_source.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <rapidcheck.h>

#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>

#include "lib/api/transfer/sources/layout_source.h"
#include "lib/api/transfer/sources/stored_data.h"
#include "lib/format/checkpoint.h"
#include "lib/format/torch/megatron_ranks.h"
#include "tests/layouts/model_parts.h"
#include "tests/layouts/rank_files.h"
#include "tests/support/generators.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"
#include "tests/support/torch_files.h"

namespace shardtool::api {
namespace {

using test::Bytes;
using test::TempFolder;
using test::Tensor;
using test::Tensors;

/// Error of merging what `change` made of a folder with ranks.
template <class Change>
ErrorCode code_after(const RankedModel& model, const Change& change) {
  const TempFolder folder;
  write_ranks(folder, whole_model(model), model);
  change(folder);
  const auto error = testing::error_of([&] { merged_ranks(folder); });
  REQUIRE(error);
  return error->code();
}

}  // namespace

TEST_CASE("rank files of any tensor and pipeline parallelism merge to the model they are of") {
  CHECK(rc::check([] {
    const TempFolder folder;
    const RankedModel model = random_ranked_model();
    const Tensors whole = whole_model(model);
    write_ranks(folder, whole, model);
    const Tensors found = merged_ranks(folder);
    RC_ASSERT(found.size() == whole.size());
    for (const auto& [name, tensor] : whole) {
      RC_ASSERT(found.contains(name));
      RC_ASSERT(found.at(name).spec.shape == tensor.spec.shape);
      RC_ASSERT(found.at(name).bytes == tensor.bytes);
    }
  }));
}

TEST_CASE("what rank files merge to opens by its manifest") {
  const TempFolder folder;
  const RankedModel model = two_by_two();
  write_ranks(folder, whole_model(model), model);
  merged_ranks(folder);
  const format::Checkpoint opened = format::open_checkpoint(folder / "merged");
  REQUIRE(opened.manifest);
  CHECK(opened.manifest->source.front().name == "mp_rank_00_000/model_optim_rng.pt");
}

TEST_CASE("rank files that lack layers or tensors of config.json's model are refused") {
  const RankedModel model = two_by_two();
  const auto with = [](const std::string& numbers) {
    return [numbers](const TempFolder& folder) {
      folder.write("iter/config.json", R"({"model_type": "llama", "vocab_size": 3,
        "architectures": ["LlamaForCausalLM"], "num_attention_heads": 4, )" +
                                           numbers + "}");
    };
  };
  const std::string right = R"("num_key_value_heads": 2, "num_hidden_layers": 2, "head_dim": 1)";
  {
    const TempFolder folder;
    write_ranks(folder, whole_model(model), model);
    with(right)(folder);
    CHECK(merged_ranks(folder).size() == whole_model(model).size());
  }
  const auto without_last_stage = [&](const TempFolder& folder) {
    with(right)(folder);
    for (const char* rank : {"iter/mp_rank_00_001", "iter/mp_rank_01_001"})
      std::filesystem::remove_all(folder / rank);
  };
  CHECK(code_after(model, without_last_stage) == ErrorCode::kCoverage);
  CHECK(code_after(model, with(R"("num_key_value_heads": 2, "num_hidden_layers": 3)")) ==
        ErrorCode::kCoverage);
  CHECK(code_after(model, with(R"("num_key_value_heads": 2, "num_hidden_layers": 1)")) ==
        ErrorCode::kShapeMismatch);
  Tensors lacking = whole_model(model);
  lacking.erase("model.layers.1.input_layernorm.weight");
  const TempFolder folder;
  write_ranks(folder, lacking, model);
  CHECK_ERROR(kCoverage, merged_ranks(folder));
}

TEST_CASE("rank files that were exchanged between pipeline stages, or copied, are refused") {
  const RankedModel model = two_by_two();
  const auto file_of = [](const TempFolder& folder, const char* rank) {
    return folder / (std::string("iter/") + rank + "/model_optim_rng.pt");
  };
  const auto exchange = [&](const TempFolder& folder) {
    for (const auto& [first, last] :
         {std::pair("mp_rank_00_000", "mp_rank_00_001"), {"mp_rank_01_000", "mp_rank_01_001"}}) {
      std::filesystem::rename(file_of(folder, first), folder / "kept");
      std::filesystem::rename(file_of(folder, last), file_of(folder, first));
      std::filesystem::rename(folder / "kept", file_of(folder, last));
    }
  };
  CHECK(code_after(model, exchange) == ErrorCode::kCoverage);
  const auto copy = [&](const TempFolder& folder) {
    std::filesystem::copy_file(file_of(folder, "mp_rank_00_000"), file_of(folder, "mp_rank_01_000"),
                               std::filesystem::copy_options::overwrite_existing);
  };
  CHECK(code_after(model, copy) == ErrorCode::kDataMismatch);
}

TEST_CASE("rank files whose rows divide by another model's heads are refused") {
  const RankedModel model{1, {{1}}, 4, 1, 2, 3, 3, false};  // 12 rows of q, k and v
  const auto of_other_model = [](const TempFolder& folder) {
    folder.write("iter/config.json", R"({"model_type": "llama", "vocab_size": 3,
      "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 1, "num_hidden_layers": 1,
      "hidden_size": 2, "intermediate_size": 2})");
  };
  CHECK(code_after(model, of_other_model) == ErrorCode::kShapeMismatch);
}

TEST_CASE("inspect shows what every rank has, and nothing of the optimizer") {
  const TempFolder folder;
  const RankedModel model = two_by_two();
  write_ranks(folder, whole_model(model), model);
  const format::Checkpoint opened = format::open_checkpoint(folder / "iter");
  CHECK(opened.format == format::torch::kMegatronRanks);
  CHECK(opened.files.size() == 4);
  CHECK(opened.tensors.size() == 4 * 6 + 2 * 2);
  for (const format::StoredTensor& tensor : opened.tensors) {
    CHECK(tensor.name.starts_with("mp_rank_0"));
  }
  CHECK(format::open_checkpoint("torch:" + (folder / "iter")).tensors.size() == 28);
}

TEST_CASE("the bytes of a tensor that holds several of the model's are counted once") {
  const TempFolder folder;
  const RankedModel model = two_by_two();
  write_ranks(folder, whole_model(model), model);
  i64 stored = 0;
  for (const auto& tensor : format::open_checkpoint(folder / "iter").tensors) {
    stored += *byte_size(tensor.dtype, tensor.shape);
  }
  check::StoredBytes counted;
  for (const LogicalTensor& tensor : open_in_layout({{folder / "iter"}, "megatron", ""}).tensors) {
    counted.add(stored_data(tensor));
  }
  CHECK(counted.total() == stored);
}

TEST_CASE("ranks that are missing, damaged, too many or too old are refused") {
  namespace fs = std::filesystem;
  const RankedModel model = two_by_two();
  CHECK(code_after(model, [](const TempFolder& folder) {
          fs::remove_all(folder / "iter/mp_rank_01_000");
        }) == ErrorCode::kFileMissing);
  CHECK(code_after(model, [](const TempFolder& folder) {
          fs::rename(folder / "iter/mp_rank_00_000", folder / "iter/mp_rank_00_000_000");
        }) == ErrorCode::kFileMissing);
  CHECK(code_after(model, [](const TempFolder& folder) {
          fs::copy_file(folder / "iter/mp_rank_00_001/model_optim_rng.pt",
                        folder / "iter/mp_rank_00_000/model_optim_rng.pt",
                        fs::copy_options::overwrite_existing);
        }) == ErrorCode::kCoverage);
  CHECK(code_after(model, [](const TempFolder& folder) {
          folder.write("iter/mp_rank_999999999_000/model_optim_rng.pt", "");
        }) == ErrorCode::kLimit);
  CHECK(code_after(model, [](const TempFolder& folder) {
          folder.write("iter/mp_rank_00_999999999_999999999/model_optim_rng.pt", "");
        }) == ErrorCode::kLimit);
  CHECK(code_after(model, [](const TempFolder& folder) {
          folder.write("iter/mp_rank_00_001/model_optim_rng.pt", "no archive");
        }) == ErrorCode::kUnsupported);
  RankedModel old = model;
  old.version = 1;
  CHECK(code_after(old, [](const TempFolder&) {}) == ErrorCode::kUnsupported);
  RankedModel shared = model;
  shared.queries = 3;
  const auto with_fewer_groups = [](const TempFolder& folder) {
    folder.write("iter/config.json", R"({"model_type": "llama", "num_attention_heads": 6,
      "num_key_value_heads": 1, "vocab_size": 3})");
  };
  CHECK(code_after(shared, with_fewer_groups) == ErrorCode::kUnsupported);
}

TEST_CASE("replicas of the ranks that are not equal are found") {
  const RankedModel model = two_by_two();
  const TempFolder folder;
  const Tensors whole = whole_model(model);
  write_ranks(folder, whole, model);
  Tensors other = whole;
  other.at("model.layers.0.input_layernorm.weight").bytes.front() ^= 1;
  const TempFolder changed;
  write_ranks(changed, other, model);
  std::filesystem::copy_file(changed / "iter/mp_rank_01_000/model_optim_rng.pt",
                             folder / "iter/mp_rank_01_000/model_optim_rng.pt",
                             std::filesystem::copy_options::overwrite_existing);
  const auto error = testing::error_of([&] { merged_ranks(folder); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kDataMismatch);
  CHECK(error->message().find("mp_rank_01_000/model_optim_rng.pt") != std::string::npos);
}

TEST_CASE("names of Megatron's folders and tensors are parsed strictly") {
  using format::torch::megatron_rank;
  using format::torch::megatron_tensor;
  CHECK(megatron_rank("mp_rank_03")->tp == 3);
  CHECK(megatron_rank("mp_rank_03_012")->second == 12);
  CHECK(megatron_rank("mp_rank_03_012_001")->third == 1);
  for (const char* name : {"mp_rank_3", "mp_rank_03_1", "mp_rank_03_", "mp_rank_03_001_001_001",
                           "mp_rank_0x", "mp_rank_0000000003", "xmp_rank_00", "mp_rank_"}) {
    CHECK_FALSE(megatron_rank(name));
  }
  const auto tensor = megatron_tensor("mp_rank_01_002.model1.a.b");
  REQUIRE(tensor);
  CHECK(tensor->rank.second == 2);
  CHECK(tensor->chunk == 1);
  CHECK(tensor->name == "a.b");
  for (const char* name :
       {"model.a", "mp_rank_00.optimizer.a", "mp_rank_00.models.a", "mp_rank_00"}) {
    CHECK_FALSE(megatron_tensor(name));
  }
}

}  // namespace shardtool::api
