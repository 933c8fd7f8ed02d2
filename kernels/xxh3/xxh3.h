#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace shardtool::kernels {

/// An XXH3-128 value.
struct Hash128 {
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  bool operator==(const Hash128&) const = default;
  /// Returns 32 lower-case hex digits, high half first (like `xxhsum -H2`).
  std::string hex() const;
  void append_hex(std::string& out) const;
};

/// Parses 32 lower-case hex digits; returns nullopt for any other text.
std::optional<Hash128> parse_hash128(std::string_view hex);

/// Streaming XXH3-128 (xxHash 0.8); the vector unit is chosen at run time.
class Xxh3 {
 public:
  Xxh3();
  ~Xxh3();
  Xxh3(Xxh3&&) noexcept;
  Xxh3& operator=(Xxh3&&) noexcept;

  void update(std::span<const std::byte> bytes);
  Hash128 value() const;
  std::string hex() const { return value().hex(); }

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Returns the hash of one message.
Hash128 xxh3(std::span<const std::byte> bytes);
std::string xxh3_hex(std::span<const std::byte> bytes);

}  // namespace shardtool::kernels
