#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "lib/store/s3/client.h"
#include "tests/support/http_server.h"

namespace shardtool::test {

/// A client of the server at this address, with keys. `more` are further variables of its
/// environment, `hedge_ms` is a limit of its settings.
store::s3::Client client_of(const std::string& endpoint,
                            std::map<std::string, std::string> more = {},
                            i64 hedge_ms = store::s3::Limits().hedge_ms);

/// Bytes without a short period.
std::string some_bytes(size_t size);

/// A bucket behind a server, of which any answer may be replaced.
struct ServedBucket {
  PlayedBucket bucket;
  std::mutex mutex;  ///< guards the other members
  int count = 0;     ///< of requests since `disturb` was set
  std::function<void(int, const ReceivedRequest&, PlayedAnswer&)> disturb;
  HttpServer server{[this](const ReceivedRequest& request) {
    const std::lock_guard lock(mutex);
    PlayedAnswer answer = bucket.take(request);
    if (disturb) disturb(++count, request, answer);
    return answer;
  }};

  store::s3::Client client() const { return client_of(server.address()); }
};

}  // namespace shardtool::test
