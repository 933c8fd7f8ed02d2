#pragma once

/// Forward declarations of the types in the functions of an op. Headers of ops include this;
/// sources include the full definitions.
namespace shardtool::plan {
struct OpRow;
}  // namespace shardtool::plan

namespace shardtool::ops {

class OpDecoder;
class RuleSite;
class Walk;
class Widths;
struct Pricing;
struct BoundOp;
struct Op;
struct Value;
template <class N>
struct OpAt;
template <class N>
struct Part;

}  // namespace shardtool::ops
