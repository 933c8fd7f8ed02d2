#include "lib/comm/mpi/mpi_link.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "lib/base/error.h"

namespace shardtool::comm {
namespace {

/// MPI counts bytes in an int.
constexpr size_t kMaxPieceBytes = 1 << 28;
/// Up to this size the head and the bytes go in one message.
constexpr size_t kSmallBytes = 1 << 16;

}  // namespace

std::vector<Frame> MpiLink::pump() {
  finish_sending();
  begin_receiving();
  return finish_receiving();
}

void MpiLink::enqueue(std::string head, std::string bytes) {
  if (bytes.size() <= kSmallBytes) head += std::exchange(bytes, {});
  Outgoing& frame = sending_.emplace_back(Outgoing{std::move(head), std::move(bytes), {}});
  send_pieces(frame, frame.head);
  send_pieces(frame, frame.bytes);
}

void MpiLink::send_pieces(Outgoing& frame, std::string_view bytes) {
  while (!bytes.empty()) {
    const std::string_view piece = bytes.substr(0, kMaxPieceBytes);
    shardtool_mpi_request* const request =
        mpi_.send(peer_, piece.data(), static_cast<int>(piece.size()));
    if (request == nullptr) refused("MPI_Isend");
    frame.pieces.push_back(request);
    bytes.remove_prefix(piece.size());
  }
}

void MpiLink::finish_sending() {
  while (!sending_.empty()) {
    auto& pieces = sending_.front().pieces;
    while (!pieces.empty() && is_done(pieces.front())) {
      pieces.pop_front();
      // A small message leaves even if the other process is dead.
      activity_ += sending_.front().bytes.empty() ? 0 : 1;
    }
    if (!pieces.empty()) return;
    sending_.pop_front();
    ++left_;
  }
}

void MpiLink::begin_receiving() {
  int count = 0;
  int found = 0;
  while ((found = mpi_.probe(peer_, &count)) == 1) {
    Incoming& piece = arriving_.emplace_back();
    piece.bytes.resize(static_cast<size_t>(count));
    piece.request = mpi_.receive(piece.bytes.data(), count);
    if (piece.request == nullptr) {
      arriving_.pop_back();
      refused("MPI_Imrecv");
    }
  }
  if (found < 0) refused("MPI_Improbe");
}

std::vector<Frame> MpiLink::finish_receiving() {
  std::vector<Frame> frames;
  while (!arriving_.empty() && is_done(arriving_.front().request)) {
    const std::string bytes = std::move(arriving_.front().bytes);
    arriving_.pop_front();
    ++activity_;
    take_in(bytes, frames);
  }
  return frames;
}

void MpiLink::take_in(std::string_view bytes, std::vector<Frame>& frames) {
  while (!bytes.empty()) {
    const std::span<char> room = reader_.room();
    const size_t taken = std::min(room.size(), bytes.size());
    std::memcpy(room.data(), bytes.data(), taken);
    reader_.filled(taken);
    bytes.remove_prefix(taken);
    while (auto frame = reader_.take()) {
      if (frame->kind == FrameKind::kEnd) {
        ended_ = true;
      } else {
        frames.push_back(*std::move(frame));
      }
    }
  }
}

bool MpiLink::is_done(shardtool_mpi_request* request) {
  const int result = mpi_.test(request);
  if (result < 0) refused("MPI_Test");
  return result == 1;
}

void MpiLink::refused(const char* call) const {
  throw Error(ErrorCode::kPeerLost, fmt::format("{} failed for process {}", call, peer_));
}

}  // namespace shardtool::comm
