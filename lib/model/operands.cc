#include "shardtool/model/operands.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "shardtool/base/text.h"

namespace shardtool::model {
namespace {

/// How many values an op reads.
struct Inputs {
  std::string_view op;
  size_t least = 1;
  size_t most = 1;
};

/// Of those that do not read one. What an attention reads beyond its keys and values, and a
/// recurrence beyond its decays, their own fields say.
constexpr auto kInputs = std::to_array<Inputs>({{"add", 2, 2},
                                                {"attention", 3, 10},
                                                {"cutoff", 3, 3},
                                                {"embed", 0, 0},
                                                {"experts", 2, 2},
                                                {"fade", 0, 0},
                                                {"given", 0, 0},
                                                {"insert", 2, 2},
                                                {"mix", 2, 2},
                                                {"mul", 2, 2},
                                                {"normalise", 2, 2},
                                                {"pool", 2, 2},
                                                {"position_bias", 0, 0},
                                                {"recurrence", 4, 5},
                                                {"resize", 3, 3},
                                                {"sinusoids", 0, 0}});

Inputs inputs_of(std::string_view name, const Op& op) {
  if (const auto* join = std::get_if<Join>(&op.kind)) {
    const bool is_per_head = join->order == Join::Order::kPerHead;
    return {name, is_per_head ? join->sections.size() : 1,
            is_per_head ? join->sections.size() : op.in.size()};
  }
  const auto* const found = std::ranges::find(kInputs, name, &Inputs::op);
  return found == kInputs.end() ? Inputs{name} : *found;
}

size_t outputs_of(const Op& op) {
  const auto* split = std::get_if<Split>(&op.kind);
  return split == nullptr ? 1 : split->sections.size();
}

}  // namespace

void check_operands(std::string_view name, const Op& op, const mapping::JsonValue& value) {
  const auto [_, least, most] = inputs_of(name, op);
  if (op.in.size() < least || op.in.size() > most) {
    const std::string most_inputs = plural(static_cast<i64>(most), "input");
    value.refuse(least == most
                     ? fmt::format("an op \"{}\" with {}", name, most_inputs)
                     : fmt::format("an op \"{}\" with {} to {}", name, least, most_inputs));
  }
  if (op.out.size() != outputs_of(op)) {
    value.refuse(fmt::format("an op \"{}\" with {}", name,
                             plural(static_cast<i64>(outputs_of(op)), "output")));
  }
}

}  // namespace shardtool::model
