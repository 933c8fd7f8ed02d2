#include "lib/exec/files/sampled_hash.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <string>

#include "lib/store/reader.h"
#include "tests/support/temp_folder.h"

namespace shardtool::exec {
namespace {

constexpr size_t kSampled = 32 * 4096;

std::string hash_of(const std::string& content) {
  const test::TempFolder folder;
  const std::string path = folder.write("weights", content);
  const SurveyedFile file{path, store::open_reader(path).identity()};
  return sampled_hashes({&file, 1}).front();
}

TEST_CASE("any byte of a short file, and the first and last samples of a long one, are hashed") {
  CHECK(rc::check("a changed byte changes the hash", [] {
    const bool is_long = *rc::gen::arbitrary<bool>();
    const size_t bytes = is_long ? *rc::gen::inRange<size_t>(kSampled + 1, 3 * kSampled)
                                 : *rc::gen::inRange<size_t>(1, kSampled + 1);
    std::string content(bytes, 'x');
    const std::string before = hash_of(content);
    RC_ASSERT(hash_of(content) == before);
    const size_t from_edge = *rc::gen::inRange<size_t>(0, std::min<size_t>(bytes, 4096));
    size_t at = *rc::gen::arbitrary<bool>() ? from_edge : bytes - 1 - from_edge;
    if (!is_long) at = *rc::gen::inRange<size_t>(0, bytes);
    content[at] = 'y';
    RC_ASSERT(hash_of(content) != before);
  }));
}

TEST_CASE("a long file with other values everywhere has another hash, whatever its size") {
  CHECK(rc::check("a run of bytes as long as the distance of samples is noticed", [] {
    const size_t bytes = *rc::gen::inRange<size_t>(kSampled + 1, 20 * kSampled);
    const size_t apart = (bytes - 4096) / 31 + 1;
    std::string content(bytes, 'x');
    const std::string before = hash_of(content);
    const size_t at = *rc::gen::inRange<size_t>(0, bytes - apart + 1);
    content.replace(at, apart, apart, 'y');
    RC_ASSERT(hash_of(content) != before);
  }));
}

}  // namespace
}  // namespace shardtool::exec
