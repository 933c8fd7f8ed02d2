#include "lib/plan/byte_count.h"

#include "lib/base/error.h"

namespace shardtool::plan {
namespace {

constexpr i64 kBitsPerByte = 8;

Error too_many() {
  return Error(ErrorCode::kLimit, "a sum of bytes does not fit 64 bits");
}

}  // namespace

i64 bytes_of(i64 elements, int bits, i64 count) {
  const auto all_bits = checked_mul(elements, bits);
  if (!all_bits) throw too_many();
  return times(ceil_div(*all_bits, kBitsPerByte), count);
}

i64 times(i64 bytes, i64 count) {
  const auto all = checked_mul(bytes, count);
  if (!all) throw too_many();
  return *all;
}

void add_bytes(i64& sum, i64 bytes) {
  const auto more = checked_add(sum, bytes);
  if (!more) throw too_many();
  sum = *more;
}

}  // namespace shardtool::plan
