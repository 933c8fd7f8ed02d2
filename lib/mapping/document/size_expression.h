#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/error.h"
#include "lib/mapping/document/config.h"

namespace shardtool::mapping {

/// An integer, a config value or the size of an axis.
struct SizeAtom {
  enum class Kind { kInteger, kConfig, kAxis };
  Kind kind = Kind::kInteger;
  i64 value = 0;     ///< only of an integer
  std::string name;  ///< the config path, or the axis
};

/// Operators between the atoms of a product: "*"; "/" without remainder; "//" rounded down; "/^"
/// rounded up; and "*_", which multiplies by a number that may be a fraction, and rounds down.
enum class SizeOp { kTimes, kOver, kOverDown, kOverUp, kTimesDown };
struct SizeStep {
  SizeOp op = SizeOp::kTimes;
  SizeAtom atom;
};

/// Evaluated from left to right.
struct SizeProduct {
  SizeAtom first;
  std::vector<SizeStep> rest;
};

/// A size as a mapping writes it: 64, "config.hidden_size / config.num_attention_heads",
/// "config.a + config.b * 2", "config.a /^ 256 * 256", or {"ref": ..., "default": ...}.
///
///     sum := product ('+' product)*     product := atom (op atom)*
///     op := '*' | '/' | '//' | '/^' | '*_'     atom := digits | config.path | axes.name
struct SizeExpression {
  std::string text;
  std::vector<SizeProduct> sum;
  std::shared_ptr<const SizeExpression>
      fallback;  ///< null: none; a pointer because the type is recursive
  Place place;
};

/// The values of names in an expression.
struct SizeScope {
  const ModelConfig* config = nullptr;  ///< null if the checkpoint has none
  std::function<i64(const std::string& axis)> axis_size;
};

/// The axes whose sizes are being evaluated, each needed by the one before it. Mapping files are
/// untrusted input: their sizes may form a cycle, or a chain too long for the stack.
class SizeChain {
 public:
  static constexpr size_t kLongest = 100;

  /// Keeps an axis on the chain during its lifetime.
  class Link {
   public:
    explicit Link(SizeChain& chain) : chain_(chain) {}
    ~Link() { chain_.axes_.pop_back(); }
    Link(const Link&) = delete;
    Link& operator=(const Link&) = delete;

   private:
    SizeChain& chain_;
  };
  /// Adds an axis. Throws kSizeExpression at the place of its size if the axis is on the chain
  /// already, and kLimit if the chain would exceed kLongest.
  Link enter(const std::string& axis, const Place& place);

 private:
  std::vector<std::string> axes_;
};

SizeExpression integer_size(i64 value);
/// Parses a size expression. Throws kMappingSchema.
SizeExpression parse_size(std::string_view text);

/// Returns the value, which is at least 1. If there are several terms, one that is a config value
/// may be 0. Uses the fallback if a config value is absent or null. Throws kSizeExpression for an
/// absent value, a value that is no positive integer (after "*_": no positive number), a division
/// "/" with a remainder, and overflow. Throws kConfig if there is no config, and what axis_size
/// throws.
i64 evaluate(const SizeExpression& size, const SizeScope& scope);

/// Adds the axes that the expression and its fallback refer to.
void add_axes(const SizeExpression& size, std::set<std::string>& names);

/// Lists the config values that the expression reads: "num_attention_heads = 30 (from
/// config.json)"; empty if it reads none.
std::string config_values(const SizeExpression& size, const ModelConfig* config);

}  // namespace shardtool::mapping
