#include "cli/completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

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
  if (auto words = second_words(command.name, tree); !words.empty()) return words;
  const auto first = std::find_if(command.arguments.begin(), command.arguments.end(),
                                  [](const Argument& argument) { return argument.positional(); });
  return first == command.arguments.end() ? std::vector<std::string>{} : first->completions();
}

// ---- bash

std::string bash_values(const std::string& command, const std::vector<Argument>& arguments) {
  std::string out;
  for (const auto& argument : arguments) {
    const auto values = fmt::format("{}", fmt::join(argument.completions(), " "));
    if (argument.positional() || values.empty()) continue;
    out += fmt::format("    {}{}) words=\"{}\" ;;\n", command, argument.name, values);
  }
  return out;
}

std::string bash_script(const CommandTree& tree) {
  std::string values;
  std::string words;
  std::string longer;
  for (const auto& command : tree.commands) {
    values += bash_values(fmt::format("\"{}\":", command.name), command.arguments);
    if (!words_of(command).second.empty())
      longer += fmt::format("    \"{0} \"*) command=\"{0}\" ;;\n", command.name);
    words += fmt::format("      \"{}\") words=\"{} {}\" ;;\n", command.name,
                         fmt::join(first_words(command, tree), " "),
                         fmt::join(flag_names(command.arguments), " "));
  }
  values += bash_values("*:", tree.global);
  return fmt::format(R"(_shardtool() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}"
  local command="" words="" word
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case "$word" in -*) ;; *) command="$command${{command:+ }}$word" ;; esac
  done
  case "$command " in
{}    *) command="${{command%% *}}" ;;
  esac
  case "$command:$previous" in
{}  esac
  if [ -z "$words" ]; then
    case "$command" in
      "") words="{}" ;;
{}    esac
    words="$words {}"
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _shardtool shardtool
)",
                     longer, values, fmt::join(command_names(tree), " "), words,
                     fmt::join(flag_names(tree.global), " "));
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
  }
  return out;
}

}  // namespace

std::string completion_script(std::string_view shell, const CommandTree& tree) {
  if (shell == "bash") return bash_script(tree);
  return shell == "zsh" ? zsh_script(tree) : fish_script(tree);
}

}  // namespace shardtool::cli
