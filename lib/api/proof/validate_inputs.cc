#include "lib/api/proof/validate_inputs.h"

#include <fmt/format.h>

#include <utility>

#include "lib/api/dequantize/recorded_values.h"
#include "lib/api/transfer/sources/layout_source.h"
#include "lib/api/transfer/sources/open_source.h"
#include "lib/base/text.h"
#include "lib/store/reader.h"

namespace shardtool::api {
namespace {

Error no_config() {
  return std::move(
      Error(ErrorCode::kUnsupported, "the model cannot be run: there is no config.json")
          .help("name the model's: --model-config FILE")
          .help("or prove the bytes of its shards alone: `shardtool check --read-data`"));
}

/// A checkpoint that no device has a part of is compared as a whole. Throws kUsage if there is
/// nothing to compare it with, or if a mapping is to place it.
void require_whole_inputs(const ValidateOptions& options, const ValidateInputs& inputs) {
  refuse_files_of_ranks(inputs.shards);
  const MappingChoice& mapping = inputs.mapping;
  const bool has_mapping = !mapping.path.empty() || !mapping.layout.empty() ||
                           !mapping.preset.empty() || mapping.mesh.has_value();
  if (!options.reference.empty() && !has_mapping) return;
  Error error(ErrorCode::kUsage, has_mapping ? "a whole checkpoint has no shards to place"
                                             : "there are no shards to validate");
  error.note("found", "a whole checkpoint: " + inputs.shards.parts.front().path);
  if (has_mapping)
    throw error.help("leave mapping, axes and mesh away, or `shardtool split` it first");
  throw error.help("give the output of `shardtool split`")
      .help("or compare it with the model that it was made from, with --reference");
}

/// Opens shards of another tool, described by the whole model and a mapping.
void open_foreign(const ValidateOptions& options, ForeignFiles files, ValidateInputs& inputs) {
  MappingChoice& mapping = inputs.mapping;
  const bool has_mapping =
      !mapping.path.empty() || !mapping.preset.empty() || mapping.mesh.has_value();
  if (!has_mapping || options.reference.empty()) {
    throw Error(ErrorCode::kUsage, "shards without a manifest need --mapping and --reference")
        .note("found", plural(std::ssize(files.shards.files), "file") +
                           " whose names number ranks, and no manifest.json")
        .help("give the mapping that cuts the unsharded model into what the ranks have");
  }
  inputs.reference = open_logical({options.reference}, {.mapping = mapping});
  if (mapping.config.empty()) mapping.config = files.config_path();
  if (mapping.config.empty()) mapping.config = inputs.reference->parts.front().config_path;
  if (mapping.config.empty()) throw no_config();
  inputs.foreign = place_foreign_files(std::move(files), mapping, *inputs.reference);
  inputs.config = model_config(mapping, *inputs.reference);
}

/// The chosen mapping, with the shards' config.json for files of another tool that have none.
MappingChoice with_config_for(const std::string& reference, const ValidateInputs& inputs) {
  MappingChoice mapping = inputs.mapping;
  const auto foreign = named_layout({reference}, mapping.config);
  if (!foreign || !mapping.config.empty()) return mapping;
  if (!store::is_file(parse_source(reference).place + "/config.json")) {
    mapping.config = inputs.shards.parts.front().config_path;
  }
  return mapping;
}

}  // namespace

std::vector<std::string> ValidateInputs::dropped() const {
  if (!foreign) {
    const auto& manifest = shards.parts.front().manifest;
    return manifest ? manifest->dropped : std::vector<std::string>();
  }
  std::vector<std::string> names;
  for (const size_t tensor : foreign->resolution.dropped) {
    names.push_back(reference->tensors[tensor].spec.name);
  }
  return names;
}

std::optional<ForeignFiles> open_shards(const ValidateOptions& options, ValidateInputs& inputs) {
  if (!named_layout(options.sources, inputs.mapping.config)) {
    if (auto foreign = find_foreign_files(options.sources)) return foreign;
  }
  inputs.shards =
      open_logical(options.sources, {.takes_files_of_ranks = true, .mapping = inputs.mapping});
  return std::nullopt;
}

void open_model(const ValidateOptions& options, std::optional<ForeignFiles> foreign,
                ValidateInputs& inputs) {
  if (foreign) return open_foreign(options, *std::move(foreign), inputs);
  if (!inputs.shards.is_sharded()) require_whole_inputs(options, inputs);
  if (!options.reference.empty()) {
    const Opening opening{.mapping = with_config_for(options.reference, inputs)};
    inputs.reference =
        read_as_recorded(open_logical({options.reference}, opening), inputs.shards, inputs.mapping);
  }
  if (inputs.reference && !inputs.shards.is_sharded()) {
    inputs.shards = read_as_recorded(std::move(inputs.shards), *inputs.reference, inputs.mapping);
  }
  if (inputs.reference && options.compares_values)
    show_as_recorded(*inputs.reference, inputs.shards);
  inputs.config = model_config(inputs.mapping, inputs.shards);
  if (!inputs.config && inputs.reference) inputs.config = inputs.reference->config();
  if (!inputs.config) throw no_config();
}

Error no_graph(const std::string& why, bool is_own) {
  Error error(ErrorCode::kUnsupported, fmt::format("the model cannot be run: {}", why));
  error.help(is_own ? "give the graph of this model, or correct its \"requires\""
                    : "say what it computes with --graph FILE: `shardtool graphs init MODEL` "
                      "writes one to start from");
  return std::move(error).help(
      "or prove the bytes of its shards alone: `shardtool check --read-data`");
}

}  // namespace shardtool::api
