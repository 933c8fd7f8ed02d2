#include "kernels/xxh3/xxh3.h"
#if defined(SHARDTOOL_HAS_XXH_DISPATCH)
#include <xxh_x86dispatch.h>  // the calls of xxhash.h, each on the widest vector unit of this CPU
#else
#include <xxhash.h>
#endif

#include "lib/base/error.h"
#include "lib/base/text.h"

namespace shardtool::kernels {
namespace {

constexpr size_t kHalfDigits = 16;

/// Parses lower-case hex digits; returns nullopt for any other character.
std::optional<std::uint64_t> parse_half(std::string_view hex) {
  std::uint64_t value = 0;
  for (const char digit : hex) {
    const bool is_decimal = digit >= '0' && digit <= '9';
    if (!is_decimal && (digit < 'a' || digit > 'f')) return std::nullopt;
    value = value << 4 | static_cast<std::uint64_t>(is_decimal ? digit - '0' : digit - 'a' + 10);
  }
  return value;
}

}  // namespace

std::string Hash128::hex() const {
  std::string digits;
  append_hex(digits);
  return digits;
}

void Hash128::append_hex(std::string& out) const {
  shardtool::append_hex(out, high);
  shardtool::append_hex(out, low);
}

std::optional<Hash128> parse_hash128(std::string_view hex) {
  if (hex.size() != 2 * kHalfDigits) return std::nullopt;
  const auto high = parse_half(hex.substr(0, kHalfDigits));
  const auto low = parse_half(hex.substr(kHalfDigits));
  if (!high || !low) return std::nullopt;
  return Hash128{*high, *low};
}

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

Hash128 Xxh3::value() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(state_->xxh.get());
  return {hash.high64, hash.low64};
}

Hash128 xxh3(std::span<const std::byte> bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.high64, hash.low64};
}

std::string xxh3_hex(std::span<const std::byte> bytes) {
  return xxh3(bytes).hex();
}

}  // namespace shardtool::kernels
