#include "lib/comm/tcp/secret.h"

#include <fmt/format.h>
#include <sys/random.h>

// SHA-256 alone: OpenSSL's HMAC pulls in all of libcrypto, whose tables take longer to load than
// everything else at startup.
#define OPENSSL_API_COMPAT 0x10100000L
#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <cerrno>

#include "lib/base/error.h"

namespace shardtool::comm {
namespace {

constexpr size_t kBlockBytes = SHA256_CBLOCK;
constexpr unsigned char kInnerPad = 0x36;
constexpr unsigned char kOuterPad = 0x5c;

std::string padded(std::string block, unsigned char pad) {
  for (char& byte : block) byte = static_cast<char>(static_cast<unsigned char>(byte) ^ pad);
  return block;
}

}  // namespace

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

std::string sha256(std::string_view text) {
  std::string digest(kDigestBytes, '\0');
  ::SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(),
           reinterpret_cast<unsigned char*>(digest.data()));
  return digest;
}

std::string hmac_sha256(std::string_view key, std::string_view message) {
  std::string block = key.size() > kBlockBytes ? sha256(key) : std::string(key);
  block.resize(kBlockBytes, '\0');
  return sha256(padded(block, kOuterPad) + sha256(padded(block, kInnerPad) + std::string(message)));
}

bool equal_in_constant_time(std::string_view a, std::string_view b) {
  return a.size() == b.size() && ::CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string hex(std::string_view bytes) {
  std::string digits;
  for (const char byte : bytes) {
    digits += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  }
  return digits;
}

}  // namespace shardtool::comm
