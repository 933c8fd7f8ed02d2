#include "lib/api/transfer/sources/stored_data.h"

#include "kernels/xxh3/xxh3.h"

namespace shardtool::api {

check::DataTensor stored_data(const LogicalTensor& tensor) {
  check::DataTensor data{tensor.spec, tensor.side, tensor.ranks, {}, tensor.digest, tensor.shifts};
  for (const format::TensorRecord* record : tensor.records) {
    for (const format::ShardRecord& shard : record->shards) {
      if (shard.xxh3) data.xxh3.push_back(*shard.xxh3);
    }
  }
  return data;
}

check::DataTensor stored_data(const LogicalConstant& constant) {
  const format::ConstantRecord& record = *constant.record;
  const std::string bytes = constant_bytes(record);
  auto holders = std::make_shared<const index::HolderSet>(index::HolderSet::whole(record.shape));
  return {{record.name, record.dtype, record.shape},
          {std::move(holders), {constant.slot}},
          {},
          {kernels::xxh3(std::as_bytes(std::span(bytes)))},
          {}};
}

}  // namespace shardtool::api
