#pragma once

#include <string_view>

#include "lib/layout/axis_expr.h"
#include "lib/mesh/mesh.h"

namespace shardtool::layout {

/// Query heads and the key/value heads that they share (grouped-query attention), or other heads
/// grouped in the same way.
struct HeadCounts {
  i64 heads = 0;
  i64 kv_heads = 0;
  std::string_view heads_name = "query heads";  ///< for messages
  std::string_view kv_name = "KV heads";
  std::string_view kv_axis = {};  ///< the axis with the policy for few KV heads; empty: a strategy
  bool must_divide = false;       ///< for advice: uneven cuts are refused later
  bool are_groups_whole = false;  ///< devices that share a KV head hold all of its query heads
};

/// Policy for more devices than KV heads.
enum class SmallPolicy {
  kError,      ///< refuse
  kReplicate,  ///< if N is a multiple of the KV heads: each KV head on N / kv consecutive devices
  kGather,     ///< every device gets all KV heads that its query heads need
};

/// One cut decision for q, k, v and o, in units of heads.
struct HeadCut {
  AxisExpr queries;  ///< over `heads` units
  AxisExpr kv;       ///< over `kv_heads` units
};

/// Cuts heads over N devices (the extent of `over`), with g = heads / kv_heads queries per KV head:
///   N <= kv        whole KV groups by `rule`: kv = Split(kv), queries = Scale(Split(kv), g)
///   N = kv * r     kReplicate: each KV head on r consecutive devices (repeat-interleave),
///                  queries = Split(heads), where N must divide `heads`, or, if groups stay whole,
///                  queries = Scale(kv, g)
///   otherwise      kGather: queries = Split(heads), kv = Owners(the KV heads of those queries)
/// Throws kGroups, with the device counts that work by `rule`, and kNotDivisible for rule exact.
HeadCut cut_heads(HeadCounts counts, const mesh::Mesh& mesh, const Over& over, SplitRule rule,
                  SmallPolicy small);

/// Cuts n units that may be fewer than the devices: kReplicate has each unit on equally many
/// consecutive devices (n must divide their number, kNotDivisible), kError and kGather split by
/// `rule`.
AxisExpr cut_units(i64 n, const mesh::Mesh& mesh, const Over& over, SplitRule rule,
                   SmallPolicy small);

}  // namespace shardtool::layout
