#include "lib/api/diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <map>
#include <memory>
#include <optional>
#include <string_view>

#include "lib/api/dequantize/recorded_values.h"
#include "lib/api/dequantize/unpacked_tensor.h"
#include "lib/api/transfer/sources/logical_checkpoint.h"
#include "lib/api/transfer/sources/open_source.h"
#include "lib/api/transfer/sources/replicas.h"
#include "lib/base/text.h"
#include "lib/exec/chunks/chunk_plan.h"
#include "lib/exec/compare.h"
#include "lib/index/coverage.h"

namespace shardtool::api {
namespace {

std::string metadata_change(const TensorSpec& a, const TensorSpec& b) {
  if (a.dtype != b.dtype)
    return fmt::format("dtype {} -> {}", to_string(a.dtype), to_string(b.dtype));
  if (a.shape != b.shape)
    return fmt::format("shape {} -> {}", to_string(a.shape), to_string(b.shape));
  return "";
}

/// "data after F32 -> BF16, first at element [3, 7]", "data after fp8/block -> BF16, ..."
std::string cast_change(const exec::TensorMove& move, const std::string& scheme, i64 first_byte) {
  Shape index = move.shape;
  i64 element = first_byte * CHAR_BIT / bits(move.result_dtype());
  for (size_t a = index.size(); a-- > 0;) {
    index[a] = element % move.shape[a];
    element /= move.shape[a];
  }
  std::string steps = scheme.empty() ? "" : quote_for_message(scheme, 60) + " -> ";
  steps += to_string(move.dtype);
  if (move.cast_to) steps += fmt::format(" -> {}", to_string(*move.cast_to));
  return fmt::format("data after {}, first at element {}", steps, to_string(index));
}

/// Compares the logical values of tensors with per-device value shifts.
void compare_shifted(const LogicalCheckpoint& a, const LogicalCheckpoint& b, const LogicalTensor& x,
                     const LogicalTensor& y, DiffReport& report) {
  const auto values = [](const LogicalCheckpoint& checkpoint, const LogicalTensor& tensor) {
    return exec::load_shifted(tensor.spec.name, tensor.stored_dtype(), tensor.spec.shape,
                              tensor.side, tensor.shifts, exec::open_sources(checkpoint.files));
  };
  std::vector<i64> left = values(a, x);
  const std::vector<i64> right = values(b, y);
  if (x.cast_from) {
    kernels::CastCounts counts;
    left = exec::cast_values(x.spec.name, left, *x.cast_from, x.spec.dtype, counts);
  }
  const i64 width = bits(y.spec.dtype) / 8;
  const auto first = std::mismatch(left.begin(), left.end(), right.begin()).first - left.begin();
  i64 changed = 0;
  for (size_t i = 0; i < left.size(); ++i) changed += left[i] == right[i] ? 0 : 1;
  report.bytes_read += 2 * width * static_cast<i64>(left.size());
  if (changed == 0) {
    ++report.identical;
  } else {
    report.changed.push_back({x.spec.name, "data", changed * width, first * width});
  }
}

/// Unpacking of a tensor of a before it is compared.
struct Preparation {
  std::string scheme;  ///< of its unpacking, or empty
  i64 stored_bytes = 0;
};

Preparation preparation_of(const TensorsByName& in_a, const exec::TensorMove& move) {
  const LogicalTensor& tensor = *in_a.at(move.name);
  if (!tensor.unpacked) return {"", byte_size(move.dtype, move.shape).value_or(0)};
  return {tensor.unpacked->weight().scheme, tensor.unpacked->stored_bytes()};
}

/// Compares every copy of a's elements with the first one. Returns what differs, by tensor.
std::map<std::string, DiffChange> compare_copies(const LogicalCheckpoint& a,
                                                 std::span<const exec::SourceFile> files,
                                                 const exec::Resources& resources) {
  std::map<std::string, DiffChange> changes;
  i64 copies = 0;
  for (const auto& [tensor, difference, holder] :
       different_replicas(a, files, resources, {}, copies)) {
    const std::string& name = tensor->spec.name;
    const std::string what = fmt::format("data of A's own copies, first on {}", holder);
    changes.emplace(name, DiffChange{name, what, difference.bytes, difference.first});
  }
  return changes;
}

/// Reads the first copy of a's elements in the layout of b's holders and compares it with every
/// copy there, and with a's other copies.
void compare_data(const LogicalCheckpoint& a, const LogicalCheckpoint& b, const TensorsByName& in_a,
                  std::vector<exec::TensorMove> moves, const DiffOptions& options,
                  DiffReport& report) {
  std::sort(moves.begin(), moves.end(), [](const auto& x, const auto& y) {
    const exec::Slot& s = x.from.slots.front();
    const exec::Slot& t = y.from.slots.front();
    return std::pair(s.file, s.offset) < std::pair(t.file, t.offset);
  });
  const auto files = exec::open_sources(a.files);
  const auto differences =
      exec::compare(moves, files, exec::open_sources(b.files), options.resources);
  auto differing_copies = compare_copies(a, files, options.resources);
  for (size_t i = 0; i < moves.size(); ++i) {
    const exec::TensorMove& move = moves[i];
    const auto& [bytes, first, holder] = differences[i];
    const Preparation prepared = preparation_of(in_a, move);
    report.bytes_read +=
        prepared.stored_bytes + byte_size(move.result_dtype(), move.shape).value_or(0);
    const auto copies = differing_copies.extract(move.name);
    if (bytes == 0 && copies) {
      report.changed.push_back(copies.mapped());
    } else if (bytes == 0) {
      ++report.identical;
      if (move.cast_to) ++report.cast;
      if (move.computed) ++report.dequantized;
    } else {
      const bool is_prepared = move.cast_to || move.computed;
      const std::string what = is_prepared ? cast_change(move, prepared.scheme, first) : "data";
      report.changed.push_back({move.name, what, bytes, first});
    }
  }
  for (const auto& [name, change] : differing_copies) report.changed.push_back(change);
}

/// Says which of the changed tensors were rounded before their last cast.
void explain_casts(const TensorsByName& in_a, const TensorsByName& in_b, DiffReport& report) {
  for (DiffChange& change : report.changed) {
    const auto other = in_b.find(change.name);  // a's own copies may differ where b has none
    if (other == in_b.end()) continue;
    const std::string casts = rounded_before(*in_a.at(change.name), *other->second);
    if (!casts.empty())
      change.what += fmt::format("; cast {}: compare with the input of the last cast", casts);
  }
}

/// Says what opening a side has left out: its tensors are not compared.
void add_warnings(std::string_view side, const LogicalCheckpoint& opened, DiffReport& report) {
  for (const std::string& warning : opened.warnings())
    report.warnings.push_back(fmt::format("{}: {}", side, warning));
}

/// Throws kCoverage if some element of the tensor is in no file.
void require_covered(const LogicalTensor& tensor) {
  if (index::covers(*tensor.side.holders)) return;
  const auto whole = std::make_shared<index::HolderSet>(index::HolderSet::whole(tensor.spec.shape));
  exec::check_move(
      {tensor.spec.name, tensor.stored_dtype(), tensor.spec.shape, tensor.side, {whole, {}}, {}});
}

}  // namespace

DiffReport diff(const DiffOptions& options) {
  Opening opening{.takes_files_of_ranks = true};
  opening.mapping.config = options.config;
  LogicalCheckpoint a = open_logical({options.a}, opening);
  LogicalCheckpoint b = open_logical({options.b}, opening);
  a = read_as_recorded(std::move(a), b, opening.mapping);
  b = read_as_recorded(std::move(b), a, opening.mapping);
  DiffReport report;
  add_warnings("A", a, report);
  add_warnings("B", b, report);
  if (options.values && !options.metadata_only) {
    show_as_recorded(a, b);
  } else {
    report.not_compared = recorded_changes(a, b);
  }
  const TensorsByName in_a = tensors_by_name(a);
  const TensorsByName in_b = tensors_by_name(b);
  std::vector<exec::TensorMove> moves;
  for (const auto& [name, tensor] : in_a) {
    const auto other = in_b.find(name);
    if (other == in_b.end()) {
      report.only_a.emplace_back(name);
      continue;
    }
    ++report.common;
    std::string change = metadata_change(tensor->spec, other->second->spec);
    if (change.empty()) change = unpacking_change(*tensor, *other->second);
    if (!change.empty()) {
      report.changed.push_back({std::string(name), change, 0, -1});
    } else if (!options.metadata_only &&
               (!tensor->shifts.empty() || !other->second->shifts.empty())) {
      compare_shifted(a, b, *tensor, *other->second, report);
    } else {
      if (!options.metadata_only) require_covered(*other->second);
      moves.push_back({tensor->spec.name,
                       tensor->stored_dtype(),
                       tensor->spec.shape,
                       tensor->side,
                       other->second->side,
                       {},
                       tensor->cast_from ? std::optional(tensor->spec.dtype) : std::nullopt,
                       tensor->unpacked});
    }
  }
  for (const auto& [name, tensor] : in_b) {
    if (!in_a.contains(name)) report.only_b.emplace_back(name);
  }
  if (options.metadata_only) {
    report.identical = static_cast<i64>(moves.size());
  } else {
    compare_data(a, b, in_a, std::move(moves), options, report);
  }
  if (options.values) explain_casts(in_a, in_b, report);
  std::sort(report.changed.begin(), report.changed.end(),
            [](const auto& x, const auto& y) { return x.name < y.name; });
  report.equal = report.changed.empty() && report.only_a.empty() && report.only_b.empty();
  return report;
}

}  // namespace shardtool::api
