#pragma once

#include <functional>

namespace shardtool::testing {

/// Runs `first`; just before its n-th system call (from 1) on data or names, runs `second` to its
/// end, as another process could at that moment. Returns true if it did, false if `first` had fewer
/// calls. Passes on what either throws. Syncs are not executed. Requires that `first` makes its
/// calls one at a time.
bool interleave(int n, const std::function<void()>& first, const std::function<void()>& second);

}  // namespace shardtool::testing
