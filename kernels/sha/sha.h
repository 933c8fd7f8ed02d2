#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace shardtool::kernels {

enum class ShaKind { kSha1, kSha256 };

/// SHA-1 or SHA-256 (FIPS 180-4), streaming, by libcrypto: about 2 GB/s on a core with SHA
/// instructions.
class Sha {
 public:
  /// Throws kLimit when the library does not offer the hash.
  explicit Sha(ShaKind kind);
  ~Sha();
  Sha(Sha&&) noexcept;
  Sha& operator=(Sha&&) noexcept;

  void update(std::span<const std::byte> bytes);
  /// 40 or 64 lower-case hex digits, as `sha1sum` and `sha256sum` print. Ends the stream.
  std::string finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The SHA-256 of one message.
std::string sha256_hex(std::span<const std::byte> bytes);

}  // namespace shardtool::kernels
