#include "lib/index/interleave.h"

#include <algorithm>

#include "lib/base/error.h"

namespace shardtool::index {

AxisMap interleaving(i64 n, i64 unit) {
  if (unit <= 0 || unit % 2 != 0 || n % unit != 0) {
    throw Error(ErrorCode::kInternal, "interleaved units are even and divide the axis");
  }
  std::vector<Piece> pieces;
  for (i64 local = 0; local < n; ++local) {
    const i64 in_unit = local % unit;
    pieces.push_back({local, local - in_unit + in_unit % 2 * (unit / 2) + in_unit / 2, 1});
  }
  return AxisMap(n, n, std::move(pieces));
}

std::optional<AxisMap> interleave(const AxisMap& a, i64 unit) {
  const auto is_whole = [unit](const Piece& p) {
    return p.local % unit == 0 && p.global % unit == 0 && p.size % unit == 0;
  };
  const auto pieces = a.pieces();
  if (a.image_size() != a.local_size() || !std::all_of(pieces.begin(), pieces.end(), is_whole)) {
    return std::nullopt;
  }
  return compose(a, interleaving(a.local_size(), unit));
}

}  // namespace shardtool::index
