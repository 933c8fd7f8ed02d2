#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "lib/api/transform.h"

namespace shardtool::cli {

/// The flags that choose a mapping and a mesh, as typed.
struct MappingArgs {
  std::optional<std::string> file = {};
  std::optional<std::string> preset = {};
  std::optional<std::string> mesh = {};
  std::optional<std::string> tp = {};
  std::optional<std::string> ep = {};
  std::optional<std::string> pp = {};
  bool expert_parallel = false;
  std::optional<std::string> axes = {};
  std::optional<std::string> axis_mapping = {};
  std::optional<std::string> straddle = {};
  std::optional<std::string> model_config = {};
  bool require_even = false;
  bool allow_empty_shards = false;
  std::vector<std::string> settings = {};

  /// True if any of these flags was typed.
  bool given() const;
};

/// Names of the three main flags: split describes its result, reshard its destination.
struct MappingFlags {
  std::string_view file;
  std::string_view short_file;
  std::string_view preset;
  std::string_view mesh;
  std::string_view file_help;
};
inline constexpr MappingFlags kMapping{
    "--mapping", "-m", "--preset", "--mesh",
    "the mapping file; without one the manifest's, else the preset that fits config.json"};
/// For a command that has no checkpoint, whose manifest or config.json would choose.
inline constexpr MappingFlags kNamedMapping{"--mapping", "-m", "--preset", "--mesh",
                                            "the mapping file; it or --preset is needed"};
inline constexpr MappingFlags kDestination{
    "--to", "", "--to-preset", "--to-mesh",
    "a mapping file, or the name of an entry in the \"layouts\" of the source's mapping; without "
    "one the manifest's mapping"};

std::vector<Argument> mapping_arguments(MappingArgs& args, const MappingFlags& flags);

/// Returns the typed mesh, or nullopt. --tp, --ep and --pp are short for a mesh of pp, ep and tp in
/// this order, the last one fastest. Throws kUsage for contradictions and bad numbers.
std::optional<mesh::Mesh> to_mesh(const MappingArgs& args, const MappingFlags& flags);

/// Throws kUsage like to_mesh, for a mapping combined with a preset, and for a malformed --set.
api::MappingChoice to_mapping_choice(const MappingArgs& args, const MappingFlags& flags);

/// Throws kUsage if both were typed.
void refuse_both(std::string_view a, bool a_given, std::string_view b, bool b_given);

}  // namespace shardtool::cli
