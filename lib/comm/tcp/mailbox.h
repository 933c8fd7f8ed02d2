#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace shardtool::comm {

/// Messages that have arrived but are not yet received, in order for each sender and channel.
class Mailbox {
 public:
  void put(int from, std::uint64_t channel, std::string bytes) {
    messages_[{from, channel}].push_back(std::move(bytes));
  }

  /// Takes the oldest message, or returns nullopt.
  std::optional<std::string> take(int from, std::uint64_t channel) {
    const auto found = messages_.find({from, channel});
    if (found == messages_.end()) return std::nullopt;
    std::string bytes = std::move(found->second.front());
    found->second.pop_front();
    if (found->second.empty()) messages_.erase(found);
    return bytes;
  }

 private:
  std::map<std::pair<int, std::uint64_t>, std::deque<std::string>> messages_;  ///< no queue is
                                                                               ///< empty
};

}  // namespace shardtool::comm
