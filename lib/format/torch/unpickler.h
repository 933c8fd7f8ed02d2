#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/format/torch/opcodes.h"
#include "lib/format/torch/pickle_tree.h"
#include "lib/format/torch/unpickle.h"

namespace shardtool::format::torch {

/// Error about the opcode at offset `at` of a pickle.
Error pickle_error(const PickleOrigin& origin, ErrorCode code, const std::string& message,
                   size_t at);

/// The stack machine of pickles. It fills a tree.
class Unpickler {
 public:
  Unpickler(std::string text, const PickleOrigin& origin);
  PickleTree run();

 private:
  static constexpr size_t kFirstInteger = 4;
  static constexpr size_t kSmallIntegers = 256;

  using Id = PickleTree::Id;
  using Node = PickleTree::Node;
  using Apply = void (Unpickler::*)(const Operand&);
  struct Action {
    std::uint8_t byte;
    Apply apply;
  };

  static const Action kActions[];  ///< ends with a row without a function
  /// Returns the function of an opcode; null for those that are refused.
  static Apply action(std::uint8_t byte);
  void step();

  Error error(ErrorCode code, const std::string& message) const {
    return pickle_error(origin_, code, message, opcode_at_);
  }
  Error malformed(const std::string& message) const {
    return error(ErrorCode::kMalformed, message).note("opcode", std::string(opcode_->name));
  }

  // memory
  void spend(size_t bytes);
  Id add(Node node);
  std::uint64_t add_slots(std::span<const Id> ids);
  std::uint64_t add_list();

  // the stack
  void push(Id id);
  void push(Node node) { push(add(node)); }
  void push_constant(size_t number, Node node);
  Id pop();
  Id top() const;
  size_t items_above_mark() const;
  size_t open_mark() const { return marks_.empty() ? 0 : marks_.back(); }
  void drop_to_mark();

  // opcodes
  void protocol(const Operand& operand);
  void frame(const Operand& operand);
  void stop(const Operand& operand);
  void mark(const Operand& operand);
  void none(const Operand&) { push_constant(0, {ValueKind::kNone, 0, 0}); }
  void new_false(const Operand&) { push_constant(1, {ValueKind::kBool, 0, 0}); }
  void new_true(const Operand&) { push_constant(2, {ValueKind::kBool, 0, 1}); }
  void unsigned_integer(const Operand& operand);
  void signed_integer(const Operand& operand);
  void long_integer(const Operand& operand);
  void binary_float(const Operand& operand);
  void text(const Operand& operand) { push(text_node(ValueKind::kText, operand.text)); }
  void bytes(const Operand& operand) { push(text_node(ValueKind::kBytes, operand.text)); }
  void global(const Operand& operand);
  void stack_global(const Operand& operand);
  void empty_tuple(const Operand&) { push_constant(3, {ValueKind::kTuple, 0, 0}); }
  void tuple1(const Operand&) { tuple_of(1); }
  void tuple2(const Operand&) { tuple_of(2); }
  void tuple3(const Operand&) { tuple_of(3); }
  void tuple(const Operand& operand);
  void empty_list(const Operand&) { push({ValueKind::kList, 0, add_list()}); }
  void empty_dict(const Operand&) { push({ValueKind::kDict, 0, add_list()}); }
  void empty_set(const Operand&) { push({ValueKind::kSet, 0, add_list()}); }
  void frozen_set(const Operand& operand);
  void append(const Operand& operand);
  void appends(const Operand& operand);
  void add_items(const Operand& operand);
  void set_item(const Operand& operand);
  void set_items(const Operand& operand);
  void put(const Operand& operand) { memorize(operand.number); }
  void memoize(const Operand&) { memorize(memo_.size()); }
  void get(const Operand& operand);
  void persistent(const Operand& operand);
  void call(const Operand& operand);
  void build(const Operand& operand);

  Node text_node(ValueKind kind, std::string_view text) const;
  void push_global(Id module, Id name);
  void tuple_of(size_t count);
  void memorize(std::uint64_t index);
  std::vector<Id>& list_of(Id target, PickleTree::ObjectSlot which);
  void move_to(std::vector<Id>& list, size_t count);

  PickleOrigin origin_;
  PickleTree tree_;
  std::string_view text_;
  size_t at_ = 0;         ///< next byte
  size_t opcode_at_ = 0;  ///< offset of the opcode being applied
  const Opcode* opcode_ = nullptr;
  bool is_done_ = false;
  std::vector<Id> stack_;
  std::vector<size_t> marks_;  ///< heights of the stack
  std::vector<Id> memo_;
  /// None, False, True, () and small integers, once they occur.
  std::array<Id, kFirstInteger + kSmallIntegers> constants_;
  i64 spent_ = 0;
  i64 most_ = 0;
};

}  // namespace shardtool::format::torch
