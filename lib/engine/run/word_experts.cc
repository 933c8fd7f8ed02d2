#include "lib/engine/run/word_experts.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "lib/base/error.h"
#include "lib/engine/names.h"

namespace shardtool::engine {
namespace {

template <class Stored>
std::vector<i64> numbers_of(const std::vector<std::byte>& bytes) {
  std::vector<Stored> stored(bytes.size() / sizeof(Stored));
  std::memcpy(stored.data(), bytes.data(), stored.size() * sizeof(Stored));
  return {stored.begin(), stored.end()};
}

}  // namespace

WordExperts::WordExperts(const Side& side, size_t tensor, i64 rank) {
  const StoredWeight table = side.read(tensor, rank);
  columns_ = table.region.at(1).local_size();
  if (table.dtype == Dtype::kI64) {
    experts_ = numbers_of<i64>(table.bytes);
  } else if (table.dtype == Dtype::kI32) {
    experts_ = numbers_of<std::int32_t>(table.bytes);
  } else {
    throw Error(ErrorCode::kUnsupported, "a table of words' experts has no integers")
        .tensor(side.tensors[tensor].name)
        .note("found", std::string(to_string(table.dtype)));
  }
}

void WordExperts::copy(i64 word, i64* experts) const {
  if ((word + 1) * columns_ > std::ssize(experts_)) {
    throw Error(ErrorCode::kShapeMismatch, "a table of words' experts has fewer rows than words")
        .note("word", std::to_string(word));
  }
  std::copy_n(experts_.begin() + word * columns_, columns_, experts);
}

kernels::Field WordExperts::probe(std::uint64_t seed) const {
  kernels::Field sum;
  for (size_t i = 0; i < experts_.size(); ++i) {
    sum += kernels::field_random(seed, i) * kernels::Field::from_signed(experts_[i]);
  }
  return sum;
}

}  // namespace shardtool::engine
