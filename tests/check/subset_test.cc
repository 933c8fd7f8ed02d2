#include "lib/check/data/subset.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

namespace shardtool::test {
namespace {

/// Data tensors with one holder and this many bytes.
std::vector<check::DataTensor> tensors_of(size_t count, i64 bytes) {
  std::vector<check::DataTensor> tensors;
  for (size_t i = 0; i < count; ++i) {
    const Shape shape{bytes};
    tensors.push_back({{"t" + std::to_string(i), Dtype::kU8, shape},
                       {std::make_shared<index::HolderSet>(index::HolderSet::whole(shape)),
                        {{0, static_cast<i64>(i) * bytes}}},
                       {},
                       {},
                       {}});
  }
  return tensors;
}

TEST_CASE("the parts of n/t are disjoint and together all, a fraction is about that") {
  const auto tensors = tensors_of(2000, 4);
  std::vector<int> times(tensors.size());
  for (i64 part = 1; part <= 10; ++part) {
    const auto chosen = check::choose({part, 10, 1, {}}, tensors);
    for (size_t t = 0; t < tensors.size(); ++t) times[t] += chosen[t] ? 1 : 0;
    CHECK(std::count(chosen.begin(), chosen.end(), true) > 100);
  }
  CHECK(std::all_of(times.begin(), times.end(), [](int n) { return n == 1; }));
  const auto few = check::choose({1, 1, 0.05, {}}, tensors);
  CHECK(std::count(few.begin(), few.end(), true) > 50);
  CHECK(std::count(few.begin(), few.end(), true) < 150);
}

TEST_CASE("a fraction of a few tensors is one of them, and never none") {
  for (size_t tensors = 1; tensors < 40; ++tensors) {
    const auto chosen = check::choose({1, 1, 0.001, {}}, tensors_of(tensors, 4));
    CHECK(std::ranges::count(chosen, true) == 1);
  }
  CHECK(check::choose({1, 1, 0.001, {}}, {}).empty());
}

TEST_CASE("a budget of bytes is used up, not exceeded, and reads one tensor at least") {
  const auto tensors = tensors_of(100, 10);
  const auto chosen = check::choose({1, 1, 1, 95}, tensors);
  CHECK(std::count(chosen.begin(), chosen.end(), true) == 9);
  CHECK(check::choose({1, 1, 1, 95}, tensors) == chosen);
  const auto one = check::choose({1, 1, 1, 1}, tensors);
  CHECK(std::count(one.begin(), one.end(), true) == 1);
}

}  // namespace
}  // namespace shardtool::test
