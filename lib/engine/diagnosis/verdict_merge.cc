#include "lib/engine/diagnosis/verdict_merge.h"

#include <algorithm>
#include <tuple>

#include "lib/engine/diagnosis/peer_text.h"
#include "lib/engine/diagnosis/recorded_bytes.h"
#include "lib/engine/diagnosis/verdict_json.h"

namespace shardtool::engine {

// Must be in the types' namespace for nlohmann::json.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TierVerdict, kind, outcome, checked, mismatches, worst, rounding,
                                   faults, reordered)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RecordedBytes::DifferentPart, tensor, rank, found, expected)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RecordedBytes, different, unread)

using nlohmann::json;

namespace {

std::string to_text(const Verdict& verdict) {
  return to_peer(json{{"tiers", verdict.tiers},
                      {"odd", verdict.odd_weights},
                      {"compared", verdict.bytes},
                      {"recorded", verdict.recorded},
                      {"native", verdict.native},
                      {"digest", verdict.digest},
                      {"bytes", verdict.bytes_read}});
}

/// Keeps one fault per layer, in layer order.
void keep_earliest(std::vector<Fault>& faults) {
  const auto key = [](const Fault& f) { return std::tuple(f.layer_index, f.step, f.rank); };
  std::sort(faults.begin(), faults.end(),
            [&](const Fault& a, const Fault& b) { return key(a) < key(b); });
  std::vector<Fault> kept;
  for (Fault& fault : faults) {
    if (!kept.empty() && kept.back().layer_index == fault.layer_index) {
      kept.back().mismatches += fault.mismatches;
    } else {
      kept.push_back(std::move(fault));
    }
  }
  faults = std::move(kept);
}

void add(TierVerdict& sum, const TierVerdict& other) {
  sum.outcome = std::max(sum.outcome, other.outcome);
  sum.checked += other.checked;
  sum.mismatches += other.mismatches;
  sum.worst = std::max(sum.worst, other.worst);
  sum.rounding = std::max(sum.rounding, other.rounding);
  sum.reordered = std::max(sum.reordered, other.reordered);
  sum.faults.insert(sum.faults.end(), other.faults.begin(), other.faults.end());
}

void add(ComparedBytes& sum, const ComparedBytes& other) {
  sum.parts += other.parts;
  sum.differing += other.differing;
  sum.tensors.insert(other.tensors.begin(), other.tensors.end());
  sum.different.insert(sum.different.end(), other.different.begin(), other.different.end());
}

/// Sorts, so that the result is the same in every process.
void add(RecordedBytes& sum, const RecordedBytes& other) {
  sum.different.insert(sum.different.end(), other.different.begin(), other.different.end());
  std::ranges::sort(sum.different, {},
                    [](const auto& one) { return std::tie(one.tensor, one.rank); });
  sum.unread.insert(other.unread.begin(), other.unread.end());
}

void add(Verdict& sum, const json& other) {
  add(sum.bytes, other.at("compared").get<ComparedBytes>());
  add(sum.recorded, other.at("recorded").get<RecordedBytes>());
  const auto tiers = other.at("tiers").get<std::vector<TierVerdict>>();
  for (size_t i = 0; i < tiers.size(); ++i) add(sum.tiers.at(i), tiers[i]);
  for (const auto& odd : other.at("odd")) sum.odd_weights.push_back(odd.get<OddWeight>());
  sum.digest += other.at("digest").get<std::uint64_t>();
  sum.native += other.at("native").get<ComputedBy>();
  sum.bytes_read += other.at("bytes").get<i64>();
}

}  // namespace

Verdict merged(const Verdict& mine, comm::Communicator& comm) {
  Verdict sum = mine;
  const auto texts = comm.all_gather(to_text(mine));
  for (int rank = 0; rank < comm.size(); ++rank) {
    if (rank == comm.rank()) continue;
    take_from_peer(texts[static_cast<size_t>(rank)], "verdict",
                   [&](const json& other) { add(sum, other); });
  }
  for (TierVerdict& tier : sum.tiers) keep_earliest(tier.faults);
  return sum;
}

RecordedBytes merged(const RecordedBytes& mine, comm::Communicator& comm) {
  RecordedBytes sum;
  for (const std::string& text : comm.all_gather(to_peer(mine))) {
    take_from_peer(text, "hash", [&](const json& other) { add(sum, other.get<RecordedBytes>()); });
  }
  return sum;
}

}  // namespace shardtool::engine
