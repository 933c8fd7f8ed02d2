#include "cli/command_line.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <sstream>

#include "cli/commands/commands.h"
#include "lib/base/error.h"

namespace shardtool::cli {
namespace {

/// "--tp=4 -n SRC=a": the arguments in the order of the words.
std::string parsed(const std::vector<std::string>& words) {
  const Commands commands;
  const CommandLine line = parse_words(words, commands.tree());
  std::string text = line.command == nullptr ? "" : line.command->name;
  for (const TypedArgument& typed : line.arguments) {
    text += " " + typed.argument->name;
    if (typed.argument->takes_value()) text += "=" + typed.text;
  }
  return text;
}

std::vector<std::string> words_of(const std::string& name) {
  std::istringstream text(name);
  return {std::istream_iterator<std::string>(text), {}};
}

/// Message and help lines of the error, or empty if the words are valid.
std::string complaint(const std::vector<std::string>& words) {
  const Commands commands;
  try {
    parse_words(words, commands.tree());
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kUsage);
    std::string text = error.message();
    for (const auto& help : error.help_lines()) text += "\n" + help;
    return text;
  }
  return {};
}

TEST_CASE("a long flag that lacks one character is suggested, for every command and flag") {
  CHECK(rc::check("drop one character", [] {
    const Commands commands;
    const auto& command = *rc::gen::elementOf(commands.tree().commands);
    std::vector<std::string> flags;
    for (const auto& argument : command.arguments) {
      if (argument.name.size() > 5 && !argument.positional()) flags.push_back(argument.name);
    }
    RC_PRE(!flags.empty());
    const auto flag = *rc::gen::elementOf(flags);
    auto typo = flag;
    typo.erase(*rc::gen::inRange<size_t>(2, flag.size()), 1);
    const bool valid = std::find(flags.begin(), flags.end(), typo) != flags.end();
    RC_PRE(!valid);
    std::vector<std::string> words = words_of(command.name);
    words.insert(words.end(), {typo, "x"});
    RC_ASSERT(complaint(words).find("'" + flag + "'") != std::string::npos);
  }));
}

TEST_CASE("to tell others of it, a misspelt command is taken for the one that is suggested first") {
  const Commands commands;
  for (const Command& command : commands.tree().commands) {
    if (command.name.find(' ') != std::string::npos) continue;
    for (size_t dropped = 0; dropped < command.name.size(); ++dropped) {
      std::string typo = command.name;
      typo.erase(dropped, 1);
      CAPTURE(typo);
      const std::string said = complaint({typo});
      const Command* const taken = fill_known_targets(std::vector{typo}, commands.tree());
      REQUIRE(taken != nullptr);
      if (commands.tree().find(typo) == nullptr) {
        CHECK(said.find("did you mean '" + taken->name + "'") != std::string::npos);
      }
    }
  }
}

TEST_CASE("words stand for the command, its flags, their values and positionals") {
  CHECK(parsed({"split", "src", "-o", "out", "--tp=4", "-n"}) ==
        "split SRC=src --output=out --tp=4 --dry-run");
  CHECK(parsed({"--color", "never", "merge", "a", "[b,c]", "-j4"}) ==
        "merge --color=never SRC=a SRC=[b,c] --threads=4");
  CHECK(parsed({"inspect", "--", "--json"}) == "inspect SRC=--json");
  CHECK(parsed({"split", "src", "-o", "-5"}) == "split SRC=src --output=-5");
  CHECK(parsed({"split", "-qnj", "4", "-"}) == "split --quiet --dry-run --threads=4 SRC=-");
  CHECK(parsed({"diff", "a", "b"}) == "diff A=a B=b");
  CHECK(parsed({"--json"}) == " --json");
  CHECK(parsed({"--color=never", "plan", "search", "m", "--tp", "2"}) ==
        "plan search --color=never MODEL=m --tp=2");
  CHECK(parsed({"plan", "m", "search"}) == "plan SRC=m SRC=search");
  CHECK(parsed({"plan", "--", "search"}) == "plan SRC=search");
}

TEST_CASE("targets hold what was typed, else the environment, else their default") {
  const auto mode = [](const std::vector<std::string>& words) {
    const Commands commands;
    fill_targets(parse_words(words, commands.tree()), commands.tree());
    return commands.global().color.value_or("none");
  };
  ::unsetenv("SHARDTOOL_COLOR");
  CHECK(mode({"presets"}) == "none");
  ::setenv("SHARDTOOL_COLOR", "always", 1);
  CHECK(mode({"presets"}) == "always");
  CHECK(mode({"presets", "--color", "never"}) == "never");
  ::setenv("SHARDTOOL_COLOR", "", 1);
  CHECK(mode({"presets"}) == "none");
  ::setenv("SHARDTOOL_COLOR", "sometimes", 1);
  CHECK_THROWS_WITH_AS(mode({"presets"}), "--color 'sometimes' is not one of auto, always, never",
                       Error);
  ::unsetenv("SHARDTOOL_COLOR");
}

TEST_CASE("an unknown command is named with its near misses") {
  CHECK(complaint({"spilt"}).find("did you mean 'split'?") != std::string::npos);
  CHECK(complaint({"frobnicate"}).find("did you mean") == std::string::npos);
}

TEST_CASE("a flag of another command says whose it is") {
  CHECK(complaint({"merge", "x", "--rank", "1"}).find("it is a flag of: split, reshard") !=
        std::string::npos);
}

TEST_CASE("a flag without its value, or given twice, is refused by name") {
  CHECK(complaint({"split", "--mesh"}).find("flag '--mesh' needs a value") == 0);
  CHECK(complaint({"split", "--mesh="}).find("flag '--mesh' needs a value") == 0);
  CHECK(complaint({"split", "--mesh", "--json"}).find("flag '--mesh' needs a value") == 0);
  CHECK(complaint({"split", "--tp", "2", "--tp", "4"}).find("flag '--tp' is given twice") == 0);
  CHECK(complaint({"split", "--force=yes"}).find("flag '--force' takes no value") == 0);
  CHECK(complaint({"split", "--set", "a=1", "--set", "b=2"}).empty());
}

TEST_CASE(
    "words that are wrong do not hide how the processes of a launch meet, wherever they are") {
  using Words = std::vector<std::string>;
  const std::vector<Words> lines{
      {"validate", "parts", "--engine=tcp", "--meeting=place"},
      {"validate", "--demo=mlp", "--meeting=place", "--engine=tcp"},
      {"plan", "profile", "calibrate", "--meeting=place", "--engine=tcp"}};
  for (const Words& line : lines) {
    for (const std::string wrong : {"--no-such-flag", "--no-such-flag=1", "-Z",
                                    "--format=", "--format=none", "--quiet=yes"}) {
      for (size_t at = 0; at <= line.size(); ++at) {
        CAPTURE(wrong);
        CAPTURE(at);
        Words words = line;
        words.insert(words.begin() + static_cast<std::ptrdiff_t>(at), wrong);
        const Commands commands;
        const Command* const command = fill_known_targets(words, commands.tree());
        REQUIRE(command != nullptr);
        REQUIRE(command->meeting);
        const auto meeting = command->meeting();
        REQUIRE(meeting);
        CHECK(meeting->engine == comm::Engine::kTcp);
        CHECK(meeting->meeting.folder == "place");
      }
    }
  }
}

TEST_CASE(
    "a flag without its value takes no other flag for it, and commands without one meet none") {
  const auto meeting = [](const std::vector<std::string>& words) {
    const Commands commands;
    const Command* const command = fill_known_targets(words, commands.tree());
    return command != nullptr && command->meeting ? command->meeting() : std::nullopt;
  };
  const auto told = meeting({"validate", "parts", "--seed", "--meeting", "place", "--tokens"});
  REQUIRE(told);
  CHECK(told->meeting.folder == "place");
  CHECK_FALSE(meeting({"validate", "parts", "--no-such-flag", "--share", "0/2"}));
  CHECK_FALSE(meeting({"validate", "parts", "--no-such-flag", "--engine", "gpu-virtual"}));
  CHECK_FALSE(meeting({"plan", "model", "--no-such-flag"}));
  CHECK_FALSE(meeting({"plan", "profile", "list", "--no-such-flag"}));
  CHECK_FALSE(meeting({"split", "model", "--no-such-flag"}));
  CHECK_FALSE(meeting({"pigeons", "parts"}));
  CHECK_FALSE(meeting({}));
}

TEST_CASE("a positional too many is refused, unless the command takes any number") {
  CHECK(complaint({"split", "a", "b"}).find("'split' does not take 'b'") == 0);
  CHECK(complaint({"merge", "a", "b", "c"}).empty());
}

}  // namespace
}  // namespace shardtool::cli
