#include "lib/api/planning/op_policy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/strict_json.h"
#include "lib/base/text.h"
#include "lib/mapping/document/json_value.h"
#include "lib/store/local/file.h"

namespace shardtool::api {
namespace {

using mapping::JsonValue;

constexpr i64 kMaxPolicyBytes = 1 << 20;
constexpr int kMaxPolicyDepth = 32;

bool matches(const std::string& pattern, const std::string& text) {
  return fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
}

bool has_layer(const OpRegion& region, const OpUse& use) {
  return region.layers.empty() ||
         std::ranges::find(region.layers, use.layer) != region.layers.end();
}

bool contains(const OpRegion& region, const OpUse& use) {
  return has_layer(region, use) && matches(region.block, use.block) && matches(region.op, use.op) &&
         matches(region.makes, use.makes);
}

OpPolicy inside(const std::vector<OpRegion>& regions, OpPolicy policy, const OpUse& use) {
  for (const OpRegion& region : regions) {
    if (!contains(region, use)) continue;
    if (region.solver) policy.solver = *region.solver;
    if (region.allow_partial_to_sharded) {
      policy.allow_partial_to_sharded = *region.allow_partial_to_sharded;
    }
    if (region.on_reshard) policy.on_reshard = *region.on_reshard;
    if (region.operand_budget) policy.operand_budget = region.operand_budget;
    policy = inside(region.regions, std::move(policy), use);
  }
  return policy;
}

/// Adds what the pattern of a region may have meant: one of the texts of the model's ops.
void add_known(Error& error, std::string_view key, const std::string& pattern,
               const std::vector<OpUse>& uses, std::string OpUse::*text) {
  std::vector<std::string> known;
  for (const OpUse& use : uses) {
    if (std::ranges::find(known, use.*text) == known.end()) known.push_back(use.*text);
  }
  const auto is_known = [&](const std::string& one) { return matches(pattern, one); };
  if (std::ranges::any_of(known, is_known)) return;
  error.note(
      key, fmt::format("\"{}\" is none of {}", quote_for_message(pattern), fmt::join(known, ", ")));
  const std::string hint = did_you_mean(pattern, known);
  if (!hint.empty()) error.help(hint);
}

/// `around` are the ops of the region that this one is inside of.
Error unused(const OpRegion& region, const std::vector<OpUse>& around) {
  Error error(ErrorCode::kUnusedRule, "the region has no op of the model");
  error.at(region.place);
  add_known(error, "block", region.block, around, &OpUse::block);
  add_known(error, "op", region.op, around, &OpUse::op);
  add_known(error, "makes", region.makes, around, &OpUse::makes);
  const i64 last = std::ranges::max(around, {}, &OpUse::layer).layer;
  const auto is_there = [&](const OpUse& use) { return has_layer(region, use); };
  if (std::ranges::none_of(around, is_there)) {
    error.note("layers",
               last < 0 ? "these ops are in no layer" : fmt::format("the last one is {}", last));
  }
  return error.help("correct or delete the region");
}

void require_used_in(const std::vector<OpRegion>& regions, const std::vector<OpUse>& around) {
  for (const OpRegion& region : regions) {
    std::vector<OpUse> inside;
    std::ranges::copy_if(around, std::back_inserter(inside),
                         [&](const OpUse& use) { return contains(region, use); });
    if (inside.empty()) throw unused(region, around);
    require_used_in(region.regions, inside);
  }
}

/// Fields of a region; the whole file is one that contains every op.
std::vector<JsonValue::Field> policy_fields(OpRegion& into);

OpRegion decode_region(const JsonValue& value) {
  OpRegion region;
  auto fields = policy_fields(region);
  const auto pattern = [](std::string& text) {
    return [&text](const JsonValue& v) { text = v.nonempty_text(); };
  };
  fields.push_back({"block", pattern(region.block)});
  fields.push_back({"op", pattern(region.op)});
  fields.push_back({"makes", pattern(region.makes)});
  fields.push_back({"layers", [&region](const JsonValue& v) {
                      for (const JsonValue& number : v.elements(1)) {
                        region.layers.push_back(number.integer(0));
                      }
                    }});
  value.object(fields);
  region.place = value.place();
  return region;
}

std::vector<JsonValue::Field> policy_fields(OpRegion& into) {
  return {{"solver",
           [&into](const JsonValue& v) {
             into.solver = v.one_of<OpSolver>({{"greedy", OpSolver::kGreedy},
                                               {"none", OpSolver::kNone},
                                               {"partials", OpSolver::kPartials}});
           }},
          {"allow_partial_to_sharded",
           [&into](const JsonValue& v) { into.allow_partial_to_sharded = v.boolean(); }},
          {"on_reshard",
           [&into](const JsonValue& v) {
             into.on_reshard = v.one_of<plan::OnReshard>({{"silent", plan::OnReshard::kSilent},
                                                          {"warn", plan::OnReshard::kWarn},
                                                          {"error", plan::OnReshard::kRaise}});
           }},
          {"operand_budget", [&into](const JsonValue& v) { into.operand_budget = v.integer(1); }},
          {"regions", [&into](const JsonValue& v) {
             for (const JsonValue& one : v.elements()) into.regions.push_back(decode_region(one));
           }}};
}

}  // namespace

OpPolicy OpPolicies::at(const OpUse& use) const {
  return inside(regions, policy, use);
}

void OpPolicies::require_used(const std::vector<OpUse>& uses) const {
  if (!uses.empty()) require_used_in(regions, uses);
}

OpPolicies read_policies(const std::string& path) {
  const std::string text = store::read_text(path, kMaxPolicyBytes);
  const JsonDocument json =
      parse_strict_json(text, path, ErrorCode::kMappingSyntax, kMaxPolicyDepth);
  const mapping::PlaceIndex places(text, path);
  const JsonValue value(json.value, "", places);
  OpRegion whole;
  auto fields = policy_fields(whole);
  fields.push_back({"version",
                    [](const JsonValue& v) {
                      if (v.integer() != 1) v.refuse("1");
                    },
                    true});
  value.document(std::move(fields));
  OpPolicies policies;
  policies.regions.push_back(std::move(whole));
  return policies;
}

plan::AllowedMoves OpPolicy::allowed() const {
  plan::AllowedMoves moves;
  moves.reduce_scatter = allow_partial_to_sharded;
  return moves;
}

std::unique_ptr<plan::Solver> OpPolicy::make() const {
  switch (solver) {
    case OpSolver::kGreedy:
      return std::make_unique<plan::GreedyReshard>(allowed(), operand_budget);
    case OpSolver::kNone:
      return std::make_unique<plan::NoReshard>();
    case OpSolver::kPartials:
      return std::make_unique<plan::PartialsOnly>();
    case OpSolver::kTogether:
    case OpSolver::kExact:
      break;
  }
  throw Error(ErrorCode::kInternal, "a joint plan has no solver of single ops");
}

std::string to_string(OpSolver solver) {
  constexpr auto kNames =
      std::to_array<std::string_view>({"greedy", "none", "partials", "together", "exact"});
  return std::string(kNames[static_cast<size_t>(solver)]);
}

std::string to_string(plan::Parity generation) {
  constexpr auto kNames = std::to_array<std::string_view>({"exact", "A", "B", "C", "D"});
  return std::string(kNames[static_cast<size_t>(generation)]);
}

}  // namespace shardtool::api
