#include "lib/ops/part_moves.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <numeric>

#include "tests/support/emulated_accelerator.h"

namespace shardtool::ops {
namespace {

constexpr i64 kTokens = 3;

/// Runs of one size at equal distances, every one beside others of another size.
struct Series {
  i64 size = 1, count = 1, from_gap = 0, to_gap = 0;
};

/// Lays series of runs out one after another; `from_width` and `to_width` are what they take.
std::vector<FeatureRun> laid_out(const std::vector<Series>& all, i64& from_width, i64& to_width) {
  std::vector<FeatureRun> runs;
  from_width = to_width = 0;
  for (const Series& one : all) {
    for (i64 i = 0; i < one.count; ++i) {
      runs.push_back({from_width, to_width, one.size});
      from_width += one.size + one.from_gap;
      to_width += one.size + one.to_gap;
    }
  }
  return runs;
}

Part<float> counted(i64 width, float first) {
  Part<float> part = empty_part<float>(index::AxisMap::identity(width), kTokens);
  std::iota(part.data.begin(), part.data.end(), first);
  return part;
}

/// Copies element by element.
Part<float> copied_singly(const Part<float>& from, const std::vector<FeatureRun>& runs,
                          Part<float> to) {
  for (i64 t = 0; t < kTokens; ++t) {
    for (const FeatureRun& run : runs) {
      for (i64 i = 0; i < run.size; ++i) to.row(t)[run.to + i] = from.row(t)[run.from + i];
    }
  }
  return to;
}

TEST_CASE("runs of one size at equal distances are one copy, and move what single copies do") {
  test::EmulatedAccelerator accelerator(test::EmulatedAccelerator::Pace::kEager);
  CHECK(rc::check("series", [&accelerator] {
    kernels::Workbench host, bench(&accelerator);
    std::vector<Series> all(*rc::gen::inRange<size_t>(1, 8));
    for (size_t s = 0; s < all.size(); ++s) {
      all[s] = {static_cast<i64>(s) + 1, *rc::gen::inRange<i64>(1, 100),
                *rc::gen::inRange<i64>(0, 4), *rc::gen::inRange<i64>(0, 4)};
    }
    i64 from_width = 0, to_width = 0;
    const std::vector<FeatureRun> runs = laid_out(all, from_width, to_width);
    const Part<float> from = counted(from_width, 1);
    const Part<float> expected = copied_singly(from, runs, counted(to_width, -1e6F));
    Part<float> here = counted(to_width, -1e6F), there = here;
    const i64 before = accelerator.works();
    copy_runs(host, from, std::span(runs), kTokens, here);
    copy_runs(bench, from, std::span(runs), kTokens, there);
    RC_ASSERT(accelerator.works() - before == std::ssize(all));
    RC_ASSERT(there.data.is_there());
    RC_ASSERT(here.data == expected.data);
    RC_ASSERT(there.data == expected.data);
  }));
}

TEST_CASE("any runs move as single copies do, with at most one copy for each") {
  CHECK(rc::check("runs", [] {
    std::vector<FeatureRun> runs;
    i64 from_width = 1, to_width = 0;
    for (i64 left = *rc::gen::inRange<i64>(0, 12); left > 0; --left) {
      const i64 from = *rc::gen::inRange<i64>(0, 9), size = *rc::gen::inRange<i64>(0, 3);
      to_width += *rc::gen::inRange<i64>(0, 3);
      runs.push_back({from, to_width, size});
      to_width += size;
      from_width = std::max(from_width, from + size);
    }
    const auto copies = copies_of(runs, 1, {1, from_width, to_width});
    RC_ASSERT(copies.size() <= runs.size());
    std::vector<i64> made(static_cast<size_t>(to_width), -1), expected = made;
    for (const FeatureRun& run : runs) {
      for (i64 i = 0; i < run.size; ++i) expected[static_cast<size_t>(run.to + i)] = run.from + i;
    }
    for (const index::StridedCopy& copy : copies) {
      const index::Loop step = copy.loops.size() > 1 ? copy.loops[1] : index::Loop{};
      for (i64 i = 0; i < step.count * copy.run; ++i) {
        const i64 turn = i / copy.run, place = i % copy.run;
        made[static_cast<size_t>(copy.dst + turn * step.dst_stride + place)] =
            copy.src + turn * step.src_stride + place;
      }
    }
    RC_ASSERT(made == expected);
  }));
}

TEST_CASE("a gate that lies interleaved with what it multiplies is taken out in one copy") {
  constexpr i64 kFeatures = 2880;
  test::EmulatedAccelerator accelerator(test::EmulatedAccelerator::Pace::kEager);
  kernels::Workbench bench(&accelerator);
  const Part<float> fused = counted(2 * kFeatures, 0);
  std::vector<i64> positions;
  for (i64 i = 0; i < kFeatures; ++i) positions.push_back(2 * i + 1);
  const Part<float> half =
      picked(bench, fused, index::AxisMap::identity(kFeatures), positions, kTokens);
  CHECK(half.data.is_there());
  CHECK(accelerator.downloads() == 0);
  for (i64 t = 0; t < kTokens; ++t) {
    for (i64 i = 0; i < kFeatures; ++i) CHECK(half.row(t)[i] == fused.row(t)[2 * i + 1]);
  }
}

}  // namespace
}  // namespace shardtool::ops
