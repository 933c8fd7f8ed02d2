#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace shardtool::cli {

/// Reads an environment variable; returns nullopt if it is unset or empty.
using Environment = std::function<std::optional<std::string>(const char* name)>;
Environment process_environment();

/// Returns true if a stream gets colours. The first of these that is set decides: --color or
/// SHARDTOOL_COLOR ("always", "never"; "auto" and empty do not decide), FORCE_COLOR or
/// CLICOLOR_FORCE, NO_COLOR, TERM=dumb. The default is colours on a terminal.
bool use_color(std::string_view when, const Environment& environment, bool is_terminal);

/// Text attributes of one stream; returns text unchanged if colours are off.
class Style {
 public:
  /// All escape sequences that the functions below emit.
  static constexpr auto kSequences = std::to_array<std::string_view>(
      {"\x1b[0m", "\x1b[1m", "\x1b[1;31m", "\x1b[1;33m", "\x1b[1;34m", "\x1b[1;36m"});

  explicit Style(bool enabled) : enabled_(enabled) {}

  bool enabled() const { return enabled_; }
  std::string bold(std::string_view text) const { return wrap("1", text); }
  std::string red(std::string_view text) const { return wrap("1;31", text); }
  std::string yellow(std::string_view text) const { return wrap("1;33", text); }
  std::string blue(std::string_view text) const { return wrap("1;34", text); }
  std::string cyan(std::string_view text) const { return wrap("1;36", text); }

 private:
  std::string wrap(std::string_view code, std::string_view text) const;

  bool enabled_;
};

}  // namespace shardtool::cli
