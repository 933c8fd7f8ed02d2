#include "lib/format/torch/distributed_tensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/format/torch/storage.h"
#include "lib/format/torch/torch_dtype.h"

namespace shardtool::format::torch {
namespace {

struct MeshAxis {
  i64 size = 1;
  i64 coordinate = 0;  ///< of the rank that saved the file
};

/// Placement of a tensor along one mesh axis.
struct Placement {
  enum class Kind { kReplicate, kShard, kStridedShard };
  Kind kind = Kind::kReplicate;
  size_t axis = 0;         ///< of the tensor
  i64 earlier_shards = 1;  ///< kStridedShard: shards of the axis before this cut
};

Error invalid_spec(const std::string& message) {
  return Error(ErrorCode::kTensorInvalid, message);
}

/// True for a class of PyTorch's distributed package. Its modules were renamed between versions.
bool is_instance(PickleValue value, std::string_view name) {
  if (!value.is(ValueKind::kObject) || !value.callable().is(ValueKind::kGlobal)) return false;
  return value.callable().name() == name &&
         value.callable().module().starts_with("torch.distributed.");
}

/// The attribute of an object; nullopt if its state lacks it. A class with slots has a pair of
/// states.
std::optional<PickleValue> attribute(PickleValue object, std::string_view name) {
  auto state = object.is(ValueKind::kObject) ? object.state() : std::optional(object);
  if (state && state->is(ValueKind::kTuple) && state->size() == 2) state = (*state)[1];
  if (!state || !state->is(ValueKind::kDict)) return std::nullopt;
  const auto found = state->find(name);
  return found && !found->is(ValueKind::kNone) ? found : std::nullopt;
}

PickleValue need(PickleValue object, std::string_view name) {
  if (const auto found = attribute(object, name)) return *found;
  throw invalid_spec(fmt::format("a distributed tensor has no '{}'", name))
      .note("found", describe(object));
}

Shape numbers(const std::optional<PickleValue>& value, std::string_view what) {
  const auto extents = value ? extents_of(*value) : std::nullopt;
  if (!extents) throw invalid_spec(fmt::format("a distributed tensor has no valid {}", what));
  return *extents;
}

/// Sizes of the axes of a mesh, from its layout (PyTorch 2.10 on) or the tensor of its ranks.
Shape mesh_sizes(PickleValue mesh) {
  const auto layout = attribute(mesh, "_layout");
  if (!layout) {
    const PickleValue ranks = need(mesh, "mesh");
    const bool is_plain =
        is_tensor(ranks) && ranks.arguments().is(ValueKind::kTuple) && ranks.arguments().size() > 3;
    return numbers(is_plain ? std::optional(ranks.arguments()[2]) : std::nullopt, "mesh");
  }
  const auto axes = attribute(*layout, "axes");
  if (!axes) return numbers(attribute(*layout, "shape"), "mesh");
  Shape sizes;
  for (size_t i = 0; i < axes->size(); ++i) {
    const Shape parts = numbers(attribute((*axes)[i], "shape"), "mesh");
    const auto size = element_count(parts);
    if (!size) throw invalid_spec("the mesh of a distributed tensor is too large");
    sizes.push_back(*size);
  }
  return sizes;
}

std::vector<MeshAxis> mesh_axes(PickleValue mesh) {
  const Shape sizes = mesh_sizes(mesh);
  const Shape coordinate = numbers(attribute(mesh, "_coordinate_on_dim"), "coordinate");
  if (sizes.size() != coordinate.size()) {
    throw invalid_spec("the mesh and the rank's coordinate differ in their number of axes");
  }
  std::vector<MeshAxis> axes;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (coordinate[i] >= sizes[i]) throw invalid_spec("the rank's coordinate is not on the mesh");
    axes.push_back({sizes[i], coordinate[i]});
  }
  return axes;
}

i64 natural_number(PickleValue object, std::string_view name) {
  const auto value = attribute(object, name);
  if (value && value->is(ValueKind::kInteger) && value->integer() >= 0) return value->integer();
  throw invalid_spec(fmt::format("a placement has no valid '{}'", name));
}

Placement placement_of(PickleValue value, size_t tensor_axes) {
  using Kind = Placement::Kind;
  if (is_instance(value, "Replicate")) return {};
  const bool is_strided = is_instance(value, "_StridedShard");
  if (!is_strided && !is_instance(value, "Shard")) {
    throw Error(ErrorCode::kUnsupported, "the placement of a distributed tensor is not read")
        .note("found", describe(value))
        .note("expected", "Shard or Replicate")
        .help("redistribute the tensor in torch before it is saved");
  }
  Placement placement{is_strided ? Kind::kStridedShard : Kind::kShard};
  placement.axis = static_cast<size_t>(natural_number(value, "dim"));
  if (placement.axis >= tensor_axes)
    throw invalid_spec("a placement cuts an axis that is not there");
  if (is_strided) placement.earlier_shards = natural_number(value, "split_factor");
  return placement;
}

std::vector<Placement> placements_of(PickleValue spec, size_t tensor_axes) {
  const PickleValue values = need(spec, "placements");
  std::vector<Placement> placements;
  for (size_t i = 0; i < values.size(); ++i) {
    placements.push_back(placement_of(values[i], tensor_axes));
  }
  return placements;
}

/// The mesh axes that cut a tensor's axis, first cut first.
std::vector<size_t> order_of_cuts(const std::vector<Placement>& placements,
                                  const std::vector<MeshAxis>& mesh, size_t axis) {
  std::vector<size_t> order;
  i64 shards = 1;
  for (size_t i = placements.size(); i-- > 0;) {
    const Placement& placement = placements[i];
    if (placement.kind == Placement::Kind::kReplicate || placement.axis != axis) continue;
    const bool is_strided = placement.kind == Placement::Kind::kStridedShard;
    if (is_strided && placement.earlier_shards != shards) {
      throw Error(ErrorCode::kUnsupported, "a strided shard of a distributed tensor is not read")
          .note("found", fmt::format("split factor {}", placement.earlier_shards))
          .note("expected", fmt::format("{}, the shards that the later mesh axes make", shards));
    }
    order.insert(is_strided ? order.end() : order.begin(), i);
    const auto product = checked_mul(shards, mesh[i].size);
    if (!product) throw invalid_spec("the mesh of a distributed tensor is too large");
    shards = *product;
  }
  return order;
}

/// Throws if a spec records another order of cuts for an axis (PyTorch 2.10 on).
void check_order(PickleValue spec, size_t axis, const std::vector<size_t>& order) {
  const auto entries = attribute(spec, "shard_order");
  for (size_t i = 0; entries && i < entries->size(); ++i) {
    const PickleValue entry = (*entries)[i];
    const bool is_entry = entry.is(ValueKind::kObject) && entry.arguments().is(ValueKind::kTuple) &&
                          entry.arguments().size() == 2 &&
                          entry.arguments()[0].is(ValueKind::kInteger);
    if (!is_entry) throw invalid_spec("a distributed tensor has no valid order of cuts");
    const PickleValue cut = entry.arguments()[0];
    if (!std::cmp_equal(cut.integer(), axis)) continue;
    const Shape recorded = numbers(entry.arguments()[1], "order of cuts");
    if (std::ranges::equal(recorded, order, [](i64 a, size_t b) { return std::cmp_equal(a, b); }))
      continue;
    throw Error(ErrorCode::kUnsupported, "a distributed tensor is cut in an order that is not read")
        .note("found", shardtool::to_string(recorded))
        .help("redistribute the tensor in torch to the order of the mesh before it is saved");
  }
}

/// Cuts [begin, begin + size) as torch.chunk does: equal chunks, rounded up, the last ones shorter
/// or empty.
void cut_axis(i64& begin, i64& size, const MeshAxis& mesh) {
  if (size == 0) return;
  const i64 step = size / mesh.size + (size % mesh.size != 0 ? 1 : 0);
  const i64 full = size / step;
  const i64 skipped = mesh.coordinate > full ? size : std::min(size, step * mesh.coordinate);
  begin += skipped;
  size = std::min(step, size - skipped);
}

/// The begin and the shape of the part that the rank holds.
std::pair<Shape, Shape> part_of(const Shape& whole, PickleValue spec) {
  const std::vector<MeshAxis> mesh = mesh_axes(need(spec, "mesh"));
  const std::vector<Placement> placements = placements_of(spec, whole.size());
  if (placements.size() != mesh.size()) {
    throw invalid_spec("a distributed tensor has not one placement per mesh axis");
  }
  Shape begin(whole.size(), 0);
  Shape shape = whole;
  for (size_t axis = 0; axis < whole.size(); ++axis) {
    const std::vector<size_t> order = order_of_cuts(placements, mesh, axis);
    check_order(spec, axis, order);
    for (const size_t i : order) {
      cut_axis(begin[axis], shape[axis], mesh[i]);
    }
  }
  return {std::move(begin), std::move(shape)};
}

TensorSlot local_slot(PickleValue local, const Archive& archive) {
  if (is_tensor(local)) return tensor_slot(local, archive);
  throw Error(ErrorCode::kUnsupported, "the local shard of a distributed tensor is not read")
      .note("found", describe(local));
}

void require_shape(const Shape& found, const Shape& expected, const std::string& message,
                   const Shape& whole) {
  if (found == expected) return;
  throw invalid_spec(message)
      .note("found", shardtool::to_string(found))
      .note("expected",
            fmt::format("{} of {}", shardtool::to_string(expected), shardtool::to_string(whole)));
}

DistributedSlot slot_of_dtensor(const Shape& whole, PickleValue state, const Archive& archive) {
  const bool is_pair = state.is(ValueKind::kTuple) && state.size() == 2;
  const PickleValue fields = is_pair ? state[1] : state;
  const PickleValue local = need(fields, "_local_tensor");
  auto [begin, shape] = part_of(whole, need(fields, "_spec"));
  TensorSlot slot = local_slot(local, archive);
  require_shape(slot.shape, shape,
                "the local shard has another shape than the mesh and the placements say", whole);
  return {std::move(slot), {whole, std::move(begin)}};
}

/// The part of a rank that holds nothing.
DistributedSlot no_shard(const Shape& whole, PickleValue type) {
  const auto dtype = dtype_of(type);
  if (!dtype) {
    throw Error(ErrorCode::kUnsupported, "the element type is not supported")
        .note("found", describe(type));
  }
  if (whole.empty()) throw invalid_spec("a distributed tensor without axes has no local shard");
  const Shape zeros(whole.size(), 0);
  return {{*dtype, zeros}, {whole, zeros}};
}

/// The shards that a ShardedTensor has here, as its state lists them.
std::vector<DistributedSlot> local_shards(const Shape& whole, PickleValue state,
                                          const Archive& archive) {
  constexpr size_t kFields = 5;
  if (!state.is(ValueKind::kTuple) || state.size() != kFields || !state[0].is(ValueKind::kList) ||
      !is_instance(state[1], "ShardedTensorMetadata")) {
    throw invalid_spec("a sharded tensor has no valid state").note("found", describe(state));
  }
  require_shape(numbers(attribute(state[1], "size"), "size"), whole,
                "a sharded tensor has two shapes", whole);
  std::vector<DistributedSlot> shards;
  i64 elements_left = element_count(whole).value();
  for (size_t i = 0; i < state[0].size(); ++i) {
    const PickleValue shard = state[0][i];
    const PickleValue place = need(shard, "metadata");
    TensorSlot slot = local_slot(need(shard, "tensor"), archive);
    require_shape(slot.shape, numbers(attribute(place, "shard_sizes"), "sizes"),
                  "a shard has another shape than its metadata says", whole);
    elements_left -= element_count(slot.shape).value();
    if (elements_left < 0) {
      throw invalid_spec("the shards of a distributed tensor have more elements than the tensor");
    }
    shards.push_back(
        {std::move(slot), {whole, numbers(attribute(place, "shard_offsets"), "offsets")}});
  }
  return shards;
}

}  // namespace

bool is_distributed(PickleValue value) {
  if (!value.is(ValueKind::kObject)) return false;
  const PickleValue function = value.callable();
  const PickleValue arguments = value.arguments();
  if (!function.is_global("torch._tensor", "_rebuild_from_type_v2") ||
      !arguments.is(ValueKind::kTuple) || arguments.size() != 4) {
    return false;
  }
  const PickleValue type = arguments[1];
  return arguments[0].is_global("torch._utils", "_rebuild_wrapper_subclass") &&
         type.is(ValueKind::kGlobal) && type.module().starts_with("torch.distributed.") &&
         (type.name() == "DTensor" || type.name() == "ShardedTensor");
}

std::vector<DistributedSlot> distributed_slots(PickleValue value, const Archive& archive) {
  const bool is_dtensor = value.arguments()[1].name() == "DTensor";
  const PickleValue wrapper = value.arguments()[2];
  const PickleValue state = value.arguments()[3];
  const bool has_shape = wrapper.is(ValueKind::kTuple) && wrapper.size() > 2;
  const Shape whole = numbers(has_shape ? std::optional(wrapper[2]) : std::nullopt, "shape");
  if (!element_count(whole)) throw invalid_spec("a distributed tensor has too many elements");
  std::vector<DistributedSlot> slots;
  if (is_dtensor) {
    slots.push_back(slot_of_dtensor(whole, state, archive));
  } else {
    slots = local_shards(whole, state, archive);
    if (slots.empty()) slots.push_back(no_shard(whole, wrapper[1]));
  }
  return slots;
}

}  // namespace shardtool::format::torch
