#include "lib/api/mapping/foreign_check.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>

#include "lib/api/transfer/sources/foreign_source.h"
#include "lib/base/error.h"
#include "lib/check/foreign_shards.h"
#include "lib/check/mapping.h"
#include "lib/mapping/resolve/resolve.h"

namespace shardtool::api {
namespace {

/// Names of the tensors that match no rule, where the mapping refuses such tensors.
std::set<std::string> unruled_of(const check::ForeignShards& shards,
                                 const mapping::Mapping& mapping,
                                 const mapping::ModelConfig* config,
                                 mapping::ResolveOptions options) {
  std::vector<TensorSpec> specs;
  for (const check::RankTensor& tensor : shards.tensors) specs.push_back(tensor.spec);
  const auto by_name = [](const TensorSpec& spec) -> const std::string& { return spec.name; };
  std::ranges::sort(specs, {}, by_name);
  const auto repeated = std::ranges::unique(specs, {}, by_name);
  specs.erase(repeated.begin(), repeated.end());
  bool is_refused = false;
  options.report = [&](const Error& error) { is_refused |= error.code() == ErrorCode::kNoRule; };
  std::set<std::string> names;
  for (const auto& resolved : mapping::resolve(mapping, specs, config, options).tensors) {
    if (is_refused && resolved.by->rule == "unknown") names.insert(specs[resolved.tensor].name);
  }
  return names;
}

/// True for errors that do not depend on whole shapes.
bool is_of_names(const Error& error) {
  const ErrorCode code = error.code();
  return code == ErrorCode::kNoRule || code == ErrorCode::kAmbiguousRule ||
         code == ErrorCode::kUnusedRule;
}

}  // namespace

void add_mapping_error(const Error& error, const MappingChoice& choice,
                       const LogicalCheckpoint& logical, check::Findings& findings) {
  const std::string& path = choice.path;
  const auto parent = std::filesystem::path(path).parent_path().string();
  findings.add(
      check::mapping_finding(error, parent, path.empty() ? logical.parts.front().path : path));
}

std::optional<std::vector<check::DataTensor>> check_foreign(const Surveyed& surveyed,
                                                            const MappingChoice& choice,
                                                            const mapping::ModelConfig* config,
                                                            check::Findings& findings) {
  const LogicalCheckpoint& logical = surveyed.logical;
  try {
    const mapping::Mapping mapping = with_typed_documents(choose_mapping(choice, logical), choice);
    refuse_fused(*surveyed.foreign, mapping);
    mapping::ResolveOptions options = resolve_options(choice);
    options.report = [](const Error&) {};
    const auto resolve = [&](std::span<const TensorSpec> specs) {
      return mapping::resolve(mapping, specs, config, options);
    };
    check::ForeignShards shards = *surveyed.foreign;
    if (config != nullptr) shards.extents = check::extents_of_model(*config);
    shards.unruled = unruled_of(shards, mapping, config, options);
    auto data = check::check_foreign_shards(shards, resolve, findings);
    options.report = [&](const Error& error) {
      if (is_of_names(error)) add_mapping_error(error, choice, logical, findings);
    };
    std::vector<TensorSpec> specs;
    for (const check::DataTensor& tensor : data) {
      if (specs.empty() || specs.back().name != tensor.spec.name) specs.push_back(tensor.spec);
    }
    resolve(specs);
    return data;
  } catch (const Error& error) {
    if (!is_mapping_error(error)) throw;
    add_mapping_error(error, choice, logical, findings);
    return std::nullopt;
  }
}

}  // namespace shardtool::api
