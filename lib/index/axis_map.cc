#include "lib/index/axis_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lib/base/error.h"

namespace shardtool::index {
namespace {

bool by_local(const Piece& a, const Piece& b) {
  return a.local < b.local;
}

bool inside(const Piece& p, i64 local_size, i64 global_size) {
  return p.local >= 0 && p.global >= 0 && p.size <= local_size - p.local &&
         p.size <= global_size - p.global;
}

bool local_intervals_disjoint(const std::vector<Piece>& sorted) {
  for (size_t i = 1; i < sorted.size(); ++i) {
    if (sorted[i - 1].local_end() > sorted[i].local) return false;
  }
  return true;
}

bool global_intervals_disjoint(std::span<const Piece> sorted_by_local) {
  if (sorted_by_local.size() < 2) return true;  // true for most maps; spares them the copy below
  std::vector<Piece> pieces(sorted_by_local.begin(), sorted_by_local.end());
  std::sort(pieces.begin(), pieces.end(),
            [](const Piece& a, const Piece& b) { return a.global < b.global; });
  for (size_t i = 1; i < pieces.size(); ++i) {
    if (pieces[i - 1].global_end() > pieces[i].global) return false;
  }
  return true;
}

void coalesce(std::vector<Piece>& sorted) {
  size_t kept = 0;
  for (size_t i = 1; i < sorted.size(); ++i) {
    Piece& last = sorted[kept];
    const bool adjacent =
        last.local_end() == sorted[i].local && last.global_end() == sorted[i].global;
    if (adjacent) {
      last.size += sorted[i].size;
    } else {
      sorted[++kept] = sorted[i];
    }
  }
  if (!sorted.empty()) sorted.resize(kept + 1);
}

/// Returns the size; throws kLimit if it overflowed.
i64 in_range(std::optional<i64> size) {
  if (!size) throw Error(ErrorCode::kLimit, "an axis has 2^63 elements or more");
  return *size;
}
i64 scaled(i64 value, i64 factor) {
  return in_range(checked_mul(value, factor));
}

}  // namespace

std::optional<AxisMap> AxisMap::make(i64 local_size, i64 global_size, std::vector<Piece> pieces) {
  if (local_size < 0 || global_size < 0) return std::nullopt;
  for (const Piece& p : pieces) {
    if (p.size < 0 || !inside(p, local_size, global_size)) return std::nullopt;
  }
  std::erase_if(pieces, [](const Piece& p) { return p.size == 0; });
  std::sort(pieces.begin(), pieces.end(), by_local);
  if (!local_intervals_disjoint(pieces) || !global_intervals_disjoint(pieces)) return std::nullopt;
  coalesce(pieces);
  AxisMap map;
  map.local_size_ = local_size;
  map.global_size_ = global_size;
  map.pieces_ = std::move(pieces);
  return map;
}

AxisMap::AxisMap(i64 local_size, i64 global_size, std::vector<Piece> pieces) {
  auto map = make(local_size, global_size, std::move(pieces));
  if (!map)
    throw Error(ErrorCode::kInternal, "stretches of an axis map overlap or leave its extents");
  *this = std::move(*map);
}

AxisMap AxisMap::identity(i64 n) {
  return AxisMap(n, n, {{0, 0, n}});
}

AxisMap AxisMap::slice(i64 n, Interval interval) {
  return AxisMap(interval.size(), n, {{0, interval.begin, interval.size()}});
}

i64 AxisMap::image_size() const {
  i64 total = 0;
  for (const Piece& p : pieces_) total += p.size;
  return total;
}

std::optional<i64> AxisMap::operator()(i64 local) const {
  auto after = std::upper_bound(pieces_.begin(), pieces_.end(), local,
                                [](i64 value, const Piece& p) { return value < p.local; });
  if (after == pieces_.begin()) return std::nullopt;
  const Piece& p = *std::prev(after);
  if (local >= p.local_end()) return std::nullopt;
  return p.global + (local - p.local);
}

bool AxisMap::is_identity() const {
  if (local_size_ != global_size_) return false;
  return local_size_ == 0 || (pieces_.size() == 1 && pieces_[0].size == local_size_);
}

AxisMap inverse(const AxisMap& a) {
  std::vector<Piece> swapped;
  swapped.reserve(a.pieces().size());
  for (const Piece& p : a.pieces()) swapped.push_back({p.global, p.local, p.size});
  return AxisMap(a.global_size(), a.local_size(), std::move(swapped));
}

AxisMap compose(const AxisMap& outer, const AxisMap& inner) {
  if (inner.global_size() != outer.local_size()) {
    throw Error(ErrorCode::kInternal, "composed axis maps do not meet");
  }
  std::vector<Piece> out;
  const auto middle = outer.pieces();
  for (const Piece& in : inner.pieces()) {
    auto piece = std::lower_bound(middle.begin(), middle.end(), in.global,
                                  [](const Piece& p, i64 at) { return p.local_end() <= at; });
    for (; piece != middle.end() && piece->local < in.global_end(); ++piece) {
      const i64 begin = std::max(in.global, piece->local);
      const i64 end = std::min(in.global_end(), piece->local_end());
      out.push_back(
          {in.local + begin - in.global, piece->global + begin - piece->local, end - begin});
    }
  }
  return AxisMap(inner.local_size(), outer.global_size(), std::move(out));
}

AxisMap concat(std::span<const AxisMap> sections) {
  i64 local = 0;
  i64 global = 0;
  std::vector<Piece> out;
  for (const AxisMap& section : sections) {
    for (const Piece& p : section.pieces())
      out.push_back({local + p.local, global + p.global, p.size});
    local = in_range(checked_add(local, section.local_size()));
    global = in_range(checked_add(global, section.global_size()));
  }
  return AxisMap(local, global, std::move(out));
}

AxisMap scale(const AxisMap& a, i64 k) {
  std::vector<Piece> out;
  out.reserve(a.pieces().size());
  for (const Piece& p : a.pieces()) {
    out.push_back({scaled(p.local, k), scaled(p.global, k), scaled(p.size, k)});
  }
  return AxisMap(scaled(a.local_size(), k), scaled(a.global_size(), k), std::move(out));
}

AxisMap product(const AxisMap& outer, const AxisMap& inner) {
  if (inner.is_identity()) return scale(outer, inner.local_size());
  const i64 local_size = scaled(outer.local_size(), inner.local_size());
  const i64 global_size = scaled(outer.global_size(), inner.global_size());
  std::vector<Piece> out;
  for (const Piece& o : outer.pieces()) {
    for (i64 k = 0; k < o.size; ++k) {
      const i64 local = (o.local + k) * inner.local_size();
      const i64 global = (o.global + k) * inner.global_size();
      for (const Piece& i : inner.pieces())
        out.push_back({local + i.local, global + i.global, i.size});
    }
  }
  return AxisMap(local_size, global_size, std::move(out));
}

std::optional<i64> first_cut_inside_block(const AxisMap& a, i64 b) {
  i64 end_before = 0;
  for (const Piece& p : a.pieces()) {
    if (p.global % b != 0) return p.global;
    if (p.local % b != 0) return end_before;  // the local end cuts the axis' last, partial block
    const bool ends_the_axis = p.global_end() == a.global_size();
    if (p.size % b != 0 && !ends_the_axis) return p.global_end();
    end_before = p.global_end();
  }
  return std::nullopt;
}

std::optional<AxisMap> coarsen(const AxisMap& a, i64 b) {
  if (first_cut_inside_block(a, b)) return std::nullopt;
  std::vector<Piece> out;
  out.reserve(a.pieces().size());
  for (const Piece& p : a.pieces()) out.push_back({p.local / b, p.global / b, ceil_div(p.size, b)});
  return AxisMap(ceil_div(a.local_size(), b), ceil_div(a.global_size(), b), std::move(out));
}

AxisMap touched(const AxisMap& a, i64 b) {
  if (a.image_size() != a.local_size()) {
    throw Error(ErrorCode::kInternal, "the blocks of an axis with padding");
  }
  std::vector<Piece> out;
  i64 local = 0;
  for (const Piece& p : a.pieces()) {
    for (i64 block = p.global / b; block < ceil_div(p.global_end(), b); ++block) {
      const bool reached = std::any_of(out.begin(), out.end(), [block](const Piece& earlier) {
        return earlier.global <= block && block < earlier.global_end();
      });
      if (reached) continue;
      const bool continues = !out.empty() && out.back().global_end() == block;
      if (continues) {
        ++out.back().size;
      } else {
        out.push_back({local, block, 1});
      }
      ++local;
    }
  }
  return AxisMap(local, ceil_div(a.global_size(), b), std::move(out));
}

AxisMap every_kth(const AxisMap& a, i64 k, i64 offset) {
  std::vector<Piece> out;
  for (const Piece& p : a.pieces()) {
    const i64 first = p.global + ((offset - p.global) % k + k) % k;
    for (i64 at = first; at < p.global_end(); at += k)
      out.push_back({p.local + at - p.global, at / k, 1});
  }
  return AxisMap(a.local_size(), ceil_div(a.global_size(), k), std::move(out));
}

std::optional<i64> interval_begin(const AxisMap& a) {
  if (a.local_size() == 0) return a.global_size();
  const auto pieces = a.pieces();
  if (pieces.size() != 1 || pieces.front().size != a.local_size()) return std::nullopt;
  return pieces.front().global;
}

AxisMap pad(const AxisMap& a, i64 n) {
  return AxisMap(n, a.global_size(), {a.pieces().begin(), a.pieces().end()});
}

std::string to_string(const AxisMap& a, std::string_view padding) {
  std::string text;
  i64 next = 0;
  const auto append_padding = [&](i64 until) {
    if (until > next)
      text += fmt::format("{}{} {}", text.empty() ? "" : " ", padding, until - next);
  };
  for (const Piece& p : a.pieces()) {
    append_padding(p.local);
    text += fmt::format("{}[{}, {})", text.empty() ? "" : " ", p.global, p.global_end());
    next = p.local_end();
  }
  append_padding(a.local_size());
  return text.empty() ? "nothing" : text;
}

}  // namespace shardtool::index
