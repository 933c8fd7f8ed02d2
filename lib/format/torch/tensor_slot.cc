#include "lib/format/torch/tensor_slot.h"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <string>

#include "lib/base/checked.h"
#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/format/torch/storage.h"
#include "lib/format/torch/torch_dtype.h"

namespace shardtool::format::torch {
namespace {

constexpr std::string_view kUtils = "torch._utils";

/// A function that rebuilds a tensor that is no row-major stretch of a storage.
struct OtherTensor {
  std::string_view function;  ///< in torch._utils
  std::string_view message;
  std::string_view help;
};

constexpr auto kOtherTensors = std::to_array<OtherTensor>({
    {"_rebuild_sparse_tensor", "sparse tensors are not read", "call to_dense() on it"},
    {"_rebuild_sparse_csr_tensor", "sparse tensors are not read", "call to_dense() on it"},
    {"_rebuild_qtensor", "quantised tensors of torch are not read", "call dequantize() on it"},
    {"_rebuild_nested_tensor", "nested tensors are not read", "call to_padded_tensor() on it"},
    {"_rebuild_meta_tensor_no_storage", "the tensor is on the meta device and has no data",
     "load its data into it"},
    {"_rebuild_wrapper_subclass", "the tensor is of a subclass of torch.Tensor",
     "replace it by the plain tensor that it stands for"},
    {"_rebuild_device_tensor_from_numpy", "the tensor is stored as a NumPy array",
     "move it to the CPU"},
    {"_rebuild_device_tensor_from_cpu_tensor", "the tensor is stored by its device",
     "move it to the CPU"},
});

Error unsupported(const std::string& message, const std::string& change) {
  return Error(ErrorCode::kUnsupported, message)
      .help(fmt::format("load the file with torch, {}, and save it again with torch.save", change));
}

Error invalid(const std::string& message) {
  return Error(ErrorCode::kTensorInvalid, message);
}

/// A tensor's function and the arguments of the call, without the wrappers around it.
struct Call {
  PickleValue function;
  PickleValue arguments;
};

bool is_rebuild(PickleValue function) {
  return function.is(ValueKind::kGlobal) && function.module() == kUtils &&
         function.name().starts_with("_rebuild_");
}

bool is_from_type(PickleValue function) {
  return function.is_global("torch._tensor", "_rebuild_from_type_v2") ||
         function.is_global("torch._tensor", "_rebuild_from_type");
}

/// Follows parameters and subclasses to the call that rebuilds the plain tensor.
Call plain_call(PickleValue value) {
  constexpr int kMostWrappers = 8;
  for (int i = 0; i < kMostWrappers; ++i) {
    if (!is_tensor(value)) break;
    const PickleValue function = value.callable();
    const PickleValue arguments = value.arguments();
    const bool is_parameter = function.name().starts_with("_rebuild_parameter");
    const bool has_type = is_from_type(function);
    if (!is_parameter && !has_type) return {function, arguments};
    if (!arguments.is(ValueKind::kTuple) || arguments.size() < (has_type ? 3 : 1)) break;
    if (has_type) {
      if (is_rebuild(arguments[0])) return {arguments[0], arguments[2]};
      break;
    }
    value = arguments[0];
  }
  throw unsupported("the tensor is of a kind that is not read", "replace it by a plain tensor")
      .note("found", describe(value));
}

void refuse_other(const Call& call) {
  for (const OtherTensor& other : kOtherTensors) {
    if (call.function.name() != other.function) continue;
    throw unsupported(std::string(other.message), std::string(other.help))
        .note("found", name_for_message(call.function));
  }
  throw unsupported("the tensor is of a kind that is not read", "replace it by a plain tensor")
      .note("found", name_for_message(call.function));
}

/// Throws if the bytes are not the values: torch notes a pending conjugation or negation.
void refuse_pending(PickleValue arguments) {
  constexpr size_t kMetadata = 6;
  if (arguments.size() <= kMetadata || !arguments[kMetadata].is(ValueKind::kDict)) return;
  for (const std::string_view flag : {"conj", "neg"}) {
    const auto set = arguments[kMetadata].find(flag);
    if (!set || (set->is(ValueKind::kBool) && !set->boolean())) continue;
    throw unsupported("the tensor is a lazy conjugate or negative",
                      "call resolve_conj().resolve_neg() on it");
  }
}

void refuse_gaps(const Shape& shape, const Shape& stride) {
  i64 expected = 1;
  for (size_t axis = shape.size(); axis-- > 0;) {
    if (shape[axis] != 1 && stride[axis] != expected) {
      throw unsupported("the tensor is not contiguous, such as a transposed view",
                        "call contiguous() on it")
          .note("found", fmt::format("shape {}, strides {}", shardtool::to_string(shape),
                                     shardtool::to_string(stride)))
          .note("expected", "row-major strides without gaps");
    }
    expected *= shape[axis];
  }
}

/// Number of elements from the first to the last one of a tensor with elements; nullopt above 2^63.
std::optional<i64> reach_of(const Shape& shape, const Shape& stride) {
  std::optional<i64> reach = 1;
  for (size_t axis = 0; axis < shape.size() && reach; ++axis) {
    const auto step = checked_mul(shape[axis] - 1, stride[axis]);
    reach = step ? checked_add(*reach, *step) : std::nullopt;
  }
  return reach;
}

/// Dtype of a tensor: its storage's, or the last argument beside an untyped storage.
Dtype dtype_of_tensor(const StorageName& storage, PickleValue arguments) {
  constexpr size_t kDtype = 6;
  if (storage.dtype) return *storage.dtype;
  if (arguments.size() <= kDtype) throw invalid("a tensor of an untyped storage has no dtype");
  const auto dtype = dtype_of(arguments[kDtype]);
  if (dtype) return *dtype;
  throw unsupported("the element type is not supported", "convert the tensor")
      .note("found", describe(arguments[kDtype]));
}

/// The bytes of a storage. They must be as many as the pickle says.
StoragePlace place_of(const StorageName& storage, const Archive& archive) {
  const auto found = archive.storages.find(storage.key);
  if (found == archive.storages.end()) {
    throw invalid("the file lacks the storage of the tensor")
        .note("storage", quote_for_message(storage.key));
  }
  if (found->second.bytes == storage.bytes) return found->second;
  throw invalid("the storage has another size than the tensor says")
      .note("storage", quote_for_message(storage.key))
      .note("found", fmt::format("{} bytes", found->second.bytes))
      .note("expected", fmt::format("{} bytes", storage.bytes));
}

TensorSlot slot_in(const StorageName& storage, PickleValue arguments, const Archive& archive) {
  const auto shape = extents_of(arguments[2]);
  const auto stride = extents_of(arguments[3]);
  const bool has_offset = arguments[1].is(ValueKind::kInteger) && arguments[1].integer() >= 0;
  if (!shape || !stride || !has_offset)
    throw invalid("the tensor has no valid shape, strides or offset");
  TensorSlot slot;
  slot.dtype = dtype_of_tensor(storage, arguments);
  slot.shape = *shape;
  if (shape->size() != stride->size()) throw invalid("shape and strides have different ranks");
  const StoragePlace place = place_of(storage, archive);
  if (byte_size(slot.dtype, slot.shape) == 0) {
    slot.offset = place.offset;
    return slot;
  }
  const auto reach = reach_of(*shape, *stride);
  const auto skipped = byte_size(slot.dtype, {arguments[1].integer()});
  const auto bytes = reach ? byte_size(slot.dtype, {*reach}) : std::nullopt;
  const auto end = bytes && skipped ? checked_add(*bytes, *skipped) : std::nullopt;
  if (!end || *end > place.bytes) {
    throw invalid("the tensor leaves its storage")
        .note("found",
              fmt::format("shape {}, strides {} at element {}", shardtool::to_string(*shape),
                          shardtool::to_string(*stride), arguments[1].integer()))
        .note("storage", fmt::format("{} bytes", place.bytes));
  }
  refuse_gaps(*shape, *stride);
  slot.bytes = *bytes;
  slot.offset = place.offset + *skipped;
  return slot;
}

}  // namespace

std::optional<Shape> extents_of(PickleValue value) {
  if (value.is(ValueKind::kObject)) {
    const PickleValue arguments = value.arguments();
    const bool is_size = value.callable().is_global("torch", "Size") &&
                         arguments.is(ValueKind::kTuple) && arguments.size() == 1 &&
                         arguments[0].is(ValueKind::kTuple);
    return is_size ? extents_of(arguments[0]) : std::nullopt;
  }
  if (!value.is(ValueKind::kTuple) && !value.is(ValueKind::kList)) return std::nullopt;
  if (value.size() > kMostAxes) return std::nullopt;
  Shape extents;
  for (size_t i = 0; i < value.size(); ++i) {
    if (!value[i].is(ValueKind::kInteger) || value[i].integer() < 0) return std::nullopt;
    extents.push_back(value[i].integer());
  }
  return extents;
}

bool is_tensor(PickleValue value) {
  if (!value.is(ValueKind::kObject)) return false;
  return is_rebuild(value.callable()) || is_from_type(value.callable());
}

TensorSlot tensor_slot(PickleValue value, const Archive& archive) {
  const Call call = plain_call(value);
  const bool is_plain = call.function.name() == "_rebuild_tensor_v2" ||
                        call.function.name() == "_rebuild_tensor_v3" ||
                        call.function.name() == "_rebuild_tensor";
  if (!is_plain) refuse_other(call);
  const PickleValue arguments = call.arguments;
  if (!arguments.is(ValueKind::kTuple) || arguments.size() < 4) {
    throw invalid("the tensor lacks arguments").note("found", describe(arguments));
  }
  const bool is_untyped = call.function.name() == "_rebuild_tensor_v3";
  if (!is_untyped) refuse_pending(arguments);
  return slot_in(storage_name(arguments[0]), arguments, archive);
}

}  // namespace shardtool::format::torch
