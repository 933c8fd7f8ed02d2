#include "lib/engine/weights/chunk_stream.h"

#include "lib/base/error.h"
#include "lib/base/threads.h"
#include "lib/exec/files/data_file.h"

namespace shardtool::engine {
namespace {

/// Slack for page alignment of a request.
constexpr i64 kEdges = 2 * exec::kPageBytes;

}  // namespace

std::byte* ChunkStream::Room::at_least(i64 wanted) {
  if (wanted > bytes) {
    pages.reset();
    pages.emplace(wanted);
    bytes = wanted;
  }
  return pages->data();
}

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

void ChunkStream::read_next(std::unique_lock<std::mutex>& lock) {
  Slot* mine = nullptr;
  std::exception_ptr failure;
  try {
    const auto request = next_();
    if (request) {
      mine = slots_.emplace_back(std::make_unique<Slot>()).get();
      mine->request = *request;
      held_ += request->bytes;
      if (!spare_.empty()) {
        mine->room = std::move(spare_.back());
        spare_.pop_back();
      }
      lock.unlock();
      mine->bytes = request->source->read_pages(request->rows, request->bytes,
                                                mine->room.at_least(request->bytes + kEdges));
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
    held_ -= current_->request.bytes;
    spare_.push_back(std::move(current_->room));
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
