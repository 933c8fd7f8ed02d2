#include "cli/command_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>
#include <variant>

#include "cli/help_text.h"
#include "lib/base/error.h"
#include "lib/base/text.h"

namespace shardtool::cli {
namespace {

const Argument* find_in(const std::vector<Argument>& arguments, std::string_view name) {
  for (const auto& argument : arguments) {
    if (argument.positional()) continue;
    if (argument.name == name || argument.short_name == name) return &argument;
  }
  return nullptr;
}

std::vector<std::string> names_of_commands(const CommandTree& tree) {
  std::vector<std::string> names;
  for (const auto& command : tree.commands) names.push_back(command.name);
  return names;
}

/// Replaces the first word that is spelt much like a command by that command.
std::vector<std::string> with_nearest_command(std::span<const std::string> words,
                                              const CommandTree& tree) {
  std::vector<std::string> spelt(words.begin(), words.end());
  for (std::string& word : spelt) {
    const auto nearest = near_misses(word, names_of_commands(tree));
    if (nearest.empty()) continue;
    word = nearest.front();
    break;
  }
  return spelt;
}

class Parser {
 public:
  explicit Parser(const CommandTree& tree) : tree_(tree) {}

  CommandLine parse(std::span<const std::string> words) {
    for (const auto& word : words) take(word);
    if (waiting_ != nullptr) throw missing_value();
    return std::move(line_);
  }

  /// Parses the words that are understood. One that is typed for the value of a flag, and is none,
  /// is a word of its own.
  CommandLine parse_known(std::span<const std::string> words) {
    for (const auto& word : words) {
      if (!takes(word) && std::exchange(waiting_, nullptr) != nullptr) takes(word);
    }
    return std::move(line_);
  }

 private:
  bool takes(const std::string& word) {
    try {
      take(word);
      return true;
    } catch (const Error&) {
      return false;
    }
  }

  void take(const std::string& word) {
    if (waiting_ != nullptr) return take_value(word);
    const bool may_be_flag = !after_mark_ && word.size() > 1 && word[0] == '-';
    if (may_be_flag && word == "--") {
      after_mark_ = true;
    } else if (may_be_flag && word[1] == '-') {
      take_long(word);
    } else if (may_be_flag) {
      take_short(word);
    } else if (line_.command == nullptr) {
      take_command(word);
    } else if (const Command* longer = second_word(word)) {
      line_.command = longer;
    } else {
      take_positional(word);
    }
  }

  void add(const Argument& argument, std::string text = {}) {
    line_.arguments.push_back({&argument, std::move(text)});
  }

  void take_value(const std::string& word) {
    const bool is_flag = word.starts_with("--") && find(word) != nullptr;
    if (word.empty() || is_flag) throw missing_value();  // "": of a variable that is not set
    add(*std::exchange(waiting_, nullptr), word);
  }

  void take_command(const std::string& word) {
    line_.command = tree_.find(word);
    if (line_.command == nullptr) throw unknown_command(word);
    before_command_ = line_.arguments.size();
  }

  /// Returns the command of two words that ends with `word`, or null. It follows
  /// the first one at once.
  const Command* second_word(const std::string& word) const {
    if (line_.arguments.size() != before_command_ || after_mark_) return nullptr;
    return tree_.find(*line_.command, word);
  }

  /// Takes the positionals in their order; the last one takes all further words if it is
  /// repeatable.
  void take_positional(const std::string& word) {
    const auto& arguments = line_.command->arguments;
    size_t place = 0;
    for (const Argument& argument : arguments) {
      if (!argument.positional()) continue;
      if (place++ < positionals_ && !argument.repeatable()) continue;
      ++positionals_;
      return add(argument, word);
    }
    throw Error(ErrorCode::kUsage, fmt::format("'{}' does not take '{}'", line_.command->name,
                                               quote_for_message(word)))
        .help(fmt::format("usage: {}", usage_line(*line_.command)));
  }

  void take_long(const std::string& word) {
    const auto equals = word.find('=');
    const auto name = word.substr(0, equals);
    const Argument* flag = find(name);
    if (flag == nullptr) throw unknown_flag(name);
    see(*flag);
    const bool has_value = equals != std::string::npos;
    if (has_value && !flag->takes_value()) {
      throw Error(ErrorCode::kUsage, fmt::format("flag '{}' takes no value", name));
    }
    waiting_ = flag->takes_value() && (!has_value || equals + 1 == word.size()) ? flag : nullptr;
    if (has_value && waiting_ != nullptr) throw missing_value();
    if (waiting_ == nullptr) add(*flag, has_value ? word.substr(equals + 1) : "");
  }

  void take_short(const std::string& word) {
    for (size_t i = 1; i < word.size(); ++i) {
      const auto name = std::string{'-', word[i]};
      const Argument* flag = find(name);
      if (flag == nullptr) throw unknown_flag(name);
      see(*flag);
      if (!flag->takes_value()) {
        add(*flag);
      } else if (i + 1 == word.size()) {
        waiting_ = flag;
      } else {
        return add(*flag, word.substr(i + 1));
      }
    }
  }

  void see(const Argument& flag) {
    const bool once = flag.takes_value() && !flag.repeatable();
    if (once && std::find(seen_.begin(), seen_.end(), &flag) != seen_.end()) {
      throw Error(ErrorCode::kUsage, fmt::format("flag '{}' is given twice", flag.name));
    }
    seen_.push_back(&flag);
  }

  const Argument* find(std::string_view name) const {
    const auto found = line_.command == nullptr ? nullptr : find_in(line_.command->arguments, name);
    return found != nullptr ? found : find_in(tree_.global, name);
  }

  Error missing_value() const {
    return Error(ErrorCode::kUsage, fmt::format("flag '{}' needs a value", waiting_->name))
        .help(fmt::format("write {} {}", waiting_->name, waiting_->value));
  }

  Error unknown_command(const std::string& word) const {
    Error error(ErrorCode::kUsage,
                fmt::format("there is no command '{}'", quote_for_message(word)));
    const std::string hint = did_you_mean(word, names_of_commands(tree_));
    if (!hint.empty()) error.help(hint);
    return std::move(error).help("`shardtool help` lists the commands");
  }

  Error unknown_flag(const std::string& name) const {
    Error error(
        ErrorCode::kUsage,
        line_.command == nullptr
            ? fmt::format("there is no flag '{}' before a command", quote_for_message(name))
            : fmt::format("'{}' has no flag '{}'", line_.command->name, quote_for_message(name)));
    const std::string hint = flag_hint(name);
    if (!hint.empty()) error.help(hint);
    if (const auto owners = commands_with(name); hint.empty() && !owners.empty()) {
      error.help(fmt::format("it is a flag of: {}", owners));
    }
    const auto topic = line_.command == nullptr ? "" : " " + line_.command->name;
    return std::move(error).help(fmt::format("`shardtool help{}` lists the flags", topic));
  }

  /// Prefers "--to-mesh" for "--mesh" to what is spelt alike.
  std::string flag_hint(const std::string& name) const {
    const std::vector<std::string> names = flag_names();
    const std::string end = name.starts_with("--") ? name.substr(1) : name;
    const auto longer = std::ranges::find_if(names, [&](const std::string& flag) {
      return end.size() > 2 && flag.size() > name.size() && flag.ends_with(end);
    });
    if (longer != names.end()) return fmt::format("did you mean '{}'?", *longer);
    return did_you_mean(name, names);
  }

  std::vector<std::string> flag_names() const {
    std::vector<std::string> names;
    const auto collect = [&names](const std::vector<Argument>& arguments) {
      for (const auto& argument : arguments) {
        if (!argument.positional()) names.push_back(argument.name);
      }
    };
    if (line_.command != nullptr) collect(line_.command->arguments);
    collect(tree_.global);
    return names;
  }

  std::string commands_with(std::string_view flag) const {
    std::string owners;
    for (const auto& command : tree_.commands) {
      if (find_in(command.arguments, flag) == nullptr) continue;
      owners += (owners.empty() ? "" : ", ") + command.name;
    }
    return owners;
  }

  const CommandTree& tree_;
  CommandLine line_;
  const Argument* waiting_ = nullptr;  ///< a flag whose value is the next word
  bool after_mark_ = false;
  size_t before_command_ = 0;  ///< arguments before the command
  size_t positionals_ = 0;
  std::vector<const Argument*> seen_;
};

/// True if the word is `choice` with more letters in it: "bfloat16" is bf16. One or two letters
/// would be short for too many words.
bool is_short_for(std::string_view choice, std::string_view word) {
  constexpr size_t kShortest = 3;
  if (choice.size() < kShortest || !word.starts_with(choice.front())) return false;
  size_t found = 0;
  for (const char letter : word) found += found < choice.size() && choice[found] == letter ? 1 : 0;
  return found == choice.size();
}

/// Choices that may be meant by a value that is none of them, as a question; empty if there are
/// none.
std::string choice_hint(const std::string& value, const std::vector<std::string>& choices) {
  if (std::string hint = did_you_mean(value, choices); !hint.empty()) return hint;
  const auto meant = std::ranges::find_if(
      choices, [&](const std::string& choice) { return is_short_for(choice, value); });
  return meant == choices.end() ? "" : fmt::format("did you mean '{}'?", *meant);
}

void check_choice(const Argument& argument, const std::string& value) {
  const auto& choices = argument.choices;
  const auto is_in = [&value](const auto& list) { return std::ranges::count(list, value) > 0; };
  if (choices.empty() || is_in(choices) || is_in(argument.refused)) return;
  const bool is_action = choices.front() == "show";
  Error error(ErrorCode::kUsage,
              is_action ? fmt::format("there is no action '{}'", quote_for_message(value))
                        : fmt::format("{} '{}' is not one of {}", argument.name,
                                      quote_for_message(value), fmt::join(choices, ", ")));
  if (const auto hint = choice_hint(value, choices); !hint.empty()) {
    error.help(hint);
  } else if (is_action) {
    error.help(fmt::format("put the word before a name: show {}", quote_for_message(value)));
  }
  throw error;
}

std::string value_in_environment(const Argument& argument) {
  if (argument.environment.empty()) return "";
  const char* const set = std::getenv(argument.environment.c_str());
  return set == nullptr ? "" : set;
}

/// Values of an argument: those typed, else that of its environment variable.
std::vector<std::string> values_of(const Argument& argument, const CommandLine& line) {
  std::vector<std::string> values;
  for (const TypedArgument& typed : line.arguments) {
    if (typed.argument == &argument) values.push_back(typed.text);
  }
  std::string set = value_in_environment(argument);
  if (values.empty() && !set.empty()) values.push_back(std::move(set));
  return values;
}

void fill(const Argument& argument, const CommandLine& line) {
  const std::vector<std::string> values = values_of(argument, line);
  if (values.empty()) return;
  for (const auto& value : values) check_choice(argument, value);
  if (auto* const* flag = std::get_if<bool*>(&argument.target)) **flag = true;
  if (auto* const* one = std::get_if<std::string*>(&argument.target)) **one = values.back();
  if (auto* const* maybe = std::get_if<std::optional<std::string>*>(&argument.target)) {
    **maybe = values.back();
  }
  if (auto* const* all = std::get_if<std::vector<std::string>*>(&argument.target)) **all = values;
}

}  // namespace

CommandLine parse_words(std::span<const std::string> words, const CommandTree& tree) {
  return Parser(tree).parse(words);
}

void fill_targets(const CommandLine& line, const CommandTree& tree) {
  for (const Argument& argument : tree.global) fill(argument, line);
  if (line.command == nullptr) return;
  for (const Argument& argument : line.command->arguments) fill(argument, line);
}

const Command* fill_known_targets(std::span<const std::string> words, const CommandTree& tree) {
  CommandLine line = Parser(tree).parse_known(words);
  if (line.command == nullptr) {
    line = Parser(tree).parse_known(with_nearest_command(words, tree));
  }
  if (line.command == nullptr) return nullptr;
  for (const Argument& argument : line.command->arguments) {
    try {
      fill(argument, line);
    } catch (const Error&) {
      // The flag is as if it were not typed.
    }
  }
  return line.command;
}

std::string source_of(const std::string& flag, const CommandLine& line, const CommandTree& tree) {
  const auto is_typed = [&](const TypedArgument& typed) { return typed.argument->name == flag; };
  if (std::any_of(line.arguments.begin(), line.arguments.end(), is_typed)) return "";
  const auto find = [&](const std::vector<Argument>& arguments) -> std::string {
    for (const Argument& argument : arguments) {
      if (argument.name == flag && !value_in_environment(argument).empty()) {
        return argument.environment;
      }
    }
    return "";
  };
  const std::string global = find(tree.global);
  return global.empty() && line.command != nullptr ? find(line.command->arguments) : global;
}

}  // namespace shardtool::cli
