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
#include "lib/store/local/file.h"

namespace shardtool::exec {

/// Commit interval: the work that a power cut may cost.
struct JournalLimits {
  i64 bytes = i64{4} << 30;
  std::chrono::milliseconds time{5000};
};

/// Finished tensors by their number in the run, with their results.
using FinishedTensors = std::map<size_t, CopiedTensor>;

/// First line of a journal.
struct JournalTitle {
  std::string run;    ///< one word
  std::string about;  ///< one line of text about the run, which no comparison looks at
};

/// Finished tensors of a run, on disk, so that a killed run can be resumed:
///
///     shardtool-journal 3 <run> <about> <check>
///     <tensor> <digest> <whole|part> <xxh3,...> [<change>] <check>   one line per finished tensor
///
/// where <change> is, separated by commas, the digest before a cast and its five counts, or the
/// word "computed", the five counts and the digests of the stored tensors.
///
/// J1 a line is written only after the tensor's bytes were made durable
/// J2 `check` is the XXH3-128 of the line before it; reading ends at the first mismatch, which
/// marks where a crash cut the file off
/// J3 the file exists only after the first commit
///
/// All functions may be called from several threads.
class Journal {
 public:
  /// Journal at `path`; `make_durable` syncs the files that tensors are written to.
  Journal(std::string path, JournalTitle title, JournalLimits limits,
          std::function<void()> make_durable);

  /// Continues the journal of an earlier run of the same id and returns its tensors; empty if there
  /// is none. Throws kUnreadable, kWriteFailed, and kOtherRun for a file that another user made.
  FinishedTensors take_up();

  /// Notes that all bytes of a tensor are written; commits when a limit is reached. Throws the
  /// errors of make_durable and of writing.
  void finished(size_t tensor, const CopiedTensor& copied, i64 bytes);
  /// Commits the noted tensors.
  void commit();

 private:
  using Clock = std::chrono::steady_clock;

  void append(const std::string& lines);

  std::string path_;
  JournalTitle title_;
  JournalLimits limits_;
  std::function<void()> make_durable_;
  std::mutex commit_mutex_;  ///< locked before noted_mutex_
  store::File file_;
  i64 size_ = 0;
  std::mutex noted_mutex_;
  std::string noted_;  ///< lines of finished tensors that are not yet in the file
  i64 noted_bytes_ = 0;
  Clock::time_point last_commit_ = Clock::now();
};

/// Finished tensors of the journal at `path`; empty if there is no journal, or one of another run.
/// Throws kUnreadable.
FinishedTensors read_journal(const std::string& path, const std::string& run);

/// Converts finished tensors to the lines of a journal without its first line, and back, for
/// transfer between processes.
std::string to_lines(const FinishedTensors& tensors);
FinishedTensors parse_lines(std::string_view lines);

/// First line of the journal at `path`, or nullopt if there is no journal. Throws kUnreadable and
/// kOtherRun.
std::optional<JournalTitle> journal_title(const std::string& path);

}  // namespace shardtool::exec
