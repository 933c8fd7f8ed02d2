#pragma once

#include <vector>

#include "lib/api/transfer/logical_checkpoint.h"
#include "lib/api/validate.h"
#include "lib/check/finding.h"
#include "lib/comm/communicator.h"
#include "lib/engine/diagnosis/recorded_bytes.h"

namespace shardtool::api {

/// The hashes in the manifests of the shards, which must outlive the result.
engine::RecordedHashes recorded_hashes(const LogicalCheckpoint& shards);

/// Reads the tensors that a validation left unread, each process its share of them, and adds what
/// differs, the same in all. Returns the bytes that all read. Throws what reading throws.
i64 hold_unread(const LogicalCheckpoint& shards, const ValidateOptions& options,
                comm::Communicator& comm, engine::RecordedBytes& recorded);

/// The differences, as `check --read-data` tells it.
std::vector<check::Finding> findings_of(const LogicalCheckpoint& shards,
                                        const engine::RecordedBytes& recorded);

}  // namespace shardtool::api
