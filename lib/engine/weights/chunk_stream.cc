#include "lib/engine/weights/chunk_stream.h"

#include "lib/base/error.h"
#include "lib/base/threads.h"
#include "lib/exec/files/data_file.h"

namespace shardtool::engine {
namespace {

/// Slack for page alignment of a request.
constexpr i64 kEdges = 2 * exec::kPageBytes;
/// A room is used again for requests that need at least 1/2 of it.
constexpr i64 kMostExcess = 2;

}  // namespace

ChunkStream::ChunkStream(std::function<std::optional<ReadRequest>()> next, i64 budget_bytes,
                         int threads)
    : next_(std::move(next)), budget_(budget_bytes) {
  start_workers(threads_, threads, [this](const std::stop_token& stop) { work(stop); });
}

ChunkStream::~ChunkStream() {
  for (std::jthread& thread : threads_) thread.request_stop();
  changed_.notify_all();
}

void ChunkStream::work(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested() && !at_end_) {
    const bool has_room =
        changed_.wait(lock, stop, [this] { return at_end_ || held_ < budget_ || slots_.empty(); });
    if (!has_room || at_end_) return;
    read_next(lock);
  }
}

/// Returns a room for a request of `bytes`: a spare one of nearly that size, else a new one, for
/// which spare rooms are freed if they would go over the budget.
ChunkStream::Room ChunkStream::room_for(i64 bytes) {
  const i64 wanted = round_up(bytes + kEdges, exec::kPageBytes);
  const auto found = spare_.lower_bound(wanted);
  if (found != spare_.end() && found->first <= kMostExcess * wanted) {
    Room room = std::move(spare_.extract(found).mapped());
    unused_ -= room.bytes;
    return room;
  }
  while (!spare_.empty() && held_ + unused_ + wanted > budget_) {
    const auto largest = std::prev(spare_.end());
    unused_ -= largest->first;
    spare_.erase(largest);
  }
  return {wanted, std::nullopt};
}

void ChunkStream::read_next(std::unique_lock<std::mutex>& lock) {
  Slot* mine = nullptr;
  std::exception_ptr failure;
  try {
    const auto request = next_();
    if (request) {
      mine = slots_.emplace_back(std::make_unique<Slot>()).get();
      mine->request = *request;
      mine->room = room_for(request->bytes);
      Room& room = mine->room;
      held_ += room.bytes;
      lock.unlock();
      if (!room.pages) room.pages.emplace(room.bytes);
      mine->bytes = request->source->read_pages(request->rows, request->bytes, room.pages->data());
    }
  } catch (...) {
    failure = std::current_exception();
  }
  if (!lock.owns_lock()) lock.lock();
  at_end_ = at_end_ || mine == nullptr || failure != nullptr;
  if (mine == nullptr) {
    failure_ = failure;
  } else {
    mine->failure = failure;
    mine->is_full = true;
  }
  changed_.notify_all();
}

std::span<const std::byte> ChunkStream::take() {
  std::unique_lock lock(mutex_);
  if (current_) {
    const i64 bytes = current_->room.bytes;
    held_ -= bytes;
    unused_ += bytes;
    spare_.emplace(bytes, std::move(current_->room));
    current_.reset();
    changed_.notify_all();
  }
  if (threads_.empty() && !at_end_) read_next(lock);
  changed_.wait(lock, [this] { return slots_.empty() ? at_end_ : slots_.front()->is_full; });
  if (slots_.empty()) {
    if (failure_) std::rethrow_exception(failure_);
    throw Error(ErrorCode::kInternal, "more chunks are taken than were asked for");
  }
  current_ = std::move(slots_.front());
  slots_.pop_front();
  if (current_->failure) std::rethrow_exception(current_->failure);
  const ReadRequest& request = current_->request;
  taken_ += request.source->stored_bytes(request.rows, request.bytes);
  return {current_->bytes, static_cast<size_t>(current_->request.bytes)};
}

}  // namespace shardtool::engine
