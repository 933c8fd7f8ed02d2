#pragma once

#include <algorithm>
#include <map>
#include <string>

#include "lib/ops/part.h"

namespace shardtool::engine {

using ops::aligned;
using ops::empty_part;
using ops::Part;
using ops::positions_of;

/// A value on all devices that have it and belong to this process, by rank.
template <class N>
using Placed = std::map<i64, Part<N>>;

/// Values by their names: whole ones, and what this process' devices have of them.
template <class N>
using Wholes = std::map<std::string, Part<N>>;
template <class N>
using PlacedValues = std::map<std::string, Placed<N>>;

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
