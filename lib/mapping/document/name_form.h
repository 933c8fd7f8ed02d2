#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/name_map.h"

namespace shardtool::mapping {

/// The name with every dotted part that is a number replaced by *: what tensors of one kind share,
/// and a glob that matches them.
std::string name_form(std::string_view name);
/// Whether a dotted part is a number.
bool has_number(std::string_view name);

/// A name apart from its numbers, the dotted parts of 1 to 18 digits.
class NumberedName {
 public:
  NumberedName() = default;
  explicit NumberedName(std::string_view name) { assign(name); }
  /// Becomes NumberedName(name), in the memory that it has.
  void assign(std::string_view name);

  /// The name with every number replaced by one of several digits: the same for all names that
  /// differ in their numbers only, and one of these names.
  const std::string& form() const { return form_; }
  /// Its numbers in order, views into the name.
  const std::vector<std::string_view>& numbers() const { return numbers_; }
  /// Which number of the form stands at [begin, begin + size) of it, if one does.
  std::optional<size_t> number_at(size_t begin, size_t size) const;

 private:
  friend class NameTemplate;
  std::string form_;
  std::vector<std::string_view> numbers_;
  std::vector<size_t> begins_;  ///< of the numbers in form_
};

/// A text made of pieces of a name, to be made again of any name of the same form.
class NameTemplate {
 public:
  void append(std::string_view literal);
  /// Appends form[begin, begin + size) of a name. False when that cuts a number apart, so that
  /// other names of the form may be taken apart elsewhere.
  bool append_piece(const NumberedName& name, size_t begin, size_t size);
  std::string fill(const NumberedName& name) const;

 private:
  struct Piece {
    std::string literal;
    std::optional<size_t> number;  ///< behind the literal
  };
  std::vector<Piece> pieces_;
};

/// Keeps what is found once for all names of a form. Models have few forms; where a checkpoint has
/// more than are kept, the table would only cost memory, and what is beyond it is found again.
template <class Found>
class ByForm {
 public:
  /// The value that `find` makes of the form, kept or made now; valid until the next call.
  template <class Find>
  const Found& of(const std::string& form, Find find) {
    constexpr size_t kMostKept = 1 << 12;
    if (const auto known = kept_.find(form); known != kept_.end()) return known->second;
    if (kept_.size() < kMostKept) return kept_.emplace(form, find()).first->second;
    return last_ = find();
  }

 private:
  NameMap<Found> kept_;
  Found last_ = {};
};

}  // namespace shardtool::mapping
