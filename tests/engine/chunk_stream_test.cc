#include "lib/engine/weights/chunk_stream.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <atomic>

#include "kernels/field/field.h"
#include "lib/base/error.h"
#include "lib/engine/run/crew.h"
#include "lib/exec/files/data_file.h"
#include "tests/comm/refused_threads.h"
#include "tests/support/allocated_bytes.h"

namespace shardtool::engine {
namespace {

/// Source of bytes that encode their position; reading rows that begin at `fails_at` fails.
class Source final : public WeightSource {
 public:
  void read(const StoredRows& rows, std::span<std::byte> bytes) const override {
    if (rows.begin == fails_at) throw Error(ErrorCode::kUnreadable, "the disk is gone");
    const i64 now = held += std::ssize(bytes);
    i64 seen = most;
    while (now > seen && !most.compare_exchange_weak(seen, now)) {
    }
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(rows.begin);
  }
  i64 fails_at = -1;
  mutable std::atomic<i64> held = 0;
  mutable std::atomic<i64> most = 0;
};

/// Requests 0, 1, ... with these sizes.
std::function<std::optional<ReadRequest>()> requests(const Source& source, std::vector<i64> sizes) {
  auto at = std::make_shared<size_t>(0);
  return [&source, sizes, at]() -> std::optional<ReadRequest> {
    if (*at == sizes.size()) return std::nullopt;
    const auto begin = static_cast<i64>(*at);
    return ReadRequest{&source, {0, 0, -1, begin, begin + 1}, sizes[(*at)++]};
  };
}

TEST_CASE("chunks come in the order of the requests, and never more than the budget is held") {
  constexpr i64 kMost = 3000;
  CHECK(rc::check("stream", [] {
    const auto sizes = *rc::gen::container<std::vector<i64>>(rc::gen::inRange<i64>(0, kMost));
    const i64 budget = *rc::gen::inRange<i64>(kMost, 60'000);
    const int threads = *rc::gen::inRange(1, 4);
    const Source source;
    ChunkStream stream(requests(source, sizes), budget, threads);
    i64 total = 0;
    for (size_t i = 0; i < sizes.size(); ++i) {
      const auto bytes = stream.take();
      RC_ASSERT(std::ssize(bytes) == sizes[i]);
      RC_ASSERT(std::all_of(bytes.begin(), bytes.end(),
                            [i](std::byte b) { return b == static_cast<std::byte>(i); }));
      source.held -= sizes[i];
      total += sizes[i];
    }
    RC_ASSERT(stream.bytes_taken() == total);
    // The last request that begins below the budget may exceed it, and one request is taken.
    RC_ASSERT(source.most <= budget + 2 * kMost);
  }));
}

TEST_CASE("of small requests, the memory of their whole pages is within the budget") {
  CHECK(rc::check("small requests", [] {
    const auto sizes = std::vector<i64>(200, 1);  // so that the source counts requests
    const i64 budget = *rc::gen::inRange<i64>(4 << 10, 128 << 10);
    const int threads = *rc::gen::inRange(1, 4);
    const Source source;
    ChunkStream stream(requests(source, sizes), budget, threads);
    for (size_t i = 0; i < sizes.size(); ++i) {
      stream.take();
      --source.held;
    }
    // A byte needs a page, and two for its edges.
    constexpr i64 kRoom = 3 * exec::kPageBytes;
    RC_ASSERT(source.most * kRoom <= budget + 2 * kRoom);
  }));
}

TEST_CASE("buffers of large requests are not kept for many small ones") {
  if (!test::can_count_allocations()) return;
  constexpr i64 kLarge = 1 << 20;
  constexpr i64 kBudget = 4 * kLarge;
  std::vector<i64> sizes;
  for (int i = 0; i < 600; ++i) sizes.push_back(i % 10 == 0 ? kLarge : 1);
  const i64 before = test::allocated_bytes();
  const Source source;
  ChunkStream stream(requests(source, sizes), kBudget, 2);
  i64 most = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    stream.take();
    most = std::max(most, test::allocated_bytes() - before);
  }
  CHECK(most <= kBudget + 2 * kLarge);
}

TEST_CASE("what fails while reading ahead is thrown where it would have been taken") {
  Source source;
  source.fails_at = 2;
  ChunkStream stream(requests(source, {10, 10, 10, 10}), 100, 2);
  CHECK(stream.take().size() == 10);
  CHECK(stream.take().size() == 10);
  CHECK_THROWS_AS(stream.take(), Error);
}

TEST_CASE("a stream that nobody empties ends, and one that is empty says so") {
  const Source source;
  const ChunkStream stream(requests(source, std::vector<i64>(1000, 100)), 300, 3);
  ChunkStream empty(requests(source, {}), 300, 1);
  CHECK_THROWS_AS(empty.take(), Error);
}

TEST_CASE("where the system refuses threads, those that there are read and work alone") {
  for (const int allowed : {0, 1}) {
    CAPTURE(allowed);
    const testing::RefusedThreads refused(allowed);
    const Source source;
    ChunkStream stream(requests(source, {10, 20, 30}), 300, 3);
    for (const size_t size : {10U, 20U, 30U}) CHECK(stream.take().size() == size);
    CHECK_THROWS_AS(stream.take(), Error);
    Crew crew(3);
    std::atomic<i64> sum = 0;
    crew.run(10, [&](i64 part) { sum += part; });
    CHECK(sum == 45);
  }
  Source source;
  source.fails_at = 1;
  const testing::RefusedThreads refused(0);
  ChunkStream stream(requests(source, {10, 10}), 100, 2);
  CHECK(stream.take().size() == 10);
  CHECK_THROWS_AS(stream.take(), Error);
}

TEST_CASE("a crew does every part once, however many there are, and throws what one threw") {
  Crew crew(3);
  for (const i64 parts : {0, 1, 2, 7, 100}) {
    std::vector<std::atomic<int>> done(static_cast<size_t>(parts));
    crew.run(parts, [&](i64 part) { ++done[static_cast<size_t>(part)]; });
    CHECK(std::all_of(done.begin(), done.end(), [](const auto& n) { return n == 1; }));
  }
  CHECK_THROWS_AS(crew.run(5,
                           [](i64 part) {
                             if (part == 3) throw Error(ErrorCode::kInternal, "part 3");
                           }),
                  Error);
  std::atomic<i64> sum = 0;
  crew.run(10, [&](i64 part) { sum += part; });
  CHECK(sum == 45);
}

}  // namespace
}  // namespace shardtool::engine
