#include "shardtool/mapping/companions.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <nlohmann/json.hpp>

#include "shardtool/base/text.h"
#include "shardtool/layout/bundle.h"

namespace shardtool::mapping {
namespace {

std::vector<i64> block_from_config(const CompanionSpec& spec, const ModelConfig* config) {
  if (config == nullptr) {
    throw Error(ErrorCode::kConfig,
                "the block of a scale is read from config.json, and there is none")
        .at(spec.place)
        .help("put config.json beside the weights, or write \"block\": [128, 128]");
  }
  const nlohmann::json* value = config->find(spec.block_config);
  if (value == nullptr || !value->is_array() || value->empty()) {
    throw Error(ErrorCode::kSizeExpression, fmt::format("'{}' in {} is no list of block sizes",
                                                        spec.block_config, config->file()))
        .at(spec.place)
        .note("found", value == nullptr ? "nothing" : quote_for_message(value->dump()));
  }
  std::vector<i64> block;
  for (size_t i = 0; i < value->size(); ++i) {
    block.push_back(config->size(fmt::format("{}[{}]", spec.block_config, i)).value_or(1));
  }
  return block;
}

/// The block of a leader of this rank; sizes are for the last axes, axes before them are not
/// blocked.
std::vector<i64> block_of(const CompanionSpec& spec, size_t rank, const ModelConfig* config) {
  std::vector<i64> block = spec.block_config.empty() ? spec.block : block_from_config(spec, config);
  if (block.size() < rank) block.insert(block.begin(), rank - block.size(), 1);
  return block;
}

layout::BundleMember member_of(const CompanionSpec& spec, const layout::Layout& leader,
                               const Shape& shape, const ModelConfig* config) {
  const size_t rank = leader.shape().size();
  switch (spec.kind) {
    case CompanionKind::kBlockScale:
      return layout::block_scale(shape, block_of(spec, rank, config));
    case CompanionKind::kPerRow:
      return layout::per_index(shape, 0);
    case CompanionKind::kPerColumn:
      return layout::per_index(shape, rank == 0 ? 0 : rank - 1);
    case CompanionKind::kPerTensor:
      return layout::per_tensor(shape);
    case CompanionKind::kSameDims:
      return layout::same_axes(shape);
  }
  throw Error(ErrorCode::kInternal, "unknown kind of companion");
}

}  // namespace

Companions::Companions(const Mapping& mapping) {
  for (const Document& document : mapping.documents()) {
    for (size_t i = 0; i < document.companions.size(); ++i) {
      all_.push_back({&document, &document.companions[i],
                      mapping.qualified(document, fmt::format("companions/{}", i))});
    }
  }
  for (const PlacedCompanion& placed : all_) {
    set_.add(placed.spec->is.regex());
    groups_.push_back(std::make_unique<RE2>(placed.spec->is.regex_of_groups(), RE2::Quiet));
  }
  set_.compile();
}

Companions::~Companions() = default;

std::vector<CompanionMatch> Companions::find(std::string_view name) {
  std::vector<CompanionMatch> found;
  set_.match(name, matched_);
  for (const int matched : matched_) {
    const size_t at = static_cast<size_t>(matched);
    std::vector<re2::StringPiece> groups(
        static_cast<size_t>(groups_[at]->NumberOfCapturingGroups()) + 1);
    groups_[at]->Match(re2::StringPiece(name.data(), name.size()), 0, name.size(), RE2::ANCHOR_BOTH,
                       groups.data(), static_cast<int>(groups.size()));
    std::vector<std::string> texts;
    for (size_t g = 1; g < groups.size(); ++g)
      texts.emplace_back(groups[g].data(), groups[g].size());
    found.push_back({at, all_[at].spec->of.fill(texts)});
  }
  return found;
}

layout::Layout Companions::layout(size_t companion, const layout::Layout& leader,
                                  const Shape& shape, const ModelConfig* config) const {
  return member_layout(leader, member_of(*all_[companion].spec, leader, shape, config));
}

}  // namespace shardtool::mapping
