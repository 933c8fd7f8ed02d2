#pragma once

#include <cstdint>
#include <functional>
#include <optional>

namespace shardtool::testing {

/// How a process ends in the middle of its work.
enum class Death {
  kKilled,    ///< what was written stays
  kPowerCut,  ///< of what was written and not synced, any part is lost, page by page
};

/// Runs `work` in a child process that dies at its n-th system call (from 1) on data or names,
/// before that call does anything. `seed` decides what a power cut takes. Returns whether it died;
/// false: it had fewer calls, and ended by itself. Syncs are only noted, not done: nothing but a
/// real power cut could show the difference. Names survive a power cut as they were.
bool dies_at(int n, Death death, std::uint32_t seed, const std::function<void()>& work);

}  // namespace shardtool::testing
