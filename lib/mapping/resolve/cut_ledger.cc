#include "lib/mapping/resolve/cut_ledger.h"

#include <algorithm>
#include <functional>

#include "lib/mapping/resolve/cut_checks.h"

namespace shardtool::mapping {
namespace {

bool parts_differ(const std::vector<i64>& sizes) {
  return std::adjacent_find(sizes.begin(), sizes.end(), std::not_equal_to<>()) != sizes.end();
}

}  // namespace

size_t CutLedger::enter(const UnitCut& cut) {
  const auto [at, is_new] = by_cut_.try_emplace({cut.name, to_string(cut.units)}, entries_.size());
  if (is_new) {
    entries_.push_back({cut.name, part_sizes(cut, axes_.mesh()), {}, 0, runs_of(cut)});
  }
  // Cuts of one text may have different policies.
  const std::vector<i64>& sizes = entries_[at->second].sizes;
  const bool must_be_even = require_even_ || (is_for_engine_ && cut.uneven != Uneven::kMiddle);
  if (!parts_differ(sizes) || !(must_be_even || cut.uneven == Uneven::kError)) return at->second;
  Error e = uneven_cut_error(cut, sizes, must_be_even);
  e.at(cut.place);
  const std::string origin = axes_.has(cut.name) ? axes_.size_origin(cut.name) : "";
  if (!origin.empty()) e.note("config", origin);
  throw e;
}

void CutLedger::count(size_t entry, std::string_view tensor) {
  UnevenCut& cut = entries_[entry];
  if (cut.tensors++ == 0) cut.example_tensor = tensor;
}

std::vector<UnevenCut> CutLedger::uneven() const {
  std::vector<UnevenCut> found;
  std::copy_if(entries_.begin(), entries_.end(), std::back_inserter(found),
               [](const UnevenCut& cut) { return parts_differ(cut.sizes); });
  return found;
}

}  // namespace shardtool::mapping
