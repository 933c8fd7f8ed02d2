#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/checked.h"

namespace shardtool::format::torch {

/// Kinds of values that a pickle can hold. An object is a callable with its arguments: the call is
/// recorded and never made.
enum class ValueKind : std::uint8_t {
  kNone,
  kBool,
  kInteger,
  kBigInteger,  ///< more than 64 bits
  kFloat,
  kText,
  kBytes,
  kTuple,
  kList,
  kSet,
  kDict,
  kGlobal,      ///< a name of a module: a class, a function, a dtype
  kObject,      ///< REDUCE or NEWOBJ: callable, arguments, state, elements, entries
  kPersistent,  ///< an id that stands for data outside the pickle, such as a storage
};

std::string_view to_string(ValueKind kind);

class PickleTree;

/// Reference to a value of a PickleTree, which must outlive it. Copying is cheap. Values can be
/// shared and can contain themselves: code that walks a tree must bound its depth and its steps.
class PickleValue {
 public:
  PickleValue(const PickleTree& tree, std::uint32_t id) : tree_(&tree), id_(id) {}

  ValueKind kind() const;
  bool is(ValueKind wanted) const { return kind() == wanted; }
  /// True for the name `name` of module `module`.
  bool is_global(std::string_view module, std::string_view name) const;
  /// True for a text with this content.
  bool is_text(std::string_view text) const;
  /// Identifies the value inside its tree: shared values have one id.
  std::uint32_t id() const { return id_; }

  bool boolean() const;           ///< kBool
  i64 integer() const;            ///< kInteger
  double number() const;          ///< kFloat
  std::string_view text() const;  ///< kText, kBytes, kBigInteger (two's complement, little-endian)
  std::string_view module() const;  ///< kGlobal
  std::string_view name() const;    ///< kGlobal

  /// Elements of a tuple, list or set, and what was appended to an object.
  size_t size() const;
  PickleValue operator[](size_t i) const;

  /// Entries of a dict, and the items that were set on an object, in the order of the pickle.
  size_t entries() const;
  PickleValue key(size_t i) const;
  PickleValue value(size_t i) const;
  /// Value of the last entry with this text as its key, as Python keeps it. Looks for a key once in
  /// a large dict; threads must not share a tree.
  std::optional<PickleValue> find(std::string_view key) const;

  PickleValue callable() const;              ///< kObject
  PickleValue arguments() const;             ///< kObject: usually a tuple
  std::optional<PickleValue> state() const;  ///< kObject: the operand of BUILD
  PickleValue persistent_id() const;         ///< kPersistent

 private:
  const PickleTree* tree_;
  std::uint32_t id_;
};

/// The values of one pickle. Texts point into the pickle, which the tree owns.
class PickleTree {
 public:
  PickleValue root() const { return {*this, root_}; }
  /// Number of values. `at` gives each of them once, in the order of the pickle.
  size_t size() const { return nodes_.size(); }
  PickleValue at(size_t i) const { return {*this, static_cast<std::uint32_t>(i)}; }

 private:
  friend class PickleValue;
  friend class Unpickler;
  using Id = std::uint32_t;

  struct Node {
    ValueKind kind = ValueKind::kNone;
    std::uint32_t count = 0;    ///< bytes of a text, elements of a tuple
    std::uint64_t payload = 0;  ///< number, offset in text_, place in slots_ or in lists_
  };
  /// Places of an object's parts in slots_. A list is stored as its number plus one; 0 is none.
  enum ObjectSlot : std::uint32_t { kCallable, kArguments, kState, kElements, kEntries, kSlots };
  static constexpr Id kNoValue = 0xffffffff;

  const Node& node(Id id) const { return nodes_[id]; }
  /// List of the elements, or of keys and values in turn. Null if the value has none.
  const std::vector<Id>* list(const Node& node, ObjectSlot which) const;

  std::string text_;
  std::vector<Node> nodes_;
  std::vector<Id> slots_;
  std::vector<std::vector<Id>> lists_;
  Id root_ = 0;
  /// Results of PickleValue::find in large dicts, by dict and key: many values may share a dict.
  mutable std::map<std::pair<Id, std::string>, Id> found_;
};

}  // namespace shardtool::format::torch
