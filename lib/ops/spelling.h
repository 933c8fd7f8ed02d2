#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lib/base/checked.h"
#include "lib/mapping/document/glob.h"

namespace shardtool::ops {

/// A glob without wildcards: the texts that its choices and numbers stand for.
class Spelling {
 public:
  /// Returns the value of the number of this name.
  using NumberOf = std::function<i64(const std::string& name)>;

  static constexpr size_t kMost = 256;

  /// Throws what Glob throws, and kLimit for more than kMost texts: n choices of two make 2^n.
  explicit Spelling(const std::string& glob);

  size_t count() const;
  /// The choices of earlier tokens vary slowest.
  std::string text(size_t choice, const NumberOf& number_of) const;

 private:
  std::vector<mapping::GlobToken> tokens_;
};

}  // namespace shardtool::ops
