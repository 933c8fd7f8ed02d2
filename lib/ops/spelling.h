#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "lib/base/checked.h"
#include "lib/base/tensor_spec.h"
#include "lib/mapping/document/glob.h"

namespace shardtool::ops {

/// A glob without wildcards, expanded to all of its texts.
class Spelling {
 public:
  /// Returns the number that replaces a placeholder.
  using NumberOf = std::function<i64(const std::string& name)>;

  static constexpr size_t kMost = 256;

  /// Throws what Glob throws, and kLimit for more than kMost texts: n choices of two give 2^n.
  explicit Spelling(const std::string& glob);

  size_t count() const;
  /// Returns text number `choice`. The choices of earlier tokens vary slowest.
  std::string text(size_t choice, const NumberOf& number_of) const;
  /// Returns the text that shares the longest beginning, up to a dot, with the name of a tensor:
  /// the one that the checkpoint would use.
  std::string likeliest(const NumberOf& number_of, std::span<const TensorSpec> tensors) const;

 private:
  std::vector<mapping::GlobToken> tokens_;
};

}  // namespace shardtool::ops
