#pragma once

#include <string>
#include <vector>

#include "lib/base/shape.h"

/// Opcodes of the objects of torch.distributed in files of ranks.
namespace shardtool::test {

/// Opcodes of an entry of a dictionary or of an object's state.
std::string pickled_member(const std::string& key, const std::string& value);
std::string pickled_integer(i64 number);
/// Opcodes of a list, as opposed to a tuple.
std::string pickled_list(const Shape& numbers);

/// A cut of a test: axis of the tensor, or -1 for replicas. A strided cut comes after the later
/// ones.
struct PlacedCut {
  i64 axis = -1;
  i64 split_factor = 0;  ///< 0: not strided
};

/// A distributed tensor of a test.
struct DistributedTensor {
  Shape whole;
  Shape sizes;  ///< of the mesh
  std::vector<PlacedCut> cuts;
  int form = 2;
};

/// Opcodes of a DTensor whose local tensor is all of storage "0".
std::string pickled_dtensor(const DistributedTensor& tensor, const Shape& coordinate,
                            const Shape& local);

/// A shard of a ShardedTensor: a range of rows of a tensor.
struct RowShard {
  i64 begin = 0;
  i64 rows = 0;
};

/// Opcodes of a ShardedTensor of two axes with these shards, which are end to end in storage "0".
std::string pickled_shards(const Shape& whole, const std::vector<RowShard>& shards);

}  // namespace shardtool::test
