#include "lib/engine/weights/part_bytes.h"

#include <cstring>

#include "kernels/field/field.h"
#include "lib/base/error.h"

namespace shardtool::engine {
namespace {

void append(std::string& bytes, const void* data, size_t size) {
  bytes.append(static_cast<const char*>(data), size);
}
void append(std::string& bytes, i64 number) {
  append(bytes, &number, sizeof number);
}

class Bytes {
 public:
  explicit Bytes(std::string_view rest) : rest_(rest) {}
  bool at_end() const { return rest_.empty(); }
  void take(void* data, size_t size) {
    if (size > rest_.size()) {
      throw Error(ErrorCode::kPeerLost, "another process sent an invalid value");
    }
    if (size > 0) std::memcpy(data, rest_.data(), size);
    rest_.remove_prefix(size);
  }
  i64 number() {
    i64 n = 0;
    take(&n, sizeof n);
    return n;
  }

 private:
  std::string_view rest_;
};

}  // namespace

template <class N>
std::string to_bytes(const Placed<N>& parts) {
  std::string bytes;
  for (const auto& [rank, part] : parts) {
    append(bytes, rank);
    append(bytes, part.features.local_size());
    append(bytes, part.features.global_size());
    append(bytes, std::ssize(part.features.pieces()));
    for (const index::Piece& piece : part.features.pieces()) append(bytes, &piece, sizeof piece);
    append(bytes, std::ssize(part.data));
    append(bytes, part.data.data(), part.data.size() * sizeof(N));
  }
  return bytes;
}

template <class N>
void add_from_bytes(std::string_view text, Placed<N>& parts) {
  Bytes bytes(text);
  while (!bytes.at_end()) {
    const i64 rank = bytes.number();
    const i64 local = bytes.number();
    const i64 global = bytes.number();
    std::vector<index::Piece> pieces(static_cast<size_t>(bytes.number()));
    bytes.take(pieces.data(), pieces.size() * sizeof(index::Piece));
    Part<N> part{index::AxisMap(local, global, std::move(pieces)), {}};
    part.data.resize(static_cast<size_t>(bytes.number()));
    bytes.take(part.data.data(), part.data.size() * sizeof(N));
    parts[rank] = std::move(part);
  }
}

#define SHARDTOOL_INSTANTIATE(N)                   \
  template std::string to_bytes(const Placed<N>&); \
  template void add_from_bytes(std::string_view, Placed<N>&);
SHARDTOOL_INSTANTIATE(kernels::Field)
SHARDTOOL_INSTANTIATE(double)
SHARDTOOL_INSTANTIATE(float)
#undef SHARDTOOL_INSTANTIATE

}  // namespace shardtool::engine
