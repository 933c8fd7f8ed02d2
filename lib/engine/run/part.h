#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <string>

#include "kernels/device/workbench.h"
#include "lib/ops/part.h"

namespace shardtool::engine {

using ops::aligned;
using ops::empty_part;
using ops::Part;
using ops::positions_of;

/// Parts of a value by rank, on the devices of this process.
template <class N>
using Placed = std::map<i64, Part<N>>;

/// Values by name: whole ones, and the parts of this process' devices.
template <class N>
using Wholes = std::map<std::string, Part<N>>;
template <class N>
using PlacedValues = std::map<std::string, Placed<N>>;

/// Returns true if two parts have the same features, and numbers with the same bits.
template <class N>
bool has_same_numbers(const Part<N>& a, const Part<N>& b) {
  if (!(a.features == b.features) || a.data.size() != b.data.size()) return false;
  return a.data.shares_with(b.data) || a.data.size() == 0 ||
         std::memcmp(a.data.data(), b.data.data(), a.data.size() * sizeof(N)) == 0;
}

/// Copies a device's features into the whole value.
template <class N>
void copy_features(const Part<N>& from, i64 tokens, Part<N>& whole) {
  for (i64 t = 0; t < tokens; ++t) {
    for (const index::Piece& piece : from.features.pieces()) {
      std::copy_n(from.row(t) + piece.local, piece.size, whole.row(t) + piece.global);
    }
  }
}

/// Assembles the whole value from the devices' parts. A feature that several devices have is taken
/// from the first.
template <class N>
Part<N> joined(const Placed<N>& parts, i64 tokens) {
  if (parts.empty()) return {};
  const Part<N>& first = parts.begin()->second;
  const auto all = index::AxisMap::identity(first.features.global_size());
  if (first.features == all) return first;
  Part<N> whole = empty_part<N>(all, tokens);
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    copy_features(part->second, tokens, whole);
  }
  return whole;
}

/// Returns what joined() above returns, assembled where the workbench runs.
template <class N>
Part<N> joined(kernels::Workbench& bench, const Placed<N>& parts, i64 tokens);

}  // namespace shardtool::engine
