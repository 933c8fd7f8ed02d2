#pragma once

#include <string>
#include <vector>

#include "lib/api/transfer/run_identity.h"
#include "lib/api/transform.h"
#include "lib/base/checked.h"
#include "lib/exec/journal.h"

namespace shardtool::api {

/// Facts about a run for people who find what it left; exec::JournalTitle::about as JSON.
struct RunNote {
  std::vector<std::string> command;  ///< WriteOptions::command_line
  std::string started_in;            ///< working folder of the process, absolute
  std::string output;                ///< absolute path
  i64 tensors = 0;                   ///< of the whole output
  int shares = 0;                    ///< that share the work; 0: it is not shared
};

/// First line of the journal of a run that moves so many tensors to `output`, an absolute path.
exec::JournalTitle journal_title(const RunIdentity& identity, const WriteOptions& options,
                                 const std::string& output, i64 tensors);
/// Throws kManifestInvalid.
RunNote parse_run_note(const std::string& about, const std::string& journal);

}  // namespace shardtool::api
