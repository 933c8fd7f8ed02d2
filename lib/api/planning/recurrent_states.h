#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lib/api/mapping_choice.h"
#include "lib/mapping/document/config.h"
#include "lib/model/graph/graph.h"

namespace shardtool::api {

/// What the layers of linear attention and state spaces keep of a sequence, however long it is.
struct RecurrentStates {
  std::vector<i64> bytes;  ///< per device, of one sequence; empty where no layer is one of these
  std::string why_not;     ///< why states that there are were not counted; else empty
};

/// As the family's graph says: of each head that a device has key_dim x value_dim numbers in f32,
/// and of each feature that it convolves the taps - 1 positions before, `bits` an element. Of a
/// family without a graph they are not counted. `own` is a graph of one's own, or null. `config`
/// may be null.
RecurrentStates recurrent_states(const mapping::ModelConfig* config,
                                 std::shared_ptr<const model::Graph> own,
                                 const AppliedMapping& applied, int bits);

}  // namespace shardtool::api
