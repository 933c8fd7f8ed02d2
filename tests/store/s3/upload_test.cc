#include "lib/store/s3/upload.h"

#include <doctest/doctest.h>

#include <atomic>

#include "tests/support/served_bucket.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

using namespace shardtool;
using namespace shardtool::store::s3;
using test::PlayedAnswer;
using test::ReceivedRequest;
using test::ServedBucket;
using test::some_bytes;

namespace {

const Url kPlace{"bucket", "a b/model=1"};

void nothing() {}

}  // namespace

TEST_CASE("a file arrives whole in one request or in parts of any number at once") {
  const test::TempFolder folder;
  ServedBucket served;
  Client client = served.client();
  for (const size_t size : {size_t{0}, size_t{5}, size_t{16} << 20, (size_t{40} << 20) + 3}) {
    const std::string bytes = some_bytes(size);
    const std::string file = folder.write("file", bytes);
    for (const i64 memory : {i64{1}, i64{1} << 30}) {
      put_file(client, file, kPlace, memory, nothing);
      CHECK((served.bucket.objects.at(kPlace.key) == bytes));
      CHECK(served.bucket.uploads.empty());
      remove_object(client, kPlace);
      CHECK(served.bucket.objects.empty());
    }
  }
}

TEST_CASE("a fault at any request of an upload leaves the object right and no upload") {
  const test::TempFolder folder;
  const std::string bytes = some_bytes((size_t{16} << 20) + 3);
  const std::string file = folder.write("file", bytes);
  for (const int status : {0, 500, 503}) {
    for (int at = 1; at <= 5; ++at) {
      ServedBucket served;
      served.disturb = [&](int number, const ReceivedRequest&, PlayedAnswer& answer) {
        if (number == at) answer = {status, "", ""};
      };
      Client client = served.client();
      put_file(client, file, kPlace, 1 << 30, nothing);
      CHECK((served.bucket.objects.at(kPlace.key) == bytes));
      // A lost answer to the beginning of an upload leaves one that nobody knows: who publishes
      // ends it.
      CHECK(served.bucket.uploads.size() == (at == 1 ? 1 : 0));
    }
  }
}

TEST_CASE("an upload that fails is aborted") {
  const test::TempFolder folder;
  const std::string file = folder.write("file", some_bytes((size_t{16} << 20) + 3));
  for (int at = 2; at <= 4; ++at) {
    ServedBucket served;
    served.disturb = [&](int number, const ReceivedRequest&, PlayedAnswer& answer) {
      if (number == at) answer = {403, "", "<Error><Code>AccessDenied</Code></Error>"};
    };
    Client client = served.client();
    CHECK_ERROR(kStoreRefused, (put_file(client, file, kPlace, 1 << 30, nothing), 0));
    CHECK(served.bucket.uploads.empty());
  }
}

TEST_CASE("a completion that fails behind its status is tried again and then an error") {
  const test::TempFolder folder;
  const std::string file = folder.write("file", some_bytes((size_t{16} << 20) + 3));
  ServedBucket served;
  int completions = 0;
  int failures = 1;
  std::string code = "InternalError";
  served.disturb = [&](int, const ReceivedRequest& request, PlayedAnswer& answer) {
    if (request.method != "POST" || request.body.empty() || completions++ == failures) return;
    answer = {200, "", "<Error><Code>" + code + "</Code></Error>"};
    if (failures > 1) served.bucket.uploads["upload-2"].key = kPlace.key;
  };
  Client client = test::client_of(served.server.address(), {{"AWS_MAX_ATTEMPTS", "2"}});
  // The played store has made the object in spite of its answer, and then knows no upload.
  put_file(client, file, kPlace, 1 << 30, nothing);
  CHECK(completions == 2);
  failures = 2;
  completions = 0;
  CHECK_ERROR(kStoreUnreachable, (put_file(client, file, kPlace, 1 << 30, nothing), 0));
  CHECK(completions == 2);
  completions = 0;
  code = "InvalidPart";
  CHECK_ERROR(kWriteFailed, (put_file(client, file, kPlace, 1 << 30, nothing), 0));
  CHECK(completions == 1);
}

TEST_CASE("an object of another size than the file is an error") {
  const test::TempFolder folder;
  const std::string file = folder.write("file", "12345");
  ServedBucket served;
  served.disturb = [&](int, const ReceivedRequest& request, PlayedAnswer&) {
    if (request.method == "PUT") served.bucket.objects[kPlace.key] = "1234";
  };
  Client client = served.client();
  CHECK_ERROR(kWriteFailed, (put_file(client, file, kPlace, 1 << 30, nothing), 0));
}

TEST_CASE("open uploads below a prefix are listed and a stopped file leaves none") {
  const test::TempFolder folder;
  const std::string file = folder.write("file", some_bytes((size_t{40} << 20)));
  ServedBucket served;
  Client client = served.client();
  const auto kept = client.ask({"POST", {"bucket", "p/x"}, {{"uploads", ""}}});
  client.ask({"POST", {"bucket", "q/y"}, {{"uploads", ""}}});
  const auto open = list_uploads(client, {"bucket", "p/"});
  REQUIRE(open.size() == 1);
  CHECK(open.front().key == "p/x");
  CHECK(open.front().begun.starts_with("2026-01-02"));
  int calls = 0;
  const auto stop = [&calls] {
    if (++calls == 3) throw Error(ErrorCode::kInterrupted, "interrupted");
  };
  CHECK_ERROR(kInterrupted, (put_file(client, file, {"bucket", "p/z"}, 1, stop), 0));
  CHECK(list_uploads(client, {"bucket", "p/"}).size() == 1);
}
