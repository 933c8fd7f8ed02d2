#include "cli/command_line.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>

#include "cli/commands/commands.h"
#include "lib/base/error.h"

namespace shardtool::cli {
namespace {

std::vector<Role> roles(const std::vector<std::string>& words) {
  const Commands commands;
  std::vector<Role> out;
  for (const auto& word : read_words(words, commands.tree())) out.push_back(word.role);
  return out;
}

/// Message and help lines of the error, or empty if the words are valid.
std::string complaint(const std::vector<std::string>& words) {
  const Commands commands;
  try {
    read_words(words, commands.tree());
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
    RC_ASSERT(complaint({command.name, typo, "x"}).find("'" + flag + "'") != std::string::npos);
  }));
}

TEST_CASE("words stand for the command, its flags, their values and positionals") {
  using enum Role;
  CHECK(roles({"split", "src", "-o", "out", "--tp=4", "-n"}) ==
        std::vector{kCommand, kPositional, kFlag, kValue, kFlag, kFlag});
  CHECK(roles({"--color", "never", "merge", "a", "b", "-j4"}) ==
        std::vector{kFlag, kValue, kCommand, kPositional, kPositional, kFlag});
  CHECK(roles({"inspect", "--", "--json"}) == std::vector{kCommand, kMark, kPositional});
  CHECK(roles({"split", "src", "-o", "-5"}) == std::vector{kCommand, kPositional, kFlag, kValue});
  CHECK(roles({"help", "split"}) == std::vector{kCommand, kPositional});
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

TEST_CASE("a positional too many is refused, unless the command takes any number") {
  CHECK(complaint({"split", "a", "b"}).find("'split' does not take 'b'") == 0);
  CHECK(complaint({"merge", "a", "b", "c"}).empty());
}

}  // namespace
}  // namespace shardtool::cli
