#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lib/comm/communicator.h"

namespace shardtool::comm {

/// Some of the processes of another communicator, which carries their messages on channels of
/// their own. Messages name processes as that one does.
class GroupCommunicator : public Communicator {
 public:
  /// Two channels from `first` on belong to the group.
  GroupCommunicator(Communicator& parent, std::vector<int> members, Channel first);
  /// All of the parent, in its place.
  explicit GroupCommunicator(Communicator& parent);

  void abort(const std::string& reason) noexcept override { parent_.abort(reason); }
  void require_others() override { parent_.require_others(); }
  void raise_stop() noexcept override { parent_.raise_stop(); }
  bool stop_was_raised() override { return parent_.stop_was_raised(); }

 protected:
  Ticket do_post(int to, Channel channel, std::string bytes) override;
  void do_finish(Ticket ticket) override;
  std::string do_receive(int from, Channel channel) override;
  void do_abort(const std::string& reason) noexcept override { parent_.do_abort(reason); }
  Channel& next_channel() override { return parent_.next_channel(); }

 private:
  /// The parent waits as long as this one would, and says for what.
  void lend_operation() { parent_.current_ = current_; }
  int at_parent(int rank) const { return members_[static_cast<size_t>(rank)]; }

  Communicator& parent_;
  std::vector<int> members_;  ///< ranks at the parent, by rank here
};

}  // namespace shardtool::comm
