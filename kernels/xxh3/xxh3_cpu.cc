#include <fmt/format.h>

#include "shardtool/kernels/xxh3/xxh3.h"
#if defined(SHARDTOOL_HAS_XXH_DISPATCH)
#include <xxh_x86dispatch.h>  // the calls of xxhash.h, each on the widest vector unit of this CPU
#else
#include <xxhash.h>
#endif

#include "shardtool/base/error.h"

namespace shardtool::kernels {
namespace {

std::string to_hex(XXH128_hash_t hash) {
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace

struct Xxh3::State {
  struct Free {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  std::unique_ptr<XXH3_state_t, Free> xxh{XXH3_createState()};
};

Xxh3::Xxh3() : state_(std::make_unique<State>()) {
  if (state_->xxh == nullptr) throw Error(ErrorCode::kLimit, "no memory for the state of a hash");
  XXH3_128bits_reset(state_->xxh.get());
}
Xxh3::~Xxh3() = default;
Xxh3::Xxh3(Xxh3&&) noexcept = default;
Xxh3& Xxh3::operator=(Xxh3&&) noexcept = default;

void Xxh3::update(std::span<const std::byte> bytes) {
  XXH3_128bits_update(state_->xxh.get(), bytes.data(), bytes.size());
}

std::string Xxh3::hex() const {
  return to_hex(XXH3_128bits_digest(state_->xxh.get()));
}

std::string xxh3_hex(std::span<const std::byte> bytes) {
  return to_hex(XXH3_128bits(bytes.data(), bytes.size()));
}

}  // namespace shardtool::kernels
