#include "lib/engine/weights/cut_side.h"

#include <algorithm>
#include <functional>

#include "lib/base/error.h"
#include "lib/engine/weights/block_grid.h"
#include "lib/engine/weights/stored_part.h"
#include "lib/model/weight_scales.h"

namespace shardtool::engine {
namespace {

Error two_in_one(const Side& whole, size_t one, size_t other) {
  return std::move(
      Error(ErrorCode::kUnsupported,
            "the order-matched run needs tensors of one dtype in the unsharded model where "
            "the shards have one tensor for both")
          .tensor(whole.tensors[one].name)
          .note("other", whole.tensors[other].name)
          .help("leave --ordered out"));
}

Error other_tensors(const Side& side, size_t tensor) {
  return std::move(
      Error(ErrorCode::kUnsupported,
            "the order-matched run needs the same tensors in the shards and in the unsharded model")
          .tensor(side.tensors[tensor].name)
          .help(
              "leave --ordered out: the field and f64 runs compare the results of these tensors"));
}

}  // namespace

/// Reads a device's expected part.
class CutSide::Source final : public WeightSource {
 public:
  explicit Source(const CutSide& cut) : cut_(cut) {}

  void read(const StoredRows& rows, std::span<std::byte> bytes) const override {
    const auto parts = part_with_copies(cut_.side_, cut_.side_, rows.tensor, rows.rank);
    const auto& from = cut_.whole_tensor_.at(rows.tensor);
    if (parts.empty() || !from) throw other_tensors(cut_.side_, rows.tensor);
    std::ranges::fill(bytes, std::byte{0});
    for (const StoredPart& part : parts) add_part(part, *from, rows, bytes);
  }

 private:
  /// Each part fills its own bytes and leaves zeros elsewhere.
  void add_part(const StoredPart& part, size_t from, const StoredRows& rows,
                std::span<std::byte> bytes) const {
    if (!part.has_outer || rows.outer >= 0) return add_matrix(part, from, rows, bytes);
    const i64 inner = part.rows.local_size();
    const auto size = static_cast<size_t>(inner * part.row_bytes());
    for (i64 outer = rows.begin; outer < rows.end; ++outer) {
      const auto at = static_cast<size_t>(outer - rows.begin) * size;
      add_matrix(part, from, {rows.tensor, rows.rank, outer, 0, inner}, bytes.subspan(at, size));
    }
  }

  void add_matrix(const StoredPart& part, size_t from, const StoredRows& rows,
                  std::span<std::byte> bytes) const {
    auto matrix = expected_matrix(part, std::max<i64>(0, rows.outer));
    if (!matrix) return;
    matrix->tensor = from;
    const ByteRows added = whole_rows(cut_.whole_, *matrix, rows.begin, rows.end);
    std::ranges::transform(bytes, added, bytes.begin(), std::bit_or<>());
  }

  const CutSide& cut_;
};

CutSide::CutSide(const Side& whole, const Side& shards, std::span<const LayerPair> layers)
    : whole_(whole),
      shards_(shards),
      tensors_(shards.tensors.begin(), shards.tensors.end()),
      whole_tensor_(shards.tensors.size()),
      source_(std::make_unique<Source>(*this)),
      side_(shards) {
  for (const LayerPair& layer : layers) {
    for (size_t step = 0; step < layer.whole.flow.steps.size(); ++step) {
      pair_tensors(*layer.whole.flow.steps[step].op, *layer.shards.flow.steps[step].op);
    }
  }
  side_.tensors = tensors_;
  for (size_t t = shards.tensors.size(); t < tensors_.size(); ++t) {
    side_.by_name[tensors_[t].name] = t;
  }
  side_.layouts = [this](size_t tensor) -> const layout::Layout& {
    const size_t own = shards_.tensors.size();
    return tensor < own ? shards_.layouts(tensor) : *added_[tensor - own];
  };
  side_.weights = source_.get();
  side_.sum_bias = [&shards](size_t tensor) {
    const bool is_divided = shards.sum_bias(tensor) == SumBias::kDivided;
    return is_divided ? SumBias::kToDivide : SumBias::kAfterReduction;
  };
}

CutSide::~CutSide() = default;

void CutSide::pair_tensors(const ops::BoundOp& of_whole, const ops::BoundOp& of_shards) {
  const size_t weights = std::max(of_whole.weights.size(), of_shards.weights.size());
  const auto tensors_of = [](const ops::BoundOp& op, size_t weight) {
    return weight < op.weights.size() ? op.weights[weight] : ops::BoundWeight();
  };
  for (size_t weight = 0; weight < weights; ++weight) {
    const ops::BoundWeight a = tensors_of(of_whole, weight);
    const ops::BoundWeight b = tensors_of(of_shards, weight);
    if (a.size() > b.size()) throw other_tensors(whole_, a.back());
    if (b.size() > a.size()) throw other_tensors(shards_, b.back());
    for (size_t i = 0; i < a.size(); ++i) {
      pair(a[i], b[i]);
      pair_scales(a[i], b[i]);
    }
  }
}

void CutSide::pair_scales(size_t of_whole, size_t of_shards) {
  if (bits(whole_.tensors[of_whole].dtype) != 8) return;
  const auto a = scale_tensor_of(whole_, of_whole);
  const auto b = scale_tensor_of(shards_, of_shards);
  if (b && !a) throw other_tensors(shards_, *b);
  if (a && b) pair(*a, *b);
  if (!a) return;
  if (!b) {
    const auto of_names = model::scale_names(whole_.tensors[of_whole].name);
    const auto kind = std::ranges::find(of_names, whole_.tensors[*a].name) - of_names.begin();
    const auto names = model::scale_names(shards_.tensors[of_shards].name);
    add_whole(*a, names.at(static_cast<size_t>(kind)));
  }
  const auto zeros = zero_tensor_of(whole_, of_whole);
  const auto stored = zero_tensor_of(shards_, of_shards);
  if (stored && !zeros) throw other_tensors(shards_, *stored);
  if (zeros && stored) pair(*zeros, *stored);
  if (zeros && !stored) add_whole(*zeros, model::zero_point_name(shards_.tensors[of_shards].name));
}

/// Adds scales or zero points, whole on every device, which uses its own range.
void CutSide::add_whole(size_t of_whole, std::string name) {
  TensorSpec spec = whole_.tensors[of_whole];
  spec.name = std::move(name);
  const auto is_same = [&spec](const TensorSpec& other) { return other.name == spec.name; };
  if (std::ranges::any_of(tensors_, is_same)) return;
  added_.push_back(
      std::make_unique<layout::Layout>(layout::Layout::replicated(shards_.mesh, spec.shape)));
  tensors_.push_back(std::move(spec));
  whole_tensor_.push_back(of_whole);
}

void CutSide::pair(size_t of_whole, size_t of_shards) {
  const Dtype dtype = whole_.tensors[of_whole].dtype;
  const auto known = whole_tensor_[of_shards];
  if (known && *known != of_whole && tensors_[of_shards].dtype != dtype) {
    throw two_in_one(whole_, *known, of_whole);
  }
  whole_tensor_[of_shards] = of_whole;
  tensors_[of_shards].dtype = dtype;
  side_.unpacked.erase(of_shards);
  if (whole_.is_turned(of_whole)) side_.unpacked[of_shards] = {{}, true};
}

}  // namespace shardtool::engine
