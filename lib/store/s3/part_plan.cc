#include "lib/store/s3/part_plan.h"

#include <algorithm>

namespace shardtool::store::s3 {
namespace {

/// Builds the parts from the front. Bytes from `begin_` on are in no part yet.
class Plan {
 public:
  Plan(i64 bytes, i64 part_bytes)
      : bytes_(bytes),
        least_(std::max(kLeastPartBytes, ceil_div(bytes, kMostParts - 1))),
        part_bytes_(std::max(part_bytes, least_)) {}

  /// Has a range copied, or leaves it to the parts that are made.
  void add(const ByteRange& range) {
    i64 missing = range.offset > begin_ ? std::max<i64>(least_ - (range.offset - begin_), 0) : 0;
    const i64 of_last = std::min(missing, std::max<i64>(last_copy_ - least_, 0));
    missing -= of_last;
    if (range.bytes - missing < least_) return;
    shorten_last(of_last);
    cut(range.offset + missing - begin_, part_bytes_);
    const size_t before = parts_.size();
    cut(range.end() - begin_, kMostCopyBytes);
    last_copy_ = parts_.size() > before ? parts_.back() : 0;
  }

  std::vector<i64> finish() {
    cut(bytes_ - begin_, part_bytes_);
    return std::move(parts_);
  }

 private:
  /// Takes bytes from the end of the last part, which is a copy.
  void shorten_last(i64 bytes) {
    if (bytes == 0) return;
    parts_.back() -= bytes;
    begin_ -= bytes;
  }

  /// Divides the next bytes evenly, in parts of at most `most` if none gets too small.
  void cut(i64 bytes, i64 most) {
    if (bytes == 0) return;
    last_copy_ = 0;
    const i64 count = std::max<i64>(std::min(ceil_div(bytes, most), bytes / least_), 1);
    for (i64 i = 0; i < count; ++i) {
      parts_.push_back(bytes * (i + 1) / count - bytes * i / count);
    }
    begin_ += bytes;
  }

  i64 bytes_;
  i64 least_;
  i64 part_bytes_;
  std::vector<i64> parts_;
  i64 begin_ = 0;
  i64 last_copy_ = 0;  ///< bytes of the last part if it is a copy
};

}  // namespace

std::vector<i64> plan_parts(i64 bytes, std::span<const ByteRange> copyable, i64 part_bytes) {
  Plan plan(bytes, part_bytes);
  for (const ByteRange& range : copyable) plan.add(range);
  return plan.finish();
}

}  // namespace shardtool::store::s3
