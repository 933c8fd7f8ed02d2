#pragma once

#include <functional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "lib/api/transfer/share_record.h"
#include "lib/exec/resources.h"

namespace shardtool::api {

/// Number of shares that the records of a run are of: one that is complete, or else the one with
/// the most records. Requires records.
int shares_of_records(std::span<const Share> ended);
/// Numbers of the shares, of so many, that have not ended.
std::vector<int> missing_of(std::span<const Share> ended, int shares);
/// Throws kShareMissing unless all of so many shares have ended. `place` is what they write to.
void check_ended(std::span<const Share> ended, int shares, const std::string& place);

/// Manifest and other files of an output, from the records of all shares.
struct JoinedShares {
  format::Manifest manifest;
  std::vector<store::WrittenFile> others;
  std::set<std::string> filled;  ///< see ShareRecord
};
/// Joins the records of so many shares, which `read` gets one by one. Throws kOtherRun for shares
/// with different options, kTied, and kInternal unless they hold every tensor once.
JoinedShares join_shares(int shares, const std::function<ShareRecord(const Share&)>& read);

/// Throws kFileMissing unless the hidden folder has the file with its size.
void require_written(const store::WrittenFile& file, const std::string& folder);

/// Throws kFileMissing unless the output has every file of its manifest with its size.
void require_files(const format::Manifest& manifest, const std::string& output);

/// Reads every shard of the manifest's tensors back. Returns the bytes read. Throws kDataMismatch.
i64 verify_shards(const format::Manifest& manifest, const std::string& folder,
                  const exec::Resources& resources);

}  // namespace shardtool::api
