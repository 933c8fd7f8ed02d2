#include "lib/mapping/match/companions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lib/base/text.h"
#include "lib/layout/bundle.h"

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
    throw Error(ErrorCode::kSizeExpression, fmt::format("'{}' in {} is not a list of block sizes",
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

/// Returns the block of a leader of this rank. The given sizes are those of the last axes; the
/// others have block size 1.
std::vector<i64> block_of(const CompanionSpec& spec, size_t rank, const ModelConfig* config) {
  std::vector<i64> block = spec.block_config.empty() ? spec.block : block_from_config(spec, config);
  if (block.size() < rank) block.insert(block.begin(), rank - block.size(), 1);
  return block;
}

/// Returns the stored extent of a member's axis, or nullopt if any extent fits.
std::optional<i64> extent_of(const MemberAxisSpec& axis, const Shape& leader,
                             const CompanionSizes& sizes) {
  if (!axis.axis) return axis.size;
  if (*axis.axis >= leader.size()) return -1;
  const i64 extent = leader[*axis.axis];
  return ceil_div(extent, granularity_of(axis, extent, sizes));
}

/// Returns true if the shape has this form. False if the config lacks a size that the form needs.
bool fits(const std::vector<MemberAxisSpec>& form, const Shape& leader, const Shape& shape,
          const CompanionSizes& sizes) {
  if (form.size() != shape.size()) return false;
  try {
    for (size_t a = 0; a < form.size(); ++a) {
      if (extent_of(form[a], leader, sizes).value_or(shape[a]) != shape[a]) return false;
    }
  } catch (const Error& e) {
    if (e.code() == ErrorCode::kSizeExpression || e.code() == ErrorCode::kConfig) return false;
    throw;
  }
  return true;
}

/// Formats a form: "[512, any, 1024 / config.group_size]".
std::string describe_form(const std::vector<MemberAxisSpec>& form, const Shape& leader) {
  std::vector<std::string> axes;
  for (const MemberAxisSpec& axis : form) {
    if (!axis.axis || *axis.axis >= leader.size()) {
      axes.push_back(axis.size ? std::to_string(*axis.size) : "any");
      continue;
    }
    const i64 extent = leader[*axis.axis];
    axes.push_back(axis.per ? fmt::format("{} / ({})", extent, axis.per->text)
                            : std::to_string(extent));
  }
  return fmt::format("[{}]", fmt::join(axes, ", "));
}

layout::BundleMember member_of_form(const CompanionSpec& spec, const Shape& leader,
                                    const Shape& shape, const CompanionSizes& sizes) {
  const auto form = std::find_if(spec.forms.begin(), spec.forms.end(), [&](const auto& candidate) {
    return fits(candidate, leader, shape, sizes);
  });
  if (form == spec.forms.end()) {
    Error e(ErrorCode::kShapeMismatch,
            fmt::format("the shape {} does not fit the tensor that it belongs to",
                        shardtool::to_string(shape)));
    for (const auto& candidate : spec.forms) e.note("expected", describe_form(candidate, leader));
    throw e;
  }
  layout::BundleMember member{shape, {}};
  for (const MemberAxisSpec& axis : *form) {
    const i64 granularity = axis.axis ? granularity_of(axis, leader[*axis.axis], sizes) : i64{1};
    member.axes.push_back({axis.axis, granularity, axis.is_packed || spec.leads});
  }
  return member;
}

layout::BundleMember member_of(const CompanionSpec& spec, const Shape& leader, const Shape& shape,
                               const CompanionSizes& sizes) {
  const size_t rank = leader.size();
  switch (spec.kind) {
    case CompanionKind::kBlockScale:
      return layout::block_scale(shape, block_of(spec, rank, sizes.config));
    case CompanionKind::kPerRow:
      return layout::per_index(shape, 0);
    case CompanionKind::kPerColumn:
      return layout::per_index(shape, rank == 0 ? 0 : rank - 1);
    case CompanionKind::kPerTensor:
      return layout::per_tensor(shape);
    case CompanionKind::kSameDims:
      return layout::same_axes(shape);
    case CompanionKind::kMember:
      return member_of_form(spec, leader, shape, sizes);
  }
  throw Error(ErrorCode::kInternal, "unknown kind of companion");
}

/// Returns the shape that a form gives beside a leader; nullopt if it does not say every extent.
std::optional<Shape> shape_of_form(const std::vector<MemberAxisSpec>& form, const Shape& leader,
                                   const CompanionSizes& sizes) {
  Shape shape;
  for (const MemberAxisSpec& axis : form) {
    const auto extent = extent_of(axis, leader, sizes);
    if (!extent || *extent < 0) return std::nullopt;
    shape.push_back(*extent);
  }
  return shape;
}

/// Returns the shapes of a companion of this kind beside a leader.
std::vector<Shape> shapes_of(const CompanionSpec& spec, const Shape& leader,
                             const CompanionSizes& sizes) {
  if (spec.kind == CompanionKind::kSameDims) return {leader};
  if (spec.kind == CompanionKind::kBlockScale) {
    const std::vector<i64> block = block_of(spec, leader.size(), sizes.config);
    if (block.size() != leader.size()) return {};
    Shape shape;
    for (size_t axis = 0; axis < leader.size(); ++axis) {
      if (block[axis] < 1) return {};
      shape.push_back(ceil_div(leader[axis], block[axis]));
    }
    return {shape};
  }
  std::vector<Shape> shapes;
  for (const auto& form : spec.forms) {
    try {
      if (auto shape = shape_of_form(form, leader, sizes)) shapes.push_back(*std::move(shape));
    } catch (const Error& e) {
      if (e.code() != ErrorCode::kSizeExpression && e.code() != ErrorCode::kConfig) throw;
    }
  }
  return shapes;
}

std::vector<PlacedCompanion> placed_companions(const Mapping& mapping) {
  std::vector<PlacedCompanion> placed;
  for (const Document& document : mapping.documents()) {
    for (size_t i = 0; i < document.companions.size(); ++i) {
      placed.push_back({&document, &document.companions[i],
                        mapping.qualified(document, fmt::format("companions/{}", i))});
    }
  }
  return placed;
}

GlobSet companion_globs(const std::vector<PlacedCompanion>& companions) {
  std::vector<const Glob*> globs;
  for (const PlacedCompanion& placed : companions) globs.push_back(&placed.spec->is);
  return GlobSet(globs);
}

}  // namespace

Companions::Companions(const Mapping& mapping)
    : all_(placed_companions(mapping)),
      globs_(mapping.patterns().companions.of([&] { return companion_globs(all_); })),
      names_(globs_.set) {}

std::optional<NameTemplate> Companions::leader_template(size_t companion,
                                                        const NumberedName& name) const {
  const CompanionSpec& spec = *all_[companion].spec;
  if (!spec.is.takes_any_number()) return std::nullopt;
  const std::string& form = name.form();
  const std::vector<std::string_view> taken = globs_.each[companion].views(form).value();
  NameTemplate leader;
  size_t next = 0;
  for (const GlobToken& token : spec.of.tokens()) {
    if (token.kind == GlobToken::Kind::kLiteral) {
      leader.append(token.text);
      continue;
    }
    const std::string_view text = taken[next++];
    const size_t begin = text.empty() ? 0 : static_cast<size_t>(text.data() - form.data());
    if (!leader.append_piece(name, begin, text.size())) return std::nullopt;
  }
  return leader;
}

std::string Companions::leader(size_t companion, const std::string& name) {
  const NumberedName numbered(name);
  const auto& known =
      leaders_[companion].of(numbered.form(), [&] { return leader_template(companion, numbered); });
  if (known) return known->fill(numbered);
  return all_[companion].spec->of.fill(globs_.each[companion].match(name).value());
}

std::vector<CompanionMatch> Companions::find(const TensorSpec& tensor) {
  std::vector<CompanionMatch> found;
  for (const int matched : names_.match(tensor.name)) {
    const size_t at = static_cast<size_t>(matched);
    const auto& dtypes = all_[at].spec->dtypes;
    if (!dtypes.empty() && std::find(dtypes.begin(), dtypes.end(), tensor.dtype) == dtypes.end())
      continue;
    found.push_back({at, leader(at, tensor.name)});
  }
  return found;
}

layout::BundleMember Companions::member(size_t companion, const Shape& leader, const Shape& shape,
                                        const CompanionSizes& sizes) const {
  return member_of(*all_[companion].spec, leader, shape, sizes);
}

std::vector<Shape> Companions::shapes(size_t companion, const Shape& leader,
                                      const CompanionSizes& sizes) const {
  return shapes_of(*all_[companion].spec, leader, sizes);
}

i64 granularity_of(const MemberAxisSpec& axis, i64 extent, const CompanionSizes& sizes) {
  if (!axis.per) return 1;
  const auto& sum = axis.per->sum;
  const bool is_config = sum.size() == 1 && sum[0].rest.empty() &&
                         sum[0].first.kind == SizeAtom::Kind::kConfig && sizes.config != nullptr;
  const nlohmann::json* value = is_config ? sizes.config->find(sum[0].first.name) : nullptr;
  const bool is_all = value != nullptr && value->is_number_integer() && value->get<i64>() == -1;
  return is_all ? std::max<i64>(extent, 1) : sizes.evaluate(*axis.per);
}

}  // namespace shardtool::mapping
