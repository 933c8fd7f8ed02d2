#include "lib/api/planning/plan_reshard.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "lib/base/error.h"
#include "lib/base/text.h"

namespace shardtool::api {
namespace {

Error unknown_layout(const std::string& name, const mapping::Mapping& mapping) {
  std::vector<std::string> known;
  for (const mapping::Document& document : mapping.documents()) {
    for (const auto& [layout, axes] : document.layouts) known.push_back(layout);
  }
  Error error(ErrorCode::kUnknownName,
              fmt::format("'{}' is none of the mapping's layouts", quote_for_message(name)));
  error.note("layouts", known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", ")));
  if (const auto hint = did_you_mean(name, known); !hint.empty()) error.help(hint);
  error.help("a mapping file is written with its ending, .json, or with a slash");
  return error;
}

/// Sets a mapping file if the name has a slash or ends in ".json", else an entry of the mapping's
/// "layouts".
void apply_name(const std::string& name, const MappingChoice& base, const LogicalCheckpoint& source,
                MappingChoice& choice) {
  const bool is_file = name.find('/') != name.npos || name.ends_with(".json");
  if (!is_file) {
    const mapping::Mapping mapping = choose_mapping(base, source);
    const auto documents = mapping.documents();
    if (std::none_of(documents.begin(), documents.end(),
                     [&](const auto& document) { return document.layouts.count(name) > 0; })) {
      throw unknown_layout(name, mapping);
    }
    choice.layout = name;
    return;
  }
  choice.path = name;
  choice.preset.clear();
  choice.layout.clear();
  choice.mesh.reset();
}

plan::Holders holders_of(const layout::Layout& layout) {
  return {&layout.holders(), layout.ranks()};
}

/// Returns the holders of each tensor of the source; null if the mapping drops it.
std::vector<plan::Holders> sides_of(const LogicalCheckpoint& source, const AppliedMapping* from) {
  std::vector<plan::Holders> sides(source.tensors.size());
  if (from != nullptr) {
    for (const auto& tensor : from->resolution.tensors)
      sides[tensor.tensor] = holders_of(*tensor.layout);
    return sides;
  }
  for (size_t t = 0; t < source.tensors.size(); ++t) {
    sides[t] = {source.tensors[t].side.holders.get(), source.tensors[t].ranks};
  }
  return sides;
}

i64 devices_of(const LogicalCheckpoint& source, const AppliedMapping* from) {
  if (from != nullptr) return from->resolution.mesh.size();
  return source.is_sharded() ? source.parts.front().manifest->mesh.size() : 0;
}

}  // namespace

MappingChoice base_choice(const LogicalCheckpoint& source, const MappingChoice& typed) {
  MappingChoice choice = over_own_mesh(source, typed);
  // A preset has no mesh. Use one device unless a mesh is given.
  if (!source.is_sharded() && choice.path.empty() && !choice.mesh)
    choice.mesh = mesh::Mesh({{"tp", 1}});
  return choice;
}

ReshardEnds reshard_ends(const LogicalCheckpoint& source, const PlanOptions& options) {
  const MappingChoice base = base_choice(source, options.mapping);
  ReshardEnds ends;
  ends.to = base;
  if (options.from || options.mapping_is_given) ends.from = base;
  if (options.from) apply_name(*options.from, base, source, *ends.from);
  if (options.to) apply_name(*options.to, base, source, ends.to);
  if (!options.to_preset.empty()) {
    ends.to.path.clear();
    ends.to.preset = options.to_preset;
    ends.to.mesh.reset();
  }
  if (options.to_mesh) ends.to.mesh = options.to_mesh;
  return ends;
}

plan::ReshardPlan plan_move(const LogicalCheckpoint& source, const AppliedMapping* from,
                            const AppliedMapping& to, const PlanOptions& options) {
  const std::vector<plan::Holders> sides = sides_of(source, from);
  std::vector<plan::ReshardTensor> tensors;
  tensors.reserve(to.resolution.tensors.size());
  for (const mapping::ResolvedTensor& target : to.resolution.tensors) {
    const TensorSpec& spec = source.tensors[target.tensor].spec;
    if (sides[target.tensor].set == nullptr) {
      throw Error(ErrorCode::kCoverage, "the layout that the reshard begins at drops this tensor")
          .tensor(spec.name)
          .help("drop it in the destination's mapping, too");
    }
    tensors.push_back(
        {spec.name, bits(spec.dtype), sides[target.tensor], holders_of(*target.layout)});
  }
  plan::ReshardOptions ask;
  ask.from_devices = devices_of(source, from);
  ask.to_devices = to.resolution.mesh.size();
  ask.node_size = options.node_size;
  if (options.hardware && options.hardware->storage)
    ask.most_gap = plan::cheapest_gap(*options.hardware->storage);
  return plan::plan_reshard(tensors, ask);
}

}  // namespace shardtool::api
