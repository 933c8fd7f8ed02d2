#pragma once

#include "lib/ops/body.h"
#include "lib/ops/numbers.h"
#include "lib/ops/op_table.h"

/// Names of ops that the engine uses throughout.
namespace shardtool::engine {

using ops::activation_of;
using ops::add_columns;
using ops::aligned;
using ops::Choice;
using ops::Choosing;
using ops::Field;
using ops::is_field;
using ops::kUndecidableGap;
using ops::load_small;
using ops::load_vector;
using ops::multiply_rows;
using ops::number_of;
using ops::OpAt;
using ops::Part;
using ops::SmallWeight;
using ops::StoredWeight;
using ops::to_numbers;

}  // namespace shardtool::engine
