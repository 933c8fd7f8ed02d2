#include "lib/base/interruption.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <thread>

#include "lib/base/error.h"
#include "lib/base/threads.h"
#include "lib/store/s3/upload.h"
#include "tests/support/served_bucket.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

using namespace shardtool;
using namespace shardtool::store::s3;
using namespace std::chrono_literals;
using test::client_of;
using test::PlayedAnswer;
using test::ReceivedRequest;
using test::ServedBucket;
using test::some_bytes;

namespace {

using Clock = std::chrono::steady_clock;

const Url kHungObject{"bucket", "a"};

/// Requests wait a minute, as those of the program do.
const std::map<std::string, std::string> kPatient{{"SHARDTOOL_S3_TIMEOUT", "60"}};

/// Interrupts `work` a while after it has begun. Checks that it ends with kInterrupted, and long
/// before its requests give up.
void check_ends(const std::function<void()>& work) {
  constexpr auto kLong = 20s;
  std::atomic<bool> flag = false;
  const std::jthread signal([&flag] {
    std::this_thread::sleep_for(300ms);
    flag = true;
  });
  const auto begin = Clock::now();
  {
    const Interruptible scope(&flag);
    CHECK_ERROR(kInterrupted, (work(), 0));
  }
  CHECK(Clock::now() - begin < kLong);
}

void read_whole(Client& client, const ObjectInfo& info) {
  std::string into(static_cast<size_t>(info.bytes), '?');
  const RangeRead range{0, std::as_writable_bytes(std::span(into))};
  client.read(kHungObject, info, {&range, 1});
}

}  // namespace

TEST_CASE("an interruption ends requests that wait for an answer, or for the rest of one") {
  ServedBucket served;
  served.bucket.objects[kHungObject.key] = some_bytes(2000);
  Client client = client_of(served.server.address(), kPatient);
  const ObjectInfo info = client.head(kHungObject).value();
  served.disturb = [](int, const ReceivedRequest&, PlayedAnswer& answer) { answer.hangs = true; };
  check_ends([&] { client.head(kHungObject); });
  check_ends([&] { client.list({"bucket", "a/"}); });
  check_ends([&] { read_whole(client, info); });
  served.disturb = [](int, const ReceivedRequest&, PlayedAnswer& answer) {
    answer.hangs = true;
    answer.cut_after = 1000;
  };
  check_ends([&] { read_whole(client, info); });
  served.disturb = nullptr;
  read_whole(client, info);
}

TEST_CASE("an interruption ends the pause before another try") {
  ServedBucket served;
  served.disturb = [](int, const ReceivedRequest&, PlayedAnswer& answer) {
    answer = {503, "Retry-After: 20\r\n", ""};
  };
  Client client = client_of(served.server.address(), kPatient);
  check_ends([&] { client.head(kHungObject); });
}

TEST_CASE("an interruption ends a slow request and its second one") {
  constexpr int kFast = 40;
  ServedBucket served;
  served.bucket.objects[kHungObject.key] = some_bytes(2000);
  Client client = client_of(served.server.address(), kPatient, 1);
  const ObjectInfo info = client.head(kHungObject).value();
  // A number of requests would not do: a fast one may be sent twice, too.
  std::atomic<bool> hangs = false;
  served.disturb = [&hangs](int, const ReceivedRequest&, PlayedAnswer& answer) {
    answer.hangs = hangs;
  };
  for (int i = 0; i < kFast; ++i) read_whole(client, info);
  hangs = true;
  check_ends([&] { read_whole(client, info); });
  CHECK(client.hedged() > 0);
}

TEST_CASE("an interruption ends the requests of threads that were started meanwhile") {
  ServedBucket served;
  served.disturb = [](int, const ReceivedRequest&, PlayedAnswer& answer) { answer.hangs = true; };
  Client client = client_of(served.server.address(), kPatient);
  check_ends([&] {
    std::exception_ptr thrown;
    std::vector<std::jthread> threads;
    REQUIRE(start_thread(threads, [&] {
      try {
        client.head(kHungObject);
      } catch (...) {
        thrown = std::current_exception();
      }
    }));
    threads.clear();
    if (thrown) std::rethrow_exception(thrown);
  });
}

TEST_CASE(
    "an interrupted file leaves no upload on a store that answers, and does not wait for one "
    "that hangs") {
  const test::TempFolder folder;
  const std::string file = folder.write("file", some_bytes(size_t{17} << 20));
  for (const bool all_hang : {false, true}) {
    CAPTURE(all_hang);
    ServedBucket served;
    served.disturb = [&](int, const ReceivedRequest& request, PlayedAnswer& answer) {
      answer.hangs = request.method == "PUT" || (all_hang && request.method == "DELETE");
    };
    Client client = client_of(served.server.address(), kPatient);
    check_ends([&] { put_file(client, file, kHungObject, 1 << 30, [] {}); });
    CHECK(served.bucket.uploads.empty());
  }
}
