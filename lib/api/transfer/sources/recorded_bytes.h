#pragma once

#include <set>
#include <vector>

#include "lib/api/transfer/sources/logical_checkpoint.h"
#include "lib/api/validate.h"
#include "lib/check/finding.h"
#include "lib/comm/communicator.h"
#include "lib/engine/diagnosis/recorded_bytes.h"

namespace shardtool::api {

/// Returns the hashes in the shards' manifests, which must outlive the result. Tensors that
/// `is_gathered`, by index, are not read shard by shard.
engine::RecordedHashes recorded_hashes(const LogicalCheckpoint& shards,
                                       std::vector<bool> is_gathered);

/// Reads the tensors that a validation left unread, each process its share, and adds the
/// differences; the result is the same in all processes. Returns the bytes that all processes read.
/// Throws the errors of reading.
i64 hold_unread(const LogicalCheckpoint& shards, const ValidateOptions& options,
                comm::Communicator& comm, engine::RecordedBytes& recorded);

/// Compares the constants that an engine's layout added with the values in the manifests, and
/// returns the differences as findings of `check --read-data`. Throws the errors of reading.
std::vector<check::Finding> wrong_constants(const LogicalCheckpoint& shards,
                                            const exec::Resources& resources);

/// Compares the tensors that the verdict judges, and neither compared nor tested, with the
/// reference's of the same name, each process its share, and adds them to `compared`; the result is
/// the same in all processes. Skips tensors of another dtype or shape and values that differ by
/// device. Returns the number of parts compared. Throws the errors of reading.
i64 compare_unread(const LogicalCheckpoint& shards, const LogicalCheckpoint& reference,
                   const ValidateOptions& options, comm::Communicator& comm,
                   const engine::Verdict& verdict, engine::ComparedBytes& compared);

/// Returns the differences as findings of `check --read-data`.
std::vector<check::Finding> findings_of(const LogicalCheckpoint& shards,
                                        const engine::RecordedBytes& recorded);

}  // namespace shardtool::api
