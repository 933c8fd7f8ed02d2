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
#include "lib/format/checkpoint.h"
#include "lib/format/torch/megatron_ranks.h"
#include "tests/layouts/model_parts.h"
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

constexpr i64 kHidden = 2;
constexpr i64 kRowBytes = kHidden * 4;

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

/// Name of a parameter in the model before megatron-core (Megatron-LM 2021 to 2024,
/// megatron/model/transformer.py and language_model.py).
std::string old_name(std::string name) {
  const std::pair<std::string, std::string> words[] = {
      {"embedding.word", "language_model.embedding.word"},
      {"output_layer", "language_model.output_layer"},
      {"decoder.layers", "language_model.encoder.layers"},
      {"linear_qkv", "query_key_value"},
      {"linear_proj", "dense"},
      {"linear_fc1", "dense_h_to_4h"},
      {"linear_fc2", "dense_4h_to_h"},
      {"input_layernorm", "input_norm"},
      {"pre_mlp_layernorm", "post_attention_norm"}};
  for (const auto& [now, then] : words) {
    const size_t at = name.find(now);
    if (at != std::string::npos) name.replace(at, now.size(), then);
  }
  return name;
}

/// Rows of consecutive numbers from `begin` on.
Bytes numbered_rows(i64 rows, i64& begin) {
  std::vector<std::int32_t> values(static_cast<size_t>(rows * kHidden));
  std::iota(values.begin(), values.end(), static_cast<std::int32_t>(begin));
  begin += rows * kHidden;
  Bytes bytes(values.size() * 4);
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

Bytes rows_of(const Tensor& tensor, i64 begin, i64 count) {
  const auto at = tensor.bytes.begin();
  return Bytes(at + begin * kRowBytes, at + (begin + count) * kRowBytes);
}

Tensor f32(const std::string& name, const Shape& shape, Bytes bytes) {
  return {{name, Dtype::kF32, shape}, std::move(bytes)};
}

/// The whole model, under the names of Hugging Face.
Tensors whole_model(const RankedModel& model) {
  Tensors whole;
  i64 next = 0;
  const auto add = [&](const std::string& name, i64 rows) {
    whole[name] = f32(name, {rows, kHidden}, numbered_rows(rows, next));
  };
  add("model.embed_tokens.weight", model.vocab);
  add("lm_head.weight", model.vocab);
  const auto add_wide = [&](const std::string& name, i64 columns) {  // its columns are cut
    whole[name] = f32(name, {kHidden, columns}, {});
    const i64 end = next + kHidden * columns;
    for (; next < end; ++next) {
      const auto value = static_cast<std::int32_t>(next);
      const auto* bytes = reinterpret_cast<const std::uint8_t*>(&value);
      whole[name].bytes.insert(whole[name].bytes.end(), bytes, bytes + 4);
    }
  };
  i64 layers = 0;
  for (const auto& stages : model.layers) layers += std::reduce(stages.begin(), stages.end());
  for (i64 layer = 0; layer < layers; ++layer) {
    const std::string at = fmt::format("model.layers.{}.", layer);
    add(at + "self_attn.q_proj.weight", model.groups * model.queries);
    add(at + "self_attn.k_proj.weight", model.groups);
    add(at + "self_attn.v_proj.weight", model.groups);
    add(at + "mlp.gate_proj.weight", model.ffn * model.tp);
    add(at + "mlp.up_proj.weight", model.ffn * model.tp);
    add(at + "input_layernorm.weight", 1);
    add(at + "post_attention_layernorm.weight", 1);
    add_wide(at + "self_attn.o_proj.weight", model.groups * model.queries);
    add_wide(at + "mlp.down_proj.weight", model.ffn * model.tp);
  }
  return whole;
}

void append(Bytes& to, const Bytes& more) {
  to.insert(to.end(), more.begin(), more.end());
}

/// Adds the shards of a rank of tp of one layer, under the names of Megatron with this number.
void add_layer(Tensors& rank, const Tensors& whole, const RankedModel& model, i64 tp, i64 global,
               i64 local) {
  const auto of = [&](const std::string& name) -> const Tensor& {
    return whole.at(fmt::format("model.layers.{}.{}.weight", global, name));
  };
  const auto add = [&](const std::string& name, const Shape& shape, Bytes bytes) {
    const std::string full = fmt::format("decoder.layers.{}.{}.weight", local, name);
    rank[full] = f32(full, shape, std::move(bytes));
  };
  const i64 groups = model.groups / model.tp;
  Bytes qkv;
  for (i64 group = tp * groups; group < (tp + 1) * groups; ++group) {
    append(qkv, rows_of(of("self_attn.q_proj"), group * model.queries, model.queries));
    append(qkv, rows_of(of("self_attn.k_proj"), group, 1));
    append(qkv, rows_of(of("self_attn.v_proj"), group, 1));
  }
  add("self_attention.linear_qkv", {groups * (model.queries + 2), kHidden}, std::move(qkv));
  Bytes gate_up = rows_of(of("mlp.gate_proj"), tp * model.ffn, model.ffn);
  append(gate_up, rows_of(of("mlp.up_proj"), tp * model.ffn, model.ffn));
  add("mlp.linear_fc1", {2 * model.ffn, kHidden}, std::move(gate_up));
  const auto add_columns = [&](const std::string& name, const std::string& from) {
    const Tensor& wide = of(from);
    const i64 columns = wide.spec.shape[1] / model.tp;
    Bytes part;
    for (i64 row = 0; row < kHidden; ++row) {
      const auto begin = wide.bytes.begin() + 4 * columns * (row * model.tp + tp);
      part.insert(part.end(), begin, begin + 4 * columns);
    }
    add(name, {kHidden, columns}, std::move(part));
  };
  add_columns("self_attention.linear_proj", "self_attn.o_proj");
  add_columns("mlp.linear_fc2", "mlp.down_proj");
  add("pre_mlp_layernorm", {1, kHidden}, of("post_attention_layernorm").bytes);
  const auto norm = whole.find(fmt::format("model.layers.{}.input_layernorm.weight", global));
  if (norm != whole.end()) add("input_layernorm", {1, kHidden}, norm->second.bytes);
}

/// Rows of this rank of tp, of a table padded to the same rows on each.
Tensor table_of(const Tensor& whole, const std::string& name, const RankedModel& model, i64 tp) {
  const i64 rows = (model.vocab + model.tp - 1) / model.tp;
  Bytes padded = whole.bytes;
  padded.resize(static_cast<size_t>(rows * model.tp * kRowBytes), 0xee);
  return f32(name, {rows, kHidden},
             rows_of(f32("", {rows * model.tp, kHidden}, padded), tp * rows, rows));
}

/// A file as Megatron-LM's save_checkpoint writes it: the modules of the rank, by their key.
std::string rank_file(const std::map<std::string, Tensors>& modules, const RankedModel& model) {
  test::PickleWriter pickle;
  std::vector<std::pair<std::string, std::string>> storages;
  pickle.raw("}(").text("checkpoint_version").integer(static_cast<i64>(model.version));
  const auto tensor_of = [&](const Tensor& tensor) {
    const std::string key = std::to_string(storages.size());
    storages.emplace_back(key, std::string(tensor.bytes.begin(), tensor.bytes.end()));
    return test::torch_tensor(tensor.spec, {key, element_count(tensor.spec.shape).value(), 0,
                                            test::row_major(tensor.spec.shape)});
  };
  for (const auto& [key, tensors] : modules) {
    pickle.text(key).raw("}(");
    for (const auto& [name, tensor] : tensors) {
      pickle.text(model.is_of_old_class ? old_name(name) : name).raw(tensor_of(tensor));
    }
    pickle.raw("u");
  }
  pickle.text("optimizer")
      .raw("}(")
      .text("exp_avg")
      .raw(tensor_of(f32("", {1}, Bytes(4))))
      .raw("u");
  return test::torch_zip(pickle.raw("u").finished(), storages);
}

void write_ranks(const TempFolder& folder, const Tensors& whole, const RankedModel& model) {
  const size_t chunks = model.layers.size();
  const size_t stages = model.layers.front().size();
  for (i64 tp = 0; tp < model.tp; ++tp) {
    std::vector<std::map<std::string, Tensors>> ranks(stages);
    i64 layer = 0;
    for (size_t chunk = 0; chunk < chunks; ++chunk) {
      for (size_t pp = 0; pp < stages; ++pp) {
        Tensors& module = ranks[pp][chunks == 1 ? "model" : fmt::format("model{}", chunk)];
        for (i64 local = 0; local < model.layers[chunk][pp]; ++local) {
          add_layer(module, whole, model, tp, layer++, local);
        }
        const std::string first = "embedding.word_embeddings.weight";
        const std::string last = "output_layer.weight";
        if (chunk == 0 && pp == 0) {
          module[first] = table_of(whole.at("model.embed_tokens.weight"), first, model, tp);
        }
        if (chunk + 1 == chunks && pp + 1 == stages) {
          module[last] = table_of(whole.at("lm_head.weight"), last, model, tp);
        }
      }
    }
    for (size_t pp = 0; pp < stages; ++pp) {
      const std::string name = stages == 1 ? fmt::format("mp_rank_{:02}", tp)
                                           : fmt::format("mp_rank_{:02}_{:03}", tp, pp);
      folder.write("iter/" + name + "/model_optim_rng.pt", rank_file(ranks[pp], model));
    }
  }
  const nlohmann::json config = {{"model_type", "llama"},
                                 {"num_attention_heads", model.groups * model.queries},
                                 {"num_key_value_heads", model.groups},
                                 {"vocab_size", model.vocab}};
  folder.write("iter/config.json", config.dump());
}

Tensors merged_ranks(const TempFolder& folder) {
  test::write_parts(open_in_layout({{folder / "iter"}, "megatron", ""}), folder / "merged");
  return test::read_tensors(folder / "merged", "");
}

RankedModel random_ranked_model() {
  RankedModel model;
  model.tp = *rc::gen::element<i64>(1, 2, 3);
  model.groups = model.tp * *gen::between(1, 2);
  model.queries = *gen::between(1, 3);
  model.ffn = *gen::between(1, 3);
  model.vocab = *gen::between(model.tp, 9);
  model.is_of_old_class = *rc::gen::arbitrary<bool>();
  const i64 stages = *gen::between(1, 3);
  for (i64 chunk = *gen::between(1, 2); chunk-- > 0;) {
    auto& counts = model.layers.emplace_back();
    for (i64 pp = 0; pp < stages; ++pp) counts.push_back(*gen::between(1, 2));
  }
  return model;
}

RankedModel two_by_two() {
  return {2, {{1, 1}}, 2, 2, 2, 3, 3, false};
}

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

namespace {

/// Ranks of a model with experts, of one layer per stage.
struct ExpertRanks {
  i64 tp = 1, pp = 1, ep = 1;
  i64 experts = 1;          ///< per rank of ep
  i64 ffn = 1;              ///< of an expert, per rank of tp
  bool is_grouped = false;  ///< named as TransformerEngine's grouped layer
};

std::string expert_name(const ExpertRanks& ranks, i64 expert, const std::string& layer) {
  return ranks.is_grouped ? fmt::format("mlp.experts.{}.weight{}", layer, expert)
                          : fmt::format("mlp.experts.local_experts.{}.{}.weight", expert, layer);
}

/// Experts [rows, 1], so that a part of rows or columns is a range of the bytes.
Tensors whole_experts(const ExpertRanks& ranks) {
  Tensors whole;
  std::int32_t next = 0;
  const auto add = [&](const std::string& name, const Shape& shape) {
    Bytes bytes(static_cast<size_t>(element_count(shape).value() * 4));
    for (size_t i = 0; i < bytes.size(); i += 4) std::memcpy(&bytes[i], &++next, 4);
    whole[name] = f32(name, shape, std::move(bytes));
  };
  add("model.norm.weight", {2});
  for (i64 layer = 0; layer < ranks.pp; ++layer) {
    const std::string mlp = fmt::format("model.layers.{}.mlp.", layer);
    add(mlp + "gate.weight", {ranks.ep * ranks.experts, 1});
    for (i64 e = 0; e < ranks.ep * ranks.experts; ++e) {
      const std::string expert = fmt::format("{}experts.{}.", mlp, e);
      add(expert + "gate_proj.weight", {ranks.ffn * ranks.tp, 1});
      add(expert + "up_proj.weight", {ranks.ffn * ranks.tp, 1});
      add(expert + "down_proj.weight", {1, ranks.ffn * ranks.tp});
    }
  }
  return whole;
}

Tensors experts_of_rank(const ExpertRanks& ranks, const Tensors& whole, i64 tp, i64 pp, i64 ep) {
  Tensors rank;
  const auto add = [&rank](const std::string& name, const Shape& shape, Bytes bytes) {
    rank[name] = f32(name, shape, std::move(bytes));
  };
  const auto part = [&](const std::string& name) {
    const auto at = whole.at(name).bytes.begin();
    return Bytes(at + tp * ranks.ffn * 4, at + (tp + 1) * ranks.ffn * 4);
  };
  const std::string last = "decoder.final_layernorm.weight";
  if (pp + 1 == ranks.pp) add(last, {2}, whole.at("model.norm.weight").bytes);
  const std::string mlp = fmt::format("model.layers.{}.mlp.", pp);
  const std::string layer = "decoder.layers.0.";
  add(layer + "mlp.router.weight", {ranks.ep * ranks.experts, 1},
      whole.at(mlp + "gate.weight").bytes);
  for (i64 e = 0; e < ranks.experts; ++e) {
    const std::string expert = fmt::format("{}experts.{}.", mlp, ep * ranks.experts + e);
    Bytes gate_up = part(expert + "gate_proj.weight");
    append(gate_up, part(expert + "up_proj.weight"));
    add(layer + expert_name(ranks, e, "linear_fc1"), {2 * ranks.ffn, 1}, std::move(gate_up));
    add(layer + expert_name(ranks, e, "linear_fc2"), {1, ranks.ffn},
        part(expert + "down_proj.weight"));
  }
  return rank;
}

void write_expert_ranks(const TempFolder& folder, const ExpertRanks& ranks, const Tensors& whole) {
  for (i64 tp = 0; tp < ranks.tp; ++tp) {
    for (i64 pp = 0; pp < ranks.pp; ++pp) {
      for (i64 ep = 0; ep < ranks.ep; ++ep) {
        std::string name = fmt::format("mp_rank_{:02}", tp);
        if (ranks.pp > 1) name += fmt::format("_{:03}", pp);
        if (ranks.ep > 1) name += fmt::format("_{:03}", ep);
        folder.write("iter/" + name + "/model_optim_rng.pt",
                     rank_file({{"model", experts_of_rank(ranks, whole, tp, pp, ep)}}, {}));
      }
    }
  }
  folder.write("iter/config.json", R"({"model_type": "qwen3_moe"})");
}

}  // namespace

TEST_CASE("experts of any ranks merge to the model they are of") {
  rc::check("", [] {
    const ExpertRanks ranks{*gen::between(1, 2), *gen::between(1, 3), *gen::between(1, 3),
                            *gen::between(1, 3), *gen::between(1, 2), *rc::gen::arbitrary<bool>()};
    const TempFolder folder;
    const Tensors whole = whole_experts(ranks);
    write_expert_ranks(folder, ranks, whole);
    const Tensors merged = merged_ranks(folder);
    RC_ASSERT(merged.size() == whole.size());
    for (const auto& [name, tensor] : whole) {
      RC_ASSERT(merged.at(name).spec.shape == tensor.spec.shape);
      RC_ASSERT(merged.at(name).bytes == tensor.bytes);
    }
  });
}

TEST_CASE("ranks of ep with different numbers of experts are refused") {
  const ExpertRanks ranks{1, 1, 2, 2, 1, false};
  const ExpertRanks fewer{1, 1, 2, 1, 1, false};
  const TempFolder folder;
  write_expert_ranks(folder, ranks, whole_experts(ranks));
  const auto other = experts_of_rank(fewer, whole_experts(fewer), 0, 0, 1);
  folder.write("iter/mp_rank_00_001/model_optim_rng.pt", rank_file({{"model", other}}, {}));
  const auto error = testing::error_of([&] { merged_ranks(folder); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kCoverage);
  CHECK(error->message() == "the ranks of ep have different numbers of experts");
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
