#include "lib/comm/tcp/secret.h"

#include <openssl/crypto.h>
#include <sys/random.h>

#include <cerrno>

#include "lib/base/error.h"

namespace shardtool::comm {
std::string random_bytes(size_t bytes) {
  std::string random(bytes, '\0');
  for (size_t have = 0; have < bytes;) {
    const ssize_t got = ::getrandom(random.data() + have, bytes - have, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      throw Error(ErrorCode::kPeerLost,
                  "the system has no random bytes for the processes to know each other by");
    }
    have += static_cast<size_t>(got);
  }
  return random;
}

bool equal_in_constant_time(std::string_view a, std::string_view b) {
  return a.size() == b.size() && ::CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace shardtool::comm
