#pragma once

#include <string>
#include <vector>

namespace shardtool::comm {

/// The place where a process listens: a host, numeric or named, and a port.
struct Address {
  std::string host;
  int port = 0;

  bool operator==(const Address&) const = default;
};

/// "host:port", "[host]:port" of a host with colons.
std::string to_string(const Address& address);
/// As in to_string, with commas between.
std::string list_of(const std::vector<Address>& addresses);

/// A line for each, as processes tell each other; addresses_in(to_lines(a)) == a for numeric hosts.
std::string to_lines(const std::vector<Address>& addresses);
/// Up to the first line that has no address.
std::vector<Address> addresses_in(const std::string& lines);

}  // namespace shardtool::comm
