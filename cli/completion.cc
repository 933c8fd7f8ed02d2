#include "cli/completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "lib/base/text.h"

namespace shardtool::cli {
namespace {

/// Names of one word.
std::vector<std::string> command_names(const CommandTree& tree) {
  std::vector<std::string> names;
  for (const auto& command : tree.commands) {
    if (command.name.find(' ') == std::string::npos) names.push_back(command.name);
  }
  return names;
}

std::vector<std::string> flag_names(const std::vector<Argument>& arguments) {
  std::vector<std::string> names;
  for (const auto& argument : arguments) {
    if (argument.positional()) continue;
    names.push_back(argument.name);
    if (!argument.short_name.empty()) names.push_back(argument.short_name);
  }
  return names;
}

/// Splits "plan search" into its words; the second is empty for "plan".
std::pair<std::string, std::string> words_of(const Command& command) {
  const size_t space = command.name.find(' ');
  if (space == std::string::npos) return {command.name, ""};
  return {command.name.substr(0, space), command.name.substr(space + 1)};
}

/// Second words of the commands that begin with `first`.
std::vector<std::string> second_words(const std::string& first, const CommandTree& tree) {
  std::vector<std::string> words;
  for (const auto& command : tree.commands) {
    const auto [its_first, second] = words_of(command);
    if (its_first == first && !second.empty()) words.push_back(second);
  }
  return words;
}

/// Completions of the first positional argument: its values, second words of commands, or command
/// names for `help`.
std::vector<std::string> first_words(const Command& command, const CommandTree& tree) {
  if (command.name == "help") return command_names(tree);
  std::vector<std::string> words = second_words(command.name, tree);
  for (const Argument& argument : command.arguments) {
    if (!argument.positional()) continue;
    std::ranges::copy(argument.completions(), std::back_inserter(words));
    break;
  }
  for (const NextWords& next : command.next_words) {
    if (next.after.empty()) std::ranges::copy(next.words(), std::back_inserter(words));
  }
  return words;
}

/// Words of a command line, "presets show", and what may follow them.
using WordRow = std::pair<std::string, std::vector<std::string>>;

/// Returns what completion offers that is no flag, at every place where it knows any.
std::vector<WordRow> word_rows(const CommandTree& tree) {
  std::vector<WordRow> rows{{"", command_names(tree)}};
  for (const Command& command : tree.commands) {
    rows.push_back({command.name, first_words(command, tree)});
    for (const NextWords& next : command.next_words) {
      if (!next.after.empty()) rows.push_back({command.name + " " + next.after, next.words()});
    }
    const auto longer = second_words(command.name, tree);
    if (!longer.empty()) rows.push_back({"help " + command.name, longer});
  }
  std::erase_if(rows, [](const WordRow& row) { return row.second.empty(); });
  return rows;
}

// ---- bash

std::string bash_values(const std::string& command, const std::vector<Argument>& arguments) {
  std::string out;
  for (const auto& argument : arguments) {
    const auto values = fmt::format("{}", fmt::join(argument.completions(), " "));
    if (argument.positional() || values.empty()) continue;
    out += fmt::format("      {}{}) words=\"{}\" ;;\n", command, argument.name, values);
  }
  return out;
}

/// Names of the flags of any command that take a value, as a pattern of `case`.
std::string bash_value_flags(const CommandTree& tree) {
  std::set<std::string> names;
  const auto add = [&names](const std::vector<Argument>& arguments) {
    for (const Argument& argument : arguments) {
      if (argument.positional() || !argument.takes_value()) continue;
      names.insert(argument.name);
      if (!argument.short_name.empty()) names.insert(argument.short_name);
    }
  };
  add(tree.global);
  for (const Command& command : tree.commands) add(command.arguments);
  return fmt::format("{}", fmt::join(names, "|"));
}

std::string bash_case(std::string_view pattern, const std::vector<std::string>& words) {
  return fmt::format("      \"{}\") words=\"{}\" ;;\n", pattern, fmt::join(words, " "));
}

/// Returns the script, for which bash splits words at = and :, so that these stand between the
/// halves of --tp=4 and tp=4. Where it offers nothing, bash offers files.
std::string bash_script(const CommandTree& tree) {
  std::string longer;
  std::string values;
  std::string flags;
  std::string words;
  for (const auto& command : tree.commands) {
    values += bash_values(fmt::format("\"{}\":", command.name), command.arguments);
    if (!words_of(command).second.empty())
      longer += fmt::format("    \"{0} \"*) command=\"{0}\" ;;\n", command.name);
    flags += bash_case(command.name, flag_names(command.arguments));
  }
  for (const auto& [typed, next] : word_rows(tree)) words += bash_case(typed, next);
  values += bash_values("*:", tree.global);
  return fmt::format(R"(_shardtool() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}"
  local typed="" command="" flag="" joined="" words="" word
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    if [ "$word" = "=" ] || [ "$word" = ":" ]; then
      joined=yes
    elif [ -n "$flag$joined" ]; then
      flag="" joined=""
    else
      case "$word" in
        {}) flag="$word" ;;
        -*) ;;
        *) typed="$typed${{typed:+ }}$word" ;;
      esac
    fi
  done
  case "$current" in =|:) joined=yes current="" ;; esac
  case "$typed " in
{}    *) command="${{typed%% *}}" ;;
  esac
  if [ -n "$flag" ]; then
    case "$command:$flag" in
{}    esac
  elif [ -n "$joined" ]; then
    words=""
  elif [[ "$current" == -* ]]; then
    case "$command" in
{}    esac
    words="$words {}"
  else
    case "$typed" in
{}    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _shardtool shardtool
)",
                     bash_value_flags(tree), longer, values, flags,
                     fmt::join(flag_names(tree.global), " "), words);
}

// ---- zsh

/// Escapes text inside single quotes of an _arguments specification.
std::string zsh_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'')
      out += "'\\''";
    else if (c == '[' || c == ']' || c == ':' || c == '\\')
      out += std::string("\\") + c;
    else
      out += c;
  }
  return out;
}

std::string zsh_action(const Argument& argument) {
  const auto words = fmt::format("{}", fmt::join(argument.completions(), " "));
  if (words.empty()) return "_files";
  return argument.takes_file() ? fmt::format("{{compadd {}; _files}}", words)
                               : fmt::format("({})", words);
}

std::string zsh_arguments(const std::vector<Argument>& arguments) {
  std::string out;
  for (const auto& argument : arguments) {
    if (argument.positional()) {
      out += fmt::format(" \\\n        '{}:{}:{}'", argument.repeatable() ? "*" : "",
                         zsh_text(argument.name), zsh_action(argument));
      continue;
    }
    const auto value = argument.takes_value()
                           ? fmt::format(":{}:{}", zsh_text(argument.value), zsh_action(argument))
                           : "";
    for (const auto& name : {argument.name, argument.short_name}) {
      if (name.empty()) continue;
      out += fmt::format(" \\\n        '{}{}[{}]{}'", argument.repeatable() ? "*" : "", name,
                         zsh_text(argument.help), value);
    }
  }
  return out;
}

std::string zsh_script(const CommandTree& tree) {
  std::string commands;
  std::string longer;
  std::string cases;
  for (const auto& command : tree.commands) {
    const auto [first, second] = words_of(command);
    const std::string arguments =
        fmt::format("_arguments -s \"$global[@]\"{} ;;\n", zsh_arguments(command.arguments));
    if (!second.empty()) {
      longer += fmt::format("      '{} {}')\n        shift words; (( CURRENT-- ))\n        {}",
                            first, second, arguments);
      continue;
    }
    commands += fmt::format("    '{}:{}'\n", command.name, zsh_text(command.summary));
    cases += fmt::format("      '{} '*)\n        {}", first, arguments);
  }
  return fmt::format(R"(#compdef shardtool
_shardtool() {{
  local context state line
  local -a commands global
  commands=(
{}  )
  global=({}
  )
  _arguments -C "$global[@]" '1:command:->command' '*::argument:->argument'
  case "$state" in
    command) _describe command commands ;;
    argument)
      case "$line[1] $words[2]" in
{}{}      esac ;;
  esac
}}
compdef _shardtool shardtool
)",
                     commands, zsh_arguments(tree.global), longer, cases);
}

// ---- fish

std::string fish_quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

std::string fish_flag(std::string_view condition, const Argument& argument) {
  auto line = fmt::format("complete -c shardtool -n {}", fish_quoted(condition));
  if (argument.name.starts_with("--"))
    line += " -l " + argument.name.substr(2);
  else
    line += " -s " + argument.name.substr(1);
  if (!argument.short_name.empty()) line += " -s " + argument.short_name.substr(1);
  if (argument.takes_value()) line += " -r";
  const auto words = fmt::format("{}", fmt::join(argument.completions(), " "));
  if (!words.empty() && !argument.takes_file()) line += " -f";
  if (!words.empty()) line += " -a " + fish_quoted(words);
  return fmt::format("{} -d {}\n", line, fish_quoted(argument.help));
}

/// Offers of words that follow others of the command.
std::string fish_next_words(const std::string& inside, const Command& command) {
  std::string out;
  for (const NextWords& next : command.next_words) {
    if (next.after.empty()) continue;
    std::string condition = inside;
    for (const std::string_view word : split_at(next.after, " "))
      condition += fmt::format("; and __fish_seen_subcommand_from {}", word);
    out += fmt::format("complete -c shardtool -f -n {} -a {}\n", fish_quoted(condition),
                       fish_quoted(fmt::format("{}", fmt::join(next.words(), " "))));
  }
  return out;
}

std::string fish_script(const CommandTree& tree) {
  std::string out;
  for (const auto& argument : tree.global) out += fish_flag("true", argument);
  for (const auto& command : tree.commands) {
    const auto [first, second] = words_of(command);
    const std::string seen_first = "__fish_seen_subcommand_from " + first;
    const std::string inside =
        second.empty() ? seen_first
                       : fmt::format("{}; and __fish_seen_subcommand_from {}", seen_first, second);
    out += fmt::format("complete -c shardtool -f -n {} -a {} -d {}\n",
                       second.empty() ? "__fish_use_subcommand" : fish_quoted(seen_first),
                       second.empty() ? first : second, fish_quoted(command.summary));
    for (const auto& argument : command.arguments) {
      if (!argument.positional()) out += fish_flag(inside, argument);
    }
    if (const auto words = first_words(command, tree); !words.empty()) {
      out += fmt::format("complete -c shardtool -f -n {} -a {}\n", fish_quoted(inside),
                         fish_quoted(fmt::format("{}", fmt::join(words, " "))));
    }
    out += fish_next_words(inside, command);
  }
  return out;
}

}  // namespace

std::string completion_script(std::string_view shell, const CommandTree& tree) {
  if (shell == "bash") return bash_script(tree);
  return shell == "zsh" ? zsh_script(tree) : fish_script(tree);
}

}  // namespace shardtool::cli
