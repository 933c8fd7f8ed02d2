#include "shardtool/comm/mpi_communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <list>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <thread>
#include <utility>

#include "shardtool/base/error.h"
#include "shardtool/comm/dynamic_library.h"
#include "shardtool/comm/frame.h"
#include "shardtool/comm/mailbox.h"
#include "shardtool/comm/mpi_plugin.h"

namespace shardtool::comm {
namespace {

using std::chrono::milliseconds;
using Functions = shardtool_mpi_functions;
using Request = shardtool_mpi_request;

/// MPI counts bytes in an int.
constexpr size_t kMaxPieceBytes = 1 << 28;
/// Up to here the head and the bytes go in one message.
constexpr size_t kSmallBytes = 1 << 16;
/// How often to look before pausing: processes may share a core.
constexpr int kEagerLooks = 200;
constexpr std::chrono::microseconds kPause{50};
/// For the others to say in their own words why they end.
constexpr milliseconds kLastWords{500};

/// Set when a run was aborted: MPI has to end it.
const Functions* aborted_mpi = nullptr;

void abort_at_exit(int status, void*) {
  if (aborted_mpi == nullptr) return;
  std::this_thread::sleep_for(kLastWords);
  aborted_mpi->abort(status == 0 ? error_info(ErrorCode::kPeerLost).exit_status : status);
}

class MpiCommunicator final : public Communicator {
 public:
  MpiCommunicator(const Functions& mpi, int rank, int size)
      : Communicator(rank, size), mpi_(mpi), peers_(static_cast<size_t>(size)) {}

  ~MpiCommunicator() override {
    try {
      const std::lock_guard lock(mutex_);
      say_goodbye();
    } catch (const Error&) {
      // Who waits in vain has aborted.
    }
    if (aborted_) {
      aborted_mpi = &mpi_;
    } else {
      mpi_.finalize();
    }
  }

  void raise_stop() noexcept override {
    const std::lock_guard lock(mutex_);
    if (std::exchange(stopped_, true)) return;
    try {
      spread(FrameKind::kStop, {});
    } catch (const Error&) {
      // What MPI refused is noted, and ends the next operation.
    }
  }

  bool stop_was_raised() override {
    const std::lock_guard lock(mutex_);
    pump();
    for (const Peer& peer : peers_) stopped_ = stopped_ || peer.ended;
    return stopped_ || aborted_;
  }

 protected:
  Ticket do_post(int to, Channel channel, std::string bytes) override {
    const std::lock_guard lock(mutex_);
    require_others();
    return post(to, FrameKind::kData, channel, std::move(bytes));
  }

  void do_finish(Ticket ticket) override {
    const auto to = static_cast<int>(ticket % static_cast<Ticket>(size()));
    const Ticket number = ticket / static_cast<Ticket>(size());
    wait_for(to, [&] {
      const auto& sending = peer(to).sending;
      return sending.empty() || sending.front().number > number;
    });
  }

  std::string do_receive(int from, Channel channel) override {
    std::optional<std::string> bytes;
    wait_for(from, [&] {
      bytes = mailbox_.take(from, channel);
      return bytes.has_value();
    });
    return *std::move(bytes);
  }

  void do_abort(const std::string& reason) noexcept override {
    const std::lock_guard lock(mutex_);
    spread_abort(reason);
    const auto end = Clock::now() + kLastWords;
    try {
      while (is_sending() && Clock::now() < end) {
        pump();
        std::this_thread::sleep_for(kPause);
      }
    } catch (const Error&) {
      // MPI refuses: abort_at_exit() ends the others.
    }
  }

 private:
  /// A frame on its way out: pieces of it, or of its head and it.
  struct Outgoing {
    Ticket number = 0;
    std::string head;
    std::string bytes;
    std::deque<Request*> pieces;
  };
  /// A piece on its way in.
  struct Incoming {
    std::string bytes;
    Request* request = nullptr;
  };
  struct Peer {
    std::list<Outgoing> sending;  ///< whose strings stay where they are
    Ticket posted = 0;
    std::deque<Incoming> arriving;
    FrameReader reader;
    std::uint64_t activity = 0;
    bool ended = false;
  };

  Peer& peer(int rank) { return peers_[static_cast<size_t>(rank)]; }

  Ticket post(int to, FrameKind kind, Channel channel, std::string bytes) {
    Peer& its = peer(to);
    std::string head = frame_head(kind, channel, bytes.size());
    if (bytes.size() <= kSmallBytes) head += std::exchange(bytes, {});
    Outgoing& frame =
        its.sending.emplace_back(Outgoing{++its.posted, std::move(head), std::move(bytes), {}});
    send_pieces(to, frame, frame.head);
    send_pieces(to, frame, frame.bytes);
    return its.posted * static_cast<Ticket>(size()) + static_cast<Ticket>(to);
  }

  void send_pieces(int to, Outgoing& frame, std::string_view bytes) {
    for (; !bytes.empty(); bytes.remove_prefix(std::min(bytes.size(), kMaxPieceBytes))) {
      const auto piece = bytes.substr(0, kMaxPieceBytes);
      Request* const request = mpi_.send(to, piece.data(), static_cast<int>(piece.size()));
      if (request == nullptr) refused("MPI_Isend");
      frame.pieces.push_back(request);
    }
  }

  /// Takes in and sends out until `done`, which is asked under the mutex; gives up when `from` has
  /// ended or is silent for too long.
  template <class Done>
  void wait_for(int from, const Done& done) {
    std::unique_lock lock(mutex_);
    auto end = wait_end();
    auto activity = peer(from).activity;
    for (int looks = 0;; ++looks) {
      pump();
      require_others();
      if (done()) return;
      if (peer(from).ended) lost(from);
      if (std::exchange(activity, peer(from).activity) != peer(from).activity) end = wait_end();
      lock.unlock();
      if (end && Clock::now() >= *end) give_up(from);
      if (looks < kEagerLooks) {
        std::this_thread::yield();
      } else {
        std::this_thread::sleep_for(kPause);
      }
      lock.lock();
    }
  }

  void pump() {
    begin_receiving();
    for (size_t rank = 0; rank < peers_.size(); ++rank) {
      finish_sending(peers_[rank]);
      finish_receiving(static_cast<int>(rank));
    }
  }

  void begin_receiving() {
    int from = 0;
    int count = 0;
    while (mpi_.probe(&from, &count) == 1) {
      Incoming& piece = peer(from).arriving.emplace_back();
      piece.bytes.resize(static_cast<size_t>(count));
      piece.request = mpi_.receive(piece.bytes.data(), count);
      if (piece.request == nullptr) refused("MPI_Imrecv");
    }
  }

  void finish_sending(Peer& its) {
    while (!its.sending.empty()) {
      auto& pieces = its.sending.front().pieces;
      while (!pieces.empty() && is_done(pieces.front())) {
        pieces.pop_front();
        ++its.activity;
      }
      if (!pieces.empty()) return;
      its.sending.pop_front();
    }
  }

  void finish_receiving(int from) {
    Peer& its = peer(from);
    while (!its.arriving.empty() && is_done(its.arriving.front().request)) {
      const std::string bytes = std::move(its.arriving.front().bytes);
      its.arriving.pop_front();
      ++its.activity;
      take_in(from, bytes);
    }
  }

  void take_in(int from, std::string_view bytes) {
    FrameReader& reader = peer(from).reader;
    while (!bytes.empty()) {
      const std::span<char> room = reader.room();
      const size_t taken = std::min(room.size(), bytes.size());
      std::memcpy(room.data(), bytes.data(), taken);
      reader.filled(taken);
      bytes.remove_prefix(taken);
      while (auto frame = reader.take()) accept(from, *std::move(frame));
    }
  }

  void accept(int from, Frame frame) {
    switch (frame.kind) {
      case FrameKind::kData:
        mailbox_.put(from, frame.channel, std::move(frame.bytes));
        return;
      case FrameKind::kStop:
        stopped_ = true;
        return;
      case FrameKind::kAbort:
        if (!aborted_) aborted_ = std::move(frame.bytes);
        return;
      case FrameKind::kEnd:
        peer(from).ended = true;
        return;
    }
    lost(from);
  }

  bool is_done(Request* request) {
    const int result = mpi_.test(request);
    if (result < 0) refused("MPI_Test");
    return result == 1;
  }

  [[noreturn]] void refused(const char* call) {
    const std::string reason =
        fmt::format("process {} of {}: {} failed in {}", rank(), size(), call, operation_name());
    if (!aborted_) aborted_ = reason;
    throw Error(ErrorCode::kPeerLost, reason);
  }

  [[noreturn]] void lost(int from) {
    const std::string reason = fmt::format("process {} of {} ended without a word", from, size());
    spread_abort(reason);
    throw Error(ErrorCode::kPeerLost, reason);
  }

  void require_others() const {
    if (aborted_) throw Error(ErrorCode::kPeerLost, *aborted_);
  }

  void spread(FrameKind kind, const std::string& bytes) {
    for (int to = 0; to < size(); ++to) {
      if (to != rank()) post(to, kind, 0, bytes);
    }
  }

  void spread_abort(const std::string& reason) noexcept {
    if (aborted_) return;
    aborted_ = reason;
    try {
      spread(FrameKind::kAbort, reason);
    } catch (const Error&) {
      // MPI refuses: abort_at_exit() ends the others.
    }
  }

  bool is_sending() const {
    return std::ranges::any_of(peers_, [](const Peer& its) { return !its.sending.empty(); });
  }
  bool all_ended() {
    int missing = -1;  // itself
    for (const Peer& its : peers_) missing += its.ended ? 0 : 1;
    return missing == 0;
  }

  /// MPI may be finalized when nothing is on its way any more: everybody says that it ends, and
  /// waits until the others have.
  void say_goodbye() {
    if (aborted_) return;
    spread(FrameKind::kEnd, {});
    const auto end = wait_end();
    while (!aborted_ && (is_sending() || !all_ended())) {
      if (end && Clock::now() >= *end) {
        return spread_abort(
            fmt::format("process {} of {} waited in vain for the others to end", rank(), size()));
      }
      pump();
      std::this_thread::sleep_for(kPause);
    }
  }

  const Functions& mpi_;
  std::mutex mutex_;
  std::vector<Peer> peers_;  ///< by rank; its own is never used
  Mailbox mailbox_;
  std::optional<std::string> aborted_;
  bool stopped_ = false;
};

}  // namespace

std::vector<std::string> mpi_plugin_places(const std::string& given) {
  if (!given.empty()) return {given};
  std::error_code failure;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", failure);
  if (failure) return {SHARDTOOL_MPI_PLUGIN_NAME};
  const auto folder = program.parent_path();
  const auto library = folder / SHARDTOOL_LIBRARY_FROM_PROGRAM / "shardtool";
  return {folder / SHARDTOOL_MPI_PLUGIN_NAME,
          (library / SHARDTOOL_MPI_PLUGIN_NAME).lexically_normal()};
}

std::unique_ptr<Communicator> open_mpi(const std::vector<std::string>& plugins) {
  const DynamicLibrary library("the MPI plugin", plugins);
  const auto functions =
      library.function<shardtool_mpi_plugin_function>(SHARDTOOL_MPI_PLUGIN_SYMBOL);
  const Functions& mpi = *functions();
  if (mpi.version != SHARDTOOL_MPI_PLUGIN_VERSION) {
    throw engine_missing(fmt::format("the MPI plugin {} has version {}, expected {}",
                                     library.name(), mpi.version, SHARDTOOL_MPI_PLUGIN_VERSION));
  }
  int rank = 0;
  int size = 0;
  std::array<char, 1024> text{};
  if (mpi.begin(&rank, &size, text.data(), text.size()) != 0) {
    throw engine_missing(fmt::format("MPI does not begin: {}", text.data()));
  }
  ::on_exit(abort_at_exit, nullptr);
  return std::make_unique<MpiCommunicator>(mpi, rank, size);
}

}  // namespace shardtool::comm
