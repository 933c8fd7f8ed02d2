#pragma once

#include <functional>
#include <memory>
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
  i64 value = 0;     ///< of an integer
  std::string name;  ///< the config path, or the axis
};

/// How a product goes on: "*", "/" without remainder, "//" rounded down, "/^" rounded up, and "*_",
/// times a number that need not be an integer, rounded down.
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
      fallback;  ///< null: none; a pointer because it is recursive
  Place place;
};

/// Where an expression takes its names from.
struct SizeScope {
  const ModelConfig* config = nullptr;  ///< null when the checkpoint has none
  std::function<i64(const std::string& axis)> axis_size;
};

/// The axes whose sizes are being evaluated, each for the one before it. Documents are input: their
/// sizes may refer to each other in a circle, or in a row that is longer than the stack.
class SizeChain {
 public:
  static constexpr size_t kLongest = 100;

  /// An axis on the chain for as long as this lives.
  class Link {
   public:
    explicit Link(SizeChain& chain) : chain_(chain) {}
    ~Link() { chain_.axes_.pop_back(); }
    Link(const Link&) = delete;
    Link& operator=(const Link&) = delete;

   private:
    SizeChain& chain_;
  };
  /// Throws kSizeExpression, at the place of the axis' size, when the axis is on the chain already;
  /// kLimit when more than kLongest would be.
  Link enter(const std::string& axis, const Place& place);

 private:
  std::vector<std::string> axes_;
};

SizeExpression integer_size(i64 value);
/// Throws kMappingSchema.
SizeExpression parse_size(std::string_view text);

/// The value, which is at least 1; a config value that is one of several terms may be 0. The
/// fallback counts where a config value is absent (or null). Throws kSizeExpression for an absent
/// value, one that is no positive integer (behind "*_" no positive number), a division by "/" that
/// is inexact and an overflow; kConfig when there is no config at all; and what axis_size throws.
i64 evaluate(const SizeExpression& size, const SizeScope& scope);

/// "num_attention_heads = 30 (from config.json)" for every config value read; empty without any.
std::string config_values(const SizeExpression& size, const ModelConfig* config);

}  // namespace shardtool::mapping
