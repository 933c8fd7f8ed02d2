#include "lib/engine/diagnosis/outcome.h"

#include <array>
#include <cstddef>

namespace shardtool::engine {
namespace {

struct TierText {
  std::string_view name, number;
};

constexpr std::array<std::string_view, 5> kOutcomes{"not run", "pass", "undecided", "differs",
                                                    "fail"};
constexpr std::array<TierText, 10> kTiers{{{"manifest", "V0"},
                                           {"headers", "V0"},
                                           {"hashes", "V0"},
                                           {"bytes", "V0"},
                                           {"field", "V1"},
                                           {"f64", "V2"},
                                           {"ordered f32", "V3"},
                                           {"ordered bf16", "V3"},
                                           {"native", "V4"},
                                           {"golden", "V5"}}};

}  // namespace

std::string_view to_text(Outcome outcome) {
  return kOutcomes[static_cast<size_t>(outcome)];
}

std::string_view to_text(TierKind kind) {
  return kTiers[static_cast<size_t>(kind)].name;
}

std::string_view number_of(TierKind kind) {
  return kTiers[static_cast<size_t>(kind)].number;
}

}  // namespace shardtool::engine
