#include "lib/format/torch/unpickle.h"

#include <fmt/format.h>

#include <array>
#include <span>
#include <utility>
#include <vector>

#include "lib/base/text.h"
#include "lib/format/torch/opcodes.h"
#include "lib/format/torch/unpickler.h"

namespace shardtool::format::torch {
namespace {

/// Memory for values: an allowance, and so much per byte of the pickle, twice of what pickles of
/// tensors need. A tensor of a state dict takes about 150 bytes in the pickle and 350 as values, a
/// chunk of torch.distributed.checkpoint 120 and 720.
constexpr i64 kFreeBytes = 32 << 20;
constexpr i64 kBytesPerByte = 12;

}  // namespace

Error pickle_error(const PickleOrigin& origin, ErrorCode code, const std::string& message,
                   size_t at) {
  Error error(code, message);
  error.at({origin.file, 0, 0, ""});
  if (!origin.record.empty()) error.note("record", quote_for_message(origin.record));
  error.note("byte offset", std::to_string(origin.offset + static_cast<i64>(at)));
  return error;
}

const Unpickler::Action Unpickler::kActions[] = {
    {'(', &Unpickler::mark},
    {')', &Unpickler::empty_tuple},
    {'.', &Unpickler::stop},
    {'B', &Unpickler::bytes},
    {'C', &Unpickler::bytes},
    {'G', &Unpickler::binary_float},
    {'J', &Unpickler::signed_integer},
    {'K', &Unpickler::unsigned_integer},
    {'M', &Unpickler::unsigned_integer},
    {'N', &Unpickler::none},
    {'Q', &Unpickler::persistent},
    {'R', &Unpickler::call},
    {'T', &Unpickler::text},
    {'U', &Unpickler::text},
    {'X', &Unpickler::text},
    {']', &Unpickler::empty_list},
    {'a', &Unpickler::append},
    {'b', &Unpickler::build},
    {'c', &Unpickler::global},
    {'e', &Unpickler::appends},
    {'h', &Unpickler::get},
    {'j', &Unpickler::get},
    {'q', &Unpickler::put},
    {'r', &Unpickler::put},
    {'s', &Unpickler::set_item},
    {'t', &Unpickler::tuple},
    {'u', &Unpickler::set_items},
    {'}', &Unpickler::empty_dict},
    {0x80, &Unpickler::protocol},
    {0x81, &Unpickler::call},
    {0x85, &Unpickler::tuple1},
    {0x86, &Unpickler::tuple2},
    {0x87, &Unpickler::tuple3},
    {0x88, &Unpickler::new_true},
    {0x89, &Unpickler::new_false},
    {0x8a, &Unpickler::long_integer},
    {0x8b, &Unpickler::long_integer},
    {0x8c, &Unpickler::text},
    {0x8d, &Unpickler::text},
    {0x8e, &Unpickler::bytes},
    {0x8f, &Unpickler::empty_set},
    {0x90, &Unpickler::add_items},
    {0x91, &Unpickler::frozen_set},
    {0x93, &Unpickler::stack_global},
    {0x94, &Unpickler::memoize},
    {0x95, &Unpickler::frame},
    {0, nullptr},
};

Unpickler::Apply Unpickler::action(std::uint8_t byte) {
  static const auto kByByte = [] {
    std::array<Apply, 256> table{};
    for (const Action* row = kActions; row->apply != nullptr; ++row) table[row->byte] = row->apply;
    return table;
  }();
  return kByByte[byte];
}

Unpickler::Unpickler(std::string text, const PickleOrigin& origin) : origin_(origin) {
  tree_.text_ = std::move(text);
  text_ = tree_.text_;
  constants_.fill(PickleTree::kNoValue);
  most_ = kFreeBytes + kBytesPerByte * static_cast<i64>(text_.size());
}

PickleTree Unpickler::run() {
  if (static_cast<i64>(text_.size()) > kMaxPickleBytes) {
    throw error(ErrorCode::kLimit, "the pickle is too large")
        .note("found", format_bytes(static_cast<i64>(text_.size())))
        .note("expected", "at most " + format_bytes(kMaxPickleBytes));
  }
  while (!is_done_) step();
  return std::move(tree_);
}

void Unpickler::step() {
  opcode_at_ = at_;
  if (at_ >= text_.size()) throw error(ErrorCode::kMalformed, "the pickle has no end");
  const auto byte = static_cast<std::uint8_t>(text_[at_]);
  opcode_ = find_opcode(byte);
  if (opcode_ == nullptr) {
    throw error(ErrorCode::kMalformed, "the pickle has a byte that is no opcode")
        .note("found", fmt::format("0x{:02x}", byte));
  }
  const Apply apply = action(byte);
  if (apply == nullptr) {
    throw error(ErrorCode::kUnsupported, "the pickle has an opcode that is not accepted")
        .note("opcode", std::string(opcode_->name))
        .help("load the file with torch and save its state dict with torch.save");
  }
  const auto operand = read_operand(text_, at_ + 1, opcode_->argument);
  if (!operand) throw malformed("the pickle ends inside an opcode");
  at_ = operand->end;
  (this->*apply)(*operand);
}

void Unpickler::spend(size_t bytes) {
  spent_ += static_cast<i64>(bytes);
  if (spent_ <= most_) return;
  throw error(ErrorCode::kLimit, "the pickle has too many values for its size")
      .note("expected", "values that take at most " + format_bytes(most_));
}

Unpickler::Id Unpickler::add(Node node) {
  spend(sizeof node);
  tree_.nodes_.push_back(node);
  return static_cast<Id>(tree_.nodes_.size() - 1);
}

std::uint64_t Unpickler::add_slots(std::span<const Id> ids) {
  spend(ids.size() * sizeof(Id));
  const auto place = tree_.slots_.size();
  tree_.slots_.insert(tree_.slots_.end(), ids.begin(), ids.end());
  return place;
}

std::uint64_t Unpickler::add_list() {
  spend(sizeof(std::vector<Id>));
  tree_.lists_.emplace_back();
  return tree_.lists_.size() - 1;
}

void Unpickler::push(Id id) {
  if (stack_.size() == stack_.capacity()) spend(sizeof(Id) * (stack_.size() + 1));
  stack_.push_back(id);
}

/// Pushes a value without parts that many places share.
void Unpickler::push_constant(size_t number, Node node) {
  if (constants_[number] == PickleTree::kNoValue) constants_[number] = add(node);
  push(constants_[number]);
}

Unpickler::Id Unpickler::top() const {
  if (stack_.size() <= open_mark()) throw malformed("the pickle takes a value that is not there");
  return stack_.back();
}

Unpickler::Id Unpickler::pop() {
  const Id id = top();
  stack_.pop_back();
  return id;
}

size_t Unpickler::items_above_mark() const {
  if (marks_.empty()) throw malformed("the pickle lacks the mark of an opcode");
  return stack_.size() - marks_.back();
}

void Unpickler::drop_to_mark() {
  stack_.resize(marks_.back());
  marks_.pop_back();
}

PickleTree unpickle(std::string text, const PickleOrigin& origin) {
  return Unpickler(std::move(text), origin).run();
}

std::optional<size_t> pickle_length(std::string_view text, size_t& scanned,
                                    const PickleOrigin& origin) {
  while (scanned < text.size()) {
    const auto byte = static_cast<std::uint8_t>(text[scanned]);
    const Opcode* opcode = find_opcode(byte);
    if (opcode == nullptr) {
      throw pickle_error(origin, ErrorCode::kMalformed, "the pickle has a byte that is no opcode",
                         scanned)
          .note("found", fmt::format("0x{:02x}", byte));
    }
    const auto operand = read_operand(text, scanned + 1, opcode->argument);
    if (!operand) return std::nullopt;
    scanned = operand->end;
    if (byte == '.') return scanned;
  }
  return std::nullopt;
}

}  // namespace shardtool::format::torch
