#pragma once

#include <string>
#include <utility>
#include <vector>

#include "lib/mapping/document/glob.h"
#include "lib/mapping/document/name_form.h"

namespace shardtool::mapping {

/// A class of a user's own: a name, and the tensors that are of it.
struct OwnClass {
  std::string name;
  std::string glob;
};

/// What a tensor is to a memory report: an embedding, attention, a norm. The built-in classes are
/// data (facts/tensor_classes.json); a user's own are asked first, in their order.
///
/// C1 names are unique; the last one is "other"
class TensorClasses {
 public:
  /// Throws kMappingSchema for a glob that cannot be read, kUsage for a name that is empty or
  /// "other".
  explicit TensorClasses(const std::vector<OwnClass>& own = {});

  /// A user's own classes, then the built-in ones, "other" last.
  const std::vector<std::string>& names() const { return names_; }
  /// The position in names() of the tensor's class: of the first glob that matches, else "other".
  /// Built-in globs are asked once for all names that differ in numbers only.
  int of(const std::string& tensor);

 private:
  using Matches = std::function<bool(std::string_view)>;
  struct Entry {
    int number = 0;
    std::vector<Matches> match;
    std::vector<Matches> except;
  };

  int number_of(const std::string& name);
  int built_in(std::string_view form) const;

  std::vector<std::string> names_;
  std::vector<std::pair<int, Matches>> own_;
  std::vector<Entry> entries_;
  ByForm<int> known_forms_;
};

}  // namespace shardtool::mapping
