#include "lib/comm/tcp/address.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sstream>

namespace shardtool::comm {

std::string to_string(const Address& address) {
  const bool has_colons = address.host.find(':') != std::string::npos;
  return has_colons ? fmt::format("[{}]:{}", address.host, address.port)
                    : fmt::format("{}:{}", address.host, address.port);
}

std::string list_of(const std::vector<Address>& addresses) {
  std::vector<std::string> texts;
  for (const Address& address : addresses) texts.push_back(to_string(address));
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string to_lines(const std::vector<Address>& addresses) {
  std::string lines;
  for (const Address& address : addresses) {
    lines += fmt::format("{} {}\n", address.host, address.port);
  }
  return lines;
}

std::vector<Address> addresses_in(const std::string& lines) {
  std::istringstream stream(lines);
  std::vector<Address> addresses;
  Address address;
  while (stream >> address.host >> address.port) addresses.push_back(address);
  return addresses;
}

}  // namespace shardtool::comm
