#include "lib/store/s3/parted_output.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <thread>

#include "lib/base/error.h"
#include "tests/support/served_bucket.h"
#include "tests/support/throws.h"

using namespace shardtool;
using namespace shardtool::store::s3;
using test::PlayedAnswer;
using test::ReceivedRequest;
using test::ServedBucket;
using test::some_bytes;

namespace {

const Url kFragments{"bucket", "out/.hidden/fragments/"};

/// Sizes of the parts of an object: all `part_bytes`, but for a smaller last one.
std::vector<i64> equal_parts(i64 bytes, i64 part_bytes) {
  std::vector<i64> parts(static_cast<size_t>(bytes / part_bytes), part_bytes);
  if (bytes % part_bytes != 0) parts.push_back(bytes % part_bytes);
  return parts;
}

/// Objects of these sizes in parts of equal size, whose uploads have begun.
std::vector<PartedObject> begun(Client& client, const std::vector<i64>& sizes, i64 part_bytes) {
  std::vector<PartedObject> objects;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const Url url{"bucket", "out/" + std::to_string(i)};
    objects.push_back(
        {url, begin_uploads(client, {&url, 1}).front(), equal_parts(sizes[i], part_bytes)});
  }
  return objects;
}

/// One write of some bytes of an object.
struct Write {
  size_t object = 0;
  ByteRange range;
};

/// All bytes of the objects in writes of random sizes, in random order.
std::vector<Write> shuffled_writes(const std::vector<i64>& sizes, i64 most, unsigned seed) {
  std::minstd_rand random(seed);
  std::vector<Write> writes;
  for (size_t o = 0; o < sizes.size(); ++o) {
    for (i64 at = 0; at < sizes[o];) {
      const i64 bytes = std::min<i64>(1 + static_cast<i64>(random()) % most, sizes[o] - at);
      writes.push_back({o, {at, bytes}});
      at += bytes;
    }
  }
  std::ranges::shuffle(writes, random);
  return writes;
}

std::string content_of(size_t object, i64 size) {
  return some_bytes(static_cast<size_t>(size) + object).substr(object);
}

/// Writes with several threads.
void write_all(PartedOutput& output, const std::vector<Write>& writes,
               const std::vector<i64>& sizes, int threads) {
  for (const Write& write : writes) output.expect(write.object, write.range);
  std::vector<std::string> contents;
  for (size_t o = 0; o < sizes.size(); ++o) contents.push_back(content_of(o, sizes[o]));
  std::atomic<size_t> next = 0;
  std::vector<std::jthread> workers;
  for (int i = 0; i < threads; ++i) {
    workers.emplace_back([&] {
      for (size_t w = next++; w < writes.size(); w = next++) {
        const auto& [object, range] = writes[w];
        const auto bytes = std::as_bytes(std::span(contents[object]));
        output.write(
            object,
            bytes.subspan(static_cast<size_t>(range.offset), static_cast<size_t>(range.bytes)),
            range.offset);
      }
    });
  }
}

void check_objects(const ServedBucket& served, const std::vector<i64>& sizes) {
  for (size_t o = 0; o < sizes.size(); ++o) {
    RC_ASSERT((served.bucket.objects.at("out/" + std::to_string(o)) == content_of(o, sizes[o])));
  }
  RC_ASSERT(served.bucket.uploads.empty());
}

}  // namespace

TEST_CASE("bytes in any order and sizes make the objects within the memory") {
  CHECK(rc::check("any writes, parts, memory and threads", [] {
    ServedBucket served;
    served.bucket.least_part = 0;
    Client client = served.client();
    const auto sizes = *rc::gen::container<std::vector<i64>>(3, rc::gen::inRange<i64>(1, 20'000));
    const i64 most = *rc::gen::inRange<i64>(1, 3'000);
    const i64 memory = *rc::gen::inRange<i64>(1, 30'000);
    const int threads = *rc::gen::inRange(1, 5);
    const auto writes = shuffled_writes(sizes, most, *rc::gen::arbitrary<unsigned>());
    PartedOutput output(client, begun(client, sizes, *rc::gen::inRange<i64>(100, 5'000)),
                        kFragments, memory);
    write_all(output, writes, sizes, threads);
    RC_ASSERT(output.gather());
    output.complete();
    check_objects(served, sizes);
    RC_ASSERT(output.peak_bytes() <= memory + threads * most);
  }));
}

TEST_CASE("a thread that copies many bytes lets no others in beyond the memory") {
  constexpr i64 kMany = 16 << 20;
  constexpr i64 kFew = 300;
  ServedBucket served;
  served.bucket.least_part = 0;
  Client client = served.client();
  const std::vector<i64> sizes = {kMany + kFew};
  PartedOutput output(client, begun(client, sizes, 2 * kMany), kFragments, 1);
  const std::string content = content_of(0, sizes[0]);
  const auto bytes = std::as_bytes(std::span(content));
  output.expect(0, {0, sizes[0]});
  {
    const std::jthread many([&] { output.write(0, bytes.first(kMany), 0); });
    const std::jthread few([&] {
      for (i64 at = kMany; at < sizes[0]; ++at) {
        output.write(0, bytes.subspan(static_cast<size_t>(at), 1), at);
      }
    });
  }
  CHECK(output.peak_bytes() <= kMany + 2);
}

TEST_CASE("processes that write parts of an output in turn make the objects together") {
  CHECK(rc::check("any division of the writes", [] {
    ServedBucket served;
    served.bucket.least_part = 0;
    served.bucket.page = 3;
    Client client = served.client();
    const auto sizes = *rc::gen::container<std::vector<i64>>(2, rc::gen::inRange<i64>(1, 20'000));
    const auto writes = shuffled_writes(sizes, 2'000, *rc::gen::arbitrary<unsigned>());
    const auto objects = begun(client, sizes, *rc::gen::inRange<i64>(500, 9'000));
    const size_t processes = *rc::gen::inRange<size_t>(1, 5);
    for (size_t p = 0; p < processes; ++p) {
      std::vector<Write> own;
      for (size_t w = p; w < writes.size(); w += processes) own.push_back(writes[w]);
      PartedOutput output(client, objects, kFragments, 1 << 20);
      RC_ASSERT(output.take_up().empty());
      write_all(output, own, sizes, 2);
      for (const Write& write : own) RC_ASSERT(output.has(write.object, write.range));
    }
    PartedOutput last(client, objects, kFragments, 1 << 20);
    RC_ASSERT(last.take_up().empty());
    RC_ASSERT(last.gather());
    last.complete();
    check_objects(served, sizes);
  }));
}

TEST_CASE("what an interrupted process has sent is not sent again") {
  ServedBucket served;
  Client client = served.client();
  const std::vector<i64> sizes{12 << 20};
  const auto objects = begun(client, sizes, kLeastPartBytes);
  std::vector<Write> all;
  for (i64 at = 0; at < sizes[0]; at += 1 << 20) all.push_back({0, {at, 1 << 20}});
  {
    PartedOutput output(client, objects, kFragments, 64 << 20);
    output.expect(0, {0, sizes[0]});
    const std::string bytes = content_of(0, sizes[0]).substr(0, 7 << 20);
    output.write(0, std::as_bytes(std::span(bytes)), 0);
  }
  PartedOutput output(client, objects, kFragments, 64 << 20);
  CHECK(output.take_up().empty());
  int parts = 0;
  served.disturb = [&](int, const ReceivedRequest& request, PlayedAnswer&) {
    parts += request.method == "PUT";
  };
  CHECK(output.has(0, {0, kLeastPartBytes}));
  write_all(output, all, sizes, 1);
  CHECK(parts == 2);
  CHECK(output.gather());
  output.complete();
  CHECK((served.bucket.objects.at("out/0") == content_of(0, sizes[0])));
}

TEST_CASE("an output that lacks bytes is not made, and one that is written twice is a fault") {
  ServedBucket served;
  Client client = served.client();
  PartedOutput output(client, begun(client, {1000}, kLeastPartBytes), kFragments, 1 << 20);
  output.expect(0, {0, 900});
  const std::vector<std::byte> bytes(900);
  output.write(0, bytes, 0);
  CHECK(output.has(0, {0, 900}));
  CHECK_FALSE(output.has(0, {0, 901}));
  CHECK_FALSE(output.gather());
  CHECK_ERROR(kInternal, (output.complete(), 0));
  CHECK_ERROR(kInternal, (output.write(0, bytes, 0), 0));
  output.abort();
  CHECK(served.bucket.uploads.empty());
  PartedOutput gone(client, {output.object(0)}, kFragments, 1 << 20);
  CHECK(gone.take_up() == std::vector<size_t>{0});
}
