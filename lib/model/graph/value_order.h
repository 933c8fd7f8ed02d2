#pragma once

#include "lib/model/bind.h"

namespace shardtool::model {

/// Sets the values that every layer of a bound model passes (B3). Throws kMappingSchema with its
/// place for a value that an op reads before any op makes it.
void order_values(Model& model);

}  // namespace shardtool::model
