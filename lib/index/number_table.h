#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace shardtool::index {

/// Hash index from items to their numbers 0, 1, 2, ...: open addressing, four bytes a slot. The
/// owner stores the items and their hashes.
class NumberTable {
 public:
  /// Returns the number with this hash that is_equal(number) accepts, or nullopt.
  template <class IsEqual>
  std::optional<int> find(std::uint64_t hash, IsEqual is_equal) const {
    if (slots_.empty()) return std::nullopt;
    for (size_t at = hash & mask(); slots_[at] >= 0; at = (at + 1) & mask()) {
      if (is_equal(slots_[at])) return slots_[at];
    }
    return std::nullopt;
  }

  /// Appends the next number; hash_of(n) is the hash of number n, old or new.
  template <class HashOf>
  void append(HashOf hash_of) {
    constexpr size_t kLeast = 16;
    if (2 * (size_ + 1) > slots_.size()) {
      slots_.assign(slots_.empty() ? kLeast : 2 * slots_.size(), -1);
      for (size_t number = 0; number < size_; ++number) place(static_cast<int>(number), hash_of);
    }
    place(static_cast<int>(size_++), hash_of);
  }

 private:
  size_t mask() const { return slots_.size() - 1; }
  template <class HashOf>
  void place(int number, HashOf hash_of) {
    size_t at = hash_of(number) & mask();
    while (slots_[at] >= 0) at = (at + 1) & mask();
    slots_[at] = number;
  }

  std::vector<int> slots_;  ///< power of two in size, at most half used; -1: free
  size_t size_ = 0;
};

}  // namespace shardtool::index
