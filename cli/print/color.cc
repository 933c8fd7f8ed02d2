#include "cli/print/color.h"

#include <fmt/format.h>

#include <cstdlib>

namespace shardtool::cli {
Environment process_environment() {
  return [](const char* name) -> std::optional<std::string> {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') return std::nullopt;
    return value;
  };
}

bool use_color(std::string_view when, const Environment& environment, bool is_terminal) {
  if (when == "always") return true;
  if (when == "never") return false;
  if (environment("FORCE_COLOR") || environment("CLICOLOR_FORCE")) return true;
  if (environment("NO_COLOR") || environment("TERM") == "dumb") return false;
  return is_terminal;
}

std::string Style::wrap(std::string_view code, std::string_view text) const {
  const bool plain = !enabled_ || text.empty();
  return plain ? std::string(text) : fmt::format("\x1b[{}m{}\x1b[0m", code, text);
}

}  // namespace shardtool::cli
