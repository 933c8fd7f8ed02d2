#include "cli/help_text.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "cli/command_line.h"
#include "cli/commands/commands.h"
#include "cli/format_page.h"
#include "cli/man_page.h"
#include "lib/base/error.h"
#include "lib/check/rules.h"

namespace shardtool::cli {
namespace {

std::vector<std::string> words_in(const std::string& line) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : line + " ") {
    if (c != ' ') {
      word += c;
    } else if (!word.empty()) {
      words.push_back(std::exchange(word, ""));
    }
  }
  return words;
}

/// Words after "shardtool" in an example, up to a redirection or a closing parenthesis.
std::vector<std::string> example_words(std::string line) {
  line.erase(0, line.find("shardtool"));
  line.resize(std::min(line.find_first_of(">)|"), line.size()));
  auto words = words_in(line);
  words.erase(words.begin());
  return words;
}

bool mentions(const std::string& text, std::string_view word) {
  return text.find(word) != std::string::npos;
}

TEST_CASE("every command has a summary, a description, and examples that parse") {
  const Commands commands;
  for (const auto& command : commands.tree().commands) {
    CAPTURE(command.name);
    CHECK_FALSE(command.summary.empty());
    CHECK(command.description.ends_with('.'));
    CHECK_FALSE(command.examples.empty());
    for (const auto& example : command.examples) {
      CAPTURE(example);
      const auto line = parse_words(example_words(example), commands.tree());
      CHECK(line.command == &command);
    }
  }
}

TEST_CASE("a text that lists the ends of torch files lists all of them") {
  const Commands commands;
  std::vector<std::string> texts;
  for (const auto& command : commands.tree().commands) {
    texts.push_back(command.description);
    for (const auto& argument : command.arguments) texts.push_back(argument.help);
  }
  for (const auto& row : error_table()) texts.emplace_back(row.explanation);
  for (const auto& row : check::rule_table()) texts.emplace_back(row.explanation);
  int lists = 0;
  for (const std::string& text : texts) {
    if (!mentions(text, ".pth")) continue;
    CAPTURE(text);
    for (const char* end : {".bin", ".pt,", ".ckpt"}) CHECK(mentions(text, end));
    ++lists;
  }
  CHECK(lists == 4);
}

TEST_CASE("no command has two arguments of one name, nor one of a global flag's") {
  const Commands commands;
  for (const auto& command : commands.tree().commands) {
    CAPTURE(command.name);
    std::multiset<std::string> names;
    auto arguments = command.arguments;
    append(arguments, commands.tree().global);
    for (const auto& argument : arguments) {
      names.insert(argument.name);
      if (!argument.short_name.empty()) names.insert(argument.short_name);
      CHECK_FALSE(argument.help.empty());
      CHECK((argument.takes_value() && !argument.positional()) == !argument.value.empty());
    }
    for (const auto& name : names) CHECK_MESSAGE(names.count(name) == 1, name);
  }
}

TEST_CASE("long help and man pages name every argument and every exit code") {
  const Commands commands;
  for (const auto& command : commands.tree().commands) {
    CAPTURE(command.name);
    const auto help = help_text(&command, commands.tree(), HelpLength::kLong);
    const auto page = man_page(&command, commands.tree());
    for (const auto& argument : command.arguments) {
      CHECK(help.find(argument.name) != std::string::npos);
      CHECK(page.find(argument.name) != std::string::npos);
    }
    for (const auto& [code, meaning] : kExitCodes) {
      CHECK(help.find(meaning) != std::string::npos);
      CHECK(page.find(meaning) != std::string::npos);
    }
    CHECK(help.find("examples:") < help.find("flags:"));
  }
}

TEST_CASE("flags of a group stand together in the long help and the man page") {
  const Command command{.name = "cut",
                        .arguments = {{.name = "--a", .help = "a"},
                                      {.name = "--b", .help = "b", .group = "op planner"},
                                      {.name = "--c", .help = "c"},
                                      {.name = "--d", .help = "d", .group = "op planner"}}};
  const auto help = help_text(&command, {}, HelpLength::kLong);
  CAPTURE(help);
  const auto at = [&help](std::string_view text) { return help.find(text); };
  CHECK(at("\nflags:\n  --a") < at("--c"));
  CHECK(at("--c") < at("\nop planner flags:\n  --b"));
  CHECK(at("--b") < at("--d"));
  CHECK(at("--d") != help.npos);
  CHECK(help_text(&command, {}, HelpLength::kShort).find("op planner") == help.npos);
  CHECK(man_page(&command, {}).find("# OP PLANNER FLAGS\n\n*--b*") != std::string::npos);
}

TEST_CASE("short help fits one screen") {
  const Commands commands;
  const auto lines = [](const std::string& text) {
    return std::count(text.begin(), text.end(), '\n');
  };
  CHECK(lines(help_text(nullptr, commands.tree(), HelpLength::kShort)) <= 32);
  for (const auto& command : commands.tree().commands) {
    CAPTURE(command.name);
    CHECK(lines(help_text(&command, commands.tree(), HelpLength::kShort)) <= 40);
  }
}

TEST_CASE("pages of formats are shown without the marks of their source") {
  const FormatPage page{"shardtool-mine.5",
                        "shardtool-mine(5)\n\n# NAME\n\n*a_name* \\[0\\] and _SRC_, *b*(1)++\n\n"
                        "```\n*as it is*\n```\n\n*key*\n\tA \"text\".\n\n"
                        "[[ file\n:[ what\n|  *x*\n:  y_z\n"};
  CHECK(page.name() == "mine");
  CHECK(plain_text(page) ==
        "shardtool-mine(5)\n\nNAME\n\na_name [0] and SRC, b(1)\n\n    *as it is*\n\nkey\n"
        "    A \"text\".\n\nfile\n    what\nx\n    y_z\n");
  std::vector<std::string_view> names;
  for (const FormatPage& known : format_pages()) names.push_back(known.name());
  CHECK(names == std::vector<std::string_view>{"formats", "graph", "manifest", "mapping", "ops"});
}

TEST_CASE("every command has a schema for its document") {
  const Commands commands;
  for (const auto& command : commands.tree().commands) {
    CHECK_MESSAGE(std::ifstream(SHARDTOOL_SCHEMAS "/" + joined_name(command, '_') + ".json").good(),
                  command.name);
  }
}

}  // namespace
}  // namespace shardtool::cli
