#include "lib/api/transfer/output_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <optional>
#include <system_error>

#include "lib/api/transfer/output_manifest.h"
#include "lib/api/transfer/store/place.h"
#include "lib/base/error.h"
#include "lib/base/name_map.h"
#include "lib/base/shell.h"
#include "lib/base/text.h"
#include "lib/exec/journal.h"
#include "lib/format/names.h"
#include "lib/store/local/output_folder.h"
#include "lib/store/local/tree.h"
#include "lib/store/reader.h"

namespace shardtool::api {
namespace {

namespace fs = std::filesystem;

/// Finds a file of a checkpoint that lies in a folder, or is a link to one that does.
std::optional<std::string> file_in(const format::Checkpoint& part, const std::string& folder) {
  for (const format::SourceFile& file : part.files) {
    if (store::leads_into(file.path, folder)) return file.path;
  }
  for (const std::string& name : part.other_files) {
    if (store::leads_into(part.other_path(name), folder)) return part.other_path(name);
  }
  return std::nullopt;
}

bool is_weights_name(std::string_view name) {
  return format::is_safetensors_name(name) || format::is_torch_name(name) ||
         format::is_dcp_data_name(name) || format::is_foreign_weights_name(name);
}

Error not_replaceable(const std::string& output, const std::string& why) {
  return Error(ErrorCode::kOutputExists, why)
      .at({output, 0, 0, {}})
      .help(
          "--force only replaces earlier outputs; choose another folder, or delete this one "
          "yourself");
}

/// Space of a folder that another user may have closed.
i64 disk_bytes_or_none(const std::string& folder) {
  try {
    return store::disk_bytes(folder);
  } catch (const Error&) {
    return 0;
  }
}

/// The error of a run whose files do not fit into the file system of `folder` once it has `freed`
/// more bytes free.
std::optional<Error> no_space(const WriteRun& run, const std::string& folder,
                              const std::string& output, i64 freed) {
  i64 needed = 0;
  for (const auto& file : run.plan.files) needed += file.size;
  const format::Checkpoint& opened = run.source.parts.front();
  for (const std::string& name : opened.other_files) {
    std::error_code unknown;
    const auto bytes = fs::file_size(opened.other_path(name), unknown);
    if (!unknown) needed += static_cast<i64>(bytes);
  }
  const i64 free = store::bytes_free(folder) + freed;
  // A manifest takes long to build: its size is of interest only where space is short. A line of
  // the journal is shorter than the record of its tensor.
  constexpr i64 kMuch = i64{4} << 30;
  if (needed <= free && free - needed < kMuch)
    needed += 2 * manifest_bytes(run.source, run.target, run.plan);
  if (needed <= free) return std::nullopt;
  const bool has_ranks = run.plan.files_of_rank.size() > 1;
  return Error(ErrorCode::kNoSpace, fmt::format("the output needs {}, its file system has {} free",
                                                format_bytes(needed), format_bytes(free)))
      .at({output, 0, 0, {}})
      .help(has_ranks ? "write fewer --ranks at a time, or to another file system"
                      : "write to another file system");
}

std::string what_changed(const RunIdentity& then, const RunIdentity& now) {
  if (then.source == now.source) return "the mapping, the mesh or an option";
  if (then.target == now.target) return "the source";
  return "the source and the layout";
}

/// Identity of a run with this id, from its journals; nullopt if it has finished nothing.
std::optional<RunIdentity> identity_of(const store::OutputPlace& place, const std::string& id) {
  for (const std::string& journal : store::hidden_journals(place, id)) {
    if (const auto title = exec::journal_title(journal)) return parse_run_identity(title->run);
  }
  return std::nullopt;
}

}  // namespace

fs::path canonical_path(const std::string& path) {
  std::error_code closed;
  const fs::path whole = fs::absolute(path, closed);
  fs::path found = closed ? fs::path(path) : fs::weakly_canonical(whole, closed);
  if (closed) found = whole.lexically_normal();
  return found.has_filename() ? found : found.parent_path();
}

void check_apart(const LogicalCheckpoint& source, const std::string& output) {
  if (output.empty()) throw Error(ErrorCode::kUsage, "the path of the output is empty");
  const fs::path to = canonical_path(output);
  for (const format::Checkpoint& part : source.parts) {
    // An output next to a single file is allowed; inside a checkpoint's folder it would become part
    // of it.
    if (store::is_remote(part.path)) continue;
    const bool is_file = fs::is_regular_file(part.path);
    const fs::path from = canonical_path(is_file ? part.path : part.folder());
    if (store::is_within(from, to) || store::is_within(to, from)) {
      throw Error(ErrorCode::kOutputAliasesInput,
                  fmt::format("the output {} is the input {}, or one lies inside the other", output,
                              part.path))
          .help("write to a folder beside the checkpoint");
    }
    if (const auto file = file_in(part, output)) {
      throw Error(ErrorCode::kOutputAliasesInput, "a file of the input is a link into the output")
          .at({*file, 0, 0, {}})
          .note("output", output)
          .help("write to another folder");
    }
  }
}

void check_own_output(const std::string& output, std::span<const std::string> files) {
  const auto text = format::manifest_text(output);
  if (!text) {
    throw not_replaceable(
        output, "the folder is not an output of shardtool: it has no manifest.json of one");
  }
  NameMap<bool> listed;
  try {
    const std::string path = fmt::format("{}/{}", output, format::kManifestName);
    for (const auto& file : format::parse_manifest(*text, path).files) listed[file.name] = true;
  } catch (const Error& error) {
    throw not_replaceable(
        output, "the folder is not an output of shardtool as it was written: " + error.message());
  }
  std::vector<std::string> strange;
  std::ranges::copy_if(files, std::back_inserter(strange), [&](const std::string& name) {
    return is_weights_name(name) && !listed.contains(name);
  });
  if (strange.empty()) return;
  throw not_replaceable(output, "the folder holds weights that are not of its output: " +
                                    format::list_for_message(strange));
}

void check_replaceable(const std::string& output) {
  std::error_code unreadable;
  std::vector<std::string> files;
  std::vector<std::string> folders;
  for (const auto& entry : fs::directory_iterator(output, unreadable)) {
    std::error_code gone;
    const bool is_folder = entry.is_directory(gone) && !entry.is_symlink(gone);
    (is_folder ? folders : files).push_back(entry.path().filename().string());
  }
  if (files.empty() && folders.empty()) return;
  check_own_output(output, files);
  if (folders.empty()) return;
  throw not_replaceable(output, "the folder holds folders, which no output has: " +
                                    format::list_for_message(folders));
}

void check_space(const WriteRun& run, const std::string& folder, const std::string& output) {
  if (auto error = no_space(run, folder, output, 0)) throw *std::move(error);
}

std::string folder_above(const std::string& output) {
  fs::path folder = canonical_path(output).parent_path();
  std::error_code closed;
  while (!fs::exists(folder, closed) && folder.has_relative_path()) folder = folder.parent_path();
  return folder;
}

namespace {

std::optional<Error> shortage(const WriteRun& run, const WriteOptions& options) {
  if (store::is_remote(options.output)) return std::nullopt;
  const std::string folder = folder_above(options.output);
  const store::OutputPlace place{.parent = folder,
                                 .name = canonical_path(options.output).filename()};
  const std::string id = run_identity(run.source, run.target, run.plan).id();
  i64 freed = 0;
  for (const std::string& left : store::hidden_ids(place)) {
    const std::string hidden = store::hidden_folder(place, left);
    if (!store::identity_at(hidden)) continue;
    if (left == id && (options.resume || options.share)) return std::nullopt;
    freed += disk_bytes_or_none(hidden);
  }
  return no_space(run, folder, options.output, freed);
}

/// Throws as a run does for what is in the place of its output.
void check_place(const WriteRun& run, const WriteOptions& options) {
  if (store::is_remote(options.output)) {
    check_apart_on_store(run.source, options.output);
    const StorePlace place(options.output);
    return place.require_writable(place.look(), options.force);
  }
  check_apart(run.source, options.output);
  if (options.force) check_replaceable(options.output);
  const store::OutputPlace place = store::look_at_output(options.output);
  if (place.found != store::OutputPlace::Found::kContent) return;
  if (!options.force) throw store::output_exists(place.path());
  store::require_deletable(place);
}

}  // namespace

std::optional<std::string> refusal_text(const WriteRun& run, const WriteOptions& options) {
  try {
    check_place(run, options);
    if (auto error = shortage(run, options)) throw *std::move(error);
    return std::nullopt;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInterrupted) throw;
    std::string text = "the run would be refused: " + error.message();
    for (const std::string& help : error.help_lines()) text += "; " + help;
    return text;
  }
}

std::string undeleted_text(const std::string& folder) {
  return fmt::format("'{}', the output that was replaced, cannot be deleted: delete it yourself",
                     folder);
}

Error other_run(const std::optional<RunIdentity>& then, const RunIdentity& now, bool is_share) {
  if (is_share) {
    return Error(ErrorCode::kOtherRun,
                 fmt::format("this is a share of another run than the one that writes the output: "
                             "{} differs",
                             then ? what_changed(*then, now) : "the source or the layout"))
        .help("give every share the same source, mapping and options");
  }
  return Error(ErrorCode::kOtherRun,
               fmt::format("the interrupted run cannot be resumed: {} changed since",
                           then ? what_changed(*then, now) : "the source or the layout"))
      .help(
          "start again without --resume (this deletes the folder), or with the mapping and the "
          "options of before");
}

void check_same_run(const store::OutputClaim& claim, const RunIdentity& run) {
  for (const std::string& id : claim.leftovers()) {
    if (id == run.id()) continue;
    const auto other = identity_of(claim.place(), id);
    if (!other) continue;
    throw other_run(other, run, false).at({store::hidden_folder(claim.place(), id), 0, 0, {}});
  }
}

std::vector<std::string> lost_work(const store::OutputClaim& claim, const RunIdentity& run) {
  std::vector<std::string> warnings;
  for (const std::string& id : claim.leftovers()) {
    if (id == run.id()) continue;
    const auto shares = std::ssize(store::hidden_records(claim.place(), id));
    if (shares == 0 && !identity_of(claim.place(), id)) continue;
    warnings.push_back(fmt::format(
        "{} of another source, layout or option {} deleted to write this output",
        shares > 0 ? plural(shares, "finished share") : "the finished work of an interrupted run",
        shares > 1 ? "were" : "was"));
  }
  return warnings;
}

void discard_leftovers(const std::string& output, const RunIdentity& run,
                       std::vector<std::string>& warnings) {
  const store::OutputPlace place = store::look_at_output(output);
  try {
    const bool has_lock = store::identity_at(store::hidden_lock(place)).has_value();
    if (!has_lock && store::hidden_ids(place).empty()) return;
    const store::OutputClaim claim(output, store::Existing::kReplace);
    for (const std::string& id : claim.leftovers()) {
      const std::string folder = store::hidden_folder(place, id);
      if (id != run.id() && identity_of(place, id)) {
        warnings.push_back(
            fmt::format("an interrupted run of another source, layout or option has left '{}'; "
                        "`shardtool resume --list {}` shows it",
                        folder, path_argument(place.path())));
      } else if (!claim.discard(id)) {
        warnings.push_back(fmt::format(
            "'{}' of an interrupted run cannot be deleted: delete it yourself", folder));
      }
    }
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kOutputLocked) return;
    warnings.push_back(fmt::format(
        "what interrupted runs have left beside the output stays there: {}", error.what()));
  }
}

void check_only_run(const store::OutputClaim& claim, const RunIdentity& run) {
  for (const std::string& id : claim.leftovers()) {
    const std::string folder = store::hidden_folder(claim.place(), id);
    if (id == run.id() || !store::identity_at(folder)) continue;
    const auto other = identity_of(claim.place(), id);
    throw other_run(other, run, true)
        .at({folder, 0, 0, {}})
        .help(fmt::format("or delete what is there: shardtool resume --discard {}",
                          path_argument(claim.place().path())));
  }
}

}  // namespace shardtool::api
