#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "lib/base/error.h"

namespace shardtool::cli {

/// Flags that change nothing in some situation: a command has a table of such rules.
template <class Args>
struct FlagRule {
  static constexpr size_t kMost = 20;
  enum class Of { kThese, kAllOthers };

  bool (*holds)(const Args&);     ///< true in the situation
  std::string_view situation;     ///< ends the sentence "--from does nothing ..."
  std::string_view help;          ///< what would give it an effect, or what to do instead
  Of of;                          ///< flags that do nothing: those listed, or all others
  std::string_view words[kMost];  ///< names of flags, and of groups of flags; "" is none

  bool concerns(const Argument& flag) const {
    const bool is_listed = std::ranges::any_of(words, [&flag](std::string_view word) {
      return !word.empty() && (word == flag.name || word == flag.group);
    });
    return is_listed == (of == Of::kThese);
  }
};

/// Throws kUsage for a flag that was given and changes nothing, by the first rule that says so. A
/// flag that an environment variable may set is never one.
template <class Args>
void require_effects(const Args& args, const std::vector<Argument>& arguments,
                     std::span<const FlagRule<Args>> rules) {
  for (const FlagRule<Args>& rule : rules) {
    if (!rule.holds(args)) continue;
    for (const Argument& flag : arguments) {
      const bool is_typed = !flag.positional() && flag.environment.empty() && flag.is_given();
      if (!is_typed || !rule.concerns(flag)) continue;
      throw Error(ErrorCode::kUsage, fmt::format("{} does nothing {}", flag.name, rule.situation))
          .help(std::string(rule.help));
    }
  }
}

}  // namespace shardtool::cli
