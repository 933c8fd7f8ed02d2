#pragma once

#include <string>
#include <vector>

#include "lib/base/tensor_spec.h"
#include "lib/mapping/document/config.h"
#include "lib/mapping/resolve/resolution.h"
#include "lib/model/bind.h"
#include "lib/model/flow/flow.h"
#include "lib/model/price.h"
#include "lib/model/weight_gathers.h"

/// Published models at full size: tensors derived from config.json and the graph.
namespace shardtool::model {

struct Published {
  mapping::ModelConfig config;
  std::vector<TensorSpec> tensors;
  Model bound;

  i64 parameters() const;
  /// Returns the layouts of the family's preset on a mesh.
  mapping::Resolution on(const std::string& mesh) const;
};

/// Tensors of a family with uniform layers, without optional ones; with a separate head unless the
/// config ties it.
Published published(const std::string& config, Dtype dtype = Dtype::kBF16);

Published llama_3_8b(Dtype dtype = Dtype::kBF16);
Published llama_3_70b(Dtype dtype = Dtype::kBF16);
Published llama_3_405b();

/// Returns the layouts of a resolution by tensor, in the form that flow takes.
LayoutOf layouts_of(const mapping::Resolution& resolution, size_t tensors);

/// The same for weights that are computed with as they are stored.
StoredWeights weights_of(const mapping::Resolution& resolution, size_t tensors);

/// Returns the prices of both passes for one workload (ForwardPass).
Price price(const Model& model, std::span<const TensorSpec> tensors, const StoredWeights& weights,
            const mesh::Mesh& mesh, const ReplicaWorkload& workload,
            const plan::HardwareProfile* profile);

}  // namespace shardtool::model
