#pragma once

/// The types that the functions of an op take. Headers of ops declare with them; sources include
/// the headers that define them.
namespace shardtool::ops {

class OpDecoder;
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
