#include "lib/comm/group_communicator.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace shardtool::comm {
namespace {

int rank_in(const std::vector<int>& members, int rank) {
  return static_cast<int>(std::find(members.begin(), members.end(), rank) - members.begin());
}

std::vector<int> all_ranks(int size) {
  std::vector<int> ranks(static_cast<size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

}  // namespace

GroupCommunicator::GroupCommunicator(Communicator& parent, std::vector<int> members, Channel first)
    : Communicator(rank_in(members, parent.rank()), static_cast<int>(members.size())),
      parent_(parent),
      members_(std::move(members)) {
  base_ = first;
}

GroupCommunicator::GroupCommunicator(Communicator& parent)
    : GroupCommunicator(parent, all_ranks(parent.size()), parent.base_) {}

Communicator::Ticket GroupCommunicator::do_post(int to, Channel channel, std::string bytes) {
  lend_operation();
  return parent_.do_post(at_parent(to), channel, std::move(bytes));
}

void GroupCommunicator::do_finish(Ticket ticket) {
  lend_operation();
  parent_.do_finish(ticket);
}

std::string GroupCommunicator::do_receive(int from, Channel channel) {
  lend_operation();
  return parent_.do_receive(at_parent(from), channel);
}

}  // namespace shardtool::comm
