// Versions of an object, told apart by ETag or by time.
#include <doctest/doctest.h>

#include <string>

#include "lib/store/s3/client.h"
#include "tests/support/served_bucket.h"
#include "tests/support/throws.h"

using namespace shardtool;
using namespace shardtool::store::s3;
using test::PlayedAnswer;
using test::ReceivedRequest;
using test::ServedBucket;

namespace {

const Url kVersioned{"bucket", "p/a"};
const std::string kThen = "Last-Modified: Wed, 21 Oct 2015 07:28:00 GMT\r\n";
const std::string kLater = "Last-Modified: Wed, 21 Oct 2015 07:28:01 GMT\r\n";
constexpr i64 kThenSeconds = 1'445'412'480;

void check_reads(Client& client, const ObjectInfo& info) {
  std::string into(static_cast<size_t>(info.bytes), '?');
  const RangeRead range{0, std::as_writable_bytes(std::span(into))};
  client.read(kVersioned, info, {&range, 1});
  CHECK(into == "bytes");
}

}  // namespace

TEST_CASE("an object without a strong ETag is known by its size and the time of its last change") {
  ServedBucket served;
  served.bucket.objects[kVersioned.key] = "bytes";
  Client client = served.client();
  for (const std::string etag : {"", "ETag: W/\"a\"\r\n"}) {
    CAPTURE(etag);
    std::string headers = etag + kThen;
    served.disturb = [&](int, const ReceivedRequest& request, PlayedAnswer& answer) {
      CHECK_FALSE(request.headers.contains("if-match"));
      answer.headers.replace(0, answer.headers.find("\r\n") + 2, headers);  // the ETag
    };
    const ObjectInfo info = client.head(kVersioned).value();
    CHECK(info == ObjectInfo{5, "", kThenSeconds});
    check_reads(client, info);
    headers = etag + kLater;
    CHECK_FALSE(client.head(kVersioned)->is_same_version(info));
    CHECK_ERROR(kInputChanged, (check_reads(client, info), 0));
    headers = etag;
    const ObjectInfo unknown = client.head(kVersioned).value();
    CHECK(unknown == ObjectInfo{5, "", 0});
    check_reads(client, info);
  }
}

TEST_CASE("a listing tells versions as the answer to HEAD does") {
  ServedBucket served;
  served.bucket.objects[kVersioned.key] = "bytes";
  std::string etag;
  served.disturb = [&](int, const ReceivedRequest&, PlayedAnswer& answer) {
    const size_t begin = answer.body.find("<ETag>");
    const size_t end = answer.body.find("</Contents>");
    REQUIRE(end != std::string::npos);
    answer.body.replace(begin, end - begin,
                        etag + "<LastModified>2015-10-21T07:28:00.750Z</LastModified>");
  };
  Client client = served.client();
  const auto listed = [&] { return client.list({"bucket", "p/"}).objects.front().info; };
  CHECK(listed() == ObjectInfo{5, "", kThenSeconds});
  etag = "<ETag>W/&quot;a&quot;</ETag>";
  CHECK(listed() == ObjectInfo{5, "", kThenSeconds});
  etag = "<ETag>&quot;a&quot;</ETag>";
  CHECK(listed() == ObjectInfo{5, "\"a\"", kThenSeconds});
}

TEST_CASE("a strong ETag names a version whatever its time is") {
  const ObjectInfo info{5, "\"a\"", 7};
  CHECK(info.is_same_version({5, "\"a\"", 8}));
  CHECK_FALSE(info.is_same_version({5, "\"b\"", 7}));
  CHECK_FALSE(info.is_same_version({6, "\"a\"", 7}));
  CHECK(ObjectInfo{5, "", 7}.is_same_version({5, "", 0}));
  CHECK_FALSE(ObjectInfo{5, "", 7}.is_same_version({5, "", 8}));
}
