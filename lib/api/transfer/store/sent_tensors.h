#pragma once

#include <optional>
#include <vector>

#include "lib/api/transfer/store/copying.h"
#include "lib/api/transfer/store/journal.h"
#include "lib/api/transfer/store/place.h"
#include "lib/api/transform.h"
#include "lib/exec/stream.h"

namespace shardtool::api {

/// Tensors of an output, or of a share of it, that one process sends to the uploads of the run.
class SentTensors {
 public:
  /// Sends nothing yet. All arguments outlive it.
  SentTensors(const WriteRun& run, const WriteOptions& options, const std::vector<bool>& is_mine,
              const StorePlace& place, const RunIdentity& identity);

  /// Begins the uploads, or opens those that another process has begun at the same time.
  void begin();
  /// Opens uploads that were begun.
  void open(const UploadTable& table);
  /// True once there are uploads.
  bool is_open() const { return output_.has_value(); }
  const UploadTable& table() const { return table_; }
  /// Takes up what earlier processes have sent. Returns false, and takes up no tensor, if some of
  /// it is lost (take_up_parts).
  bool take_up(Former former);

  /// Moves the tensors of `is_mine` that are not sent yet, and notes them in the journal; the
  /// process that leads also sends what belongs to no tensor. Throws the errors of moving.
  void move(TransformReport& report);
  /// Gathers the parts in the uploads. Throws kInternal if bytes are missing.
  void gather();
  /// Makes the objects, and hashes what came out of order.
  void complete();
  /// Per tensor of the run what is known of its copy.
  const std::vector<exec::CopiedTensor>& copied() const { return copied_; }
  i64 copied_by_store() const { return copying_.copied_bytes(); }
  const std::vector<exec::SourceFile>& sources() const { return sources_; }
  /// Throws kInternal for a tensor that the store does not have wholly.
  void check_sent(size_t tensor) const;

  /// Lists the tensors that were sent since the last time. Throws the errors of the store.
  void commit() { journal_.commit(); }
  /// Bytes of the tensors that a later process can take up.
  i64 listed_bytes() const;
  /// Ends the uploads.
  void abort();

 private:
  UploadTable planned_uploads() const;
  bool is_durable(size_t tensor) const;
  void expect();
  void report_resumed(TransformReport& report) const;

  const WriteRun& run_;
  const WriteOptions& options_;
  const std::vector<bool>& is_mine_;
  const StorePlace& place_;
  const RunIdentity& identity_;
  std::vector<exec::SourceFile> sources_;
  StoreCopying copying_;
  UploadTable table_;
  std::optional<store::s3::PartedOutput> output_;
  StoreJournal journal_;
  exec::FinishedTensors finished_;  ///< by earlier processes
  std::vector<exec::CopiedTensor> copied_;
};

}  // namespace shardtool::api
