#include "lib/format/torch/opcodes.h"

#include <algorithm>
#include <array>

namespace shardtool::format::torch {
namespace {

using enum Argument;

constexpr auto kOpcodes = std::to_array<Opcode>({
    {'(', "MARK", kNothing},
    {')', "EMPTY_TUPLE", kNothing},
    {'.', "STOP", kNothing},
    {'0', "POP", kNothing},
    {'1', "POP_MARK", kNothing},
    {'2', "DUP", kNothing},
    {'B', "BINBYTES", kText},
    {'C', "SHORT_BINBYTES", kShortText},
    {'F', "FLOAT", kLine},
    {'G', "BINFLOAT", kEightBytes},
    {'I', "INT", kLine},
    {'J', "BININT", kFourBytes},
    {'K', "BININT1", kByte},
    {'L', "LONG", kLine},
    {'M', "BININT2", kTwoBytes},
    {'N', "NONE", kNothing},
    {'P', "PERSID", kLine},
    {'Q', "BINPERSID", kNothing},
    {'R', "REDUCE", kNothing},
    {'S', "STRING", kLine},
    {'T', "BINSTRING", kText},
    {'U', "SHORT_BINSTRING", kShortText},
    {'V', "UNICODE", kLine},
    {'X', "BINUNICODE", kText},
    {']', "EMPTY_LIST", kNothing},
    {'a', "APPEND", kNothing},
    {'b', "BUILD", kNothing},
    {'c', "GLOBAL", kTwoLines},
    {'d', "DICT", kNothing},
    {'e', "APPENDS", kNothing},
    {'g', "GET", kLine},
    {'h', "BINGET", kByte},
    {'i', "INST", kTwoLines},
    {'j', "LONG_BINGET", kFourBytes},
    {'l', "LIST", kNothing},
    {'o', "OBJ", kNothing},
    {'p', "PUT", kLine},
    {'q', "BINPUT", kByte},
    {'r', "LONG_BINPUT", kFourBytes},
    {'s', "SETITEM", kNothing},
    {'t', "TUPLE", kNothing},
    {'u', "SETITEMS", kNothing},
    {'}', "EMPTY_DICT", kNothing},
    {0x80, "PROTO", kByte},
    {0x81, "NEWOBJ", kNothing},
    {0x82, "EXT1", kByte},
    {0x83, "EXT2", kTwoBytes},
    {0x84, "EXT4", kFourBytes},
    {0x85, "TUPLE1", kNothing},
    {0x86, "TUPLE2", kNothing},
    {0x87, "TUPLE3", kNothing},
    {0x88, "NEWTRUE", kNothing},
    {0x89, "NEWFALSE", kNothing},
    {0x8a, "LONG1", kShortText},
    {0x8b, "LONG4", kText},
    {0x8c, "SHORT_BINUNICODE", kShortText},
    {0x8d, "BINUNICODE8", kLongText},
    {0x8e, "BINBYTES8", kLongText},
    {0x8f, "EMPTY_SET", kNothing},
    {0x90, "ADDITEMS", kNothing},
    {0x91, "FROZENSET", kNothing},
    {0x92, "NEWOBJ_EX", kNothing},
    {0x93, "STACK_GLOBAL", kNothing},
    {0x94, "MEMOIZE", kNothing},
    {0x95, "FRAME", kEightBytes},
    {0x96, "BYTEARRAY8", kLongText},
    {0x97, "NEXT_BUFFER", kNothing},
    {0x98, "READONLY_BUFFER", kNothing},
});

/// Rows by their byte, so that a lookup is one access.
constexpr auto kRowOfByte = [] {
  std::array<std::uint8_t, 256> rows{};
  for (size_t i = 0; i < kOpcodes.size(); ++i) {
    rows[kOpcodes[i].byte] = static_cast<std::uint8_t>(i + 1);
  }
  return rows;
}();

/// Bytes of the number that an argument is or begins with.
size_t width(Argument argument) {
  switch (argument) {
    case kByte:
    case kShortText:
      return 1;
    case kTwoBytes:
      return 2;
    case kFourBytes:
    case kText:
      return 4;
    case kEightBytes:
    case kLongText:
      return 8;
    default:
      return 0;
  }
}

bool has_text(Argument argument) {
  return argument == kShortText || argument == kText || argument == kLongText;
}

/// Reads a line that begins at `end` and moves `end` behind its line feed.
std::optional<std::string_view> read_line(std::string_view pickle, size_t& end) {
  const size_t feed = pickle.find('\n', end);
  if (feed == std::string_view::npos) return std::nullopt;
  const std::string_view line = pickle.substr(end, feed - end);
  end = feed + 1;
  return line;
}

std::optional<Operand> read_lines(std::string_view pickle, size_t at, bool has_second) {
  Operand operand;
  operand.end = at;
  const auto first = read_line(pickle, operand.end);
  if (!first) return std::nullopt;
  operand.text = *first;
  if (!has_second) return operand;
  const auto second = read_line(pickle, operand.end);
  if (!second) return std::nullopt;
  operand.second = *second;
  return operand;
}

}  // namespace

const Opcode* find_opcode(std::uint8_t byte) {
  const size_t row = kRowOfByte[byte];
  return row == 0 ? nullptr : &kOpcodes[row - 1];
}

std::optional<Operand> read_operand(std::string_view pickle, size_t at, Argument argument) {
  if (argument == kLine || argument == kTwoLines) {
    return read_lines(pickle, at, argument == kTwoLines);
  }
  const size_t bytes = width(argument);
  if (pickle.size() - at < bytes) return std::nullopt;
  Operand operand;
  for (size_t i = 0; i < bytes; ++i) {
    operand.number |= std::uint64_t{static_cast<unsigned char>(pickle[at + i])} << (8 * i);
  }
  operand.end = at + bytes;
  if (!has_text(argument)) return operand;
  if (pickle.size() - operand.end < operand.number) return std::nullopt;
  operand.text = pickle.substr(operand.end, operand.number);
  operand.end += operand.number;
  return operand;
}

}  // namespace shardtool::format::torch
