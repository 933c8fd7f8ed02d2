#include "shardtool/kernels/digest/placed_crc64.h"

#include <algorithm>
#include <span>
#include <vector>

#include "shardtool/kernels/crc64/crc64.h"
#include "shardtool/kernels/crc64/implementation.h"

namespace shardtool::kernels {
namespace {

/// A loop of the copy in ascending dst order, with what one step in dst multiplies a crc by.
struct Level {
  i64 count;
  i64 src_stride;
  std::uint64_t step;
};

/// The runs of `copy` in the order of their places, so that Horner's rule applies to each loop:
///   value = (...(run_0 * step ^ run_1) * step ^ ...) ^ run_n-1.
class Placement {
 public:
  explicit Placement(index::StridedCopy copy) {
    for (index::Loop& loop : copy.loops) {
      if (loop.dst_stride < 0) reverse(copy, loop);
    }
    std::sort(copy.loops.begin(), copy.loops.end(),
              [](const auto& a, const auto& b) { return a.dst_stride > b.dst_stride; });
    src_ = copy.src;
    end_ = copy.dst + copy.run;
    for (const index::Loop& loop : copy.loops) end_ += (loop.count - 1) * loop.dst_stride;
    rows_.run = copy.run;
    if (!copy.loops.empty()) {
      const index::Loop& inner = copy.loops.back();
      rows_.count = inner.count;
      rows_.src_stride = inner.src_stride;
      if (inner.count > 1) rows_.skip = Crc64::power(inner.dst_stride - copy.run);
      copy.loops.pop_back();
    }
    for (const index::Loop& loop : copy.loops) {
      outer_.push_back({loop.count, loop.src_stride, Crc64::power(loop.dst_stride)});
    }
  }

  /// The end of the last run in dst.
  i64 end() const { return end_; }

  std::uint64_t crc(const std::byte* buffer) const { return crc(outer_, buffer + src_); }

 private:
  /// The same runs, the last first.
  static void reverse(index::StridedCopy& copy, index::Loop& loop) {
    copy.src += (loop.count - 1) * loop.src_stride;
    copy.dst += (loop.count - 1) * loop.dst_stride;
    loop.src_stride = -loop.src_stride;
    loop.dst_stride = -loop.dst_stride;
  }

  std::uint64_t crc(std::span<const Level> outer, const std::byte* at) const {
    if (outer.empty()) {
      Rows rows = rows_;
      rows.first = at;
      return implementations().front().rows(rows);
    }
    const Level& level = outer.front();
    std::uint64_t sum = 0;
    for (i64 i = 0; i < level.count; ++i) {
      sum = Crc64::multiply(sum, level.step) ^ crc(outer.subspan(1), at + i * level.src_stride);
    }
    return sum;
  }

  i64 src_ = 0;
  i64 end_ = 0;
  Rows rows_;
  std::vector<Level> outer_;
};

}  // namespace

std::uint64_t placed_crc64(const index::StridedCopy& copy, const std::byte* buffer,
                           i64 total_bytes) {
  if (index::byte_count(copy) == 0) return 0;
  const Placement placement(copy);
  return Crc64::shift(placement.crc(buffer), total_bytes - placement.end());
}

}  // namespace shardtool::kernels
