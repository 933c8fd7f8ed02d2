#include "lib/index/row_major_range.h"

namespace shardtool::index {
namespace {

/// The boxes of one range; the axes before `axis` have one index.
class RangeBoxes {
 public:
  RangeBoxes(const Shape& extents,
             const std::function<void(const Shape& first, const Shape& sizes)>& visit)
      : extents_(extents), visit_(visit), first_(extents.size(), 0), sizes_(extents.size(), 1) {}

  void add(size_t axis, i64 begin, i64 end) {
    if (begin >= end) return;
    if (axis == extents_.size()) {
      visit_(first_, sizes_);
      return;
    }
    i64 row = 1;
    for (size_t a = axis + 1; a < extents_.size(); ++a) row *= extents_[a];
    const i64 whole_begin = ceil_div(begin, row);
    const i64 whole_end = end / row;
    if (whole_begin > whole_end) {  // inside of one row
      add_row(axis, whole_end, begin - whole_end * row, end - whole_end * row);
      return;
    }
    add_row(axis, begin / row, begin % row, begin < whole_begin * row ? row : 0);
    add_rows(axis, whole_begin, whole_end);
    add_row(axis, whole_end, 0, end % row);
  }

 private:
  void add_row(size_t axis, i64 at, i64 begin, i64 end) {
    first_[axis] = at;
    sizes_[axis] = 1;
    add(axis + 1, begin, end);
  }

  void add_rows(size_t axis, i64 begin, i64 end) {
    if (begin >= end) return;
    first_[axis] = begin;
    sizes_[axis] = end - begin;
    for (size_t a = axis + 1; a < extents_.size(); ++a) {
      first_[a] = 0;
      sizes_[a] = extents_[a];
    }
    visit_(first_, sizes_);
  }

  const Shape& extents_;
  const std::function<void(const Shape& first, const Shape& sizes)>& visit_;
  Shape first_;
  Shape sizes_;
};

}  // namespace

void for_each_box_of_range(
    const Shape& extents, i64 begin, i64 end,
    const std::function<void(const Shape& first, const Shape& sizes)>& visit) {
  RangeBoxes(extents, visit).add(0, begin, end);
}

}  // namespace shardtool::index
