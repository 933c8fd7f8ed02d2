#include "lib/store/s3/hedging.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/served_bucket.h"
#include "tests/support/throws.h"

using namespace shardtool;
using namespace shardtool::store::s3;
using test::HttpServer;
using test::PlayedAnswer;
using test::PlayedBucket;
using test::ReceivedRequest;

namespace {

using Duration = Hedging::Duration;

const Url kRaced{"bucket", "model.safetensors"};
constexpr size_t kObjectBytes = 200'000;

/// Fate of a slow request, and of the one that follows it. "First" and "second" are in their order.
enum class Race {
  kFirstNeverAnswers,
  kFirstHangsInTheMiddle,
  kFirstFails,
  kFirstIsCut,
  kSecondNeverAnswers,
  kSecondFails,
  kSecondIsCut,
  kSecondIsAnotherVersion,
  kSecondIsAnotherPlace,
  kBothFail,
};
constexpr int kRaces = static_cast<int>(Race::kBothFail) + 1;

/// A bucket of one object. A slow range is not answered before it is requested again.
class RacedBucket {
 public:
  RacedBucket() { bucket_.objects[kRaced.key] = bytes_; }
  ~RacedBucket() {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
    changed_.notify_all();
  }
  RacedBucket(const RacedBucket&) = delete;
  RacedBucket& operator=(const RacedBucket&) = delete;

  /// A client that sends ranges again after this time at the least.
  Client client(i64 hedge_ms) const { return test::client_of(server_.address(), {}, hedge_ms); }
  const std::string& bytes() const { return bytes_; }
  ObjectInfo info() const { return {std::ssize(bytes_), PlayedBucket::etag_of(bytes_)}; }

  /// Has the next range be slow.
  void slow_down(Race race) {
    const std::lock_guard lock(mutex_);
    race_ = race;
    range_.clear();
    seen_ = 0;
  }
  void replace() {
    const std::lock_guard lock(mutex_);
    bucket_.objects[kRaced.key] = std::string(kObjectBytes, 'x');
  }

 private:
  PlayedAnswer answer(ReceivedRequest request) {
    std::unique_lock lock(mutex_);
    PlayedAnswer right = bucket_.answer(request);
    if (!race_) return right;
    std::string& range = request.headers["range"];
    if (range_.empty()) range_ = range;
    if (range != range_ || seen_ == 2) return right;
    const bool is_first = ++seen_ == 1;
    const Race race = *race_;
    changed_.notify_all();
    PlayedAnswer half = right;
    half.cut_after = right.body.size() / 2;
    if (is_first && race == Race::kFirstHangsInTheMiddle) {
      half.hangs = true;
      return half;
    }
    if (is_first) changed_.wait(lock, [this] { return seen_ == 2 || is_over_; });
    const PlayedAnswer fails{503, "", "<Error><Code>SlowDown</Code></Error>"};
    if (race == Race::kBothFail) return fails;
    const bool is_right = is_first == (race >= Race::kSecondNeverAnswers);
    if (is_right) return right;
    switch (race) {
      case Race::kFirstFails:
      case Race::kSecondFails:
        return fails;
      case Race::kFirstIsCut:
      case Race::kSecondIsCut:
        return half;
      case Race::kSecondIsAnotherVersion:
        right.headers =
            right.headers.substr(right.headers.find("Content-Range")) + "ETag: \"x\"\r\n";
        std::ranges::fill(right.body, 'x');
        return right;
      case Race::kSecondIsAnotherPlace:
        range = "bytes=1-" + std::to_string(right.body.size());
        request.headers.erase("if-match");
        return bucket_.answer(request);
      default:
        changed_.wait(lock, [this] { return is_over_; });
        return {0, "", ""};
    }
  }

  const std::string bytes_ = test::some_bytes(kObjectBytes);
  PlayedBucket bucket_;
  std::mutex mutex_;  ///< guards all other members but the server
  std::condition_variable changed_;
  std::optional<Race> race_;
  std::string range_;
  int seen_ = 0;
  bool is_over_ = false;
  HttpServer server_{[this](const ReceivedRequest& request) { return answer(request); }};
};

/// Reads consecutive ranges at once, with one request or one for each. True if exactly their bytes
/// were written.
bool reads_right(Client& client, const RacedBucket& bucket, size_t begin, size_t bytes,
                 size_t count, bool together = true) {
  constexpr size_t kMargin = 64;
  std::string into(bytes * count + 2 * kMargin, '?');
  std::string expected = into;
  std::vector<RangeRead> ranges;
  const auto memory = std::as_writable_bytes(std::span(into));
  for (size_t i = 0; i < count; ++i) {
    ranges.push_back(
        {static_cast<i64>(begin + i * bytes), memory.subspan(kMargin + i * bytes, bytes)});
  }
  expected.replace(kMargin, bytes * count, bucket.bytes(), begin, bytes * count);
  if (!together) std::ranges::reverse(ranges);
  client.read(kRaced, bucket.info(), ranges);
  return into == expected;
}

/// True if the client may send one of the next requests again, after so many ranges.
bool has_room(const Client& client, i64 ranges) {
  return (client.hedged() + 1) * 20 <= ranges;
}

}  // namespace

TEST_CASE("whoever wins the race of a slow request, the bytes are right and the requests few") {
  for (unsigned seed = 0; seed < 6; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](size_t limit) { return random() % limit; };
    RacedBucket bucket;
    Client client = bucket.client(1);
    std::vector<Race> races;
    for (int race = 0; race < kRaces; ++race) races.push_back(static_cast<Race>(race));
    std::ranges::shuffle(races, random);
    i64 ranges = 0;
    i64 retries = 0;
    for (int reads = 0; !races.empty() && reads < 5000; ++reads) {
      const bool is_raced = has_room(client, ranges);
      const bool together = is_raced || below(2) == 0;  // no other request may take its place
      const size_t count = 1 + below(3);
      const size_t bytes = 1000 + below(20'000);
      const i64 before = client.hedged();
      if (is_raced) {
        bucket.slow_down(races.back());
        retries += races.back() == Race::kBothFail;
        races.pop_back();
      }
      CHECK(
          reads_right(client, bucket, below(kObjectBytes - bytes * count), bytes, count, together));
      ranges += together ? 1 : static_cast<i64>(count);
      CHECK(client.hedged() * 20 <= ranges);
      CHECK(client.requests() == ranges + retries + client.hedged());
      if (is_raced) CHECK(client.hedged() > before);
    }
    CHECK(races.empty());
  }
}

TEST_CASE("threads that share a client keep the bound of second requests together") {
  RacedBucket bucket;
  Client client = bucket.client(0);  // whatever takes twice as long as others is sent again
  constexpr i64 kThreads = 6;
  constexpr i64 kReads = 200;
  std::atomic<i64> wrong = 0;
  {
    std::vector<std::jthread> threads;
    for (unsigned t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        std::mt19937 random(t);
        for (i64 i = 0; i < kReads; ++i) {
          const size_t bytes = 1 + random() % 60'000;
          wrong += !reads_right(client, bucket, random() % (kObjectBytes - bytes), bytes, 1);
        }
      });
    }
  }
  CHECK(wrong == 0);
  CHECK(client.hedged() * 20 <= kThreads * kReads);
  CHECK(client.requests() == kThreads * kReads + client.hedged());
}

TEST_CASE("an object that changes while a slow request is sent again is an error") {
  RacedBucket bucket;
  Client client = bucket.client(1);
  i64 ranges = 0;
  while (!has_room(client, ranges)) {
    CHECK(reads_right(client, bucket, 0, 1000, 1));
    ++ranges;
  }
  bucket.replace();
  bucket.slow_down(Race::kFirstNeverAnswers);
  const auto error = testing::error_of([&] { reads_right(client, bucket, 0, 1000, 1); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kInputChanged);
}

TEST_CASE("a request is slow after twice the time of 95 of 100 of the last ones, of any sizes") {
  CHECK(rc::check("slow", [] {
    const Duration least(*rc::gen::inRange<i64>(0, 1'000'000));
    Hedging hedging(least);
    const i64 latency = 1 << 20;  // in bytes
    std::vector<double> paces;
    i64 taken = 0;
    const auto steps = *rc::gen::inRange(0, 400);
    for (int i = 0; i < steps; ++i) {
      const i64 bytes = *rc::gen::inRange<i64>(1, 32 << 20);
      const bool has_room = (taken + 1) * 20 <= std::ssize(paces);
      const auto limit = hedging.slow_after(bytes);
      RC_ASSERT(limit.has_value() == has_room);
      if (limit) {
        RC_ASSERT(*limit >= least);
        const size_t count = std::min<size_t>(paces.size(), 128);
        std::vector<double> last(paces.end() - static_cast<i64>(count), paces.end());
        const double time =
            static_cast<double>(limit->count() + 1) / static_cast<double>(bytes + latency);
        const auto faster = std::ranges::count_if(last, [&](double p) { return 2 * p <= time; });
        RC_ASSERT(faster * 100 >= 95 * std::ssize(last));
        RC_ASSERT(*limit <= *hedging.slow_after(bytes + 1));
      }
      if (*rc::gen::inRange(0, 10) == 0) {
        RC_ASSERT(hedging.take() == has_room);
        taken += has_room;
        RC_ASSERT(hedging.taken() == taken);
      }
      const i64 took = *rc::gen::inRange<i64>(1, 1'000'000'000);
      hedging.finished(bytes, Duration(took));
      paces.push_back(static_cast<double>(took) / static_cast<double>(bytes + latency));
    }
  }));
}
