#include "cli/completion.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "cli/commands/commands.h"

namespace shardtool::cli {
namespace {

TEST_CASE("every shell's script knows every command, long flag and choice") {
  const Commands commands;
  for (const auto* shell : {"bash", "zsh", "fish"}) {
    CAPTURE(shell);
    const auto script = completion_script(shell, commands.tree());
    for (const auto& command : commands.tree().commands) {
      const std::string last = command.name.substr(command.name.rfind(' ') + 1);
      CHECK(script.find(last) != std::string::npos);
      for (const auto& argument : command.arguments) {
        if (argument.positional()) continue;
        CAPTURE(argument.name);
        const bool bare = std::string(shell) == "fish";  // fish: -l name, without the dashes
        CHECK(script.find(bare ? "-l " + argument.name.substr(2) : argument.name) !=
              std::string::npos);
        for (const auto& value : argument.completions())
          CHECK(script.find(value) != std::string::npos);
      }
    }
  }
}

TEST_CASE("values of an argument that takes any are offered, and files beside them if it does") {
  CommandTree tree;
  std::string given;
  const auto words = [] { return std::vector<std::string>{"alpha", "beta"}; };
  tree.commands = {
      {.name = "cut",
       .arguments = {
           {.name = "--kind", .value = "NAME", .target = &given, .offers = words},
           {.name = "--shape", .value = "NAME|FILE", .target = &given, .offers = words}}}};
  const auto has = [&](const char* shell, const char* text) {
    return completion_script(shell, tree).find(text) != std::string::npos;
  };
  CHECK(has("bash", R"("cut":--kind) words="alpha beta")"));
  CHECK(has("bash", R"("cut":--shape) words="alpha beta")"));
  CHECK(has("zsh", ":NAME:(alpha beta)"));
  CHECK(has("zsh", ":NAME|FILE:{compadd alpha beta; _files}"));
  CHECK(has("fish", "-l kind -r -f -a 'alpha beta'"));
  CHECK(has("fish", "-l shape -r -a 'alpha beta'"));
}

TEST_CASE("a word is offered after those that it follows, and nowhere else") {
  CommandTree tree;
  std::vector<std::string> given;
  using Words = std::vector<std::string>;
  tree.commands = {
      {.name = "cut",
       .arguments = {{.name = "WHAT", .target = &given, .choices = {"all", "show"}}},
       .next_words = {{"", [] { return Words{"some"}; }}, {"show", [] {
                                                             return Words{"alpha", "beta"};
                                                           }}}}};
  const auto has = [&](const char* shell, const char* text) {
    return completion_script(shell, tree).find(text) != std::string::npos;
  };
  CHECK(has("bash", R"("cut") words="all show some")"));
  CHECK(has("bash", R"("cut show") words="alpha beta")"));
  CHECK(has("fish", "__fish_seen_subcommand_from cut' -a 'all show some'"));
  CHECK(has("fish",
            "__fish_seen_subcommand_from cut; and __fish_seen_subcommand_from show' -a "
            "'alpha beta'"));
}

TEST_CASE("built-in mappings, profiles and written layouts are offered") {
  const Commands commands;
  const auto offered = [&](const char* command, std::string_view flag) {
    const auto& all = commands.tree().find(command)->arguments;
    return std::ranges::find(all, flag, &Argument::name)->completions();
  };
  CHECK(std::ranges::count(offered("split", "--preset"), "llama") == 1);
  CHECK(std::ranges::count(offered("plan", "--profile"), "h100-sxm") == 1);
  CHECK(std::ranges::count(offered("split", "--layout"), "vllm") == 1);
  CHECK(std::ranges::count(offered("split", "--layout"), "megatron") == 0);
}

}  // namespace
}  // namespace shardtool::cli
