#pragma once

#include <chrono>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "lib/api/transfer/store/place.h"
#include "lib/exec/journal.h"

namespace shardtool::api {

/// Finished tensors of a run to a store: hidden objects of the run, each with the lines of a
/// journal (exec::to_lines). A tensor is listed after the store has all of its bytes. All functions
/// may be called from several threads.
class StoreJournal {
 public:
  /// `is_durable` tells of a tensor if the store has all of its bytes.
  StoreJournal(const StorePlace& place, std::string id, exec::JournalLimits limits,
               std::function<bool(size_t tensor)> is_durable);

  /// Notes that all bytes of a tensor were written; commits when a limit is reached.
  void finished(size_t tensor, const exec::CopiedTensor& copied, i64 bytes);
  /// Lists the noted tensors that are durable. Throws the errors of the store.
  void commit();
  /// Bytes of the tensors that were listed.
  i64 listed_bytes() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Note {
    size_t tensor = 0;
    exec::CopiedTensor copied;
    i64 bytes = 0;
  };

  const StorePlace& place_;
  std::string id_;
  exec::JournalLimits limits_;
  std::function<bool(size_t)> is_durable_;
  std::string process_;  ///< no other process writes objects of this name

  std::mutex commit_mutex_;  ///< locked before mutex_
  int objects_ = 0;
  mutable std::mutex mutex_;  ///< guards the members below
  std::vector<Note> notes_;
  i64 noted_bytes_ = 0;  ///< since the last commit
  i64 listed_bytes_ = 0;
  Clock::time_point last_commit_ = Clock::now();
};

/// Tensors that any process of a run has listed as finished. Throws the errors of the store.
exec::FinishedTensors listed_tensors(const StorePlace& place, const std::string& id);

}  // namespace shardtool::api
