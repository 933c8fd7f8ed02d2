#include "cli/completion.h"

#include <doctest/doctest.h>

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
        for (const auto& choice : argument.choices) CHECK(script.find(choice) != std::string::npos);
      }
    }
  }
}

}  // namespace
}  // namespace shardtool::cli
