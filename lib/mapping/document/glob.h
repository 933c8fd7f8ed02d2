#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shardtool::mapping {

/// One token of a glob.
struct GlobToken {
  enum class Kind {
    kLiteral,  ///< the text itself
    kPart,     ///< `*`: any number of characters except dots, also none
    kAny,      ///< `**`: any number of characters
    kChoice,   ///< `{a,b}`: one of the choices, which may be empty
    kNumber,   ///< `<name>`: a decimal integer of at most 18 digits, captured
  };
  Kind kind = Kind::kLiteral;
  std::string text;                  ///< the literal, or the name of the number
  std::vector<std::string> choices;  ///< the literals of kChoice

  bool operator==(const GlobToken&) const = default;
};

/// A pattern over whole tensor names: "model.layers.<layer>.self_attn.{k,v}_proj.weight".
///
/// G1 a number's name is an identifier and occurs once
class Glob {
 public:
  /// Throws kMappingSchema for an unclosed or nested brace, a wildcard inside a brace, and a bad
  /// number name.
  explicit Glob(std::string_view text);

  const std::string& text() const { return text_; }
  std::span<const GlobToken> tokens() const { return tokens_; }
  /// The tokens that are not literals.
  std::vector<GlobToken> wildcards() const;
  /// The glob in RE2 syntax; a number is the named group (?P<name>...).
  std::string regex() const;
  /// The glob in RE2 syntax with one group per wildcard, in order.
  std::string regex_of_groups() const;
  /// Returns true if names that differ only in numbers (NumberedName) all match or all fail to
  /// match, with corresponding texts for the wildcards. False if a wildcard may end inside a
  /// number.
  bool takes_any_number() const;
  /// Returns the glob with its wildcards replaced by these texts, in order.
  std::string fill(std::span<const std::string> wildcard_texts) const;

 private:
  std::string text_;
  std::vector<GlobToken> tokens_;
};

/// Returns a function that tests whether a name matches the glob; the glob is compiled once.
std::function<bool(std::string_view)> glob_filter(std::string_view glob);

}  // namespace shardtool::mapping
