#include "lib/store/s3/client.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>

#include "lib/base/error.h"
#include "lib/store/s3/upload.h"
#include "tests/support/served_bucket.h"
#include "tests/support/throws.h"

using namespace shardtool;
using namespace shardtool::store::s3;
using test::client_of;
using test::HttpServer;
using test::PlayedAnswer;
using test::PlayedBucket;
using test::ReceivedRequest;
using test::some_bytes;

namespace {

const Url kObject{"bucket", "a/model.safetensors"};

PlayedBucket bucket_of(const std::string& bytes) {
  PlayedBucket bucket;
  bucket.objects[kObject.key] = bytes;
  return bucket;
}

std::string read_all(Client& client, const ObjectInfo& info, i64 pieces = 1) {
  std::string into(static_cast<size_t>(info.bytes), '?');
  std::vector<RangeRead> ranges;
  const i64 piece = ceil_div(info.bytes, pieces);
  for (i64 at = 0; at < info.bytes; at += piece) {
    const auto size = static_cast<size_t>(std::min(piece, info.bytes - at));
    ranges.push_back(
        {at, std::as_writable_bytes(std::span(into)).subspan(static_cast<size_t>(at), size)});
  }
  std::ranges::reverse(ranges);  // a request for each: they do not follow each other
  client.read(kObject, info, ranges);
  return into;
}

}  // namespace

TEST_CASE("ranges of an object arrive whole, several at once and above the size of a request") {
  const std::string bytes = some_bytes(40 << 20);
  const PlayedBucket bucket = bucket_of(bytes);
  HttpServer server([&](const ReceivedRequest& request) { return bucket.answer(request); });
  Client client = client_of(server.address());
  const ObjectInfo info = client.head(kObject).value();
  CHECK(info == ObjectInfo{std::ssize(bytes), PlayedBucket::etag_of(bytes)});
  CHECK((read_all(client, info) == bytes));
  CHECK(client.requests() == 1 + 3);
  CHECK((read_all(client, info, 20) == bytes));
  CHECK(client.requests() == 1 + 3 + 20);
}

TEST_CASE("ranges that follow each other are one request, wherever they go and however it is cut") {
  const std::string bytes = some_bytes(64'000);
  const PlayedBucket bucket = bucket_of(bytes);
  std::atomic<size_t> cut_after = 0;
  HttpServer server([&](const ReceivedRequest& request) {
    PlayedAnswer answer = bucket.answer(request);
    if (request.method == "GET") answer.cut_after = std::min(answer.body.size(), cut_after.load());
    return answer;
  });
  Client client = client_of(server.address());
  const ObjectInfo info = client.head(kObject).value();
  CHECK(rc::check("scattered", [&] {
    cut_after = *rc::gen::inRange<size_t>(20'000, 70'000);
    const auto sizes = *rc::gen::container<std::vector<size_t>>(rc::gen::inRange<size_t>(0, 9000));
    const auto gap = *rc::gen::inRange<size_t>(0, 3);
    std::string memory(bytes.size() * 4, '?');
    std::string expected = memory;
    std::vector<RangeRead> ranges;
    size_t at = 0;  // in the object
    size_t to = 0;
    i64 parts = 0;
    for (const size_t size : sizes) {
      if (at + size > bytes.size()) break;
      const auto place = std::as_writable_bytes(std::span(memory)).subspan(to, size);
      ranges.push_back({static_cast<i64>(at), place});
      expected.replace(to, size, bytes, at, size);
      at += size;
      to += size + gap;
      ++parts;
    }
    const i64 before = client.requests();
    client.read(kObject, info, ranges);
    RC_ASSERT(memory == expected);
    const auto requests = static_cast<i64>((at + cut_after - 1) / cut_after);
    RC_ASSERT(client.requests() - before == requests + client.hedged());
  }));
}

TEST_CASE("a failure at any request is tried again and leaves the bytes right") {
  const std::string bytes = some_bytes(100'000);
  const PlayedBucket bucket = bucket_of(bytes);
  const std::vector<PlayedAnswer> faults{{500, "", ""},
                                         {502, "", ""},
                                         {503, "", "<Error><Code>SlowDown</Code></Error>"},
                                         {429, "", ""},
                                         {0, "", ""}};
  for (size_t kind = 0; kind <= faults.size(); ++kind) {
    for (int at = 1; at <= 5; ++at) {
      std::atomic<int> count = 0;
      HttpServer server([&](const ReceivedRequest& request) {
        PlayedAnswer answer = bucket.answer(request);
        if (++count != at) return answer;
        if (kind < faults.size()) return faults[kind];
        answer.cut_after = answer.body.size() / 2;
        return answer;
      });
      Client client = client_of(server.address());
      const ObjectInfo info = client.head(kObject).value();
      CHECK((read_all(client, info, 4) == bytes));
      CHECK(count >= 5);
    }
  }
}

TEST_CASE("a cut answer goes on behind the bytes that came") {
  const std::string bytes = some_bytes(64'000);
  const PlayedBucket bucket = bucket_of(bytes);
  HttpServer server([&](const ReceivedRequest& request) {
    PlayedAnswer answer = bucket.answer(request);
    if (request.method == "GET") answer.cut_after = std::min<size_t>(answer.body.size(), 10'000);
    return answer;
  });
  Client client = client_of(server.address());
  const ObjectInfo info = client.head(kObject).value();
  CHECK((read_all(client, info) == bytes));
  CHECK(client.requests() == 1 + 7);
}

TEST_CASE("an object that changes, shrinks or goes away is an error") {
  const std::string bytes = some_bytes(1000);
  for (const std::string& later : {some_bytes(999), std::string(1000, 'x'), std::string()}) {
    PlayedBucket bucket = bucket_of(bytes);
    HttpServer server([&](const ReceivedRequest& request) { return bucket.answer(request); });
    Client client = client_of(server.address());
    const ObjectInfo info = client.head(kObject).value();
    bucket.objects[kObject.key] = later;
    if (later.empty()) bucket.objects.clear();
    CHECK_ERROR(kInputChanged, read_all(client, info));
  }
}

TEST_CASE("a store that answers with bytes of another version is found out") {
  const std::string bytes = some_bytes(1000);
  PlayedBucket bucket = bucket_of(bytes);
  HttpServer server([&](ReceivedRequest request) {
    request.headers.erase("if-match");
    return bucket.answer(request);
  });
  Client client = client_of(server.address());
  const ObjectInfo info = client.head(kObject).value();
  bucket.objects[kObject.key] = std::string(1000, 'x');
  CHECK_ERROR(kInputChanged, read_all(client, info));
  bucket.objects[kObject.key] = some_bytes(1200);
  CHECK_ERROR(kInputChanged, read_all(client, info));
}

TEST_CASE("an answer that has fewer bytes than its range is told as such") {
  const std::string bytes = some_bytes(1000);
  const PlayedBucket bucket = bucket_of(bytes);
  HttpServer server([&](const ReceivedRequest& request) {
    PlayedAnswer answer = bucket.answer(request);
    if (request.method == "GET") answer.body.resize(answer.body.size() - 5);
    return answer;
  });
  Client client = client_of(server.address(), {{"AWS_MAX_ATTEMPTS", "2"}});
  const ObjectInfo info = client.head(kObject).value();
  const auto error = testing::error_of([&] { return read_all(client, info); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kMalformed);
  CHECK(error->place()->file == kObject.text());
  CHECK(error->notes().front().second == "995 of the 1000 bytes of a range");
}

TEST_CASE("a store that ignores ranges is refused") {
  const std::string bytes = some_bytes(1000);
  const PlayedBucket bucket = bucket_of(bytes);
  HttpServer server([&](ReceivedRequest request) {
    request.headers.erase("range");
    return bucket.answer(request);
  });
  Client client = client_of(server.address());
  CHECK_ERROR(kUnsupported, read_all(client, client.head(kObject).value()));
}

TEST_CASE("an endpoint that hangs or is not there is an error within the deadline") {
  HttpServer server([](const ReceivedRequest&) {
    return PlayedAnswer{200, "", "", std::string::npos, true};
  });
  const auto begin = std::chrono::steady_clock::now();
  Client hanging = client_of(server.address());
  CHECK_ERROR(kStoreUnreachable, hanging.list({"bucket", ""}));
  Client absent = client_of("http://127.0.0.1:1");
  CHECK_ERROR(kStoreUnreachable, absent.list({"bucket", ""}));
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(12));
}

TEST_CASE("what a store refuses is named and not tried again") {
  const std::map<std::string, std::string> expected{
      {"SignatureDoesNotMatch", "secret key is wrong"},
      {"InvalidAccessKeyId", "does not know the access key"},
      {"ExpiredToken", "token has ended"},
      {"RequestTimeTooSkewed", "clock of this machine"},
      {"AccessDenied", "denies access"},
      {"NewCode", "refuses the request"}};
  for (const auto& [code, words] : expected) {
    HttpServer server([&](const ReceivedRequest&) {
      return PlayedAnswer{403, "", "<Error><Code>" + code + "</Code></Error>"};
    });
    Client client = client_of(server.address());
    const auto error = testing::error_of([&] { return client.list({"bucket", ""}); });
    REQUIRE(error);
    CHECK(error->code() == ErrorCode::kStoreRefused);
    CHECK(error->message().find(words) != std::string::npos);
    CHECK(client.requests() == 1);
    CHECK_ERROR(kStoreRefused, client.head(kObject));
  }
}

TEST_CASE("a request that the policy forbids is named with the action that it needs") {
  HttpServer server([](const ReceivedRequest& request) {
    return PlayedAnswer{403, "",
                        request.method == "HEAD" ? "" : "<Error><Code>AccessDenied</Code></Error>"};
  });
  Client client = client_of(server.address());
  const auto refused = [&](const PlainRequest& request, std::string_view action) {
    const auto error = testing::error_of([&] { return client.ask(request); });
    REQUIRE(error);
    CHECK(error->place()->file == kObject.text());
    CHECK(error->notes().back() == std::pair{std::string("request"), request.method});
    CHECK(error->help_lines().front().find("allows " + std::string(action) + ";") !=
          std::string::npos);
  };
  refused({"GET", kObject}, "s3:GetObject");
  refused({"PUT", kObject}, "s3:PutObject");
  refused({"DELETE", kObject}, "s3:DeleteObject");
  refused({"POST", kObject, {{"uploads", ""}}}, "s3:PutObject");
  refused({"DELETE", kObject, {{"uploadId", "u"}}}, "s3:AbortMultipartUpload");
  refused({"GET", kObject, {{"uploadId", "u"}}}, "s3:ListMultipartUploadParts");
  refused({"GET", kObject, {{"uploads", ""}}}, "s3:ListBucketMultipartUploads");
  const auto head = testing::error_of([&] { return client.head(kObject); });
  REQUIRE(head);
  CHECK(head->place()->file == kObject.text());
  CHECK(head->notes().back().second == "HEAD");
  const auto list = testing::error_of([&] { return client.list({"bucket", "a/"}); });
  REQUIRE(list);
  CHECK(list->help_lines().front().find("allows s3:ListBucket;") != std::string::npos);
}

TEST_CASE("a bucket in another region is named with its region") {
  HttpServer server([](const ReceivedRequest&) {
    return PlayedAnswer{301, "x-amz-bucket-region: eu-west-3\r\nLocation: http://elsewhere/\r\n",
                        ""};
  });
  Client client = client_of(server.address());
  const auto error = testing::error_of([&] { return client.list({"bucket", ""}); });
  REQUIRE(error);
  CHECK(error->help_lines().front() == "set AWS_REGION=eu-west-3");
}

TEST_CASE("a redirect to another address gets no request and no keys") {
  HttpServer other([](const ReceivedRequest&) { return PlayedAnswer{}; });
  HttpServer server([&](const ReceivedRequest&) {
    return PlayedAnswer{307, "Location: " + other.address() + "/bucket\r\n", ""};
  });
  Client client = client_of(server.address());
  CHECK_ERROR(kStoreRefused, client.list({"bucket", ""}));
  CHECK(other.requests().empty());
}

TEST_CASE("a listing of many pages is complete") {
  PlayedBucket bucket;
  bucket.page = 7;
  for (int i = 0; i < 50; ++i) bucket.objects["p/f" + std::to_string(i)] = std::string(i, 'x');
  bucket.objects["p/below/x"] = "y";
  bucket.objects["q"] = "z";
  HttpServer server([&](const ReceivedRequest& request) { return bucket.answer(request); });
  Client client = client_of(server.address());
  const Listed listed = client.list({"bucket", "p/"});
  CHECK(listed.objects.size() == 50);
  CHECK(listed.folders == std::vector<std::string>{"below"});
  CHECK(client.list({"bucket", ""}).folders == std::vector<std::string>{"p"});
}

TEST_CASE("a listing that lies is refused") {
  const std::string key = "<Contents><Key>other/x</Key><Size>1</Size></Contents>";
  const std::string no_size = "<Contents><Key>p/x</Key><Size>-1</Size></Contents>";
  const std::string twice = "<Contents><Key>p/x</Key><Size>1</Size></Contents>";
  const std::string endless =
      "<IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken>";
  for (const std::string& text : {"<ListBucketResult>" + key + "</ListBucketResult>",
                                  "<ListBucketResult>" + no_size + "</ListBucketResult>",
                                  "<ListBucketResult>" + twice + twice + "</ListBucketResult>",
                                  "<ListBucketResult>" + endless + "</ListBucketResult>",
                                  std::string("<html></html>"), std::string("{}")}) {
    HttpServer server([&](const ReceivedRequest&) { return PlayedAnswer{200, "", text}; });
    Client client = client_of(server.address());
    CHECK_ERROR(kMalformed, client.list({"bucket", "p/"}));
  }
}

TEST_CASE("an answer that is no listing names the prefix and the endpoint") {
  for (const std::string text : {"<html><br></html>", "<html></html>", "{}", ""}) {
    HttpServer server([&](const ReceivedRequest&) { return PlayedAnswer{200, "", text}; });
    Client client = client_of(server.address());
    const auto refused = [&](const std::function<void()>& ask) {
      const auto error = testing::error_of(ask);
      REQUIRE(error);
      CHECK(error->code() == ErrorCode::kMalformed);
      CHECK(error->place()->file == "s3://bucket/p/");
      CHECK(error->notes().back() == std::pair{std::string("endpoint"), server.address()});
    };
    refused([&] { client.list({"bucket", "p/"}); });
    if (text != "<html></html>") refused([&] { list_uploads(client, {"bucket", "p/"}); });
  }
}

TEST_CASE("a key reaches the store as it is, with dots, signs, spaces and UTF-8") {
  PlayedBucket bucket;
  HttpServer server([&](const ReceivedRequest& request) { return bucket.answer(request); });
  Client client = client_of(server.address());
  for (const std::string key :
       {"a/../b", "./x", "k=1+2", "a b", "\u00e9\u6f22", "a//b", "%41", "a?b#c"}) {
    bucket.objects[key] = "bytes of " + key;
    CHECK(client.head({"bucket", key}).value().bytes == 9 + std::ssize(key));
  }
  CHECK_FALSE(client.head({"bucket", "b"}));
}
