#include "tests/layouts/rank_files.h"

#include <fmt/format.h>
#include <rapidcheck.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>

#include "lib/api/transfer/sources/layout_source.h"
#include "tests/layouts/model_parts.h"
#include "tests/support/generators.h"
#include "tests/support/torch_files.h"

namespace shardtool::api {

using test::Bytes;
using test::TempFolder;
using test::Tensor;
using test::Tensors;

namespace {

constexpr i64 kHidden = 2;
constexpr i64 kRowBytes = kHidden * 4;

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

}  // namespace

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

namespace {

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

}  // namespace

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

}  // namespace shardtool::api
