#include <span>
#include <utility>
#include <vector>

#include "lib/ops/body.h"
#include "lib/ops/part_moves.h"
#include "lib/ops/sections/section_list.h"
#include "lib/ops/sections/sections.h"

namespace shardtool::ops {
namespace {

using index::AxisMap;

/// Returns the inputs one after the other.
template <class N>
Part<N> joined_inputs(const OpAt<N>& at) {
  std::vector<AxisMap> sections;
  for (const Part<N>* part : at.in) sections.push_back(part->features);
  Part<N> y = empty_part<N>(index::concat(sections), at.inputs.rows());
  at.bench.zeros(y.data);
  i64 begin = 0;
  for (const Part<N>* part : at.in) {
    const FeatureRun run{0, begin, part->width()};
    copy_runs(at.bench, *part, std::span(&run, 1), at.inputs.rows(), y);
    begin += run.size;
  }
  return y;
}

}  // namespace

template <class N>
std::vector<Part<N>> apply(const Split& op, const OpAt<N>& at) {
  std::vector<i64> sizes;
  for (const Dim& section : op.sections) sizes.push_back(at.model.size(section));
  const Part<N>& x = *at.in[0];
  std::vector<Part<N>> parts;
  for (Section& section : sections_of(op.order, x.features, sizes, at.op.op->in[0])) {
    parts.push_back(
        picked(at.bench, x, std::move(section.features), section.from, at.inputs.rows()));
  }
  return parts;
}

template <class N>
Part<N> apply(const Join& op, const OpAt<N>& at) {
  if (op.order == Join::Order::kConcat) return joined_inputs(at);
  std::vector<i64> sizes;
  i64 per_head = 0;
  for (const Dim& section : op.sections) {
    sizes.push_back(at.model.size(section));
    per_head += sizes.back();
  }
  const AxisMap heads = units_of(at.in[0]->features, sizes[0], at.op.op->in[0]);
  Part<N> y = empty_part<N>(index::scale(heads, per_head), at.inputs.rows());
  at.bench.zeros(y.data);
  i64 begin = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const bool is_shared = at.in[i]->features.global_size() == sizes[i];
    const Part<N> x = is_shared ? *at.in[i]
                                : aligned(at.bench, *at.in[i], index::scale(heads, sizes[i]),
                                          at.inputs.rows(), at.op.op->in[i]);
    std::vector<FeatureRun> runs;
    for (i64 h = 0; h < heads.local_size(); ++h) {
      runs.push_back({is_shared ? 0 : h * sizes[i], h * per_head + begin, sizes[i]});
    }
    copy_runs(at.bench, x, std::span(runs), at.inputs.rows(), y);
    begin += sizes[i];
  }
  return y;
}

template <class N>
Part<N> apply(const OfLayer& op, const OpAt<N>& at) {
  const i64 size = at.model.size(op.size);
  std::vector<i64> sizes{at.layer * size, size};
  if (at.layer == 0) sizes.erase(sizes.begin());
  const Part<N>& x = *at.in[0];
  const Section section =
      sections_of(Split::Order::kConcat, x.features, sizes, at.op.op->in[0]).back();
  return picked(at.bench, x, section.features, section.from, at.inputs.rows());
}

SHARDTOOL_BODY(Split)
SHARDTOOL_BODY(Join)
SHARDTOOL_BODY(OfLayer)

}  // namespace shardtool::ops
