#include "tests/bench/llama_checkpoint.h"

#include <fmt/format.h>

#include <cstring>
#include <filesystem>
#include <vector>

#include "lib/base/tensor_spec.h"
#include "lib/format/shard_files.h"
#include "lib/store/local/file.h"
#include "tests/bench/command_sample.h"

namespace shardtool::bench {
namespace {

constexpr i64 kKvRows = 1024;
constexpr i64 kVocab = 128256;
constexpr i64 kUnlimited = i64{1} << 62;

std::vector<TensorSpec> llama_tensors(LlamaSize size) {
  const auto [hidden, heads, mlp] = size.widths;
  std::vector<TensorSpec> tensors{{"model.embed_tokens.weight", Dtype::kBF16, {kVocab, hidden}},
                                  {"model.norm.weight", Dtype::kBF16, {hidden}}};
  if (size.with_head) tensors.push_back({"lm_head.weight", Dtype::kBF16, {kVocab, hidden}});
  for (int layer = 0; layer < size.layers; ++layer) {
    const auto add = [&](const char* name, Shape shape) {
      tensors.push_back(
          {fmt::format("model.layers.{}.{}.weight", layer, name), Dtype::kBF16, std::move(shape)});
    };
    add("input_layernorm", {hidden});
    add("post_attention_layernorm", {hidden});
    add("self_attn.q_proj", {hidden, hidden});
    add("self_attn.k_proj", {kKvRows, hidden});
    add("self_attn.v_proj", {kKvRows, hidden});
    add("self_attn.o_proj", {hidden, hidden});
    add("mlp.gate_proj", {mlp, hidden});
    add("mlp.up_proj", {mlp, hidden});
    add("mlp.down_proj", {hidden, mlp});
  }
  return tensors;
}

/// Fills with xorshift64*, which is fast and repeats no block.
void fill_random(std::vector<std::byte>& block, std::uint64_t& state) {
  for (size_t i = 0; i + 8 <= block.size(); i += 8) {
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    const std::uint64_t value = state * 0x2545F4914F6CDD1DULL;
    std::memcpy(block.data() + i, &value, 8);
  }
}

i64 write_file(const std::string& folder, std::span<const TensorSpec> tensors, bool sparse) {
  std::filesystem::create_directories(folder);
  const format::TensorTable table(tensors);
  const format::FilePlan plan = format::plan_whole_files(table, kUnlimited);
  const format::PlannedFile& planned = plan.files.front();
  const store::File file = store::create_new(folder + "/" + planned.name);
  const std::string header = header_text(planned, table);
  store::write_exact(file, std::as_bytes(std::span(header)), 0);
  if (sparse) {
    std::filesystem::resize_file(folder + "/" + planned.name,
                                 static_cast<std::uintmax_t>(planned.size));
    return planned.size;
  }
  std::vector<std::byte> block(4 << 20);
  std::uint64_t state = 88172645463325252ULL;
  for (i64 at = planned.data_begin; at < planned.size;) {
    fill_random(block, state);
    const i64 size = std::min<i64>(planned.size - at, static_cast<i64>(block.size()));
    store::write_exact(file, std::span(block).first(static_cast<size_t>(size)), at);
    at += size;
  }
  store::sync(file);
  return planned.size;
}

}  // namespace

i64 write_llama_checkpoint(const std::string& folder, LlamaSize size, bool sparse) {
  const i64 bytes = write_file(folder, llama_tensors(size), sparse);
  store::write_new_file(
      folder + "/config.json",
      fmt::format(R"({{"architectures": ["LlamaForCausalLM"], "model_type": "llama",
 "hidden_size": {}, "num_attention_heads": {}, "num_key_value_heads": 8, "intermediate_size": {},
 "num_hidden_layers": {}, "vocab_size": {}, "tie_word_embeddings": {}}}
)",
                  size.widths.hidden, size.widths.heads, size.widths.mlp, size.layers, kVocab,
                  !size.with_head));
  return bytes;
}

double write_parted_llama(const std::string& tool, const std::string& folder, LlamaSize size,
                          bool sparse) {
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  const i64 bytes = write_llama_checkpoint(folder + "/whole", size, sparse);
  run(fmt::format("{0} split {1}/whole -o {1}/tp4 --preset llama --mesh tp=4 -q > /dev/null", tool,
                  folder));
  return static_cast<double>(bytes);
}

i64 write_header(const std::string& folder, std::span<const TensorSpec> tensors) {
  return write_file(folder, tensors, true);
}

i64 write_deepseek_header(const std::string& folder, i64 count) {
  constexpr i64 kExperts = 256;
  std::vector<TensorSpec> tensors;
  for (i64 layer = 3; static_cast<i64>(tensors.size()) < count; ++layer) {
    for (i64 expert = 0; expert < kExperts; ++expert) {
      for (const char* part : {"gate_proj", "up_proj", "down_proj"}) {
        const std::string name =
            fmt::format("model.layers.{}.mlp.experts.{}.{}.", layer, expert, part);
        const bool down = std::string_view(part) == "down_proj";
        tensors.push_back(
            {name + "weight", Dtype::kF8E4M3, down ? Shape{7168, 2048} : Shape{2048, 7168}});
        tensors.push_back(
            {name + "weight_scale_inv", Dtype::kF32, down ? Shape{56, 16} : Shape{16, 56}});
      }
    }
  }
  tensors.resize(static_cast<size_t>(count));
  return write_file(folder, tensors, true);
}

i64 write_equal_tensors(const std::string& folder, i64 count, i64 rows) {
  std::vector<TensorSpec> tensors;
  for (i64 t = 0; t < count; ++t) {
    tensors.push_back(
        {fmt::format("model.layers.{}.mlp.experts.{:04}.up_proj.weight", t / 1500, t % 1500),
         Dtype::kBF16,
         {rows, 128}});
  }
  return write_file(folder, tensors, false);
}

}  // namespace shardtool::bench
