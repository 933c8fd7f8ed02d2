#pragma once

#include <array>
#include <string>
#include <string_view>

#include "lib/base/checked.h"
#include "lib/engine/run/counted.h"
#include "lib/plan/placement/placement.h"

namespace shardtool::tutorial {

/// Calls and numbers per kind of operation. For one device: its own calls and the numbers that it
/// passes in. For a run: the calls of each device and the numbers of all devices together; sends
/// are summed over the devices.
struct Counts {
  engine::Counted all_gather{};
  engine::Counted all_reduce{};
  engine::Counted reduce_scatter{};
  engine::Counted all_to_all{};
  engine::Counted send{};

  bool operator==(const Counts&) const = default;
};

/// The kinds in print order.
struct CountedKind {
  std::string_view name;
  engine::Counted Counts::*counted;
};
inline constexpr std::array<CountedKind, 5> kCountedKinds{{
    {"all_gather", &Counts::all_gather},
    {"all_reduce", &Counts::all_reduce},
    {"reduce_scatter", &Counts::reduce_scatter},
    {"all_to_all", &Counts::all_to_all},
    {"send", &Counts::send},
}};

Counts& operator+=(Counts& sum, const Counts& counts);
Counts operator+(Counts a, const Counts& b);

/// Communication of a run that moves an array with `elements` numbers from one placement to
/// another: one call, as computed by lib/plan. Requires a move that one operation can do; permutes
/// are sends.
Counts moved(const plan::Placement& from, const plan::Placement& to, i64 elements);

/// "1 all_reduce of 12, 2 all_gather of 30", or "none".
std::string to_string(const Counts& counts);

}  // namespace shardtool::tutorial
