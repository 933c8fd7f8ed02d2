#include "lib/layout/head_groups.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "lib/base/error.h"

namespace shardtool::layout {
namespace {

/// True if every part has units, and as many as the others where these must divide.
bool fills(i64 units, i64 parts, SplitRule rule, bool must_divide) {
  if (units % parts == 0) return true;
  if (must_divide || rule.kind == SplitRule::Kind::kExact) return false;
  return part_of(units, parts, parts - 1, rule).size() > 0;
}

/// Device counts for which cut_heads succeeds with replication, up to 1024 for the message.
std::vector<i64> counts_that_work(HeadCounts counts, SplitRule rule) {
  constexpr i64 kLargest = 1024;
  std::vector<i64> legal;
  for (i64 n = 1; n <= std::min(counts.heads, kLargest); ++n) {
    const bool whole_groups =
        n <= counts.kv_heads && fills(counts.kv_heads, n, rule, counts.must_divide);
    const bool replicated =
        n % counts.kv_heads == 0 && (counts.are_groups_whole || counts.heads % n == 0);
    if (whole_groups || replicated) legal.push_back(n);
  }
  return legal;
}

/// Writes a policy for few KV heads as the user sets it: on the axis, or in the strategy.
std::string setting(const HeadCounts& counts, std::string_view policy) {
  if (counts.kv_axis.empty()) return fmt::format("\"small\": \"{}\"", policy);
  return fmt::format("--set axes.{}.small={}", counts.kv_axis, policy);
}

Error without_gather(const HeadCounts& counts, i64 devices, SplitRule rule, SmallPolicy small,
                     const std::string& why) {
  const std::vector<i64> legal = counts_that_work(counts, rule);
  auto help = fmt::format("device counts that work: {}", fmt::join(legal, " "));
  if (small != SmallPolicy::kReplicate && !legal.empty() && legal.back() > counts.kv_heads)
    help += fmt::format(" (above {} with {})", counts.kv_heads, setting(counts, "replicate"));
  return Error(ErrorCode::kGroups,
               fmt::format("{} {} and {} {} cannot share one cut over {} devices: {}", counts.heads,
                           counts.heads_name, counts.kv_heads, counts.kv_name, devices, why))
      .help(std::move(help));
}

/// Adds the advice to gather, where every device has query heads to gather for.
Error or_gather(Error error, const HeadCounts& counts, i64 devices, SplitRule rule) {
  if (devices > counts.heads || !fills(counts.heads, devices, rule, counts.must_divide))
    return error;
  return error.help(fmt::format("or give every device the {} that its {} need, with {}",
                                counts.kv_name, counts.heads_name, setting(counts, "gather")));
}

Error cannot_share(const HeadCounts& counts, i64 devices, SplitRule rule, SmallPolicy small,
                   const std::string& why) {
  return or_gather(without_gather(counts, devices, rule, small, why), counts, devices, rule);
}

/// Gives each of n units to equally many devices, one after the other. n must divide the devices.
AxisExpr shared_units(i64 n, const mesh::Mesh& mesh, const Over& over) {
  if (const auto replicas_over = leading(mesh, over, n)) return split(n, *replicas_over, kExact);
  const i64 parts = extent(mesh, over);
  std::vector<std::vector<i64>> owned;
  for (i64 part = 0; part < parts; ++part) owned.push_back({part / (parts / n)});
  return owners(n, std::move(owned), over);
}

/// Distributes queries evenly and gives every device the KV heads that they attend to.
HeadCut gathered(HeadCounts counts, const mesh::Mesh& mesh, const Over& over, SplitRule rule) {
  const i64 group = counts.heads / counts.kv_heads;
  std::vector<std::vector<i64>> owned;
  const i64 parts = extent(mesh, over);
  for (i64 part = 0; part < parts; ++part) {
    const index::Interval queries = part_of(counts.heads, parts, part, rule);
    std::vector<i64> kv;
    for (i64 head = queries.begin; head < queries.end; ++head) {
      if (kv.empty() || kv.back() != head / group) kv.push_back(head / group);
    }
    owned.push_back(std::move(kv));
  }
  return {split(counts.heads, over, rule), owners(counts.kv_heads, std::move(owned), over)};
}

}  // namespace

HeadCut cut_heads(HeadCounts counts, const mesh::Mesh& mesh, const Over& over, SplitRule rule,
                  SmallPolicy small) {
  const i64 devices = extent(mesh, over);
  if (counts.kv_heads < 1 || counts.heads % counts.kv_heads != 0) {
    throw Error(ErrorCode::kGroups,
                fmt::format("{} {} are not a whole number of groups under {} {}", counts.heads,
                            counts.heads_name, counts.kv_heads, counts.kv_name));
  }
  if (devices <= counts.kv_heads) {
    const AxisExpr groups = split(counts.kv_heads, over, rule);
    return {scale(groups, counts.heads / counts.kv_heads), groups};
  }
  if (small == SmallPolicy::kGather) return gathered(counts, mesh, over, rule);
  if (small == SmallPolicy::kError) {
    throw cannot_share(counts, devices, rule, small,
                       fmt::format("there are fewer {} than devices", counts.kv_name));
  }
  if (devices % counts.kv_heads != 0) {
    throw cannot_share(counts, devices, rule, small,
                       fmt::format("{} devices are not a multiple of {} {}", devices,
                                   counts.kv_heads, counts.kv_name));
  }
  if (counts.are_groups_whole) {
    const AxisExpr groups = shared_units(counts.kv_heads, mesh, over);
    return {scale(groups, counts.heads / counts.kv_heads), groups};
  }
  if (counts.heads % devices != 0) {
    throw cannot_share(counts, devices, rule, small,
                       fmt::format("{} % {} = {} {} are left over", counts.heads, devices,
                                   counts.heads % devices, counts.heads_name));
  }
  return {split(counts.heads, over, kExact), shared_units(counts.kv_heads, mesh, over)};
}

AxisExpr cut_units(i64 n, const mesh::Mesh& mesh, const Over& over, SplitRule rule,
                   SmallPolicy small) {
  const i64 devices = extent(mesh, over);
  if (small != SmallPolicy::kReplicate || n >= devices || n < 1) return split(n, over, rule);
  if (devices % n != 0) {
    throw Error(ErrorCode::kNotDivisible,
                fmt::format("{} units cannot be replicated evenly over mesh axes {} of {} devices",
                            n, to_string(over), devices))
        .help(fmt::format("use a number of devices that is a multiple of {}, or at most {}", n, n));
  }
  return shared_units(n, mesh, over);
}

}  // namespace shardtool::layout
