#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/api/transfer/run_identity.h"
#include "lib/api/transfer/sources/logical_checkpoint.h"
#include "lib/api/transfer/write_files.h"
#include "lib/base/error.h"
#include "lib/store/local/output_claim.h"

namespace shardtool::api {

/// Absolute path without a slash at the end and, if its folders can be looked at, without links.
std::filesystem::path canonical_path(const std::string& path);

/// Throws kOutputAliasesInput if one of the output and a folder of the source contains the other,
/// or a file of the source is a link into the output.
void check_apart(const LogicalCheckpoint& source, const std::string& output);

/// Lets --force replace only an output of this tool, never another folder with the same name, or
/// what others have put there: folders, and weights that the manifest does not list. Throws
/// kOutputExists.
void check_replaceable(const std::string& output);
/// The same of a prefix of an object store, and of `files` directly below it alone.
void check_own_output(const std::string& output, std::span<const std::string> files);

/// Throws kNoSpace unless the files of the plan, the config and tokenizer files, the manifest and
/// the journal fit into the file system of `folder`, the hidden folder of the output `output`.
void check_space(const WriteRun& run, const std::string& folder, const std::string& output);

/// Nearest folder above an output that exists.
std::string folder_above(const std::string& output);

/// Returns a warning for a dry run if the run would be refused, with what to do: by check_apart(),
/// by what is in the output's place, or by check_space(). What an interrupted run has left is taken
/// for deleted, or for the space of the files if the run would go on with it.
std::optional<std::string> refusal_text(const WriteRun& run, const WriteOptions& options);

/// Warning of a replaced output that could not be deleted and is a hidden folder now.
std::string undeleted_text(const std::string& folder);

/// Error for a run that finds the hidden files of another one; nullopt: of an unknown one.
Error other_run(const std::optional<RunIdentity>& then, const RunIdentity& now, bool is_share);

/// Throws kOtherRun if an interrupted run of this output has finished tensors but had another
/// source, mapping or options.
void check_same_run(const store::OutputClaim& claim, const RunIdentity& run);

/// Deletes what interrupted runs have left beside a complete output: those of this job, and others
/// that have finished nothing. Leaves all of it to a process that holds the output's lock. Warns of
/// what stays. Throws as look_at_output.
void discard_leftovers(const std::string& output, const RunIdentity& run,
                       std::vector<std::string>& warnings);

/// Warnings of the finished work of other runs of this output, which a run without `resume`
/// deletes.
std::vector<std::string> lost_work(const store::OutputClaim& claim, const RunIdentity& run);

/// Throws kOtherRun if any other run has begun to write this output.
void check_only_run(const store::OutputClaim& claim, const RunIdentity& run);

}  // namespace shardtool::api
