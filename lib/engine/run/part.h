#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "lib/base/checked.h"
#include "lib/index/axis_map.h"

namespace shardtool::engine {

/// What one device has of a value: for every token the features that the map places.
///
/// V1 data is tokens x features.local_size(), row-major
template <class N>
struct Part {
  index::AxisMap features;
  std::vector<N> data;

  i64 width() const { return features.local_size(); }
  const N* row(i64 token) const { return data.data() + token * width(); }
  N* row(i64 token) { return data.data() + token * width(); }
};

template <class N>
Part<N> empty_part(index::AxisMap features, i64 tokens) {
  const auto size = static_cast<size_t>(tokens * features.local_size());
  return {std::move(features), std::vector<N>(size)};
}

/// A value on all devices that have it and belong to this process, by rank.
template <class N>
using Placed = std::map<i64, Part<N>>;

/// Values by their names: whole ones, and what this process' devices have of them.
template <class N>
using Wholes = std::map<std::string, Part<N>>;
template <class N>
using PlacedValues = std::map<std::string, Placed<N>>;

/// For every local index of `wanted`, where `had` has its element, or -1 for padding. Throws
/// kUnsupported, naming `what`, when `had` lacks an element.
std::vector<i64> positions_of(const index::AxisMap& wanted, const index::AxisMap& had,
                              const std::string& what);

/// The features of a part that `wanted` places, in its order, with zeros for padding.
template <class N>
Part<N> aligned(const Part<N>& part, const index::AxisMap& wanted, i64 tokens,
                const std::string& what) {
  if (part.features == wanted) return part;
  const std::vector<i64> from = positions_of(wanted, part.features, what);
  Part<N> result = empty_part<N>(wanted, tokens);
  for (i64 t = 0; t < tokens; ++t) {
    for (size_t i = 0; i < from.size(); ++i) {
      if (from[i] >= 0) result.row(t)[i] = part.row(t)[from[i]];
    }
  }
  return result;
}

/// Copies what a device has of a value into the whole one.
template <class N>
void copy_features(const Part<N>& from, i64 tokens, Part<N>& whole) {
  for (i64 t = 0; t < tokens; ++t) {
    for (const index::Piece& piece : from.features.pieces()) {
      std::copy_n(from.row(t) + piece.local, piece.size, whole.row(t) + piece.global);
    }
  }
}

/// The whole value that devices have parts of; of a feature that several have, the first one's.
template <class N>
Part<N> joined(const Placed<N>& parts, i64 tokens) {
  if (parts.empty()) return {};
  const i64 features = parts.begin()->second.features.global_size();
  Part<N> whole = empty_part<N>(index::AxisMap::identity(features), tokens);
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    copy_features(part->second, tokens, whole);
  }
  return whole;
}

}  // namespace shardtool::engine
