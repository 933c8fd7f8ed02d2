#include <fmt/format.h>

#include <algorithm>

#include "lib/mapping/document/decode.h"

namespace shardtool::mapping {
namespace {

using Form = std::vector<MemberAxisSpec>;

void decode_block(const JsonValue& value, CompanionSpec& spec) {
  if (!value.is_text()) {
    for (const JsonValue& size : value.elements(1)) spec.block.push_back(size.integer(1));
    return;
  }
  const SizeExpression path = value.located([&] { return parse_size(value.text()); });
  if (path.sum.size() != 1 || !path.sum[0].rest.empty() ||
      path.sum[0].first.kind != SizeAtom::Kind::kConfig) {
    value.refuse("a list of integers or one \"config.PATH\"");
  }
  spec.block_config = path.sum[0].first.name;
}

MemberAxisSpec decode_member_axis(const JsonValue& value) {
  MemberAxisSpec axis;
  const auto leader_axis = [&](const JsonValue& v) {
    axis.axis = static_cast<size_t>(v.integer(0));
  };
  if (value.is_null()) return axis;
  if (value.is_number()) {
    leader_axis(value);
    return axis;
  }
  value.object({
      {"axis", leader_axis},
      {"per", [&](const JsonValue& v) { axis.per = decode_size(v); }},
      {"packed", [&](const JsonValue& v) { axis.is_packed = v.boolean(); }},
      {"size", [&](const JsonValue& v) { axis.size = v.integer(1); }},
  });
  if (axis.axis.has_value() == axis.size.has_value() || (axis.per && !axis.axis))
    value.refuse("an axis of the leader with or without \"per\", or a \"size\"");
  if (value.has("packed") && !axis.per) value.refuse("\"packed\" together with \"per\"");
  return axis;
}

Form decode_form(const JsonValue& value) {
  Form form;
  for (const JsonValue& axis : value.elements()) form.push_back(decode_member_axis(axis));
  return form;
}

void decode_values(const JsonValue& value, CompanionSpec& spec) {
  if (value.is_text()) {
    spec.values = value.one_of<MemberValues>({{"local_shape", MemberValues::kLocalShape}});
    return;
  }
  spec.values = MemberValues::kGroupIndices;
  value.object({{"groups_of", [&](const JsonValue& v) { spec.group = decode_size(v); }, true}});
}

void check_wildcards(const JsonValue& value, const CompanionSpec& spec) {
  if (spec.of.wildcards() == spec.is.wildcards()) return;
  throw value
      .error(ErrorCode::kMappingSchema,
             fmt::format("the wildcards of '{}' and '{}' differ", spec.of.text(), spec.is.text()))
      .help(
          "\"of\" and \"is\" need the same wildcards in the same order: they are matched to each "
          "other");
}

/// Refuses "block" except for block scales, and "axes", "forms" and "leads" except for members.
void check_fields(const JsonValue& value, const CompanionSpec& spec) {
  const auto belongs = [&](const std::string& field, const std::string& kind) {
    return value.error(
        ErrorCode::kMappingSchema,
        fmt::format("{}: {} to kind \"{}\" and to no other", value.name(), field, kind));
  };
  const bool is_block_scale = spec.kind == CompanionKind::kBlockScale;
  if (is_block_scale && !value.has("block")) value.refuse("a block_scale with its \"block\"");
  if (value.has("block") && !is_block_scale) throw belongs("\"block\" belongs", "block_scale");
  const bool has_axes = value.has("axes");
  const bool has_forms = value.has("forms");
  if (spec.kind == CompanionKind::kMember ? has_axes == has_forms : has_axes || has_forms)
    throw belongs("one of \"axes\" and \"forms\" belongs", "member");
  if (value.has("values") && spec.kind != CompanionKind::kMember)
    throw belongs("\"values\" belong", "member");
  if (value.has("leads") && spec.kind != CompanionKind::kMember)
    throw belongs("\"leads\" belongs", "member");
  if (spec.leads && spec.forms.size() != 1) value.refuse("one form for a member that leads");
}

}  // namespace

CompanionSpec decode_companion(const JsonValue& value) {
  CompanionSpec spec{.of = Glob(""), .is = Glob(""), .place = value.place()};
  value.object({
      {"of", [&](const JsonValue& v) { spec.of = decode_glob(v); }, true},
      {"is", [&](const JsonValue& v) { spec.is = decode_glob(v); }, true},
      {"kind",
       [&](const JsonValue& v) {
         spec.kind = v.one_of<CompanionKind>({{"block_scale", CompanionKind::kBlockScale},
                                              {"per_row", CompanionKind::kPerRow},
                                              {"per_column", CompanionKind::kPerColumn},
                                              {"per_tensor", CompanionKind::kPerTensor},
                                              {"same_dims", CompanionKind::kSameDims},
                                              {"member", CompanionKind::kMember}});
       },
       true},
      {"block", [&](const JsonValue& v) { decode_block(v, spec); }},
      {"axes", [&](const JsonValue& v) { spec.forms.push_back(decode_form(v)); }},
      {"forms",
       [&](const JsonValue& v) {
         for (const JsonValue& form : v.elements(1)) spec.forms.push_back(decode_form(form));
       }},
      {"leads", [&](const JsonValue& v) { spec.leads = v.boolean(); }},
      {"values", [&](const JsonValue& v) { decode_values(v, spec); }},
      {"dtype", [&](const JsonValue& v) { spec.dtypes = decode_dtypes(v); }},
  });
  check_wildcards(value, spec);
  check_fields(value, spec);
  return spec;
}

}  // namespace shardtool::mapping
