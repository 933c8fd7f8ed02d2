#pragma once

#include <string>
#include <vector>

namespace shardtool::comm {

/// Listening address of a process: a numeric host or a host name, and a port.
struct Address {
  std::string host;
  int port = 0;

  bool operator==(const Address&) const = default;
};

/// Formats as "host:port", or "[host]:port" for a host with colons.
std::string to_string(const Address& address);
/// Joins the addresses, formatted as in to_string, with commas.
std::string list_of(const std::vector<Address>& addresses);

/// Formats one line per address for the exchange between processes; addresses_in(to_lines(a)) == a
/// for numeric hosts.
std::string to_lines(const std::vector<Address>& addresses);
/// Parses up to the first line without an address.
std::vector<Address> addresses_in(const std::string& lines);

}  // namespace shardtool::comm
