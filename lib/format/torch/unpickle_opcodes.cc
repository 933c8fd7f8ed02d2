#include <fmt/format.h>

#include "lib/base/text.h"
#include "lib/format/torch/unpickler.h"

// The opcodes that are accepted, one function each.

namespace shardtool::format::torch {
namespace {

constexpr int kMinProtocol = 2;
constexpr int kMaxProtocol = 5;

}  // namespace

void Unpickler::protocol(const Operand& operand) {
  const auto number = static_cast<int>(operand.number);
  if (opcode_at_ != 0) throw malformed("the pickle names its protocol twice");
  if (number >= kMinProtocol && number <= kMaxProtocol) return;
  throw error(ErrorCode::kUnsupported, "the protocol of the pickle is not supported")
      .note("found", std::to_string(number))
      .note("expected", fmt::format("{} to {}", kMinProtocol, kMaxProtocol));
}

void Unpickler::frame(const Operand& operand) {
  if (operand.number > text_.size() - at_) throw malformed("a frame leaves the pickle");
}

void Unpickler::stop(const Operand&) {
  if (!marks_.empty() || stack_.size() != 1) {
    throw malformed("the pickle does not end with one value")
        .note("found", fmt::format("{} values, {} open marks", stack_.size(), marks_.size()));
  }
  if (at_ != text_.size()) {
    throw malformed("bytes follow the end of the pickle")
        .note("found", plural(static_cast<i64>(text_.size() - at_), "byte"));
  }
  tree_.root_ = stack_.back();
  is_done_ = true;
}

void Unpickler::mark(const Operand&) {
  if (marks_.size() == marks_.capacity()) spend(sizeof(size_t) * (marks_.size() + 1));
  marks_.push_back(stack_.size());
}

void Unpickler::unsigned_integer(const Operand& operand) {
  if (operand.number < kSmallIntegers) {
    return push_constant(kFirstInteger + operand.number, {ValueKind::kInteger, 0, operand.number});
  }
  push({ValueKind::kInteger, 0, operand.number});
}

void Unpickler::signed_integer(const Operand& operand) {
  const auto value = static_cast<std::int32_t>(static_cast<std::uint32_t>(operand.number));
  push({ValueKind::kInteger, 0, static_cast<std::uint64_t>(i64{value})});
}

void Unpickler::long_integer(const Operand& operand) {
  const std::string_view digits = operand.text;
  if (digits.size() > sizeof(i64)) return push(text_node(ValueKind::kBigInteger, digits));
  const bool is_negative = !digits.empty() && (digits.back() & 0x80) != 0;
  std::uint64_t number = is_negative ? ~std::uint64_t{0} : 0;
  for (size_t i = digits.size(); i-- > 0;) {
    number = number << 8 | static_cast<unsigned char>(digits[i]);
  }
  push({ValueKind::kInteger, 0, number});
}

void Unpickler::binary_float(const Operand& operand) {
  push({ValueKind::kFloat, 0, __builtin_bswap64(operand.number)});  // big-endian
}

Unpickler::Node Unpickler::text_node(ValueKind kind, std::string_view text) const {
  return {kind, static_cast<std::uint32_t>(text.size()),
          static_cast<std::uint64_t>(text.data() - text_.data())};
}

void Unpickler::push_global(Id module, Id name) {
  const Id parts[] = {module, name};
  push({ValueKind::kGlobal, 0, add_slots(parts)});
}

void Unpickler::global(const Operand& operand) {
  const Id module = add(text_node(ValueKind::kText, operand.text));
  push_global(module, add(text_node(ValueKind::kText, operand.second)));
}

void Unpickler::stack_global(const Operand&) {
  const Id name = pop();
  const Id module = pop();
  const auto is_text = [this](Id id) { return tree_.nodes_[id].kind == ValueKind::kText; };
  if (!is_text(name) || !is_text(module)) throw malformed("a global name is no text");
  push_global(module, name);
}

void Unpickler::tuple_of(size_t count) {
  if (stack_.size() - open_mark() < count) {
    throw malformed("the pickle takes a value that is not there");
  }
  const std::uint64_t place = add_slots(std::span(stack_).last(count));
  stack_.resize(stack_.size() - count);
  push({ValueKind::kTuple, static_cast<std::uint32_t>(count), place});
}

void Unpickler::tuple(const Operand&) {
  const size_t count = items_above_mark();
  const std::uint64_t place = add_slots(std::span(stack_).last(count));
  drop_to_mark();
  push({ValueKind::kTuple, static_cast<std::uint32_t>(count), place});
}

void Unpickler::frozen_set(const Operand&) {
  const size_t count = items_above_mark();
  const std::uint64_t list = add_list();
  move_to(tree_.lists_[list], count);
  marks_.pop_back();
  push({ValueKind::kSet, 0, list});
}

/// Returns the list of a container, or of an object, which gets one when it is first used.
std::vector<Unpickler::Id>& Unpickler::list_of(Id target, PickleTree::ObjectSlot which) {
  const Node node = tree_.nodes_[target];
  if (node.kind == ValueKind::kObject) {
    if (tree_.slots_[node.payload + which] == 0) {
      const auto list = static_cast<Id>(add_list());
      tree_.slots_[node.payload + which] = list + 1;
    }
    return tree_.lists_[tree_.slots_[node.payload + which] - 1];
  }
  const bool is_dict = node.kind == ValueKind::kDict;
  const bool is_sequence = node.kind == ValueKind::kList || node.kind == ValueKind::kSet;
  if (which == PickleTree::kEntries ? !is_dict : !is_sequence) {
    throw malformed("the pickle adds items to a value that takes none")
        .note("found", std::string(to_string(node.kind)));
  }
  return tree_.lists_[node.payload];
}

/// Moves the last values of the stack to the end of a list.
void Unpickler::move_to(std::vector<Id>& list, size_t count) {
  spend(2 * count * sizeof(Id));  // a vector grows by doubling
  const auto items = std::span(stack_).last(count);
  list.insert(list.end(), items.begin(), items.end());
  stack_.resize(stack_.size() - count);
}

void Unpickler::append(const Operand&) {
  const Id item = pop();
  std::vector<Id>& list = list_of(top(), PickleTree::kElements);
  push(item);
  move_to(list, 1);
}

void Unpickler::appends(const Operand&) {
  const size_t count = items_above_mark();
  marks_.pop_back();
  if (stack_.size() - count <= open_mark()) throw malformed("there is no list to append to");
  move_to(list_of(stack_[stack_.size() - count - 1], PickleTree::kElements), count);
}

void Unpickler::add_items(const Operand& operand) {
  appends(operand);
}

void Unpickler::set_item(const Operand&) {
  const Id value = pop();
  const Id key = pop();
  std::vector<Id>& list = list_of(top(), PickleTree::kEntries);
  push(key);
  push(value);
  move_to(list, 2);
}

void Unpickler::set_items(const Operand&) {
  const size_t count = items_above_mark();
  if (count % 2 != 0) throw malformed("a key of a dict has no value");
  marks_.pop_back();
  if (stack_.size() - count <= open_mark()) throw malformed("there is no dict to add to");
  move_to(list_of(stack_[stack_.size() - count - 1], PickleTree::kEntries), count);
}

void Unpickler::memorize(std::uint64_t index) {
  const Id id = top();
  if (index >= text_.size()) {
    throw malformed("a number of the memo is larger than the pickle")
        .note("found", std::to_string(index));
  }
  if (index >= memo_.size()) {
    spend(2 * sizeof(Id) * (index + 1 - memo_.size()));
    memo_.resize(index + 1, PickleTree::kNoValue);
  }
  memo_[index] = id;
}

void Unpickler::get(const Operand& operand) {
  if (operand.number >= memo_.size() || memo_[operand.number] == PickleTree::kNoValue) {
    throw malformed("the pickle names a value that its memo lacks")
        .note("found", std::to_string(operand.number));
  }
  push(memo_[operand.number]);
}

void Unpickler::persistent(const Operand&) {
  const Id id = pop();
  push({ValueKind::kPersistent, 0, id});
}

void Unpickler::call(const Operand&) {
  Id parts[PickleTree::kSlots] = {0, 0, PickleTree::kNoValue, 0, 0};
  parts[PickleTree::kArguments] = pop();
  parts[PickleTree::kCallable] = pop();
  push({ValueKind::kObject, 0, add_slots(parts)});
}

void Unpickler::build(const Operand&) {
  const Id state = pop();
  const Node node = tree_.nodes_[top()];
  if (node.kind != ValueKind::kObject) {
    throw malformed("the pickle sets the state of a value that has none")
        .note("found", std::string(to_string(node.kind)));
  }
  Id& slot = tree_.slots_[node.payload + PickleTree::kState];
  if (slot != PickleTree::kNoValue) throw malformed("the pickle sets the state of a value twice");
  slot = state;
}

}  // namespace shardtool::format::torch
