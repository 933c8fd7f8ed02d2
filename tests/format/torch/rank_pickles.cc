#include "tests/format/torch/rank_pickles.h"

#include "tests/support/torch_files.h"

namespace shardtool::test {
namespace {

const std::string kTensorModule = "torch.distributed.tensor";
const std::string kPlacementModule = "torch.distributed.tensor.placement_types";

/// Opcodes of an object with this state.
std::string object(const std::string& module, const std::string& name, const std::string& entries) {
  const std::string made = PickleWriter().global(module, name).raw(")\x81").opcodes();
  return entries.empty() ? made : made + "}(" + entries + "ub";
}

std::string integers(const Shape& numbers) {
  return PickleWriter().integers(numbers).opcodes();
}

std::string placement(const PlacedCut& cut) {
  if (cut.axis < 0) return object(kPlacementModule, "Replicate", "");
  const std::string dim = pickled_member("dim", pickled_integer(cut.axis));
  if (cut.split_factor == 0) return object(kPlacementModule, "Shard", dim);
  return object(kPlacementModule, "_StridedShard",
                dim + pickled_member("split_factor", pickled_integer(cut.split_factor)));
}

/// The mesh in the forms of PyTorch 2.6, 2.10 and 2.13.
std::string mesh_opcodes(int form, const Shape& sizes, const Shape& coordinate) {
  const std::string module = "torch.distributed._mesh_layout";
  std::string entries = pickled_member("_coordinate_on_dim", integers(coordinate));
  if (form == 0) {
    const i64 ranks = element_count(sizes).value();
    entries += pickled_member(
        "mesh", torch_tensor({"", Dtype::kI32, sizes}, {"1", ranks, 0, row_major(sizes)}));
  } else if (form == 1) {
    entries += pickled_member(
        "_layout", object(module, "_MeshLayout", pickled_member("shape", integers(sizes))));
  } else {
    std::string axes = "(";
    for (const i64 size : sizes)
      axes += object(module, "_FlatLayout", pickled_member("shape", integers({size})));
    entries += pickled_member("_layout",
                              object(module, "_MeshLayout", pickled_member("axes", axes + "t")));
  }
  return object("torch.distributed.device_mesh", "DeviceMesh", entries);
}

}  // namespace

std::string pickled_member(const std::string& key, const std::string& value) {
  return PickleWriter().text(key).raw(value).opcodes();
}

std::string pickled_list(const Shape& numbers) {
  std::string opcodes = "](";
  for (const i64 number : numbers) opcodes += PickleWriter().integer(number).opcodes();
  return opcodes + "e";
}

std::string pickled_integer(i64 number) {
  return PickleWriter().integer(number).opcodes();
}

std::string pickled_dtensor(const DistributedTensor& c, const Shape& coordinate,
                            const Shape& local) {
  std::string placements = "(";
  for (const PlacedCut& cut : c.cuts) placements += placement(cut);
  const std::string spec =
      object("torch.distributed.tensor._dtensor_spec", "DTensorSpec",
             pickled_member("mesh", mesh_opcodes(c.form, c.sizes, coordinate)) +
                 pickled_member("placements", placements + "t"));
  const std::string tensor = torch_tensor({"", Dtype::kI32, local},
                                          {"0", element_count(local).value(), 0, row_major(local)});
  return PickleWriter()
      .global("torch._tensor", "_rebuild_from_type_v2")
      .raw("(")
      .global("torch._utils", "_rebuild_wrapper_subclass")
      .global(kTensorModule, "DTensor")
      .raw("(")
      .global(kTensorModule, "DTensor")
      .global("torch", "int32")
      .raw(integers(c.whole) + "t")
      .raw("N}(" + pickled_member("_local_tensor", tensor) + pickled_member("_spec", spec) +
           "u\x86tR")
      .opcodes();
}

std::string pickled_shards(const Shape& whole, const std::vector<RowShard>& shards) {
  const std::string module = "torch.distributed._shard.";
  i64 elements = 0;
  for (const RowShard& shard : shards) elements += shard.rows * whole[1];
  std::string list = "](";
  i64 offset = 0;
  for (const RowShard& shard : shards) {
    const Shape local = {shard.rows, whole[1]};
    const std::string tensor =
        torch_tensor({"", Dtype::kI32, local}, {"0", elements, offset, row_major(local)});
    const std::string place =
        object(module + "metadata", "ShardMetadata",
               pickled_member("shard_offsets", pickled_list({shard.begin, 0})) +
                   pickled_member("shard_sizes", pickled_list(local)));
    list += object(module + "sharded_tensor.shard", "Shard",
                   pickled_member("tensor", tensor) + pickled_member("metadata", place));
    offset += shard.rows * whole[1];
  }
  const std::string metadata = object(module + "sharded_tensor.metadata", "ShardedTensorMetadata",
                                      pickled_member("size", integers(whole)));
  return PickleWriter()
      .global("torch._tensor", "_rebuild_from_type_v2")
      .raw("(")
      .global("torch._utils", "_rebuild_wrapper_subclass")
      .global(module + "sharded_tensor.api", "ShardedTensor")
      .raw("(")
      .global(module + "sharded_tensor.api", "ShardedTensor")
      .global("torch", "int32")
      .raw(integers(whole) + "t")
      .raw("(" + list + "e" + metadata + "NNNttR")
      .opcodes();
}

}  // namespace shardtool::test
