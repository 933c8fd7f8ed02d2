#include "lib/api/planning/plan_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "kernels/xxh3/xxh3.h"
#include "lib/api/mapping/recorded_mapping.h"
#include "lib/api/plan.h"
#include "lib/api/transfer/sources/open_source.h"
#include "lib/base/error.h"
#include "lib/base/strict_json.h"
#include "lib/base/text.h"
#include "lib/mapping/resolve/resolve.h"
#include "lib/store/local/file.h"

namespace shardtool::api {
namespace {

using nlohmann::json;

constexpr std::string_view kSealKey = ",\"seal\":\"";
constexpr size_t kHashDigits = 32;

std::string hash_of(std::string_view text) {
  return kernels::xxh3_hex(std::as_bytes(std::span(text)));
}

Error refusal(const std::string& path, const std::string& why) {
  Error error(ErrorCode::kPlanInvalid, why);
  error.at({path, 0, 0, {}});
  return error;
}

std::vector<format::FileRecord> records_of(const LogicalCheckpoint& source) {
  std::vector<format::FileRecord> records;
  for (const format::Checkpoint& part : source.parts) {
    for (const format::SourceFile& file : part.files) {
      records.push_back({file.name, file.identity.size, file.header_xxh3});
    }
  }
  std::sort(records.begin(), records.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  return records;
}

void check_seal(const std::string& text, const std::string& path) {
  const size_t at = text.rfind(kSealKey);
  const std::string ending = "\"}\n";
  const size_t digits = at == std::string::npos ? 0 : at + kSealKey.size();
  if (digits == 0 || text.size() != digits + kHashDigits + ending.size() ||
      !text.ends_with(ending)) {
    throw refusal(path, "the file has no seal at its end: it is not a plan that can be applied")
        .help("make one with `shardtool plan SRC --to-mesh ... -o FILE`");
  }
  if (text.substr(digits, kHashDigits) == hash_of(std::string_view(text).substr(0, at))) return;
  throw refusal(path, "the file was edited after it was made: its seal does not fit")
      .help("plan again with other flags instead");
}

void check_version(const json& document, const std::string& path) {
  const json& format = document.at("format_version");
  const json& tool = document.at("tool").at("version");
  if (format.get<std::string>() == "1.0" && tool.get<std::string>() == SHARDTOOL_VERSION) return;
  throw refusal(path, fmt::format("the plan was made by version {}, format {}",
                                  tool.get<std::string>(), format.get<std::string>()))
      .note("this is", fmt::format("version {}, format 1.0", SHARDTOOL_VERSION))
      .help("plan again with this version");
}

/// Returns an integer of at least `least`. Throws json::exception for anything else.
i64 count_of(const json& object, const char* key, i64 least = 0) {
  const json& number = object.at(key);
  const bool fits = number.is_number_integer() &&
                    (!number.is_number_unsigned() ||
                     number.get<std::uint64_t>() <= std::uint64_t{std::numeric_limits<i64>::max()});
  if (fits && number.get<i64>() >= least) return number.get<i64>();
  throw json::other_error::create(501, "not a count", &object);
}

PlanRecipe recipe_of(const json& apply) {
  PlanRecipe recipe;
  recipe.sources = apply.at("sources").get<std::vector<std::string>>();
  for (const json& file : apply.at("files")) {
    recipe.files.push_back({file.at("name").get<std::string>(), count_of(file, "bytes"),
                            file.at("header_xxh3").get<std::string>()});
  }
  if (apply.contains("values_xxh3")) recipe.values_xxh3 = apply["values_xxh3"].get<std::string>();
  recipe.config = apply.value("model_config", "");
  recipe.mapping = apply.at("mapping").dump();
  recipe.mesh = apply.at("mesh").get<std::string>();
  recipe.layout = apply.at("layout").get<std::string>();
  recipe.require_even = apply.at("require_even").get<bool>();
  recipe.allow_empty_shards = apply.at("allow_empty_shards").get<bool>();
  recipe.target_xxh3 = apply.at("target_xxh3").get<std::string>();
  recipe.node_size = count_of(apply, "node_size", 1);
  recipe.bytes_moved = count_of(apply, "bytes_moved");
  recipe.bytes_kept = count_of(apply, "bytes_kept");
  recipe.transfers = count_of(apply, "transfers_count");
  return recipe;
}

/// Returns a text that describes a layout completely; equal layouts have equal texts.
std::string placement_text(const layout::Layout& layout) {
  std::string text;
  for (size_t h = 0; h < layout.ranks().size(); ++h) {
    text += fmt::format("{}:", layout.ranks()[h]);
    for (const index::AxisMap& map : layout.holders().region(static_cast<int>(h))) {
      text += format::slices_json(map);
    }
  }
  return text;
}

/// Returns the XXH3-128 of the names, dtypes and regions of all tensors on all ranks.
std::string layout_hash(const LogicalCheckpoint& source, const AppliedMapping& applied) {
  std::map<const layout::Layout*, std::string> hashes;
  kernels::Xxh3 all;
  for (const mapping::ResolvedTensor& tensor : applied.resolution.tensors) {
    const auto [found, is_new] = hashes.try_emplace(tensor.layout.get());
    if (is_new) found->second = hash_of(placement_text(*tensor.layout));
    const TensorSpec& spec = source.tensors[tensor.tensor].spec;
    const std::string line =
        fmt::format("{} {} {}\n", spec.name, to_string(spec.dtype), found->second);
    all.update(std::as_bytes(std::span(line)));
  }
  return all.hex();
}

/// Returns the XXH3-128 of the names and digests of all tensors that have a digest in the manifest;
/// empty if none has. Headers of shards are the same for every model of these shapes.
std::string values_hash(const LogicalCheckpoint& source) {
  kernels::Xxh3 all;
  bool has_digests = false;
  for (const LogicalTensor& tensor : source.tensors) {
    if (!tensor.digest) continue;
    has_digests = true;
    const std::string line = fmt::format("{} {:016x}\n", tensor.spec.name, *tensor.digest);
    all.update(std::as_bytes(std::span(line)));
  }
  return has_digests ? all.hex() : std::string();
}

/// Throws kInputChanged with the file if the opened files differ from the plan's, and if the
/// manifest has digests of other values than the plan's input.
void check_same_input(const PlanRecipe& recipe, const LogicalCheckpoint& source,
                      const std::string& plan_path) {
  const auto changed = [&](const std::string& file, const char* how) {
    return std::move(
        Error(ErrorCode::kInputChanged, fmt::format("'{}' {}", quote_for_message(file), how))
            .note("plan", plan_path)
            .help("plan again: a plan is applied to the input that it was made for"));
  };
  const auto found = records_of(source);
  for (size_t i = 0; i < std::max(found.size(), recipe.files.size()); ++i) {
    if (i >= found.size()) throw changed(recipe.files[i].name, "is gone since the plan was made");
    if (i >= recipe.files.size() || found[i].name != recipe.files[i].name)
      throw changed(found[i].name, "is not the file that the plan was made for");
    if (found[i].bytes != recipe.files[i].bytes)
      throw changed(found[i].name, "has another size than when the plan was made");
    if (found[i].header_xxh3 != recipe.files[i].header_xxh3)
      throw changed(found[i].name, "has another header than when the plan was made");
  }
  if (recipe.values_xxh3.empty() || recipe.values_xxh3 == values_hash(source)) return;
  throw Error(ErrorCode::kInputChanged,
              fmt::format("'{}' has tensors of the same shapes, but of other values than the input "
                          "that the plan was made for",
                          quote_for_message(source.parts.front().path)))
      .note("plan", plan_path)
      .help("plan again: a plan is applied to the input that it was made for");
}

}  // namespace

PlanRecipe make_recipe(const std::vector<std::string>& typed, const LogicalCheckpoint& source,
                       const AppliedMapping& to, const MappingChoice& choice, i64 node_size,
                       const plan::ReshardPlan& plan) {
  PlanRecipe recipe;
  recipe.sources = typed;
  recipe.config = choice.config;
  recipe.files = records_of(source);
  recipe.values_xxh3 = values_hash(source);
  recipe.mapping = mapping_to_json(to.mapping);
  recipe.mesh = to_string(to.resolution.mesh);
  recipe.layout = to.axes;
  recipe.require_even = choice.require_even;
  recipe.allow_empty_shards = to.allows_empty_shards;
  recipe.target_xxh3 = layout_hash(source, to);
  recipe.node_size = node_size;
  recipe.bytes_moved = plan.bytes_moved;
  recipe.bytes_kept = plan.bytes_kept;
  recipe.transfers = plan.transfers;
  return recipe;
}

std::string to_json(const PlanRecipe& recipe) {
  json files = json::array();
  for (const format::FileRecord& file : recipe.files) {
    files.push_back(
        {{"name", file.name}, {"bytes", file.bytes}, {"header_xxh3", file.header_xxh3}});
  }
  json apply{{"sources", recipe.sources},
             {"files", files},
             {"values_xxh3", recipe.values_xxh3},
             {"mapping", json::parse(recipe.mapping)},
             {"mesh", recipe.mesh},
             {"layout", recipe.layout},
             {"require_even", recipe.require_even},
             {"allow_empty_shards", recipe.allow_empty_shards},
             {"target_xxh3", recipe.target_xxh3},
             {"node_size", recipe.node_size},
             {"bytes_moved", recipe.bytes_moved},
             {"bytes_kept", recipe.bytes_kept},
             {"transfers_count", recipe.transfers}};
  if (!recipe.config.empty()) apply["model_config"] = recipe.config;
  return apply.dump();
}

std::string sealed(std::string open_document) {
  const std::string seal = hash_of(open_document);
  return std::move(open_document) + std::string(kSealKey) + seal + "\"}\n";
}

PlanRecipe parse_plan(const std::string& text, const std::string& path) {
  check_seal(text, path);
  const JsonDocument document =
      parse_strict_json(text, path, ErrorCode::kPlanInvalid, kMaxPlanDepth);
  try {
    check_version(document.value, path);
    return recipe_of(document.value.at("apply"));
  } catch (const json::exception&) {
    throw refusal(path, "the document is sealed, but no plan of a reshard")
        .help("make one with `shardtool plan SRC --to-mesh ... -o FILE`");
  }
}

PlanRecipe read_plan(const std::string& path) {
  return parse_plan(store::read_text(path, kMaxPlanBytes), path);
}

LogicalCheckpoint open_planned(const PlanRecipe& recipe, const std::vector<std::string>& sources,
                               const std::string& plan_path) {
  MappingChoice choice;
  choice.config = recipe.config;
  LogicalCheckpoint source = open_finished(sources, {.mapping = choice});
  check_same_input(recipe, source, plan_path);
  return read_by(mapping_from_json(recipe.mapping, plan_path), choice, std::move(source));
}

AppliedMapping apply_recipe(const PlanRecipe& recipe, const LogicalCheckpoint& source,
                            const std::string& plan_path) {
  mapping::Mapping mapping = mapping_from_json(recipe.mapping, plan_path);
  mapping::ResolveOptions options;
  options.mesh = mesh::parse_mesh(recipe.mesh);
  options.layout = recipe.layout;
  options.require_even = recipe.require_even;
  options.allow_empty_shards = recipe.allow_empty_shards;
  const auto config =
      recipe.config.empty() ? source.config() : std::optional(source.load_config(recipe.config));
  std::vector<TensorSpec> specs = source.specs();
  mapping::Resolution resolution =
      mapping::resolve(mapping, specs, config ? &*config : nullptr, options);
  AppliedMapping applied{std::move(mapping), std::move(resolution),     std::move(specs),
                         recipe.layout,      recipe.allow_empty_shards, recipe.config};
  if (layout_hash(source, applied) == recipe.target_xxh3) return applied;
  throw refusal(plan_path, "the plan's mapping gives other shards now than when it was made")
      .note("config.json", config ? "is beside the weights" : "is not beside the weights")
      .help("plan again: config.json may have changed");
}

plan::ReshardPlan recount(const PlanRecipe& recipe, const LogicalCheckpoint& source,
                          const TargetLayout& target, const std::string& plan_path) {
  std::vector<plan::ReshardTensor> tensors;
  for (const TargetTensor& tensor : target.tensors) {
    const LogicalTensor& from = source.tensors[tensor.source];
    tensors.push_back({from.spec.name,
                       bits(from.spec.dtype),
                       {from.side.holders.get(), from.ranks},
                       {tensor.holders.get(), tensor.ranks}});
  }
  plan::TrafficOptions options;
  if (source.is_sharded()) options.from_devices = source.parts.front().manifest->mesh.size();
  options.to_devices = target.mesh.size();
  options.node_size = recipe.node_size;
  options.numbering_limit = 0;
  plan::ReshardPlan plan = plan::plan_reshard(tensors, options);
  if (plan.bytes_moved == recipe.bytes_moved && plan.bytes_kept == recipe.bytes_kept &&
      plan.transfers == recipe.transfers) {
    return plan;
  }
  throw refusal(
      plan_path,
      fmt::format(
          "the plan moves {} bytes and keeps {} in {} transfers, these shards {} and {} in {}",
          recipe.bytes_moved, recipe.bytes_kept, recipe.transfers, plan.bytes_moved,
          plan.bytes_kept, plan.transfers));
}

}  // namespace shardtool::api
