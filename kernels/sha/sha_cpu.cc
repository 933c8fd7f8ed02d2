// Uses the low-level functions of each hash. The generic EVP functions pull in all of libcrypto,
// whose tables take longer to load than the rest of the program.
#define OPENSSL_API_COMPAT 0x10100000L
#include <openssl/sha.h>

#include <array>
#include <variant>

#include "kernels/sha/sha.h"
#include "lib/base/error.h"
#include "lib/base/text.h"

namespace shardtool::kernels {
namespace {

void require(int succeeded) {
  if (succeeded != 1) throw Error(ErrorCode::kLimit, "libcrypto cannot compute the hash");
}

}  // namespace

struct Sha::State {
  struct Sha1 {
    static constexpr size_t kBytes = SHA_DIGEST_LENGTH;
    SHA_CTX context{};
    Sha1() { require(SHA1_Init(&context)); }
    void update(std::span<const std::byte> bytes) {
      require(SHA1_Update(&context, bytes.data(), bytes.size()));
    }
    void finish(unsigned char* digest) { require(SHA1_Final(digest, &context)); }
  };

  struct Sha256 {
    static constexpr size_t kBytes = SHA256_DIGEST_LENGTH;
    SHA256_CTX context{};
    Sha256() { require(SHA256_Init(&context)); }
    void update(std::span<const std::byte> bytes) {
      require(SHA256_Update(&context, bytes.data(), bytes.size()));
    }
    void finish(unsigned char* digest) { require(SHA256_Final(digest, &context)); }
  };

  std::variant<Sha1, Sha256> hash;
};

Sha::Sha(ShaKind kind) : state_(std::make_unique<State>()) {
  if (kind == ShaKind::kSha256) state_->hash.emplace<State::Sha256>();
}
Sha::~Sha() = default;
Sha::Sha(Sha&&) noexcept = default;
Sha& Sha::operator=(Sha&&) noexcept = default;

void Sha::update(std::span<const std::byte> bytes) {
  std::visit([bytes](auto& hash) { hash.update(bytes); }, state_->hash);
}

std::string Sha::finish() {
  return std::visit(
      [](auto& hash) {
        std::array<unsigned char, std::decay_t<decltype(hash)>::kBytes> digest{};
        hash.finish(digest.data());
        return to_hex({reinterpret_cast<const char*>(digest.data()), digest.size()});
      },
      state_->hash);
}

}  // namespace shardtool::kernels
