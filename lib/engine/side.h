#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/decode/decode.h"
#include "lib/base/name_map.h"
#include "lib/base/tensor_spec.h"
#include "lib/engine/weights/weight_source.h"
#include "lib/mapping/document/config.h"
#include "lib/mesh/mesh.h"
#include "lib/model/bind.h"
#include "lib/model/flow/flow.h"

namespace shardtool::engine {

/// How a bias that is added to a sum over devices is stored, so that the sum has it once.
enum class SumBias {
  kAfterReduction,  ///< every device has all of it; it counts once
  kOwnShare,        ///< every device adds what it has: all or nothing
  kDivided,         ///< every device has an equal share and adds it
  kToDivide,        ///< every device has all of it and adds an equal share
};

/// A weight that no file has as it is: others are its parts.
struct UnpackedWeight {
  std::vector<size_t> members;
  bool is_turned = false;  ///< it is read by the columns of its shape: as [in, out]
};

/// One of the two models that are compared: the whole one, on a mesh of one device, or the shards.
struct Side {
  const model::Model* model = nullptr;
  const mapping::ModelConfig* config = nullptr;
  std::span<const TensorSpec> tensors;
  model::LayoutOf layouts;
  mesh::Mesh mesh;
  const WeightSource* weights = nullptr;
  std::function<SumBias(size_t tensor)> sum_bias;
  NameViewMap<size_t> by_name;                ///< of `tensors`
  std::map<size_t, UnpackedWeight> unpacked;  ///< by tensor

  bool is_turned(size_t tensor) const;
  /// What a device has of a tensor. Throws kUnsupported when it has none of it.
  index::Region region(size_t tensor, i64 rank) const;
};

/// What goes through a model: `sequences` sequences of `length` tokens each; row s * length + t of
/// every value is token t of sequence s.
struct Inputs {
  i64 sequences = 1;
  i64 length = 1;
  std::vector<i64> tokens;     ///< ids, one per row, of tables that are looked up
  std::vector<float> given;    ///< what enters beside tokens, row by row; none: any numbers
  bool has_images = true;      ///< where the model takes them; else words alone
  bool ends_with_word = true;  ///< of several positions, however many an image would take
  std::uint64_t seed = 0;      ///< of residues
  kernels::NumberMap map = kernels::NumberMap::kBits;  ///< of residues
  /// Every value is rounded to it, as an engine of that type stores it; F32: as it is; of float.
  Dtype activations = Dtype::kF32;
  /// Products in the weights' type, where the accelerator's library has it; of float. Requires that
  /// the accelerator has a library.
  bool uses_library = false;
  i64 most_window = 0;  ///< a longer sliding window counts as this long; 0: as it is
  const std::atomic<bool>* cancel = nullptr;  ///< ends what takes long; see throw_if_stopped

  i64 rows() const { return sequences * length; }
};

}  // namespace shardtool::engine
