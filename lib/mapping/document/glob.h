#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shardtool::mapping {

/// A piece of a glob.
struct GlobToken {
  enum class Kind {
    kLiteral,  ///< the text itself
    kPart,     ///< `*`: any run of characters but dots, also an empty one
    kAny,      ///< `**`: any run of characters
    kChoice,   ///< `{a,b}`: one of the choices, which may be empty
    kNumber,   ///< `<name>`: a decimal integer of at most 18 digits, captured
  };
  Kind kind = Kind::kLiteral;
  std::string text;                  ///< of a literal, or the name of a number
  std::vector<std::string> choices;  ///< literals

  bool operator==(const GlobToken&) const = default;
};

/// A pattern over whole tensor names: "model.layers.<layer>.self_attn.{k,v}_proj.weight".
///
/// G1 a number's name is an identifier and occurs once
class Glob {
 public:
  /// Throws kMappingSchema: an unclosed or nested brace, a wildcard inside one, a bad number name.
  explicit Glob(std::string_view text);

  const std::string& text() const { return text_; }
  std::span<const GlobToken> tokens() const { return tokens_; }
  /// The tokens that are no literals.
  std::vector<GlobToken> wildcards() const;
  /// The same language in RE2 syntax; a number is the named group (?P<name>...).
  std::string regex() const;
  /// The same with every wildcard a group, in order.
  std::string regex_of_groups() const;
  /// Whether names that differ in numbers only (NumberedName) match alike, and their wildcards take
  /// corresponding texts unless one ends inside a number.
  bool takes_any_number() const;
  /// The name that this glob matches where its wildcards take these texts, in order.
  std::string fill(std::span<const std::string> wildcard_texts) const;

 private:
  std::string text_;
  std::vector<GlobToken> tokens_;
};

/// Whether a name matches the glob, as a function to be called many times.
std::function<bool(std::string_view)> glob_filter(std::string_view glob);

}  // namespace shardtool::mapping
