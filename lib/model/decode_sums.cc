#include "shardtool/model/op_decoder.h"

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
  if (op_.in.size() != 2) value_.refuse("a value and the sums of its squares");
}

void OpDecoder::resize() {
  auto& r = be<Resize>();
  finish({dim("size", r.size), number("least", r.least)});
  if (op_.in.size() != 3) value_.refuse("a value, the sum of its squares, and of another's");
}

void OpDecoder::cutoff() {
  auto& c = be<Cutoff>();
  finish({dim("size", c.size),
          {"shares", [&c](const JsonValue& v) { c.shares = decode_paths(v); }, true}});
  if (op_.in.size() != 3) value_.refuse("a value, its sum, and that of its squares");
}

void OpDecoder::mix() {
  auto& m = be<Mix>();
  finish(
      {dim("size", m.size), dim("from", m.from), dim("to", m.to), flag("by_source", m.by_source)});
  if (op_.in.size() != 2) value_.refuse("streams side by side, and their factors");
}

void OpDecoder::balance() {
  auto& b = be<Balance>();
  finish({dim("size", b.size), number("rounds", b.rounds, true), number("eps", b.eps, true)});
}

}  // namespace shardtool::model
