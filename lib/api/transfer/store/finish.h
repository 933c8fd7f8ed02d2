#pragma once

#include <string>

#include "lib/api/finish.h"
#include "lib/api/transfer/share_record.h"
#include "lib/api/transfer/write_files.h"
#include "lib/store/s3/parted_output.h"

namespace shardtool::api {

class OwnedPrefix;
class StorePlace;

/// Does finish() for an output s3://bucket/prefix.
FinishReport finish_on_store(const FinishOptions& options);
/// Does it if all shares of the run with this id (RunIdentity::id) have ended.
LastShare finish_on_store_if_last(const FinishOptions& options, const std::string& id, int shares);

/// Shares of a run that have a record on the store.
std::vector<Share> ended_on_store(const StorePlace& place, const std::string& id);
/// Puts the record of a share on the store.
void put_share_record(const StorePlace& place, const std::string& id, const ShareRecord& record);

/// Sends manifest.json with `count` tensors. Throws kOtherRun if the prefix is another run's.
void put_manifest(const OwnedPrefix& prefix, const format::Manifest& head, size_t count,
                  const RecordOf& record);

/// Completes the objects of an output: puts parts together, makes the objects, and hashes the
/// shards of `manifest` that could not be hashed before. Throws kFileMissing if parts are missing.
void complete_objects(store::s3::PartedOutput& output, const StorePlace& place,
                      format::Manifest& manifest);

}  // namespace shardtool::api
