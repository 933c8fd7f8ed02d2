#include "lib/comm/tcp/frame.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "tests/support/generators.h"

namespace shardtool::comm {
namespace {

TEST_CASE("frames come out of a stream as they went in, whatever the pieces it arrives in") {
  const bool holds = rc::check("frames", [] {
    const auto texts = *rc::gen::container<std::vector<std::string>>(
        rc::gen::container<std::string>(rc::gen::arbitrary<char>()));
    const auto step = *rc::gen::inRange<size_t>(1, 40);
    std::string stream;
    for (size_t i = 0; i < texts.size(); ++i) {
      stream += frame_head(FrameKind::kData, i * 7, texts[i].size()) + texts[i];
    }
    FrameReader reader;
    std::vector<Frame> frames;
    for (std::string_view left = stream; !left.empty();) {
      const auto room = reader.room();
      RC_ASSERT(!room.empty());
      const size_t taken = std::min({room.size(), left.size(), step});
      std::memcpy(room.data(), left.data(), taken);
      reader.filled(taken);
      left.remove_prefix(taken);
      while (auto frame = reader.take()) frames.push_back(*std::move(frame));
    }
    RC_ASSERT(frames.size() == texts.size());
    for (size_t i = 0; i < frames.size(); ++i) {
      RC_ASSERT(frames[i].kind == FrameKind::kData);
      RC_ASSERT(frames[i].channel == i * 7);
      RC_ASSERT(frames[i].bytes == texts[i]);
    }
  });
  CHECK(holds);
}

TEST_CASE("a length that the other side claims takes no memory before the bytes come") {
  FrameReader reader;
  const std::string head = frame_head(FrameKind::kData, 0, std::uint64_t{1} << 60U);
  std::memcpy(reader.room().data(), head.data(), head.size());
  reader.filled(head.size());
  CHECK_FALSE(reader.take());
  CHECK(reader.room().size() <= 1U << 20U);
}

}  // namespace
}  // namespace shardtool::comm
