#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/comm/communicator.h"

namespace shardtool::comm {

/// Some of the processes of another communicator, which carries their messages on separate
/// channels. Error messages use the parent's process numbers.
class GroupCommunicator : public Communicator {
 public:
  /// Takes two channels of the parent, beginning at `first`.
  GroupCommunicator(Communicator& parent, std::vector<int> members, Channel first);
  /// Group of all processes, which replaces the parent.
  explicit GroupCommunicator(Communicator& parent);

  void abort(Error& error) noexcept override { parent_.abort(error); }
  void require_others() override { parent_.require_others(); }
  void raise_stop() noexcept override { parent_.raise_stop(); }
  bool stop_was_raised() override { return parent_.stop_was_raised(); }

 protected:
  Ticket do_post(int to, Channel channel, std::string bytes) override;
  void do_finish(Ticket ticket) override;
  std::string do_receive(int from, Channel channel) override;
  void do_abort(const Error& error) noexcept override { parent_.do_abort(error); }
  Channel& next_channel() override { return parent_.next_channel(); }
  std::optional<Error> loss(int peer) override { return parent_.loss(at_parent(peer)); }

 private:
  /// Gives the parent this group's operation name and deadline.
  void lend_operation() { parent_.current_ = current_; }
  int at_parent(int rank) const { return members_[static_cast<size_t>(rank)]; }

  Communicator& parent_;
  std::vector<int> members_;  ///< ranks in the parent, by rank here
};

}  // namespace shardtool::comm
