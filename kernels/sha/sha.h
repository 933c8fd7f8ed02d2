#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace shardtool::kernels {

enum class ShaKind { kSha1, kSha256 };

/// Streaming SHA-1 or SHA-256 (FIPS 180-4) by libcrypto: about 2 GB/s per core with SHA
/// instructions.
class Sha {
 public:
  /// Throws kLimit if the library lacks the hash.
  explicit Sha(ShaKind kind);
  ~Sha();
  Sha(Sha&&) noexcept;
  Sha& operator=(Sha&&) noexcept;

  void update(std::span<const std::byte> bytes);
  /// Returns 40 or 64 lower-case hex digits, like `sha1sum` and `sha256sum`. Ends the stream.
  std::string finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace shardtool::kernels
