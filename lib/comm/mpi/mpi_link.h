#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <string>
#include <string_view>
#include <vector>

#include "lib/comm/message_communicator.h"
#include "lib/comm/mpi/mpi_plugin.h"

namespace shardtool::comm {

/// MPI messages with one other process, which announces its end with a frame. Throws kPeerLost when
/// MPI fails.
class MpiLink final : public MessageLink {
 public:
  MpiLink(const shardtool_mpi_functions& mpi, int peer) : mpi_(mpi), peer_(peer) {}

  std::vector<Frame> pump() override;
  std::uint64_t left() const override { return left_; }
  std::uint64_t activity() const override { return activity_; }
  bool has_ended() const override { return ended_; }

 protected:
  void enqueue(std::string head, std::string bytes) override;

 private:
  /// Outgoing frame: pieces of its head and its bytes. MPI reads the strings in place.
  struct Outgoing {
    std::string head;
    std::string bytes;
    std::deque<shardtool_mpi_request*> pieces;
  };
  /// Incoming piece.
  struct Incoming {
    std::string bytes;
    shardtool_mpi_request* request = nullptr;
  };

  void send_pieces(Outgoing& frame, std::string_view bytes);
  void finish_sending();
  void begin_receiving();
  std::vector<Frame> finish_receiving();
  void take_in(std::string_view bytes, std::vector<Frame>& frames);
  bool is_done(shardtool_mpi_request* request);
  [[noreturn]] void refused(const char* call) const;

  const shardtool_mpi_functions& mpi_;
  int peer_;
  std::list<Outgoing> sending_;
  std::deque<Incoming> arriving_;
  FrameReader reader_;
  std::uint64_t left_ = 0;
  std::uint64_t activity_ = 0;
  bool ended_ = false;
};

}  // namespace shardtool::comm
