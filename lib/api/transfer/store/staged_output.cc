#include "lib/api/transfer/store/staged_output.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <vector>

#include "lib/api/transfer/scratch_folder.h"
#include "lib/api/transfer/store/owned_prefix.h"
#include "lib/base/error.h"
#include "lib/base/interruption.h"
#include "lib/format/manifest/manifest.h"
#include "lib/store/local/tree.h"
#include "lib/store/s3/upload.h"

namespace shardtool::api {
namespace {

namespace fs = std::filesystem;

/// Weights first, then what names them: the index, and the manifest at the very end.
std::vector<std::string> names_in_order(const std::string& folder) {
  std::vector<std::string> names = store::names_in(folder);
  const auto turn = [](const std::string& name) {
    return name == format::kManifestName ? 2 : name.ends_with(".json") ? 1 : 0;
  };
  std::ranges::stable_sort(names, {}, turn);
  return names;
}

/// Prefix on a store while its output is sent.
class SentOutput {
 public:
  explicit SentOutput(const WriteOptions& options)
      : options_(options), place_(options.output), found_(place_.look()) {
    place_.require_writable(found_, options.force);
    prefix_.require_may_delete();
  }

  /// Deletes what was sent of an output that is not complete, and ends its uploads.
  ~SentOutput() {
    if (is_published_ || !prefix_.is_marked()) return;
    const Interruptible scope(interruption(), kLastPatience);
    try {
      prefix_.require();
      place_.remove(place_.look().names);
      prefix_.publish();
    } catch (const std::exception&) {
      // The mark stays: readers refuse the prefix.
    }
  }
  SentOutput(const SentOutput&) = delete;
  SentOutput& operator=(const SentOutput&) = delete;

  const StorePlace& place() const { return place_; }

  void publish(const std::string& folder) {
    const StorePlace::Found now = prefix_.take(found_);
    place_.discard_runs(now);
    prefix_.clear(now.names);
    if (found_.is_marked()) place_.abort_all_uploads();
    for (const std::string& name : names_in_order(folder)) {
      prefix_.put_file(folder + "/" + name, name, options_.resources.store_memory);
    }
    prefix_.publish();  // also ends an upload of which the answer to its beginning was lost
    is_published_ = true;
  }

 private:
  const WriteOptions& options_;
  StorePlace place_;
  StorePlace::Found found_;
  OwnedPrefix prefix_{place_, random_word()};
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
  SentOutput output(options);
  check_apart_on_store(source, output.place().prefix());
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
  report.output = output.place().prefix();
  return report;
}

}  // namespace shardtool::api
