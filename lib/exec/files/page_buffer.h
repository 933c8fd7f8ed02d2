#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <span>

#include "lib/base/checked.h"
#include "lib/base/error.h"
#include "lib/store/local/file.h"

namespace shardtool::exec {

/// Page-aligned memory, as direct I/O requires.
class PageBuffer {
 public:
  /// Throws kLimit if memory runs out.
  explicit PageBuffer(i64 bytes)
      : memory_(static_cast<std::byte*>(
            std::aligned_alloc(store::kDirectAlignment,
                               static_cast<size_t>(round_up(bytes, store::kDirectAlignment))))) {
    if (memory_ == nullptr) throw Error(ErrorCode::kLimit, "no memory for a buffer");
  }

  std::byte* data() const { return memory_.get(); }
  std::span<std::byte> first(i64 bytes) const { return {data(), static_cast<size_t>(bytes)}; }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  std::unique_ptr<std::byte, Free> memory_;
};

}  // namespace shardtool::exec
