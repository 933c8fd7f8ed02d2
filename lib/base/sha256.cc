#include "lib/base/sha256.h"

// The low-level functions alone: EVP and HMAC pull in all of libcrypto, whose tables take longer to
// load than everything else at startup.
#define OPENSSL_API_COMPAT 0x10100000L
#include <openssl/sha.h>

#include "lib/base/error.h"
#include "lib/base/text.h"

namespace shardtool {
namespace {

static_assert(kSha256Bytes == SHA256_DIGEST_LENGTH);

constexpr size_t kBlockBytes = SHA256_CBLOCK;
constexpr unsigned char kInnerPad = 0x36;
constexpr unsigned char kOuterPad = 0x5c;

std::string padded(std::string block, unsigned char pad) {
  for (char& byte : block) byte = static_cast<char>(static_cast<unsigned char>(byte) ^ pad);
  return block;
}

}  // namespace

std::string sha256(std::string_view text) {
  SHA256_CTX context;
  std::string digest(kSha256Bytes, '\0');
  const bool is_done =
      ::SHA256_Init(&context) == 1 && ::SHA256_Update(&context, text.data(), text.size()) == 1 &&
      ::SHA256_Final(reinterpret_cast<unsigned char*>(digest.data()), &context) == 1;
  if (!is_done) throw Error(ErrorCode::kLimit, "libcrypto cannot compute the hash");
  return digest;
}

std::string sha256_hex(std::string_view text) {
  return to_hex(sha256(text));
}

std::string hmac_sha256(std::string_view key, std::string_view message) {
  std::string block = key.size() > kBlockBytes ? sha256(key) : std::string(key);
  block.resize(kBlockBytes, '\0');
  return sha256(padded(block, kOuterPad) + sha256(padded(block, kInnerPad) + std::string(message)));
}

}  // namespace shardtool
