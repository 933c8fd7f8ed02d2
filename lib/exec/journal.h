#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "lib/exec/copy.h"
#include "lib/io/file.h"

namespace shardtool::exec {

/// How much work a power cut may cost: what was finished since the last commit.
struct JournalLimits {
  i64 bytes = i64{4} << 30;
  std::chrono::milliseconds time{5000};
};

/// Finished tensors, by their number in the run, and what they turned out to be.
using FinishedTensors = std::map<size_t, CopiedTensor>;

/// The tensors of a run that are finished, on disk, so that a run which was killed can be taken up:
///
///     shardtool-journal 2 <run>
///     <tensor> <digest> <whole|part> <xxh3,...> <check>        one line per finished tensor
///
/// J1 a line is written only after the tensor's bytes were made durable
/// J2 `check` is the XXH3-128 of the line before it; reading ends at the first line that has
/// another
///    one, which is where a crash cut the file off
/// J3 the file exists only when something was committed
///
/// All functions may be called from several threads.
class Journal {
 public:
  /// The journal at `path` of the run `run` (one word); `make_durable` syncs the files that tensors
  /// are written to.
  Journal(std::string path, std::string run, JournalLimits limits,
          std::function<void()> make_durable);

  /// Goes on behind what an earlier run of the same id left, if it left something, and returns
  /// that. Throws kUnreadable, kWriteFailed, and kOtherRun for a file that another user made.
  FinishedTensors take_up();

  /// Notes that all bytes of a tensor are written; commits when the limits say so.
  /// Throws what make_durable and writing throw.
  void finished(size_t tensor, const CopiedTensor& copied, i64 bytes);
  /// Commits what is noted.
  void commit();

 private:
  using Clock = std::chrono::steady_clock;

  void append(const std::string& lines);

  std::string path_;
  std::string run_;
  JournalLimits limits_;
  std::function<void()> make_durable_;
  std::mutex commit_mutex_;  ///< before noted_mutex_
  io::File file_;
  i64 size_ = 0;
  std::mutex noted_mutex_;
  std::string noted_;  ///< lines of finished tensors that are not in the file
  i64 noted_bytes_ = 0;
  Clock::time_point last_commit_ = Clock::now();
};

/// What the journal at `path` says is finished; nothing where there is no journal, or one of
/// another run. Throws kUnreadable.
FinishedTensors read_journal(const std::string& path, const std::string& run);

/// The lines of a journal without its first, and back: how finished tensors go from one process to
/// another.
std::string to_lines(const FinishedTensors& tensors);
FinishedTensors parse_lines(std::string_view lines);

/// The first line's run of the journal at `path`, or nothing when there is no journal.
std::optional<std::string> journal_run(const std::string& path);

}  // namespace shardtool::exec
