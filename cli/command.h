#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "cli/exit_code.h"
#include "lib/comm/engine_choice.h"

namespace shardtool::cli {

class Session;

/// Destination of an argument's text: a switch, one text, or several.
using Target =
    std::variant<bool*, std::string*, std::optional<std::string>*, std::vector<std::string>*>;

/// One flag or positional argument. Parsing, suggestions, help, completion and man pages are all
/// generated from this description, so they cannot disagree.
struct Argument {
  std::string name = {};        ///< "--mapping"; for a positional "SRC"
  std::string short_name = {};  ///< "-m" or empty
  std::string value = {};       ///< placeholder of the value in help, "FILE"; empty for a switch
  std::string help = {};        ///< one line
  Target target = {};
  bool required = false;
  std::vector<std::string> choices = {};  ///< values that are offered; empty: any
  std::vector<std::string> refused = {};  ///< further values, which the command refuses with advice
  /// Values that completion offers where any are accepted.
  std::function<std::vector<std::string>()> offers = {};
  std::string environment = {};  ///< environment variable for the default
  std::string group = {};        ///< word for it and others, "training"; empty: none
  bool advanced = false;         ///< omitted from the short help
  bool of_process = false;       ///< may differ between the processes of a launch

  std::vector<std::string> completions() const { return offers ? offers() : choices; }
  bool takes_file() const { return value.find("FILE") != std::string::npos; }
  bool positional() const { return !name.starts_with('-'); }
  bool repeatable() const { return std::holds_alternative<std::vector<std::string>*>(target); }
  bool takes_value() const { return !std::holds_alternative<bool*>(target); }
  /// True if its target has a value.
  bool is_given() const;
};

inline bool Argument::is_given() const {
  if (auto* const* flag = std::get_if<bool*>(&target)) return **flag;
  if (auto* const* one = std::get_if<std::string*>(&target)) return !(*one)->empty();
  if (auto* const* all = std::get_if<std::vector<std::string>*>(&target)) return !(*all)->empty();
  return std::get<std::optional<std::string>*>(target)->has_value();
}

inline void append(std::vector<Argument>& arguments, const std::vector<Argument>& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
}

/// Appends flags that the long help and the man page list by themselves, as "training flags".
inline void append_group(std::vector<Argument>& arguments, std::string_view group,
                         std::vector<Argument> more) {
  for (Argument& argument : more) argument.group = group;
  append(arguments, more);
}

/// Title of a list of arguments, and the arguments.
using ArgumentList = std::pair<std::string, std::vector<Argument>>;

/// Returns the flags by group, in the order of the first ones.
inline std::vector<ArgumentList> flags_by_group(const std::vector<Argument>& arguments) {
  std::vector<ArgumentList> lists;
  for (const Argument& argument : arguments) {
    if (argument.positional()) continue;
    const std::string title = argument.group.empty() ? "flags" : argument.group + " flags";
    auto list = std::ranges::find(lists, title, &ArgumentList::first);
    if (list == lists.end()) list = lists.insert(lists.end(), {title, {}});
    list->second.push_back(argument);
  }
  return lists;
}

/// Words that completion offers next on a command line.
struct NextWords {
  std::string after = {};  ///< words after the command's name: "profile show"; empty: none yet
  std::function<std::vector<std::string>()> words = {};
};

/// One verb.
struct Command {
  std::string name = {};                   ///< "plan", or two words: "plan search"
  std::string summary = {};                ///< a few words, for the list of commands
  std::string description = {};            ///< sentences, for --help and the man page
  std::vector<std::string> examples = {};  ///< command lines, the most useful first
  std::vector<Argument> arguments = {};
  std::vector<NextWords> next_words = {};  ///< beyond the choices of the first argument
  std::function<ExitCode(Session&)> run = {};
  /// Meeting of a launch's processes, by the arguments; empty or nullopt: each runs alone. Throws
  /// kUsage.
  std::function<std::optional<comm::EngineChoice>()> meeting = {};
};

/// Returns a command's name as one word: "plan_search", "plan-search".
inline std::string joined_name(const Command& command, char joint) {
  std::string name = command.name;
  std::ranges::replace(name, ' ', joint);
  return name;
}

/// All commands and the global flags.
struct CommandTree {
  std::vector<Argument> global = {};
  std::vector<Command> commands = {};

  /// Returns the command with this name, or null.
  const Command* find(std::string_view name) const {
    for (const auto& command : commands) {
      if (command.name == name) return &command;
    }
    return nullptr;
  }
  /// Returns the command of two words that begins with `first`, or null.
  const Command* find(const Command& first, std::string_view second) const {
    return find(first.name + " " + std::string(second));
  }
};

}  // namespace shardtool::cli
