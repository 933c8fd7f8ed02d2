#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "shardtool/base/error.h"
#include "shardtool/mapping/config.h"

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
