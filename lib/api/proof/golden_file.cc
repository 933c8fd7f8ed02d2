#include "lib/api/proof/golden_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lib/api/proof/weight_files.h"
#include "lib/api/transfer/sources/logical_checkpoint.h"
#include "lib/api/transfer/sources/open_source.h"
#include "lib/base/error.h"
#include "lib/base/text.h"

namespace shardtool::api {
namespace {

/// Memory limit for a file of golden values.
constexpr i64 kMostGoldenBytes = i64{1} << 30;

class GoldenFile {
 public:
  explicit GoldenFile(const std::string& path)
      : path_(path),
        checkpoint_(open_logical({path}, {.takes_files_of_ranks = true})),
        files_(checkpoint_) {}

  bool has(const std::string& name) const { return find(name) < checkpoint_.tensors.size(); }

  /// Reads all elements of a tensor of this dtype and rank.
  template <class T>
  std::vector<T> read(const std::string& name, Dtype dtype, size_t rank, Shape& shape) const {
    const size_t tensor = find(name);
    if (tensor == checkpoint_.tensors.size()) throw wrong(name, "no such tensor");
    const TensorSpec& spec = checkpoint_.tensors[tensor].spec;
    const auto bytes = byte_size(dtype, spec.shape);
    if (spec.dtype != dtype || spec.shape.size() != rank || !bytes || *bytes > kMostGoldenBytes) {
      throw wrong(name, fmt::format("{} {}", to_string(spec.dtype), to_string(spec.shape)));
    }
    shape = spec.shape;
    std::vector<T> values(static_cast<size_t>(*bytes) / sizeof(T));
    if (values.empty()) throw wrong(name, to_string(spec.shape));
    files_.read({tensor, 0, -1, 0, shape[0]}, std::as_writable_bytes(std::span(values)));
    return values;
  }

  /// Reads the elements of an F32 tensor of rank 3.
  std::vector<float> read_floats(const std::string& name) const {
    Shape shape;
    std::vector<float> values = read<float>(name, Dtype::kF32, 3, shape);
    const auto odd = std::ranges::find_if_not(values, [](float x) { return std::isfinite(x); });
    if (odd != values.end())
      throw wrong(name, fmt::format("{} at element {}", *odd, odd - values.begin()));
    return values;
  }

  /// Throws for a value that is not among the first `hidden` states.
  void require_known(i64 hidden) const {
    for (const LogicalTensor& tensor : checkpoint_.tensors) {
      const std::string& name = tensor.spec.name;
      if (!name.starts_with("hidden.")) continue;
      bool is_known = false;
      for (i64 i = 0; i < hidden; ++i) is_known = is_known || name == fmt::format("hidden.{}", i);
      if (!is_known) throw wrong(name, fmt::format("{} before it", plural(hidden, "state")));
    }
  }

  /// Reads the positions that have values, of sequences of this length.
  std::vector<i64> positions(i64 length) const {
    Shape shape;
    std::vector<i64> positions = read<i64>("positions", Dtype::kI64, 1, shape);
    for (const i64 position : positions) {
      if (position < 0 || position >= length)
        throw wrong("positions", fmt::format("position {} of {}", position, length));
    }
    return positions;
  }

 private:
  size_t find(const std::string& name) const {
    const auto& tensors = checkpoint_.tensors;
    const auto found = std::find_if(tensors.begin(), tensors.end(),
                                    [&](const LogicalTensor& t) { return t.spec.name == name; });
    return static_cast<size_t>(found - tensors.begin());
  }
  Error wrong(const std::string& name, const std::string& found) const {
    return Error(ErrorCode::kShapeMismatch, "the file has no golden values")
        .at({path_, 0, 0, {}})
        .tensor(name)
        .note("found", found)
        .help(
            "it has input_ids [s, t] I64, logits [s, t, vocab] F32 and hidden.N [s, t, embed] F32, "
            "given [s, t, size] F32 where more than tokens enters, and positions [n] I64 below t "
            "if logits and hidden.N have n of the t positions; N counts from 0 without a gap, and "
            "all numbers are finite");
  }

  std::string path_;
  LogicalCheckpoint checkpoint_;
  WeightFiles files_;
};

}  // namespace

engine::Golden load_golden(const std::string& path) {
  const GoldenFile file(path);
  engine::Golden golden;
  Shape shape;
  golden.tokens = file.read<i64>("input_ids", Dtype::kI64, 2, shape);
  golden.sequences = shape[0];
  golden.length = shape[1];
  if (file.has("positions")) golden.positions = file.positions(golden.length);
  if (file.has("given")) golden.given = file.read_floats("given");
  golden.logits = file.read_floats("logits");
  for (i64 i = 0; file.has(fmt::format("hidden.{}", i)); ++i) {
    golden.hidden.push_back(file.read_floats(fmt::format("hidden.{}", i)));
  }
  file.require_known(std::ssize(golden.hidden));
  return golden;
}

}  // namespace shardtool::api
