#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lib/api/dequantize/quantised_weight.h"
#include "lib/exec/chunks/computed.h"

namespace shardtool::api {

/// Box of a weight's codes.
struct CodeBox {
  i64 outer = 0;
  i64 row = 0, rows = 0;
  i64 column = 0, columns = 0;

  /// Begin and size along an axis.
  i64 begin(CodeAxis axis) const;
  i64 size(CodeAxis axis) const;
};

/// The elements of a stored tensor behind a box of codes, row-major.
struct MemberPart {
  std::vector<i64> begin;  ///< per stored axis
  std::vector<i64> sizes;
  std::vector<std::byte> bytes;

  /// Position of the elements along an axis of the codes, as an index of the stored axis that
  /// follows it, and their number; 0 and 1 if none does.
  i64 first(const StoredMember& member, CodeAxis axis) const;
  i64 count(const StoredMember& member, CodeAxis axis) const;
};

/// Indices of the codes per index of the stored axis that follows the axis; 0 if none does.
i64 codes_per_index(const StoredMember& member, CodeAxis axis);

/// Reads the part of a member behind a box, with its original values if devices have values of
/// their own. XORs into `digest` the part of the member's digest that belongs to the box: over the
/// boxes of any partition of the codes, every stored element counts once. Throws the errors of
/// reading.
MemberPart read_member(const StoredMember& member, const CodeBox& box,
                       std::span<const exec::SourceFile> files, std::uint64_t& digest);

}  // namespace shardtool::api
