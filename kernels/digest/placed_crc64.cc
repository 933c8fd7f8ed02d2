#include "kernels/digest/placed_crc64.h"

#include <algorithm>
#include <span>
#include <vector>

#include "kernels/crc64/crc64.h"
#include "kernels/crc64/implementation.h"

namespace shardtool::kernels {
namespace {

/// A loop of the copy in ascending dst order; `step` is the crc factor of one step in dst.
struct Level {
  i64 count;
  i64 src_stride;
  std::uint64_t step;
};

/// The runs of `copy` in ascending dst order, so that Horner's rule applies to each loop:
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
    for (const index::Loop& loop : copy.loops) {
      levels_.push_back({loop.count, loop.src_stride, Crc64::power(loop.dst_stride)});
    }
    if (copy.loops.empty()) return;
    const index::Loop& inner = copy.loops.back();
    rows_.count = inner.count;
    rows_.src_stride = inner.src_stride;
    if (inner.count > 1) rows_.skip = Crc64::power(inner.dst_stride - copy.run);
  }

  /// End of the last run in dst.
  i64 end() const { return end_; }

  /// Passes the innermost loop to the kernel as a whole.
  std::uint64_t crc(const std::byte* buffer) const {
    const auto crc_of_rows = [&](i64 src) {
      Rows rows = rows_;
      rows.first = buffer + src;
      return implementations().front().rows(rows);
    };
    const size_t inner = levels_.empty() ? 0 : 1;
    return horner(std::span(levels_).first(levels_.size() - inner), src_, crc_of_rows);
  }

  std::uint64_t crc(const std::function<std::uint64_t(i64)>& crc_of_run) const {
    return horner(levels_, src_, crc_of_run);
  }

 private:
  /// Reverses a loop: the same runs, last first.
  static void reverse(index::StridedCopy& copy, index::Loop& loop) {
    copy.src += (loop.count - 1) * loop.src_stride;
    copy.dst += (loop.count - 1) * loop.dst_stride;
    loop.src_stride = -loop.src_stride;
    loop.dst_stride = -loop.dst_stride;
  }

  template <class CrcAt>
  static std::uint64_t horner(std::span<const Level> levels, i64 src, const CrcAt& crc_at) {
    if (levels.empty()) return crc_at(src);
    const Level& level = levels.front();
    std::uint64_t sum = 0;
    for (i64 i = 0; i < level.count; ++i) {
      sum = Crc64::multiply(sum, level.step) ^
            horner(levels.subspan(1), src + i * level.src_stride, crc_at);
    }
    return sum;
  }

  i64 src_ = 0;
  i64 end_ = 0;
  Rows rows_;  ///< the run and the innermost loop
  std::vector<Level> levels_;
};

}  // namespace

std::uint64_t placed_crc64(const index::StridedCopy& copy, const std::byte* buffer,
                           i64 total_bytes) {
  if (index::byte_count(copy) == 0) return 0;
  const Placement placement(copy);
  return Crc64::shift(placement.crc(buffer), total_bytes - placement.end());
}

std::uint64_t placed_crc64(const index::StridedCopy& copy,
                           const std::function<std::uint64_t(i64 src)>& crc_of_run,
                           i64 total_bytes) {
  if (index::byte_count(copy) == 0) return 0;
  const Placement placement(copy);
  return Crc64::shift(placement.crc(crc_of_run), total_bytes - placement.end());
}

}  // namespace shardtool::kernels
