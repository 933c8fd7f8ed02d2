#include "lib/store/s3/deadline.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "lib/store/s3/upload.h"
#include "tests/support/served_bucket.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

using namespace shardtool;
using namespace shardtool::store::s3;
using namespace std::chrono_literals;
using test::PlayedAnswer;
using test::ReceivedRequest;
using test::ServedBucket;
using test::some_bytes;

namespace {

using Clock = std::chrono::steady_clock;

const Url kSlowObject{"bucket", "a/model"};

/// Client that gives a request up after a second.
Client hasty_client(const ServedBucket& served) {
  return test::client_of(served.server.address(), {{"SHARDTOOL_S3_TIMEOUT", "1"}});
}

std::string read_slowly(Client& client, const ObjectInfo& info) {
  std::string into(static_cast<size_t>(info.bytes), '?');
  const RangeRead range{0, std::as_writable_bytes(std::span(into))};
  client.read(kSlowObject, info, {&range, 1});
  return into;
}

/// Seconds until a request of an object or of a listing fails.
template <class Ask>
double seconds_to_fail(Ask ask) {
  const auto begin = Clock::now();
  const auto error = testing::error_of(ask);
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kStoreUnreachable);
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

}  // namespace

TEST_CASE("a deadline is never over at the least speed, and in time below it") {
  CHECK(rc::check("D1", [] {
    const auto whole = std::chrono::milliseconds(*rc::gen::inRange(1000, 60'000));
    Deadline deadline(whole);
    const auto pauses = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 1000));
    for (const int ms : pauses) {
      deadline.pass(std::chrono::milliseconds(ms));
      RC_ASSERT(!deadline.is_over());
      deadline.move(ceil_div(i64{ms} * Deadline::kLeastSpeed, 1000));
    }
    RC_ASSERT(!deadline.is_over_after(whole - 1ms));
    RC_ASSERT(deadline.is_over_after(whole));
  }));
  CHECK(rc::check("D2", [] {
    const auto whole = std::chrono::milliseconds(*rc::gen::inRange(1000, 60'000));
    const i64 speed = *rc::gen::inRange<i64>(0, Deadline::kLeastSpeed / 2);
    Deadline deadline(whole);
    i64 seconds = 0;
    while (!deadline.is_over()) {
      deadline.pass(1s);
      deadline.move(speed);
      ++seconds;
    }
    const double expected = static_cast<double>(whole.count()) / 1000 /
                            (1 - static_cast<double>(speed) / Deadline::kLeastSpeed);
    RC_ASSERT(std::abs(static_cast<double>(seconds) - expected) <= 2);
  }));
}

TEST_CASE("an endpoint that drips, or ends each answer after a byte, fails within the deadline") {
  ServedBucket served;
  served.bucket.objects[kSlowObject.key] = some_bytes(2000);
  Client client = hasty_client(served);
  const ObjectInfo info = client.head(kSlowObject).value();
  served.disturb = [](int, const ReceivedRequest&, PlayedAnswer& answer) { answer.drip = 1; };
  CHECK(seconds_to_fail([&] { return read_slowly(client, info); }) < 4);
  CHECK(seconds_to_fail([&] { return client.list({"bucket", "a/"}); }) < 4);
  served.disturb = [](int, const ReceivedRequest&, PlayedAnswer& answer) { answer.cut_after = 1; };
  CHECK(seconds_to_fail([&] { return read_slowly(client, info); }) < 4);
}

TEST_CASE("a slow link above the least speed may take longer than the deadline") {
  ServedBucket served;
  served.bucket.objects[kSlowObject.key] = some_bytes(20'000);
  Client client = hasty_client(served);
  const ObjectInfo info = client.head(kSlowObject).value();
  served.disturb = [](int, const ReceivedRequest&, PlayedAnswer& answer) { answer.drip = 200; };
  const auto begin = Clock::now();
  CHECK((read_slowly(client, info) == some_bytes(20'000)));
  CHECK(Clock::now() - begin > 1500ms);
  CHECK(client.requests() == 2);
}

TEST_CASE("a service that sends blanks while it joins parts is waited for") {
  const test::TempFolder folder;
  const std::string file = folder.write("file", some_bytes((size_t{16} << 20) + 3));
  ServedBucket served;
  served.disturb = [](int, const ReceivedRequest& request, PlayedAnswer& answer) {
    if (request.method != "POST" || request.body.empty()) return;
    answer.body.insert(answer.body.find('>') + 1, std::string(100, ' '));
    answer.drip = 1;
  };
  Client client = hasty_client(served);
  put_file(client, file, kSlowObject, 1 << 30, [] {});
  CHECK(served.bucket.uploads.empty());
  CHECK(client.requests() == 5);
}
