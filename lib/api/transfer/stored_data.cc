#include "lib/api/transfer/stored_data.h"

namespace shardtool::api {

check::DataTensor stored_data(const LogicalCheckpoint& checkpoint, const LogicalTensor& tensor) {
  check::DataTensor data{tensor.spec, tensor.side, tensor.ranks, {}, tensor.digest, tensor.shifts};
  if (tensor.record == nullptr) return data;
  const auto number = static_cast<size_t>(&tensor - checkpoint.tensors.data());
  for (const checkpoint::Checkpoint& part : checkpoint.parts) {
    for (const checkpoint::ShardRecord& shard : part.manifest->tensors[number].shards) {
      data.xxh3.push_back(shard.xxh3.value());
    }
  }
  return data;
}

}  // namespace shardtool::api
