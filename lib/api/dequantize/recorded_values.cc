#include "lib/api/dequantize/recorded_values.h"

#include <algorithm>
#include <iterator>

#include "kernels/cast/cast.h"
#include "kernels/encode/encode.h"
#include "lib/api/dequantize/dequantize.h"
#include "lib/api/dequantize/unpacked_tensor.h"

namespace shardtool::api {
namespace {

/// True if every number of `from` is one of the cast's target.
bool is_exact(const format::CastRecord& cast) {
  return bits(cast.to) > bits(cast.from) && bits(cast.to) >= 32;
}

/// True if the output's tensor was cast from the type that the source's has: by one cast, after
/// others that changed no number.
bool is_cast_from(const LogicalTensor& source, const LogicalTensor& output) {
  if (output.record == nullptr) return false;
  const auto& casts = output.record->casts;
  auto first = casts.rbegin();
  while (first != casts.rend() && first->from != source.spec.dtype &&
         std::next(first) != casts.rend() && is_exact(*std::next(first))) {
    ++first;
  }
  if (first == casts.rend()) return false;
  const Dtype from = first->from;
  const bool is_possible =
      kernels::is_castable(from) && kernels::is_float_storage(output.spec.dtype);
  return is_possible && source.spec.dtype == from && source.spec.shape == output.spec.shape &&
         from != output.spec.dtype;
}

/// Type of an output's tensor after it was unpacked, before its casts.
Dtype unpacked_type(const LogicalTensor& output) {
  return output.record->casts.empty() ? output.spec.dtype : output.record->casts.front().from;
}

bool has_unpacking(const LogicalTensor& output) {
  return output.record != nullptr && output.record->dequantized.has_value();
}

/// True if the output's tensor was unpacked from codes that the source has.
bool is_unpacked_from(const TensorsByName& source, const LogicalTensor& output) {
  if (!has_unpacking(output)) return false;
  const auto& stored = output.record->dequantized->from;
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

std::string unpacking_change(const LogicalTensor& source, const LogicalTensor& output) {
  if (!source.unpacked || !has_unpacking(output)) return "";
  format::DequantizeRecord recorded = *output.record->dequantized;
  for (format::StoredRecord& stored : recorded.from) stored.digest.reset();
  return recorded == source.unpacked->record(nullptr) ? "" : "unpacked from other tensors";
}

}  // namespace shardtool::api
