#include "lib/api/transfer/sources/rank_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/format/torch/megatron_ranks.h"
#include "lib/index/holder_set_pool.h"
#include "lib/mapping/document/glob_matcher.h"

namespace shardtool::api {
namespace {

using format::torch::MegatronTensor;
using index::AxisMap;
using index::Region;

/// A tensor of a rank.
struct RankPart {
  i64 tp = 0, pp = 0, ep = 0;
  i64 chunk = 0;
  std::string name;
  const LogicalTensor* tensor = nullptr;
};

/// Number in a name: name[begin, end).
struct NumberInName {
  size_t begin = 0;
  size_t end = 0;
  i64 number = 0;
};

/// The number in the name from `begin` on.
std::optional<NumberInName> number_at(const std::string& name, size_t begin) {
  constexpr i64 kMost = 1'000'000;
  NumberInName found{begin, 0, 0};
  const auto [end, error] =
      std::from_chars(name.data() + begin, name.data() + name.size(), found.number);
  found.end = static_cast<size_t>(end - name.data());
  const bool is_number = error == std::errc() && found.number >= 0 && found.number < kMost;
  return is_number ? std::optional(found) : std::nullopt;
}

std::optional<NumberInName> layer_in(const std::string& name, const layouts::RankForm& form) {
  for (const std::string& beginning : form.layers) {
    const auto found =
        name.starts_with(beginning) ? number_at(name, beginning.size()) : std::nullopt;
    if (found) return found;
  }
  return std::nullopt;
}

std::optional<NumberInName> expert_in(const std::string& name, const layouts::RankForm& form) {
  for (const std::string& before : form.experts) {
    const size_t at = name.find(before);
    const auto found = at == name.npos ? std::nullopt : number_at(name, at + before.size());
    if (found) return found;
  }
  return std::nullopt;
}

/// Adds to a number in a name.
void shift(std::string& name, const NumberInName& number, i64 by) {
  name.replace(number.begin, number.end - number.begin, std::to_string(number.number + by));
}

bool is_last(const std::string& name, const layouts::RankForm& form) {
  return std::ranges::find(form.last, name) != form.last.end();
}

/// True if the second number in the names of folders counts ranks of ep: without pp, all of them
/// have the last tensor of the model.
bool is_second_of_experts(const std::vector<MegatronTensor>& places,
                          const layouts::RankForm& form) {
  std::set<i64> all, with_last;
  for (const MegatronTensor& place : places) {
    if (place.rank.third >= 0) return false;
    all.insert(place.rank.second);
    if (is_last(place.name, form)) with_last.insert(place.rank.second);
  }
  return all.size() > 1 && all == with_last;
}

std::vector<RankPart> parts_of(const std::vector<LogicalTensor>& tensors,
                               const layouts::RankForm& form) {
  std::vector<MegatronTensor> places;
  for (const LogicalTensor& tensor : tensors) {
    places.push_back(format::torch::megatron_tensor(tensor.spec.name).value());
  }
  const bool is_swapped = is_second_of_experts(places, form);
  std::vector<RankPart> parts;
  for (size_t t = 0; t < tensors.size(); ++t) {
    const auto& [tp, second, third] = places[t].rank;
    const i64 pp = is_swapped ? 0 : second;
    const i64 ep = is_swapped ? second : third;
    parts.push_back({tp, std::max(pp, i64{0}), std::max(ep, i64{0}), places[t].chunk,
                     std::move(places[t].name), &tensors[t]});
  }
  return parts;
}

/// Number of experts that each rank of ep has in a layer. Throws kCoverage if they differ.
i64 experts_per_rank(const std::vector<RankPart>& parts, const layouts::RankForm& form) {
  std::map<i64, i64> counts;
  for (const RankPart& part : parts) {
    const auto expert = expert_in(part.name, form);
    i64& count = counts[part.ep];
    if (expert) count = std::max(count, expert->number + 1);
  }
  const i64 first = counts.empty() ? 0 : counts.begin()->second;
  for (const auto& [ep, count] : counts) {
    if (count == first) continue;
    throw Error(ErrorCode::kCoverage, "the ranks of ep have different numbers of experts")
        .note("found", fmt::format("{} on rank 0, {} on rank {}", first, count, ep));
  }
  return first;
}

/// Virtual stages in the order of the layers: all ranks of pp run chunk 0, then chunk 1.
using Stage = std::pair<i64, i64>;

Stage stage_of(const RankPart& part) {
  return {part.chunk, part.pp};
}

/// Numbers of layers before each stage.
std::map<Stage, i64> first_layers(const std::vector<RankPart>& parts,
                                  const layouts::RankForm& form) {
  std::map<Stage, i64> layers;
  for (const RankPart& part : parts) {
    const auto layer = layer_in(part.name, form);
    i64& count = layers[stage_of(part)];
    if (layer) count = std::max(count, layer->number + 1);
  }
  i64 before = 0;
  for (auto& [stage, count] : layers) before += std::exchange(count, before);
  return layers;
}

/// Throws kCoverage if a tensor of the last pipeline stage is in files of an earlier one, such as
/// those of exchanged ranks.
void check_last_stage(const std::vector<RankPart>& parts, const std::map<Stage, i64>& stages,
                      const layouts::RankForm& form) {
  const Stage last = stages.rbegin()->first;
  for (const RankPart& part : parts) {
    if (!is_last(part.name, form) || stage_of(part) == last) continue;
    throw Error(ErrorCode::kCoverage, "a tensor of the last pipeline stage is on another one")
        .tensor(quote_for_message(part.tensor->spec.name))
        .note("found", fmt::format("stage {} of {}", part.pp, last.second + 1))
        .help(
            "rename the folders as they were written: the second number of mp_rank_TT_PPP is the "
            "pipeline stage");
  }
}

class Joining {
 public:
  Joining(const layouts::EngineLayout& layout, const mapping::ModelConfig* config, i64 tp)
      : config_(config), tp_(tp) {
    for (const layouts::RankCut& cut : layout.ranks.cuts) {
      cuts_.emplace_back(&cut, mapping::GlobMatcher(cut.name));
    }
  }

  /// The tensor of these parts.
  LogicalTensor join(const std::string& name, const std::vector<RankPart>& parts) {
    const TensorSpec& first = parts.front().tensor->spec;
    const layouts::RankCut* cut = tp_ > 1 ? cut_of(name) : nullptr;
    check_alike(name, parts);
    if (cut != nullptr) check_cut(name, first, *cut);
    LogicalTensor joined;
    joined.spec = {name, first.dtype, first.shape};
    if (cut != nullptr) joined.spec.shape[cut->axis] *= tp_;
    std::vector<Region> regions;
    for (const RankPart& part : parts) {
      regions.push_back(region_of(first.shape, cut, part.tp));
      joined.side.slots.push_back(part.tensor->side.slots.front());
    }
    joined.side.holders = pool_.of(joined.spec.shape, regions);
    return joined;
  }

 private:
  const layouts::RankCut* cut_of(const std::string& name) const {
    const auto found = std::ranges::find_if(
        cuts_, [&](const auto& cut) { return cut.second.match(name).has_value(); });
    return found == cuts_.end() ? nullptr : found->first;
  }

  /// Requires one shape and dtype, and a part of every rank of the tensor-parallel group.
  void check_alike(const std::string& name, const std::vector<RankPart>& parts) const {
    const TensorSpec& first = parts.front().tensor->spec;
    std::vector<bool> has(static_cast<size_t>(tp_), false);
    for (const RankPart& part : parts) {
      has[static_cast<size_t>(part.tp)] = true;
      const TensorSpec& spec = part.tensor->spec;
      if (spec.shape == first.shape && spec.dtype == first.dtype) continue;
      throw Error(ErrorCode::kShapeMismatch, "the shards of a tensor differ between ranks")
          .tensor(quote_for_message(name))
          .note("found",
                fmt::format("{} {} in {}", shardtool::to_string(spec.dtype),
                            shardtool::to_string(spec.shape), quote_for_message(spec.name)))
          .note("expected", fmt::format("{} {}", shardtool::to_string(first.dtype),
                                        shardtool::to_string(first.shape)));
    }
    const auto without = std::ranges::find(has, false);
    if (without == has.end()) return;
    throw Error(ErrorCode::kCoverage,
                fmt::format("rank {} of tp has no shard of a tensor", without - has.begin()))
        .tensor(quote_for_message(name));
  }

  void check_cut(const std::string& name, const TensorSpec& part,
                 const layouts::RankCut& cut) const {
    const bool has_axis = part.shape.size() > cut.axis;
    if (!has_axis || (cut.is_in_halves && part.shape[cut.axis] % 2 != 0) ||
        !checked_mul(part.shape[cut.axis], tp_)) {
      throw Error(ErrorCode::kShapeMismatch, "a rank's shard has no shape that can be joined")
          .tensor(quote_for_message(name))
          .note("found", shardtool::to_string(part.shape));
    }
    if (cut.groups.empty()) return;
    const auto groups = config_ == nullptr ? std::nullopt : config_->size(cut.groups);
    if (!groups) {
      throw Error(ErrorCode::kConfig, fmt::format("config.json has no number '{}'", cut.groups))
          .help("put the model's config.json beside the files, or give it with --model-config");
    }
    if (*groups % tp_ == 0) return;
    throw Error(ErrorCode::kUnsupported, "several ranks share a group of heads")
        .tensor(quote_for_message(name))
        .note("found", fmt::format("{} groups on {} ranks", *groups, tp_))
        .help("convert the checkpoint with Megatron's --ckpt-convert-format torch_dist");
  }

  Region region_of(const Shape& part, const layouts::RankCut* cut, i64 tp) const {
    Region region;
    for (size_t axis = 0; axis < part.size(); ++axis) {
      const i64 size = part[axis];
      const bool is_cut = cut != nullptr && cut->axis == axis;
      if (!is_cut) {
        region.push_back(AxisMap::identity(size));
      } else if (cut->is_in_halves) {
        const i64 half = size / 2;
        region.emplace_back(
            size, size * tp_,
            std::vector<index::Piece>{{0, tp * half, half}, {half, (tp_ + tp) * half, half}});
      } else {
        region.push_back(AxisMap::slice(size * tp_, {tp * size, (tp + 1) * size}));
      }
    }
    return region;
  }

  const mapping::ModelConfig* config_;
  i64 tp_;
  std::vector<std::pair<const layouts::RankCut*, mapping::GlobMatcher>> cuts_;
  index::HolderSetPool pool_;
};

}  // namespace

bool is_of_ranks(const LogicalCheckpoint& stored) {
  return stored.parts.front().format == format::torch::kMegatronRanks;
}

LogicalCheckpoint joined_ranks(LogicalCheckpoint stored, const layouts::EngineLayout& layout,
                               const mapping::ModelConfig* config) {
  const std::vector<RankPart> parts = parts_of(stored.tensors, layout.ranks);
  i64 tp = 1;
  for (const RankPart& part : parts) tp = std::max(tp, part.tp + 1);
  const std::map<Stage, i64> offsets = first_layers(parts, layout.ranks);
  check_last_stage(parts, offsets, layout.ranks);
  const i64 experts = experts_per_rank(parts, layout.ranks);
  std::map<std::string, std::vector<RankPart>> by_name;
  for (const RankPart& part : parts) {
    std::string name = part.name;
    // The expert comes behind the layer in a name, so its place stays valid.
    if (const auto expert = expert_in(name, layout.ranks)) shift(name, *expert, part.ep * experts);
    if (const auto layer = layer_in(name, layout.ranks)) {
      shift(name, *layer, offsets.at(stage_of(part)));
    }
    by_name[std::move(name)].push_back(part);
  }
  Joining joining(layout, config, tp);
  std::vector<LogicalTensor> tensors;
  for (const auto& [name, of_ranks] : by_name) tensors.push_back(joining.join(name, of_ranks));
  stored.tensors = std::move(tensors);
  return stored;
}

}  // namespace shardtool::api
