#include "lib/python/options.h"

#include <fmt/format.h>
#include <nanobind/stl/pair.h>

#include <algorithm>
#include <string_view>

#include "cli/args/share_args.h"
#include "cli/launch.h"
#include "lib/api/transfer/cast_values.h"
#include "lib/base/error.h"

namespace nb = nanobind;

namespace shardtool::python {
namespace {

constexpr i64 kMostThreads = 1024;
constexpr Limits kRank{0, (i64{1} << 31) - 2};  // a mesh has at most 2^31 - 1 devices

Dtype cast_type(const std::string& name) {
  if (const auto dtype = api::cast_type(name)) return *dtype;
  throw Error(ErrorCode::kUsage, "floats are not cast to '" + name + "'")
      .help("use dtype=\"bf16\", \"f16\" or \"f32\"");
}

}  // namespace

api::MappingChoice mapping_choice(const Keywords& keywords) {
  api::MappingChoice choice;
  keywords.set_path("mapping", choice.path);
  keywords.set("preset", choice.preset);
  if (!choice.path.empty() && !choice.preset.empty()) {
    throw Error(ErrorCode::kUsage, "a mapping and a preset exclude each other").help("give one");
  }
  const nb::object mesh = keywords.find("mesh");
  if (!mesh.is_none()) choice.mesh = to_mesh(mesh);
  keywords.set("axes", choice.layout);
  keywords.set_path("model_config", choice.config);
  keywords.set("require_even", choice.require_even);
  keywords.set("allow_empty_shards", choice.allow_empty_shards);
  const nb::object settings = keywords.find("settings");
  if (settings.is_none()) return choice;
  for (const auto [path, value] : nb::cast<nb::dict>(settings)) {
    choice.settings.emplace_back(to_text("the path of a setting", path),
                                 to_text("a setting", value));
  }
  return choice;
}

std::optional<api::MappingChoice> given_mapping(const Keywords& keywords) {
  for (const char* name : {"mesh", "mapping", "preset", "model_config", "axes", "settings"}) {
    if (!keywords.find(name).is_none()) return mapping_choice(keywords);
  }
  return std::nullopt;
}

void set_resources(const Keywords& keywords, exec::Resources& resources) {
  keywords.set("max_memory", resources.max_memory, kSize);
  keywords.set("max_memory", resources.store_memory, kSize);
  keywords.set("threads", resources.threads, {1, kMostThreads});
}

std::vector<i64> ranks_of(const Keywords& keywords) {
  const nb::object given = keywords.find("ranks");
  if (given.is_none()) return {};
  std::vector<i64> ranks;
  for (const nb::handle rank : given) {
    ranks.push_back(to_integer(fmt::format("ranks[{}]", ranks.size()), rank, kRank));
  }
  if (ranks.empty()) {
    throw Error(ErrorCode::kUsage, "the list of ranks is empty: nothing would be written")
        .help("name ranks, for example ranks=[0, 1], or leave it out to write all of them");
  }
  std::ranges::sort(ranks);
  const auto twice = std::ranges::adjacent_find(ranks);
  if (twice != ranks.end())
    throw Error(ErrorCode::kUsage, fmt::format("the list of ranks names {} twice", *twice));
  return ranks;
}

std::optional<api::Share> share_of(const Keywords& keywords) {
  const nb::object share = keywords.find("share");
  if (share.is_none()) return std::nullopt;
  std::string text;
  if (nb::isinstance<nb::tuple>(share) && nb::len(share) == 2) {
    text = fmt::format("{}/{}", to_integer("share[0]", share[0], {0, api::kMostShares}),
                       to_integer("share[1]", share[1], {1, api::kMostShares}));
  } else if (nb::isinstance<nb::str>(share)) {
    text = to_text("share", share);
  } else {
    throw nb::type_error("share must be str or a tuple of two int, such as (3, 8)");
  }
  return cli::to_share(text, cli::process_variables());
}

api::WriteOptions write_options(std::string output, const Keywords& keywords) {
  api::WriteOptions options;
  options.output = std::move(output);
  keywords.set("layout", options.layout);
  keywords.set("max_file_size", options.max_file_size, kSize);
  keywords.set("dequantize", options.dequantize);
  keywords.set("force", options.force);
  keywords.set("resume", options.resume);
  keywords.set("verify", options.verify);
  keywords.set("dry_run", options.dry_run);
  keywords.set("sha256", options.sha256);
  keywords.set("copy_side_files", options.copy_other_files);
  const nb::object dtype = keywords.find("dtype");
  if (!dtype.is_none()) options.dtype = cast_type(to_text("dtype", dtype));
  options.share = share_of(keywords);
  set_resources(keywords, options.resources);
  return options;
}

}  // namespace shardtool::python
