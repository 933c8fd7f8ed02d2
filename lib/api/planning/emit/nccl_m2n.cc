#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "lib/api/planning/emit/emit.h"
#include "lib/base/dtype.h"

namespace shardtool::api {
namespace {

using nlohmann::json;

constexpr std::string_view kNccl = "nccl-m2n";
constexpr i64 kM2nReplicate = -1;   ///< NCCL_RESHARD_REPLICATE
constexpr size_t kMostM2nAxes = 3;  ///< NCCL_RESHARD_MAX_TENSOR_DIMS

constexpr std::pair<Dtype, const char*> kNcclTypes[] = {
    {Dtype::kF64, "ncclFloat64"},       {Dtype::kF32, "ncclFloat32"},
    {Dtype::kF16, "ncclFloat16"},       {Dtype::kBF16, "ncclBfloat16"},
    {Dtype::kF8E4M3, "ncclFloat8e4m3"}, {Dtype::kF8E5M2, "ncclFloat8e5m2"},
    {Dtype::kI64, "ncclInt64"},         {Dtype::kI32, "ncclInt32"},
    {Dtype::kI8, "ncclInt8"},           {Dtype::kU64, "ncclUint64"},
    {Dtype::kU32, "ncclUint32"},        {Dtype::kU8, "ncclUint8"}};

std::string nccl_type(const TensorSpec& spec) {
  const auto* found =
      std::ranges::find(kNcclTypes, spec.dtype, [](const auto& row) { return row.first; });
  if (found == std::end(kNcclTypes))
    throw inexpressible(kNccl, spec, fmt::format("it has no name for {}", to_string(spec.dtype)));
  return found->second;
}

/// One side of a tensor's reshard.
class M2nSide {
 public:
  M2nSide(const EmittedTensor& tensor, i64 first_rank) : tensor_(tensor), first_rank_(first_rank) {
    std::vector<std::pair<i64, int>> by_rank;
    for (size_t h = 0; h < tensor.holders.ranks.size(); ++h)
      by_rank.emplace_back(tensor.holders.ranks[h], static_cast<int>(h));
    std::ranges::sort(by_rank);
    for (const auto& [rank, holder] : by_rank) {
      if (rank != by_rank.front().first + std::ssize(holders_))
        refuse("the devices that hold it are not consecutive");
      holders_.push_back(holder);
    }
    first_ = by_rank.front().first;
    set_cut();
    set_parts();
  }

  json descriptor() const {
    Shape local = tensor_.spec.shape;
    if (cut_) local[*cut_] /= parts_;
    const i64 replicas = std::ssize(holders_) / parts_;
    const auto shard = static_cast<i64>(cut_.value_or(0));
    const json dims = is_slow_ ? json{parts_, replicas} : json{replicas, parts_};
    const json placement = is_slow_ ? json{shard, kM2nReplicate} : json{kM2nReplicate, shard};
    return {
        {"localShape", local},
        {"mesh", {{"dims", dims}, {"startRank", first_rank_ + first_}, {"placement", placement}}}};
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw inexpressible(kNccl, tensor_.spec, why);
  }

  /// Finds the tensor axis of which devices have different parts.
  void set_cut() {
    const index::HolderSet& set = *tensor_.holders.set;
    for (int axis = 0; axis < set.rank(); ++axis) {
      for (const int holder : holders_) {
        const index::AxisMap map = set.region(holder)[static_cast<size_t>(axis)];
        if (map.is_identity()) continue;
        if (cut_ && *cut_ != static_cast<size_t>(axis)) refuse("several of its axes are cut");
        cut_ = static_cast<size_t>(axis);
      }
    }
  }

  /// Numbers the parts, and finds if they vary along the slow or the fast axis of the mesh.
  void set_parts() {
    if (!cut_) return;
    const i64 size = tensor_.spec.shape[*cut_];
    std::vector<i64> begins;
    i64 each = 0;
    for (const int holder : holders_) {
      const index::AxisMap map = tensor_.holders.set->region(holder)[*cut_];
      const auto begin = index::interval_begin(map);
      if (!begin)
        refuse(fmt::format("a rank has {} of axis {}, which is not one interval",
                           index::to_string(map), *cut_));
      if (each == 0) each = map.local_size();
      if (map.local_size() != each || each == 0 || size % each != 0 || *begin % each != 0)
        refuse(fmt::format("axis {} of {} is cut into unequal shards", *cut_, size));
      begins.push_back(*begin);
    }
    parts_ = size / each;
    const i64 replicas = std::ssize(holders_) / parts_;
    const auto fits = [&](const auto& part_of) {
      for (i64 i = 0; i < std::ssize(begins); ++i) {
        if (begins[static_cast<size_t>(i)] != part_of(i) * each) return false;
      }
      return true;
    };
    if (fits([&](i64 i) { return i % parts_; })) return;
    is_slow_ = true;
    if (!fits([&](i64 i) { return i / replicas; }))
      refuse("its shards are not in the order of two mesh axes");
  }

  const EmittedTensor& tensor_;
  i64 first_rank_;  ///< of all ranks of the side
  i64 first_ = 0;   ///< that holds the tensor
  std::vector<int> holders_;
  std::optional<size_t> cut_;
  i64 parts_ = 1;
  bool is_slow_ = false;
};

}  // namespace

std::string nccl_m2n_json(const EmittedLayout& from, const EmittedLayout& to) {
  std::map<std::string_view, const EmittedTensor*> sources;
  for (const EmittedTensor& tensor : from.tensors) sources[tensor.spec.name] = &tensor;
  json tensors = json::array();
  for (const EmittedTensor& tensor : to.tensors) {
    const TensorSpec& spec = tensor.spec;
    const auto source = sources.find(spec.name);
    if (source == sources.end())
      throw inexpressible(kNccl, spec, "the layout that the reshard begins at lacks it");
    if (spec.shape.empty() || spec.shape.size() > kMostM2nAxes)
      throw inexpressible(
          kNccl, spec,
          fmt::format("it has {} axes, and one to three are allowed", spec.shape.size()));
    tensors.push_back({{"name", spec.name},
                       {"ndims", spec.shape.size()},
                       {"dtype", nccl_type(spec)},
                       {"src", M2nSide(*source->second, 0).descriptor()},
                       {"dst", M2nSide(tensor, from.mesh.size()).descriptor()}});
  }
  return json{{"format", "nccl-m2n"},
              {"ranks", {{"src", from.mesh.size()}, {"dst", to.mesh.size()}}},
              {"tensors", tensors}}
             .dump(1) +
         "\n";
}

}  // namespace shardtool::api
