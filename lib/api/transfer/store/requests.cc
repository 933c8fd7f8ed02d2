#include "lib/api/transfer/store/requests.h"

#include <algorithm>

#include "lib/api/transfer/store/budget.h"
#include "lib/api/transfer/store/copying.h"
#include "lib/exec/stream.h"

namespace shardtool::api {

SourceRequests count_requests_to_store(const WriteRun& run, const WriteOptions& options,
                                       const std::vector<bool>& is_mine) {
  const auto sources = exec::open_sources(run.source.files, options.io);
  StoreCopying copying(run, options, sources);
  const i64 part_bytes = part_bytes_for(run.plan.files.size(), options.resources);
  std::vector<store::s3::PartedObject> objects;
  for (size_t f = 0; f < run.plan.files.size(); ++f) {
    objects.push_back({{}, "", copying.parts_of(f, run.plan.files[f].size, part_bytes)});
  }
  copying.settle(objects, true);
  std::vector<size_t> others;
  for (const size_t t : run.order) {
    if (is_mine[t] && !copying.has(t)) others.push_back(t);
  }
  const auto reads =
      exec::store_reads({run.moves, others}, sources, resources_of_moves(options.resources, true));
  SourceRequests all = copying.requests(is_mine);
  const double needed = static_cast<double>(std::max<i64>(reads.needed + all.bytes, 1));
  all.requests += reads.requests;
  all.bytes += reads.bytes;
  all.read_amplification = static_cast<double>(all.bytes) / needed;
  return all;
}

}  // namespace shardtool::api
