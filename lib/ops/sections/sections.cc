#include "lib/ops/sections/sections.h"

#include <algorithm>

#include "lib/index/section.h"
#include "lib/ops/decoder.h"
#include "lib/ops/walk.h"
#include "lib/ops/widths.h"

namespace shardtool::ops {
namespace {

using index::AxisMap;
using plan::Placement;
using Kind = Placement::Kind;

/// Joins the inputs. The result is cut if any input is; whole inputs are sliced for free.
Value side_by_side(Walk& walk, const BoundOp& bound) {
  Value y = walk.in(bound, 0);
  y.width = 0;
  size_t devices = 1;
  for (const std::string& name : bound.op->in) {
    const Value& x = walk.value(name);
    y.width += x.width;
    devices = std::max(devices, x.features.size());
    for (size_t a = 0; a < walk.axes(); ++a) {
      if (x.on[a].is(Kind::kSharded)) y.on[a] = x.on[a];
    }
  }
  y.features.clear();
  for (size_t device = 0; device < devices; ++device) {
    std::vector<AxisMap> sections;
    for (const std::string& name : bound.op->in) {
      const std::vector<AxisMap>& maps = walk.value(name).features;
      sections.push_back(maps[maps.size() == 1 ? 0 : device]);
    }
    y.features.push_back(index::concat(sections));
  }
  return y;
}

}  // namespace

void decode(Split& op, OpDecoder& in) {
  in.finish({{"sections", [&op](const JsonValue& v) { op.sections = decode_dims(v); }, true},
             in.dim("heads", op.heads, false),
             {"order", [&op](const JsonValue& v) {
                op.order = v.one_of<Split::Order>({{"concat", Split::Order::kConcat},
                                                   {"per_head", Split::Order::kPerHead},
                                                   {"interleaved", Split::Order::kInterleaved}});
              }}});
  if ((op.order == Split::Order::kPerHead) == op.heads.sections.empty()) {
    in.value().refuse("an op with \"heads\" where the order is per_head, and only there");
  }
}

size_t outputs(const Split& op) {
  return op.sections.size();
}

void check(const Split& op, const Widths& widths) {
  i64 all = 0;
  for (const Dim& section : op.sections) all += widths.size(section);
  if (op.order == Split::Order::kConcat) return widths.exactly(0, all);
  if (op.order == Split::Order::kPerHead) return widths.exactly(0, widths.size(op.heads) * all);
  widths.in_units(0, all);
}

/// Devices have their part of every section.
std::vector<plan::OpRow> rules(const Split& /*op*/, const RuleSite& site) {
  return site.unary(plan::linear_rows({2, 2}));
}

/// Reduces a Partial value once, instead of once per section.
std::vector<Value> place(const Split& op, Walk& walk, const BoundOp& bound) {
  Value& x = walk.in(bound, 0);
  walk.reduce_all(x);
  i64 per_head = 0;
  for (const Dim& section : op.sections) per_head += walk.size(section);
  i64 begin = 0;
  std::vector<Value> made;
  for (size_t i = 0; i < op.sections.size(); ++i) {
    const i64 size = walk.size(op.sections[i]);
    Value section = x;
    if (op.order == Split::Order::kConcat) {
      section.width = size;
      for (AxisMap& map : section.features) map = index::section_of(map, begin, size);
    } else {
      section.width = x.width / per_head * size;
      section.features = walk.rescaled(bound, x.features, per_head, size);
    }
    begin += size;
    made.push_back(std::move(section));
  }
  return made;
}

/// Ops that use the value read it where it is.
void price(const Split& /*op*/, Pricing& /*pricing*/) {}

void decode(Join& op, OpDecoder& in) {
  in.finish({{"sections", [&op](const JsonValue& v) { op.sections = decode_dims(v); }},
             in.dim("heads", op.heads, false),
             {"order", [&op](const JsonValue& v) {
                op.order = v.one_of<Join::Order>(
                    {{"per_head", Join::Order::kPerHead}, {"concat", Join::Order::kConcat}});
              }}});
  const bool is_per_head = op.order == Join::Order::kPerHead;
  if (is_per_head == op.heads.sections.empty() || is_per_head == op.sections.empty()) {
    in.value().refuse(
        "an op with \"heads\" and \"sections\" where the order is per_head, and only there");
  }
}

Operands inputs(const Join& op, size_t given) {
  if (op.order == Join::Order::kConcat) return {1, given};
  return {op.sections.size(), op.sections.size()};
}

void check(const Join& op, const Widths& widths) {
  if (op.order == Join::Order::kConcat) return;
  const i64 heads = widths.positive(op.heads);
  for (size_t i = 0; i < op.sections.size(); ++i) {
    const i64 section = widths.positive(op.sections[i]);
    if (i == 0 || widths.given()[i] != section) widths.exactly(i, heads * section);
  }
}

/// Heads share an input that has the width of one section: it is whole where the others are cut.
std::vector<plan::OpRow> rules(const Join& op, const RuleSite& site) {
  std::vector<Placement> in(site.inputs(), kCut);
  for (size_t i = 0; i < op.sections.size(); ++i) {
    if (i > 0 && site.width(i) == site.size(op.sections[i])) in[i] = kWhole;
  }
  auto rows = site.by_tokens();
  rows.push_back(site.row(in, kCut));
  rows.push_back(site.all(kSum, kSum));
  return rows;
}

Value place(const Join& op, Walk& walk, const BoundOp& bound) {
  for (size_t i = 0; i < bound.op->in.size(); ++i) walk.reduce_all(walk.in(bound, i));
  if (op.order == Join::Order::kConcat) return side_by_side(walk, bound);
  const i64 heads = walk.size(op.heads);
  i64 per_head = 0;
  for (const Dim& section : op.sections) per_head += walk.size(section);
  Value y = walk.in(bound, 0);
  y.features = walk.rescaled(bound, y.features, y.width / heads, per_head);
  y.width = heads * per_head;
  return y;
}

/// Ops that use the value read it where it is.
void price(const Join& /*op*/, Pricing& /*pricing*/) {}

void decode(OfLayer& op, OpDecoder& in) {
  in.finish({in.dim("size", op.size)});
}

std::vector<plan::OpRow> rules(const OfLayer& /*op*/, const RuleSite& site) {
  return site.unary(plan::linear_rows({2, 2}));
}

Value place(const OfLayer& op, Walk& walk, const BoundOp& bound) {
  const i64 size = walk.size(op.size);
  Value y = walk.in(bound, 0);
  y.width = size;
  for (AxisMap& map : y.features) map = index::section_of(map, walk.layer() * size, size);
  return y;
}

/// Ops that use the value read it where it is.
void price(const OfLayer& /*op*/, Pricing& /*pricing*/) {}

}  // namespace shardtool::ops
