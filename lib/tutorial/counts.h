#pragma once

#include <array>
#include <string>
#include <string_view>

#include "lib/base/checked.h"
#include "lib/engine/run/counted.h"
#include "lib/plan/placement/placement.h"

namespace shardtool::tutorial {

/// Per kind of operation, its calls and the numbers in them. Of one device: what it gives. Of a
/// run: the calls of each device with the numbers that the devices jointly own; sends of all
/// devices together.
struct Counts {
  engine::Counted all_gather{};
  engine::Counted all_reduce{};
  engine::Counted reduce_scatter{};
  engine::Counted all_to_all{};
  engine::Counted send{};

  bool operator==(const Counts&) const = default;
};

/// The kinds in the order in which they are told.
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

/// What a run communicates to bring an array of so many numbers from one placement to another: one
/// call of what lib/plan says. Requires a move that an operation carries out; permutes are sends.
Counts moved(const plan::Placement& from, const plan::Placement& to, i64 elements);

/// "1 all_reduce of 12, 2 all_gather of 30", or "none".
std::string to_string(const Counts& counts);

}  // namespace shardtool::tutorial
