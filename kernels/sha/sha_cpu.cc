#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>

#include "shardtool/base/error.h"
#include "shardtool/kernels/sha/sha.h"

namespace shardtool::kernels {
namespace {

void require(int succeeded) {
  if (succeeded != 1) throw Error(ErrorCode::kLimit, "libcrypto cannot compute the hash");
}

}  // namespace

struct Sha::State {
  struct Free {
    void operator()(EVP_MD_CTX* evp) const { EVP_MD_CTX_free(evp); }
  };
  std::unique_ptr<EVP_MD_CTX, Free> context{EVP_MD_CTX_new()};
};

Sha::Sha(ShaKind kind) : state_(std::make_unique<State>()) {
  if (state_->context == nullptr) throw Error(ErrorCode::kLimit, "no memory for a hash");
  const EVP_MD* hash = kind == ShaKind::kSha1 ? EVP_sha1() : EVP_sha256();
  require(EVP_DigestInit_ex(state_->context.get(), hash, nullptr));
}
Sha::~Sha() = default;
Sha::Sha(Sha&&) noexcept = default;
Sha& Sha::operator=(Sha&&) noexcept = default;

void Sha::update(std::span<const std::byte> bytes) {
  require(EVP_DigestUpdate(state_->context.get(), bytes.data(), bytes.size()));
}

std::string Sha::finish() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned size = 0;
  require(EVP_DigestFinal_ex(state_->context.get(), digest.data(), &size));
  std::string hex;
  for (unsigned i = 0; i < size; ++i) hex += fmt::format("{:02x}", digest[i]);
  return hex;
}

std::string sha256_hex(std::span<const std::byte> bytes) {
  Sha hash(ShaKind::kSha256);
  hash.update(bytes);
  return hash.finish();
}

}  // namespace shardtool::kernels
