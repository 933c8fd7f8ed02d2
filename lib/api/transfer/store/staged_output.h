#pragma once

#include <functional>

#include "lib/api/transfer/sources/logical_checkpoint.h"
#include "lib/api/transform.h"

namespace shardtool::api {

/// Writes an output s3://bucket/prefix that needs files (can_stream in run.h): `write` makes it in
/// a folder of this machine (TMPDIR), and its files are then sent, the manifest last. Until then an
/// object ".shardtool-unfinished" has readers refuse the prefix. A failed run aborts its uploads
/// and deletes what it has sent; a killed one leaves the mark, its folder in TMPDIR and open
/// uploads; the next run writes over what is there.
///
/// Throws kOutputExists for content that may not be replaced,
/// kOutputAliasesInput, and the errors of `write` and of the store. With `force` the output before
/// is deleted once the new one is made, before it is sent: a failure then leaves neither. Of two
/// runs that write one prefix at once one fails (place.h).
TransformReport write_to_store(const LogicalCheckpoint& source, const WriteOptions& options,
                               const std::function<TransformReport(const WriteOptions&)>& write);

}  // namespace shardtool::api
