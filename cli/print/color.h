#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace shardtool::cli {

/// Reads an environment variable; nothing when unset or empty.
using Environment = std::function<std::optional<std::string>(const char* name)>;
Environment process_environment();

/// Whether a stream gets colours. The first that speaks decides: --color or SHARDTOOL_COLOR
/// ("always", "never"; "auto" and empty leave it open), FORCE_COLOR or CLICOLOR_FORCE, NO_COLOR,
/// TERM=dumb, and last whether the stream is a terminal.
bool use_color(std::string_view when, const Environment& environment, bool is_terminal);

/// Text attributes of one stream; the identity where colours are off.
class Style {
 public:
  /// The sequences that the functions below put around a text.
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
