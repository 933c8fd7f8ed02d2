#include "lib/api/mapping/applied_mapping.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <variant>

#include "lib/api/mapping/full_places.h"
#include "lib/api/mapping/mapping_choice.h"
#include "lib/api/mapping/recorded_mapping.h"
#include "lib/api/transfer/sources/layout_source.h"
#include "lib/base/error.h"
#include "lib/mapping/mesh_choice.h"
#include "lib/mapping/resolve/resolve.h"

namespace shardtool::api {
namespace {

bool is_engine_layout(const MappingChoice& choice) {
  return !choice.engine_layout.empty() && choice.engine_layout != kPlainLayout;
}

/// Adds the documents of the chosen layout in place of those in a manifest's mapping.
mapping::Mapping with_chosen_layout(const mapping::Mapping& mapping, const MappingChoice& choice,
                                    const mapping::ModelConfig* model) {
  if (choice.engine_layout.empty()) return mapping;
  if (!is_engine_layout(choice)) return mapping::with_layout(mapping, {});
  const layouts::EngineLayout& layout = layouts::find_layout(choice.engine_layout);
  return mapping::with_layout(mapping, layouts::documents_for(layout, model));
}

/// Axis that does not divide over its devices when it is rounded up to its multiple. split rounds
/// it up further; engines have rules of their own.
struct UndividedAxis {
  std::string logical;
  i64 size = 0;
  i64 multiple = 0;
  i64 parts = 0;
  size_t tensor = 0;  ///< the first one with this axis

  i64 rounded() const { return round_up(size, multiple); }
};

std::optional<UndividedAxis> undivided_axis(const mapping::Resolution& resolution) {
  for (const mapping::ResolvedTensor& tensor : resolution.tensors) {
    for (const layout::LayoutAxis& axis : tensor.layout->axes()) {
      const auto* split = std::get_if<layout::Split>(&axis.expr.node());
      if (split == nullptr || split->rule.kind != layout::SplitRule::Kind::kPadded) continue;
      const UndividedAxis found{axis.logical, split->n, split->rule.multiple,
                                extent(resolution.mesh, split->over), tensor.tensor};
      if (found.rounded() % found.parts != 0) return found;
    }
  }
  return std::nullopt;
}

/// Throws kNotDivisible for padding with which the engine would not start.
void check_padding(const AppliedMapping& applied, const layouts::EngineLayout& layout) {
  const auto axis = undivided_axis(applied.resolution);
  if (!axis || layout.pads_parts) return;
  throw Error(ErrorCode::kNotDivisible,
              fmt::format("{} rounds '{}' from {} up to {}, which does not divide by {}",
                          layout.label(), axis->logical, axis->size, axis->rounded(), axis->parts))
      .tensor(applied.specs[axis->tensor].name)
      .help("the engine refuses this number of devices, too: choose one that divides");
}

/// Document of a layout that rounds an axis up so that every device's part is a multiple.
mapping::DocumentText document_of_parts(const layouts::EngineLayout& layout,
                                        const UndividedAxis& axis) {
  const nlohmann::json document = {
      {"version", 1},
      {"axes", {{axis.logical, {{"uneven", "pad"}, {"pad_to", axis.multiple * axis.parts}}}}},
      {"unused_rule", "ignore"}};
  return {fmt::format("{}{}#parts", mapping::kLayoutPrefix, layout.label()), document.dump(1)};
}

/// Resolves the mapping. Where the layout pads parts, adds its document for an axis that does not
/// divide, and resolves again.
mapping::Resolution resolve_padded(mapping::Mapping& mapping, std::span<const TensorSpec> specs,
                                   const mapping::ModelConfig* model,
                                   const mapping::ResolveOptions& options,
                                   const layouts::EngineLayout* layout) {
  if (layout == nullptr || !layout->pads_parts) return resolve(mapping, specs, model, options);
  std::vector<Error> errors;
  mapping::ResolveOptions first = options;
  if (options.report) first.report = [&](Error error) { errors.push_back(std::move(error)); };
  mapping::Resolution resolution = resolve(mapping, specs, model, first);
  const auto axis = undivided_axis(resolution);
  if (!axis) {
    for (Error& error : errors) options.report(std::move(error));
    return resolution;
  }
  std::vector<mapping::DocumentText> texts{document_of_parts(*layout, *axis)};
  texts.insert(texts.end(), mapping.texts().begin(), mapping.texts().end());
  mapping = mapping::Mapping(std::move(texts));
  return resolve(mapping, specs, model, options);
}

/// Adds the form in which files hold the tensors.
void add_output(AppliedMapping& applied, const MappingChoice& choice,
                const mapping::ModelConfig* model) {
  std::vector<bool> is_stored(applied.specs.size(), true);
  for (const size_t dropped : applied.resolution.dropped) is_stored[dropped] = false;
  auto output = mapping::output_tensors(applied.mapping, applied.specs, is_stored, model,
                                        applied.resolution.axis_sizes, &applied.resolution);
  if (output) {
    applied.output =
        std::make_shared<const std::vector<mapping::OutputTensor>>(std::move(output->tensors));
    applied.left_out = std::move(output->left_out);
  }
  if (!is_engine_layout(choice)) return;
  const layouts::EngineLayout& layout = layouts::find_layout(choice.engine_layout);
  if (layout.is_even) check_padding(applied, layout);
  applied.layout = layout.label();
  applied.form = layout.form;
  applied.engine_files = layouts::names_for(layout, applied.resolution.mesh);
  if (model == nullptr) return;
  applied.experimental = layouts::experimental_reasons(layout, *model, applied.resolution.mesh);
}

AppliedMapping applied_mapping(const MappingChoice& typed, const LogicalCheckpoint& source,
                               const std::function<void(Error)>& report) {
  refuse_files_of_ranks(source);
  const MappingChoice choice = with_recorded_options(typed, source);
  const auto config = model_config(choice, source);
  const mapping::ModelConfig* model = config ? &*config : nullptr;
  const mapping::Mapping chosen = choose_mapping(choice, source);
  mapping::Mapping mapping = with_chosen_layout(chosen, choice, model);
  const bool keeps_documents = mapping.texts().size() == chosen.texts().size() &&
                               choice.settings.empty() && choice.axis_mapping.empty();
  mapping = with_typed_documents(std::move(mapping), choice);
  mapping::ResolveOptions options = resolve_options(choice);
  const layouts::EngineLayout* layout =
      is_engine_layout(choice) ? &layouts::find_layout(choice.engine_layout) : nullptr;
  if (layout != nullptr) {
    const mesh::Mesh mesh = mapping::choose_mesh(mapping, options);
    options.mesh = layouts::with_axes(layouts::names_for(*layout, mesh), mesh);
    // Before tensors without a name in the layout are refused with the advice to drop them.
    if (model != nullptr) layouts::check_expressible(*layout, *model, *options.mesh);
    options.is_for_engine = layout->is_even;
  }
  options.report = report;
  std::vector<TensorSpec> specs = source.specs();
  mapping::Resolution resolution = resolve_padded(mapping, specs, model, options, layout);
  if (is_recorded(typed, source) && source.is_sharded() && typed.layout.empty()) {
    const bool is_same = keeps_documents && resolution.mesh == source.parts.front().manifest->mesh;
    refuse_contradiction(source, chosen, model, is_same ? &resolution : nullptr);
  }
  AppliedMapping applied{std::move(mapping), std::move(resolution),     std::move(specs),
                         choice.layout,      choice.allow_empty_shards, choice.config};
  applied.doubts = mapping::doubtful_cuts(applied.resolution, applied.specs, model);
  if (report == nullptr) add_output(applied, choice, model);
  return applied;
}

}  // namespace

AppliedMapping apply_mapping(const MappingChoice& choice, const LogicalCheckpoint& source,
                             const std::function<void(Error)>& report) {
  try {
    return with_full_places(choice, [&] { return applied_mapping(choice, source, report); });
  } catch (Error& error) {
    const bool knows_none =
        error.code() == ErrorCode::kNoRule || error.code() == ErrorCode::kConfig;
    const std::string advice = knows_none ? layout_advice(source) : "";
    if (!advice.empty()) error.help(advice);
    throw;
  }
}

AppliedMapping without_left_out(AppliedMapping applied) {
  mapping::Resolution& resolution = applied.resolution;
  std::erase_if(resolution.tensors, [&](const mapping::ResolvedTensor& tensor) {
    return applied.leaves_out(tensor.tensor);
  });
  for (const mapping::LeftOut& twin : applied.left_out) resolution.dropped.push_back(twin.tensor);
  std::ranges::sort(resolution.dropped);
  return applied;
}

}  // namespace shardtool::api
