#pragma once

#include <cstdint>
#include <functional>
#include <optional>

namespace shardtool::testing {

/// Kind of death of a process in the middle of its work.
enum class Death {
  kKilled,    ///< written data stays
  kPowerCut,  ///< any part of the unsynced data is lost, page by page
};

/// Runs `work` in a child process that dies just before its n-th system call (from 1) on data or
/// names. `seed` selects the pages that a power cut loses. Returns true if it died, false if it had
/// fewer calls and finished. Syncs are recorded, not executed, since only a real power cut could
/// show the difference. Names survive a power cut.
bool dies_at(int n, Death death, std::uint32_t seed, const std::function<void()>& work);

}  // namespace shardtool::testing
