#include "lib/model/graph/operands.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lib/base/text.h"

namespace shardtool::model {
namespace {

/// How many values an op reads, and which; no words where their number says it.
struct Inputs {
  std::string_view op;
  size_t least = 1;
  size_t most = 1;
  std::string_view words = {};
};

/// Of those that do not read one. How many of these an attention reads, its own fields say.
constexpr auto kInputs = std::to_array<Inputs>(
    {{"add", 2, 2},
     {"attention", 3, 10},
     {"cutoff", 3, 3, "a value, its sum, and that of its squares"},
     {"embed", 0, 0},
     {"experts", 2, 2, "what experts read, and their weights"},
     {"fade", 0, 0},
     {"given", 0, 0},
     {"insert", 2, 2, "an op with two inputs, words and an image"},
     {"mix", 2, 2, "streams side by side, and their factors"},
     {"mul", 2, 2},
     {"normalise", 2, 2, "a value and the sums of its squares"},
     {"pool", 2, 2, "a value, and its scores"},
     {"position_bias", 0, 0},
     {"recurrence", 4, 5,
      "a recurrence with queries, keys, values and decays, and with gates or none"},
     {"resize", 3, 3, "a value, the sum of its squares, and of another's"},
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
  const auto [_, least, most, words] = inputs_of(name, op);
  if (op.in.size() < least || op.in.size() > most) {
    value.refuse(words.empty() ? fmt::format("an op \"{}\" with {}", name,
                                             plural(static_cast<i64>(most), "input"))
                               : std::string(words));
  }
  if (op.out.size() != outputs_of(op)) {
    value.refuse(fmt::format("an op \"{}\" with {}", name,
                             plural(static_cast<i64>(outputs_of(op)), "output")));
  }
}

}  // namespace shardtool::model
