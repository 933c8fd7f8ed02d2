#include "lib/api/transfer/store_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <set>
#include <vector>

#include "lib/api/transfer/output_checks.h"
#include "lib/api/transfer/scratch_folder.h"
#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/format/manifest/manifest.h"
#include "lib/store/local/output_claim.h"
#include "lib/store/local/tree.h"
#include "lib/store/reader.h"
#include "lib/store/s3/upload.h"

namespace shardtool::api {
namespace {

namespace fs = std::filesystem;
using store::s3::Url;

constexpr std::string_view kMarkText =
    "shardtool deletes this object when the output is complete\n";

void refuse_options(const WriteOptions& options) {
  if (!options.resume && !options.share) return;
  throw Error(ErrorCode::kUsage, fmt::format("{} works for outputs on a file system only",
                                             options.share ? "--share" : "--resume"))
      .note("output", options.output)
      .help("run the whole command again: it replaces what an interrupted run has left");
}

void check_apart_on_store(const LogicalCheckpoint& source, const std::string& output) {
  for (const format::Checkpoint& part : source.parts) {
    const std::string from = part.folder() + "/";
    const std::string to = output + "/";
    if (!from.starts_with(to) && !to.starts_with(from)) continue;
    throw Error(
        ErrorCode::kOutputAliasesInput,
        fmt::format("one of the output {} and the input {} contains the other", output, part.path))
        .help("write to a prefix beside the checkpoint");
  }
}

/// Prefix on a store while its output is sent.
class SentOutput {
 public:
  explicit SentOutput(const WriteOptions& options)
      : options_(options), client_(store::s3::shared_client()) {
    prefix_ = options.output;
    while (prefix_.ends_with('/')) prefix_.pop_back();
    if (store::s3::parse_url(prefix_).key.empty()) {
      throw Error(ErrorCode::kUsage, "the output is a whole bucket")
          .note("found", prefix_)
          .note("expected", "s3://bucket/prefix");
    }
    look();
  }

  /// Deletes what was sent of an output that is not complete; its uploads have aborted themselves.
  ~SentOutput() {
    if (is_published_ || !is_marked_) return;
    bool is_clean = before_.empty();
    for (const std::string& name : sent_) is_clean = removes(name) && is_clean;
    if (is_clean) removes(store::kUnfinishedName);
  }
  SentOutput(const SentOutput&) = delete;
  SentOutput& operator=(const SentOutput&) = delete;

  const std::string& prefix() const { return prefix_; }

  void publish(const std::string& folder) {
    const std::vector<std::string> names = names_in_order(folder);
    store::s3::put_object(client_, url(store::kUnfinishedName), kMarkText);
    is_marked_ = true;
    store::s3::remove_object(client_, url(format::kManifestName));
    for (const std::string& old : before_) {
      if (std::ranges::find(names, old) == names.end()) store::s3::remove_object(client_, url(old));
    }
    for (const std::string& name : names) {
      sent_.insert(name);
      store::s3::put_file(client_, folder + "/" + name, url(name), options_.resources.store_memory,
                          [this] { exec::check_cancelled(options_.resources.cancel); });
    }
    store::s3::remove_object(client_, url(store::kUnfinishedName));
    is_published_ = true;
    store::look_again(prefix_);
  }

 private:
  Url url(std::string_view name) const {
    return store::s3::parse_url(fmt::format("{}/{}", prefix_, name));
  }

  /// Notes the objects that are there. Throws kOutputExists unless they may be replaced.
  void look() {
    store::look_again(prefix_);
    before_ = store::names_below(prefix_);
    const auto has = [this](std::string_view name) {
      return std::ranges::find(before_, name) != before_.end();
    };
    const bool is_unfinished = has(store::kUnfinishedName);
    std::erase(before_, store::kUnfinishedName);
    const bool is_empty = before_.empty() && store::folders_in(prefix_).empty();
    if (is_empty || is_unfinished) return;
    if (!options_.force) throw store::output_exists(prefix_);
    if (!has(format::kManifestName)) throw not_replaceable(prefix_);
  }

  /// Weights first, then what names them: the index, and the manifest at the very end.
  static std::vector<std::string> names_in_order(const std::string& folder) {
    std::vector<std::string> names = store::names_in(folder);
    const auto turn = [](const std::string& name) {
      return name == format::kManifestName ? 2 : name.ends_with(".json") ? 1 : 0;
    };
    std::ranges::stable_sort(names, {}, turn);
    return names;
  }

  /// Returns false for an object that may still be there; then the mark stays.
  bool removes(std::string_view name) noexcept {
    try {
      store::s3::remove_object(client_, url(name));
      return true;
    } catch (const std::exception&) {
      return false;
    }
  }

  const WriteOptions& options_;
  store::s3::Client& client_;
  std::string prefix_;
  std::vector<std::string> before_;  ///< names of objects that were there
  std::set<std::string> sent_;
  bool is_marked_ = false;
  bool is_published_ = false;
};

/// Options for the folder on this machine, whose remains nobody continues.
WriteOptions staged(const WriteOptions& options, const std::string& folder) {
  WriteOptions local = options;
  local.output = folder;
  local.force = false;
  local.worth_keeping = std::numeric_limits<i64>::max();
  return local;
}

}  // namespace

TransformReport write_to_store(const LogicalCheckpoint& source, const WriteOptions& options,
                               const std::function<TransformReport(const WriteOptions&)>& write) {
  refuse_options(options);
  SentOutput output(options);
  check_apart_on_store(source, output.prefix());
  const ScratchFolder scratch(fs::temp_directory_path().string(), "upload");
  const std::string folder = scratch / "output";
  TransformReport report;
  try {
    report = write(staged(options, folder));
  } catch (Error& error) {
    if (error.code() == ErrorCode::kNoSpace) {
      error.help("the output is made on this machine first: TMPDIR names a folder with room");
    }
    throw;
  }
  output.publish(folder);
  report.output = output.prefix();
  return report;
}

}  // namespace shardtool::api
