#include "lib/api/transfer/store/journal.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/api/transfer/store/owned_prefix.h"
#include "lib/store/s3/upload.h"

namespace shardtool::api {
namespace {

constexpr std::string_view kJournalFront = "journal-";

}  // namespace

StoreJournal::StoreJournal(const StorePlace& place, std::string id, exec::JournalLimits limits,
                           std::function<bool(size_t)> is_durable)
    : place_(place),
      id_(std::move(id)),
      limits_(limits),
      is_durable_(std::move(is_durable)),
      process_(random_word()) {}

void StoreJournal::finished(size_t tensor, const exec::CopiedTensor& copied, i64 bytes) {
  if (!copied.unhashed.empty()) return;  // a later run writes it again, and then hashes it
  bool is_due = false;
  {
    const std::lock_guard lock(mutex_);
    notes_.push_back({tensor, copied, bytes});
    noted_bytes_ += bytes;
    is_due = noted_bytes_ >= limits_.bytes || Clock::now() - last_commit_ >= limits_.time;
    if (!is_due) return;
    noted_bytes_ = 0;
    last_commit_ = Clock::now();
  }
  commit();
}

void StoreJournal::commit() {
  const std::lock_guard one_at_a_time(commit_mutex_);
  std::vector<Note> notes;
  {
    const std::lock_guard lock(mutex_);
    notes.swap(notes_);
  }
  const auto first_waiting = std::partition(
      notes.begin(), notes.end(), [this](const Note& note) { return is_durable_(note.tensor); });
  exec::FinishedTensors listed;
  i64 bytes = 0;
  for (auto note = notes.begin(); note != first_waiting; ++note) {
    listed[note->tensor] = note->copied;
    bytes += note->bytes;
  }
  if (!listed.empty()) {
    const std::string name = fmt::format("{}{}-{:06}", kJournalFront, process_, objects_++);
    store::s3::put_object(store::s3::shared_client(), place_.hidden(id_, name),
                          exec::to_lines(listed));
  }
  const std::lock_guard lock(mutex_);
  listed_bytes_ += bytes;
  notes_.insert(notes_.end(), first_waiting, notes.end());
}

i64 StoreJournal::listed_bytes() const {
  const std::lock_guard lock(mutex_);
  return listed_bytes_;
}

exec::FinishedTensors listed_tensors(const StorePlace& place, const std::string& id) {
  exec::FinishedTensors all;
  for (const auto& [name, text] : place.hidden_texts(id, kJournalFront)) {
    all.merge(exec::parse_lines(text));
  }
  return all;
}

}  // namespace shardtool::api
