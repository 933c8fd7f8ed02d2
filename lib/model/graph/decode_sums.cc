#include "lib/model/graph/op_decoder.h"

// Ops that sum over the features of a value, or over its streams.
namespace shardtool::model {

void OpDecoder::squares() {
  auto& s = be<Sums>();
  finish({dim("size", s.size)});
}

void OpDecoder::sums() {
  auto& s = be<Sums>();
  s.squared = false;
  finish({dim("size", s.size)});
}

void OpDecoder::normalise() {
  auto& n = be<Normalise>();
  finish({weight("weight", [&n] { return std::vector{n.features}; }), dim("features", n.features),
          dim("size", n.size), number("eps", n.eps, true)});
}

void OpDecoder::resize() {
  auto& r = be<Resize>();
  finish({dim("size", r.size), number("least", r.least)});
}

void OpDecoder::cutoff() {
  auto& c = be<Cutoff>();
  finish({dim("size", c.size),
          {"shares", [&c](const JsonValue& v) { c.shares = decode_paths(v); }, true}});
}

void OpDecoder::mix() {
  auto& m = be<Mix>();
  finish(
      {dim("size", m.size), dim("from", m.from), dim("to", m.to), flag("by_source", m.by_source)});
}

void OpDecoder::balance() {
  auto& b = be<Balance>();
  finish({dim("size", b.size), number("rounds", b.rounds, true), number("eps", b.eps, true)});
}

}  // namespace shardtool::model
