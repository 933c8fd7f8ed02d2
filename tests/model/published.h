#pragma once

#include <string>
#include <vector>

#include "lib/base/tensor_spec.h"
#include "lib/mapping/document/config.h"
#include "lib/mapping/resolve/resolve.h"
#include "lib/model/bind.h"
#include "lib/model/flow/flow.h"

/// Published models at their own sizes: the tensors follow from config.json and the graph.
namespace shardtool::model {

struct Published {
  mapping::ModelConfig config;
  std::vector<TensorSpec> tensors;
  Model bound;

  i64 parameters() const;
  /// The layouts that the family's preset gives on a mesh.
  mapping::Resolution on(const std::string& mesh) const;
};

/// The tensors of a family whose layers are all alike, without optional ones; a head of its own
/// unless the config ties it.
Published published(const std::string& config, Dtype dtype = Dtype::kBF16);

Published llama_3_8b(Dtype dtype = Dtype::kBF16);
Published llama_3_70b(Dtype dtype = Dtype::kBF16);
Published llama_3_405b();

/// The layouts of a resolution by tensor, as flow asks for them.
LayoutOf layouts_of(const mapping::Resolution& resolution, size_t tensors);

}  // namespace shardtool::model
