#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "lib/mapping/document/decode.h"
#include "lib/mapping/document/identifier.h"

namespace shardtool::mapping {
namespace {

mesh::AxisRef decode_axis_ref(const JsonValue& value) {
  const std::string text = value.text();
  mesh::AxisRef ref = value.located([&] { return mesh::parse_axis_ref(text); });
  if (!is_identifier(ref.axis))
    value.refuse("a mesh axis such as \"tp\", or a part of one such as \"tp:(1)4\"");
  return ref;
}

std::vector<i64> decode_owner_list(const JsonValue& value) {
  std::vector<i64> units;
  std::unordered_set<i64> seen;
  for (const JsonValue& unit : value.elements()) {
    units.push_back(unit.integer(0));
    if (!seen.insert(units.back()).second) value.refuse("a list without repeated units");
  }
  return units;
}

OwnersSpec decode_owners(const JsonValue& value) {
  using Kind = OwnersSpec::Kind;
  if (value.is_text()) {
    return {
        value.one_of<Kind>({{"contiguous", Kind::kContiguous}, {"round_robin", Kind::kRoundRobin}}),
        1,
        {}};
  }
  OwnersSpec owners{Kind::kLists, 1, {}};
  if (value.is_object()) {
    owners.kind = Kind::kRounds;
    value.object({{"rounds", [&](const JsonValue& v) { owners.rounds = v.integer(1); }, true}});
    return owners;
  }
  if (!value.is_array())
    value.refuse("\"contiguous\", \"round_robin\", {\"rounds\"} or a list of units per rank");
  for (const JsonValue& units : value.elements(1)) owners.lists.push_back(decode_owner_list(units));
  return owners;
}

SizeExpression decode_size_with_default(const JsonValue& value) {
  SizeExpression size;
  std::shared_ptr<const SizeExpression> fallback;
  value.object({
      {"ref", [&](const JsonValue& v) { size = v.located([&] { return parse_size(v.text()); }); },
       true},
      {"default",
       [&](const JsonValue& v) {
         fallback = std::make_shared<const SizeExpression>(decode_size(v));
       }},
  });
  size.fallback = std::move(fallback);
  return size;
}

}  // namespace

SizeExpression decode_size(const JsonValue& value) {
  SizeExpression size;
  if (value.is_object()) {
    size = decode_size_with_default(value);
  } else if (value.is_text()) {
    size = value.located([&] { return parse_size(value.text()); });
  } else if (value.is_number()) {
    size = integer_size(value.integer(1));
  } else {
    value.refuse("an integer, a string such as \"config.hidden_size\", or {\"ref\", \"default\"}");
  }
  size.place = value.place();
  return size;
}

MeshRef decode_mesh_ref(const JsonValue& value) {
  MeshRef ref{{}, value.place()};
  if (value.is_null()) return ref;
  if (value.is_text()) {
    ref.over.push_back(decode_axis_ref(value));
    return ref;
  }
  if (!value.is_array()) value.refuse("null, a mesh axis or a list of them");
  for (const JsonValue& axis : value.elements()) {
    ref.over.push_back(decode_axis_ref(axis));
    if (std::count(ref.over.begin(), ref.over.end(), ref.over.back()) > 1) {
      value.refuse("a list without repeated mesh axes");
    }
  }
  return ref;
}

Uneven decode_uneven(const JsonValue& value) {
  return value.one_of<Uneven>({{"balanced", Uneven::kBalanced},
                               {"middle", Uneven::kMiddle},
                               {"chunk", Uneven::kChunk},
                               {"pad", Uneven::kPad},
                               {"error", Uneven::kError}});
}

layout::SmallPolicy decode_small(const JsonValue& value) {
  using layout::SmallPolicy;
  return value.one_of<SmallPolicy>({{"error", SmallPolicy::kError},
                                    {"replicate", SmallPolicy::kReplicate},
                                    {"gather", SmallPolicy::kGather}});
}

AxisSpec decode_axis(const JsonValue& value) {
  AxisSpec spec;
  spec.place = value.place();
  if (!value.is_object()) {
    spec.mesh = decode_mesh_ref(value);
    return spec;
  }
  value.object({
      {"mesh", [&](const JsonValue& v) { spec.mesh = decode_mesh_ref(v); }},
      {"size", [&](const JsonValue& v) { spec.size = decode_size(v); }},
      {"uneven", [&](const JsonValue& v) { spec.uneven = decode_uneven(v); }},
      {"pad_to", [&](const JsonValue& v) { spec.pad_to = v.integer(1); }},
      {"padding",
       [&](const JsonValue& v) {
         spec.padding = v.one_of<layout::Fill>(
             {{"zero", layout::Fill::kZero}, {"repeat_last", layout::Fill::kRepeatLast}});
       }},
      {"small", [&](const JsonValue& v) { spec.small = decode_small(v); }},
      {"groups", [&](const JsonValue& v) { spec.groups = v.identifier(); }},
      {"owners", [&](const JsonValue& v) { spec.owners = decode_owners(v); }},
      {"alone", [&](const JsonValue& v) { spec.alone = v.boolean(); }},
  });
  return spec;
}

}  // namespace shardtool::mapping
