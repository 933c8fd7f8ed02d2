#pragma once

#include "lib/model/bind.h"

namespace shardtool::model {

/// Sets what every layer of a bound model passes (B3). Throws kMappingSchema, with its place, for a
/// value that an op reads and none before it makes.
void order_values(Model& model);

}  // namespace shardtool::model
