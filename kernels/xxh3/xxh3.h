#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace shardtool::kernels {

/// XXH3-128 (xxHash 0.8), streaming; the vector unit is chosen at run time.
class Xxh3 {
 public:
  Xxh3();
  ~Xxh3();
  Xxh3(Xxh3&&) noexcept;
  Xxh3& operator=(Xxh3&&) noexcept;

  void update(std::span<const std::byte> bytes);
  /// 32 lower-case hex digits, high half first (as `xxhsum -H2` prints).
  std::string hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The hash of one message.
std::string xxh3_hex(std::span<const std::byte> bytes);

}  // namespace shardtool::kernels
