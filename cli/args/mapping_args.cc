#include "cli/args/mapping_args.h"

#include <fmt/format.h>

#include <utility>

#include "cli/size_argument.h"
#include "lib/api/catalogue/presets.h"
#include "lib/base/error.h"
#include "lib/base/text.h"

namespace shardtool::cli {
namespace {

constexpr i64 kMaxDevices = (i64{1} << 31) - 1;

/// Splits "axes.heads.uneven=balanced" at its first '='.
std::pair<std::string, std::string> parse_setting(const std::string& text) {
  const auto equals = text.find('=');
  if (equals == 0 || equals == std::string::npos) {
    throw Error(ErrorCode::kUsage,
                fmt::format("--set '{}' is not PATH=VALUE", quote_for_message(text)))
        .help("for example --set axes.heads.uneven=balanced");
  }
  return {text.substr(0, equals), text.substr(equals + 1)};
}

/// Arguments that change what the mapping says, or what it is applied to.
std::vector<Argument> policy_arguments(MappingArgs& args) {
  return {
      {.name = "--straddle",
       .value = "POLICY",
       .help = "what to do where a cut would fall inside a quantisation block",
       .target = &args.straddle,
       .choices = {"error", "uneven-aligned", "pad", "replicate-scale", "refine"}},
      {.name = "--model-config",
       .value = "FILE",
       .help = "the model's config.json, where it is not beside the weights",
       .target = &args.model_config},
      {.name = "--require-even",
       .help = "refuse a cut into shards of different sizes",
       .target = &args.require_even},
      {.name = "--allow-empty-shards",
       .help = "allow more ranks than an axis can be cut into: some then hold nothing of a tensor",
       .target = &args.allow_empty_shards},
      {.name = "--set",
       .value = "PATH=VALUE",
       .help = "change one value of the mapping: axes.NAME, axes.NAME.FIELD, straddle, "
               "reduced_bias or unknown; VALUE is JSON or text; repeatable",
       .target = &args.settings},
  };
}

}  // namespace

bool MappingArgs::given() const {
  return file || preset || mesh || tp || ep || pp || axes || axis_mapping || straddle ||
         expert_parallel || model_config || require_even || allow_empty_shards || !settings.empty();
}

std::vector<Argument> mapping_arguments(MappingArgs& args, const MappingFlags& flags) {
  std::vector<Argument> arguments{
      {.name = std::string(flags.file),
       .short_name = std::string(flags.short_file),
       .value = "FILE",
       .help = std::string(flags.file_help),
       .target = &args.file},
      {.name = std::string(flags.preset),
       .value = "NAME",
       .help = "a built-in mapping, see `shardtool presets`",
       .target = &args.preset,
       .offers = api::preset_names},
      {.name = std::string(flags.mesh),
       .value = "AXIS=N,...",
       .help = "the axes of the mesh with their sizes, the first axis slowest: dp=2,tp=2; tp=2:1,0 "
               "also names the rank of each cell; replaces the mapping's mesh",
       .target = &args.mesh},
      {.name = "--tp",
       .value = "N",
       .help = "tensor-parallel ranks, short for a mesh tp=N; with --ep and --pp the mesh is pp, "
               "ep, tp, so that neighbouring ranks lie along tp",
       .target = &args.tp},
      {.name = "--ep",
       .value = "N",
       .help = "expert-parallel ranks, short for a mesh with an axis ep=N",
       .target = &args.ep},
      {.name = "--pp",
       .value = "N",
       .help = "pipeline stages, short for a mesh with an axis pp=N",
       .target = &args.pp},
      {.name = "--expert-parallel",
       .help = "give each rank of --tp, and of --ep where there is one, whole experts instead of a "
               "cut of every expert",
       .target = &args.expert_parallel,
       .advanced = true},
      {.name = "--axes",
       .value = "NAME",
       .help = "an entry of the mapping's \"layouts\", which gives its axes other mesh axes; "
               "presets have none",
       .target = &args.axes},
      {.name = "--axis-mapping",
       .value = "FILE",
       .help = "a JSON file that says which mesh axis cuts each logical axis, in place of the "
               "mapping: {\"embed\": \"fsdp\"}, as in Haliax",
       .target = &args.axis_mapping},
  };
  append(arguments, policy_arguments(args));
  return arguments;
}

std::optional<mesh::Mesh> to_mesh(const MappingArgs& args, const MappingFlags& flags) {
  std::string axes;
  const std::pair<std::string_view, const std::optional<std::string>*> shorthands[] = {
      {"pp", &args.pp}, {"ep", &args.ep}, {"tp", &args.tp}};
  for (const auto& [axis, typed] : shorthands) {
    if (!*typed) continue;
    const auto flag = fmt::format("--{}", axis);
    refuse_both(flags.mesh, args.mesh.has_value(), flag, true);
    axes += fmt::format("{}{}={}", axes.empty() ? "" : ",", axis,
                        parse_count(flag, **typed, 1, kMaxDevices));
  }
  if (args.mesh) axes = *args.mesh;
  if (axes.empty() && !args.mesh) return std::nullopt;
  return mesh::parse_mesh(axes);
}

api::MappingChoice to_mapping_choice(const MappingArgs& args, const MappingFlags& flags) {
  refuse_both(flags.file, args.file.has_value(), flags.preset, args.preset.has_value());
  refuse_both("--axes", args.axes.has_value(), "--axis-mapping", args.axis_mapping.has_value());
  api::MappingChoice choice;
  choice.path = args.file.value_or("");
  choice.preset = args.preset.value_or("");
  choice.mesh = to_mesh(args, flags);
  choice.layout = args.axes.value_or("");
  choice.axis_mapping = args.axis_mapping.value_or("");
  choice.config = args.model_config.value_or("");
  choice.require_even = args.require_even;
  choice.allow_empty_shards = args.allow_empty_shards;
  if (args.expert_parallel) {
    api::keep_experts_whole(choice, choice.mesh && choice.mesh->has_axis("ep"));
  }
  if (args.straddle) choice.settings.push_back({"straddle", *args.straddle});
  for (const auto& setting : args.settings) choice.settings.push_back(parse_setting(setting));
  return choice;
}

void refuse_both(std::string_view a, bool a_given, std::string_view b, bool b_given) {
  if (!a_given || !b_given) return;
  throw Error(ErrorCode::kUsage, fmt::format("{} and {} contradict each other", a, b))
      .help("give one of them");
}

}  // namespace shardtool::cli
