#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "lib/base/checked.h"

namespace shardtool::format::torch {

/// Operand that follows an opcode in a pickle (CPython, Lib/pickletools.py, protocol 5).
enum class Argument : std::uint8_t {
  kNothing,
  kByte,
  kTwoBytes,
  kFourBytes,
  kEightBytes,
  kShortText,  ///< one length byte and so many bytes
  kText,       ///< four length bytes and so many bytes
  kLongText,   ///< eight length bytes and so many bytes
  kLine,       ///< a text up to a line feed
  kTwoLines,
};

/// One row of the only table of opcodes.
struct Opcode {
  std::uint8_t byte;
  std::string_view name;  ///< as in Python's pickletools
  Argument argument;
};

/// Returns the row of a byte, or null if no protocol has such an opcode.
const Opcode* find_opcode(std::uint8_t byte);

/// The argument of an opcode. Numbers are little-endian and unsigned.
struct Operand {
  std::uint64_t number = 0;
  std::string_view text;
  std::string_view second;  ///< second line
  size_t end = 0;           ///< offset after the argument
};

/// Reads the argument at offset `at`; nullopt if the pickle ends inside of it.
std::optional<Operand> read_operand(std::string_view pickle, size_t at, Argument argument);

}  // namespace shardtool::format::torch
