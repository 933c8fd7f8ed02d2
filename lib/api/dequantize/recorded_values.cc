#include "lib/api/dequantize/recorded_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "kernels/cast/cast.h"
#include "kernels/encode/encode.h"
#include "lib/api/dequantize/dequantize.h"
#include "lib/api/dequantize/unpacked_tensor.h"
#include "lib/base/text.h"

namespace shardtool::api {
namespace {

/// True if every number of `from` is one of the cast's target.
bool is_exact(const format::CastRecord& cast) {
  return bits(cast.to) > bits(cast.from) && bits(cast.to) >= 32;
}

std::span<const format::CastRecord> casts_of(const LogicalTensor& output) {
  if (output.record() == nullptr) return {};
  return output.record()->casts;
}

/// The recorded casts from the last one on whose input has this type.
std::span<const format::CastRecord> last_casts_from(Dtype type, const LogicalTensor& output) {
  const auto casts = casts_of(output);
  for (size_t first = casts.size(); first-- > 0;) {
    if (casts[first].from == type) return casts.subspan(first);
  }
  return {};
}

/// True if a cast before the last one can have rounded.
bool rounds_before_last(std::span<const format::CastRecord> casts) {
  return !casts.empty() && !std::ranges::all_of(casts.first(casts.size() - 1), is_exact);
}

/// True if the output's tensor was cast from the type that the source's has: by one cast, after
/// others that changed no number.
bool is_cast_from(const LogicalTensor& source, const LogicalTensor& output) {
  const Dtype from = source.spec.dtype;
  const auto casts = last_casts_from(from, output);
  return !casts.empty() && !rounds_before_last(casts) && kernels::is_castable(from) &&
         kernels::is_float_storage(output.spec.dtype) && from != output.spec.dtype &&
         source.spec.shape == output.spec.shape;
}

/// Type of an output's tensor after it was unpacked, before its casts.
Dtype unpacked_type(const LogicalTensor& output) {
  return output.record()->casts.empty() ? output.spec.dtype : output.record()->casts.front().from;
}

bool has_unpacking(const LogicalTensor& output) {
  return output.record() != nullptr && output.record()->dequantized.has_value();
}

/// True if the output's tensor was unpacked from codes that the source has.
bool is_unpacked_from(const TensorsByName& source, const LogicalTensor& output) {
  if (!has_unpacking(output)) return false;
  const auto& stored = output.record()->dequantized->from;
  const auto codes = stored.empty() ? source.end() : source.find(stored.front().name);
  return codes != source.end() && codes->second->spec.dtype == stored.front().dtype &&
         codes->second->spec.shape == stored.front().shape &&
         kernels::is_float_storage(unpacked_type(output));
}

/// Unpacks the weights, each to its recorded type.
void unpack_as_recorded(LogicalCheckpoint& source, const TensorsByName& output) {
  dequantize(source, {}, {});
  for (LogicalTensor& tensor : source.tensors) {
    const auto other = output.find(tensor.spec.name);
    if (!tensor.unpacked || other == output.end() || !has_unpacking(*other->second)) continue;
    const Dtype dtype = unpacked_type(*other->second);
    tensor.unpacked = std::make_shared<const UnpackedTensor>(tensor.unpacked->weight(), dtype);
    tensor.spec.dtype = dtype;
  }
}

i64 recorded_unpackings(const TensorsByName& source, const LogicalCheckpoint& output) {
  return std::ranges::count_if(output.tensors, [&](const LogicalTensor& tensor) {
    return is_unpacked_from(source, tensor);
  });
}

}  // namespace

i64 recorded_changes(const LogicalCheckpoint& source, const LogicalCheckpoint& output) {
  const TensorsByName names = tensors_by_name(source);
  return recorded_unpackings(names, output) +
         std::ranges::count_if(output.tensors, [&](const LogicalTensor& tensor) {
           const auto other = names.find(tensor.spec.name);
           return other != names.end() && is_cast_from(*other->second, tensor);
         });
}

void show_as_recorded(LogicalCheckpoint& source, const LogicalCheckpoint& output) {
  const TensorsByName names = tensors_by_name(output);
  if (recorded_unpackings(tensors_by_name(source), output) > 0) unpack_as_recorded(source, names);
  for (LogicalTensor& tensor : source.tensors) {
    const auto other = names.find(tensor.spec.name);
    if (other == names.end() || !is_cast_from(tensor, *other->second)) continue;
    tensor.cast_from = tensor.spec.dtype;
    tensor.spec.dtype = other->second->spec.dtype;
  }
}

std::string rounded_before(const LogicalTensor& source, const LogicalTensor& output) {
  const auto all = casts_of(output);
  const Dtype type = source.cast_from.value_or(source.spec.dtype);
  const auto first = std::ranges::find(all, type, &format::CastRecord::from);
  const std::span<const format::CastRecord> casts{first, all.end()};
  if (!rounds_before_last(casts)) return "";
  std::string steps(to_string(casts.front().from));
  for (const format::CastRecord& cast : casts) steps += fmt::format(" -> {}", to_string(cast.to));
  return steps;
}

std::string note_on_rounded(const LogicalCheckpoint& source, const LogicalCheckpoint& output) {
  const TensorsByName names = tensors_by_name(source);
  std::string example;
  i64 count = 0;
  for (const LogicalTensor& tensor : output.tensors) {
    const auto found = names.find(tensor.spec.name);
    const std::string casts = found == names.end() ? "" : rounded_before(*found->second, tensor);
    if (casts.empty()) continue;
    if (example.empty()) example = fmt::format("{} ({})", tensor.spec.name, casts);
    ++count;
  }
  if (count == 0) return "";
  return fmt::format(
      "more than one cast changed values of {}, such as {}: compare with the input of the last "
      "cast",
      plural(count, "tensor"), example);
}

std::string unpacking_change(const LogicalTensor& source, const LogicalTensor& output) {
  if (!source.unpacked || !has_unpacking(output)) return "";
  format::DequantizeRecord recorded = *output.record()->dequantized;
  for (format::StoredRecord& stored : recorded.from) stored.digest.reset();
  return recorded == source.unpacked->record(nullptr) ? "" : "unpacked from other tensors";
}

}  // namespace shardtool::api
