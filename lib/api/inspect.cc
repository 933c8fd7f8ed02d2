#include "lib/api/inspect.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "lib/api/drawn_rules.h"
#include "lib/api/mapping/applied_mapping.h"
#include "lib/api/mapping/mapping_choice.h"
#include "lib/api/tensor_view.h"
#include "lib/api/transfer/placed_tensors.h"
#include "lib/api/transfer/sources/layout_source.h"
#include "lib/api/transfer/sources/logical_checkpoint.h"
#include "lib/api/transfer/sources/open_source.h"
#include "lib/base/error.h"
#include "lib/base/name_map.h"
#include "lib/format/gguf/model.h"
#include "lib/mapping/document/glob.h"
#include "lib/mapping/document/name_form.h"
#include "lib/mapping/presets.h"
#include "lib/model/packed_format.h"

namespace shardtool::api {
namespace {

/// Module of a tensor name, with every number replaced by *: model.layers.*.mlp.
std::string module_of(std::string_view name) {
  return mapping::name_form(name.substr(0, name.rfind('.')));
}

/// Sums per group, in order of first appearance; then sorted by size.
class Groups {
 public:
  void add(std::string name, i64 bytes) {
    const auto [found, is_new] = number_.try_emplace(std::move(name), groups_.size());
    if (is_new) groups_.push_back({found->first, 0, 0});
    ++groups_[found->second].tensors;
    groups_[found->second].bytes += bytes;
  }
  std::vector<InspectGroup> largest_first() {
    std::stable_sort(groups_.begin(), groups_.end(),
                     [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
    return std::move(groups_);
  }

 private:
  NameMap<size_t> number_;
  std::vector<InspectGroup> groups_;
};

void add_config(InspectReport& report, const mapping::ModelConfig& config) {
  struct Known {
    const char* name;
    std::array<const char*, 3> paths;
  };
  static constexpr std::array<Known, 6> kKnown{{
      {"layers", {"num_hidden_layers", "n_layer", "num_layers"}},
      {"hidden", {"hidden_size", "n_embd", "d_model"}},
      {"heads", {"num_attention_heads", "n_head", "num_heads"}},
      {"kv_heads", {"num_key_value_heads", "num_kv_heads", "n_head_kv"}},
      {"head_dim", {"head_dim", "d_kv", "attention_head_dim"}},
      {"vocab", {"vocab_size", "padded_vocab_size", "n_vocab"}},
  }};
  for (const Known& known : kKnown) {
    for (const char* path : known.paths) {
      const auto* value = config.find(path);
      if (!value || !value->is_number_integer()) continue;
      report.config.emplace(known.name, value->get<i64>());
      break;
    }
  }
  report.model_type = config.model_type();
  const auto architectures = config.architectures();
  if (!architectures.empty()) report.architecture = architectures.front();
}

/// Sums of a report, tensor by tensor.
class Summary {
 public:
  explicit Summary(InspectReport& report) : report_(report) {}

  void add(std::string_view name, std::string_view dtype, const Shape& shape, i64 bytes) {
    ++report_.tensors;
    report_.parameters += element_count(shape).value_or(0);
    report_.bytes += bytes;
    dtypes_.add(std::string(dtype), bytes);
    modules_.add(module_of(name), bytes);
  }
  void finish() {
    report_.dtypes = dtypes_.largest_first();
    report_.modules = modules_.largest_first();
  }

 private:
  InspectReport& report_;
  Groups dtypes_;
  Groups modules_;
};

void summarize(InspectReport& report, const LogicalCheckpoint& source) {
  Summary summary(report);
  for (const LogicalTensor& tensor : source.tensors) {
    const TensorSpec& spec = tensor.spec;
    summary.add(spec.name, to_string(spec.dtype), spec.shape,
                byte_size(spec.dtype, spec.shape).value_or(0));
  }
  summary.finish();
  report.files = static_cast<i64>(source.files.size());
}

void add_rank_bytes(InspectReport& report, const std::vector<InspectShard>& shards) {
  for (const InspectShard& shard : shards) {
    report.bytes_per_rank[static_cast<size_t>(shard.rank)] += shard.bytes;
  }
}

/// Counts the elements of packed weights in place of the numbers that hold several of them, of
/// scales and of zeros. Counts stored numbers where config.json and the tensors do not fit.
void count_packed(InspectReport& report, const mapping::ModelConfig& config,
                  const std::vector<TensorSpec>& specs) {
  try {
    for (const model::PackedWeight& weight : model::packed_weights(config, specs)) {
      for (const size_t member : weight.members())
        report.parameters -= element_count(specs[member].shape).value_or(0);
      report.parameters += element_count(weight.spec.shape).value_or(0);
    }
  } catch (const Error& error) {
    if (!why_not_this_model(error)) throw;
  }
}

/// True if the options say how to cut, and not only which config.json to read.
bool shows_cut(const InspectOptions& options) {
  return options.mapping && says_cut(*options.mapping);
}

/// Adds the cut of every tensor, from the chosen mapping or from the manifest.
void add_layout(InspectReport& report, const LogicalCheckpoint& source,
                const InspectOptions& options, std::vector<InspectTensor>& tensors) {
  if (shows_cut(options)) {
    const AppliedMapping applied = apply_mapping(over_own_mesh(source, *options.mapping), source);
    report.mesh = applied.resolution.mesh;
    for (const mapping::ResolvedTensor& resolved : applied.resolution.tensors) {
      describe_resolved(tensors[resolved.tensor], resolved);
    }
  } else if (source.is_sharded()) {
    report.mesh = source.parts.front().manifest->mesh;
    for (size_t t = 0; t < tensors.size(); ++t) describe_recorded(tensors[t], source.tensors[t]);
  } else {
    return;
  }
  report.bytes_per_rank.assign(static_cast<size_t>(report.mesh->size()), 0);
  for (const InspectTensor& tensor : tensors) add_rank_bytes(report, tensor.shards);
}

/// Adds what pictures show, if the checkpoint has a layout.
void add_rules(InspectReport& report, const LogicalCheckpoint& source,
               const InspectOptions& options) {
  if (!shows_cut(options) && !source.is_sharded()) return;
  const MappingChoice choice = options.mapping.value_or(MappingChoice{});
  const AppliedMapping applied = apply_mapping(over_own_mesh(source, choice), source);
  report.rules = drawn_rules(applied.resolution, applied.specs);
}

template <class Named>
void keep_matching(std::vector<Named>& all, const std::string& filter) {
  if (filter.empty()) return;
  const auto matches = mapping::glob_filter(filter);
  std::erase_if(all, [&](const Named& one) { return !matches(one.name); });
}

/// Entries without tensors. The files of several ranks have the same ones.
std::vector<InspectEntry> other_entries(const LogicalCheckpoint& source) {
  std::vector<InspectEntry> entries;
  for (const format::Checkpoint& part : source.parts) {
    for (const format::OtherEntry& entry : part.others) entries.push_back({entry.name, entry.what});
  }
  std::ranges::sort(entries);
  const auto [last, end] = std::ranges::unique(entries);
  entries.erase(last, end);
  return entries;
}

/// Numbers of the pairs that describe a GGUF model, under the names that config.json's have.
void add_pairs(InspectReport& report, const format::gguf::Header& header) {
  const format::gguf::Pair* architecture = header.find("general.architecture");
  if (architecture != nullptr) report.architecture = architecture->text;
  struct Known {
    const char* name;
    std::string key;
  };
  const std::string& model = report.architecture;
  const std::array<Known, 6> known{{{"layers", model + ".block_count"},
                                    {"hidden", model + ".embedding_length"},
                                    {"heads", model + ".attention.head_count"},
                                    {"kv_heads", model + ".attention.head_count_kv"},
                                    {"head_dim", model + ".attention.key_length"},
                                    {"vocab", "tokenizer.ggml.tokens"}}};
  for (const Known& number : known) {
    const format::gguf::Pair* pair = header.find(number.key);
    const bool is_list = pair != nullptr && pair->type.starts_with("array");
    if (pair == nullptr || !pair->number || is_list != (number.key == known.back().key)) continue;
    report.config.emplace(number.name, *pair->number);
  }
}

InspectReport inspect_gguf(const InspectOptions& options, const std::string& place) {
  if (options.mapping) {
    throw Error(ErrorCode::kUnsupported, "a GGUF model has no mapping: it is not cut")
        .at({options.source, 0, 0, ""})
        .help("inspect the safetensors checkpoint that it was made from");
  }
  InspectReport report;
  report.path = place;
  const auto model = format::gguf::open_model(place, format::throw_problem);
  report.format = fmt::format("GGUF v{}", model.head().version);
  report.files = std::ssize(model.files);
  add_pairs(report, model.head());
  Summary summary(report);
  for (const format::gguf::ModelFile& file : model.files) {
    for (const format::gguf::TensorInfo& tensor : file.header.tensors) {
      const std::string dtype(tensor.type->name);
      summary.add(tensor.name, dtype, tensor.shape, tensor.bytes);
      if (!options.list_tensors) continue;
      InspectTensor& listed = report.list.emplace_back();
      listed.name = tensor.name;
      listed.dtype = dtype;
      listed.shape = tensor.shape;
      listed.bytes = tensor.bytes;
      listed.file = file.name;
      listed.offset = tensor.offset;
    }
  }
  summary.finish();
  keep_matching(report.list, options.filter);
  return report;
}

}  // namespace

InspectReport inspect(const InspectOptions& options) {
  const format::TypedLocation typed = parse_source(options.source);
  if (format::gguf::is_gguf(typed)) return inspect_gguf(options, typed.place);
  const LogicalCheckpoint source = open_logical(
      {options.source},
      {.takes_files_of_ranks = true, .mapping = options.mapping.value_or(MappingChoice())});
  InspectReport report;
  report.path = source.parts.front().path;
  report.format = source.parts.front().format;
  report.warnings = source.warnings();
  const std::string advice = layout_advice(source);
  if (!advice.empty()) report.warnings.push_back(advice);
  summarize(report, source);
  const auto config = source.config();
  if (config) {
    add_config(report, *config);
    count_packed(report, *config, source.specs());
    if (advice.empty()) {
      report.preset = mapping::detect_preset(*config, source.specs()).value_or("");
    }
  }
  if (options.draws) add_rules(report, source, options);
  if (options.list_tensors) {
    report.others = other_entries(source);
    keep_matching(report.others, options.filter);
  }
  if (!options.list_tensors && !shows_cut(options) && !source.is_sharded()) return report;
  std::vector<InspectTensor> tensors;
  tensors.reserve(source.tensors.size());
  for (const LogicalTensor& tensor : source.tensors)
    tensors.push_back(describe_stored(tensor, source));
  add_layout(report, source, options, tensors);
  keep_matching(tensors, options.filter);
  if (options.list_tensors) report.list = std::move(tensors);
  return report;
}

}  // namespace shardtool::api
