#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/base/tensor_spec.h"
#include "lib/mapping/document/config.h"
#include "lib/mapping/mapping.h"
#include "lib/mapping/resolve/resolve.h"

namespace shardtool::mapping {

/// Content of a tensor in an output file: one tensor of the checkpoint, or several end to end.
///
/// On each device, the parts are the shards that it holds. So the bytes of an output tensor are
/// those of its shards in order:
///
///     qkv_proj on rank 0    |== q rows of rank 0 ==|= k rows =|= v rows =|      kConcat
///     w13_weight on rank 0  |= gate 0 =|= up 0 =|= gate 1 =|= up 1 =| ...       kStack of kConcat
struct Content {
  enum class Kind {
    kTensor,
    kConcat,  ///< along axis 0; a part without axes counts as one element
    kStack,   ///< along a new first axis; a device has those of the parts that it holds
  };
  Kind kind = Kind::kTensor;
  size_t tensor = 0;           ///< of kTensor: index into the specs
  std::vector<Content> parts;  ///< of the other kinds; not empty
  /// Rows of a unit that are stored interleaved (index/interleave.h), only of kTensor; 0: in order.
  i64 interleaved = 0;
  size_t joined = 0;  ///< number of last axes that are one in the file, only of kTensor; 0: none
};

/// A tensor in the output files, with the name that they give it.
struct OutputTensor {
  std::string name;
  Content content;
  /// If set, the output tensor is this constant, on the devices that hold `content`, a kTensor.
  std::optional<StoredConstant> constant;
  /// Devices whose shards have this name, ascending; empty: all. Only of kTensor.
  std::vector<i64> ranks = {};
};

/// Tensor that is left out because it must be equal to another one; indices into the specs.
struct LeftOut {
  size_t tensor = 0;
  size_t equal_to = 0;
};

/// Tensors of the output files.
struct OutputTensors {
  std::vector<OutputTensor> tensors;  ///< sorted by name
  std::vector<LeftOut> left_out;
};

/// True if config.json has the values that the rule asks for.
bool holds_for(const StoreRule& rule, const ModelConfig* config);

/// Applies the rules in "store" of all documents, nearest first; the first rule that takes a tensor
/// wins. Every tensor with `is_stored` is left out or in exactly one output tensor without a
/// constant; those that no rule takes keep their names. Rules with "at" give a tensor several
/// output tensors, each on other devices. `axis_sizes` are those of the resolution, and `layouts`
/// the tensors' layouts; null: all tensors are on one device. Returns nullopt if there are no
/// rules. Throws kStrategy with the rule's place if a part is missing or names collide; kTied if
/// tensors that must be equal have other shapes; kNoRule for a tensor that no rule takes and whose
/// name "unstored" of a document does not keep.
std::optional<OutputTensors> output_tensors(const Mapping& mapping,
                                            std::span<const TensorSpec> tensors,
                                            const std::vector<bool>& is_stored,
                                            const ModelConfig* config,
                                            const std::map<std::string, i64>& axis_sizes,
                                            const Resolution* layouts);

}  // namespace shardtool::mapping
