#include "lib/tutorial/proof/counts.h"

#include <fmt/format.h>

#include "lib/base/error.h"

namespace shardtool::tutorial {
namespace {

engine::Counted Counts::*kind_of(plan::Move move) {
  switch (move) {
    case plan::Move::kAllGather:
      return &Counts::all_gather;
    case plan::Move::kAllReduce:
      return &Counts::all_reduce;
    case plan::Move::kReduceScatter:
      return &Counts::reduce_scatter;
    case plan::Move::kAllToAll:
      return &Counts::all_to_all;
    case plan::Move::kPermute:
      return &Counts::send;
    case plan::Move::kNothing:
    case plan::Move::kSlice:
    case plan::Move::kKeepOne:
    case plan::Move::kImpossible:
      break;
  }
  throw Error(ErrorCode::kInternal, "a move that no operation carries out");
}

}  // namespace

Counts& operator+=(Counts& sum, const Counts& counts) {
  for (const CountedKind& kind : kCountedKinds) sum.*kind.counted += counts.*kind.counted;
  return sum;
}

Counts operator+(Counts a, const Counts& b) {
  return a += b;
}

Counts moved(const plan::Placement& from, const plan::Placement& to, i64 elements) {
  Counts counts;
  counts.*kind_of(plan::move_between(from, to)) = {1, elements};
  return counts;
}

std::string to_string(const Counts& counts) {
  std::string text;
  for (const auto& [name, kind] : kCountedKinds) {
    const engine::Counted& counted = counts.*kind;
    if (counted == engine::Counted{}) continue;
    text += fmt::format("{}{} {} of {}", text.empty() ? "" : ", ", counted.count, name,
                        counted.elements);
  }
  return text.empty() ? "none" : text;
}

}  // namespace shardtool::tutorial
