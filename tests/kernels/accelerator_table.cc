#include "tests/kernels/accelerator_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <vector>

namespace shardtool::kernels {
namespace {

/// Launches timed together, so that launch overhead is small.
constexpr int kLaunches = 4;
/// Widths of a model with 8 billion parameters.
constexpr i64 kHidden = 4096;
constexpr i64 kHead = 128;
constexpr i64 kHeads = kHidden / kHead;
constexpr i64 kParts = 4;
constexpr i64 kExperts = 64;

struct Row {
  std::string name;
  i64 bytes = 0;
  double seconds = 0;

  double rate() const { return static_cast<double>(bytes) / seconds; }
};

class Bench {
 public:
  Bench(Accelerator& accelerator, i64 bytes, int rounds)
      : accelerator_(accelerator), bytes_(std::max(bytes, i64{1} << 20)), rounds_(rounds) {
    for (int i = 0; i < 3; ++i) memory_.emplace_back(accelerator, static_cast<size_t>(bytes_));
    clear();
  }

  std::string table() {
    copies();
    products();
    elementwise();
    rows();
    std::string text = fmt::format(
        "{}; copy ceiling {:.1f} GB/s\n\n"
        "| kernel | bytes | time, us | GB/s | of the ceiling |\n|---|---|---|---|---|\n",
        accelerator_.name(), table_.front().rate() / 1e9);
    for (const Row& row : table_) {
      text += fmt::format("| {} | {} | {:.1f} | {:.1f} | {:.2f} |\n", row.name, row.bytes,
                          row.seconds * 1e6, row.rate() / 1e9, row.rate() / table_.front().rate());
    }
    return text;
  }

 private:
  /// Zeros are valid numbers in every dtype.
  void clear() {
    for (int i = 0; i < 3; ++i) {
      accelerator_.run(Fill<std::uint8_t>{array<std::uint8_t>(i), bytes_, 0});
    }
  }
  template <class T>
  T* array(int i) const {
    return reinterpret_cast<T*>(memory_[static_cast<size_t>(i)].there());
  }
  template <class T>
  i64 count() const {
    return bytes_ / static_cast<i64>(sizeof(T));
  }

  double seconds_of(const std::function<void()>& launch) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kLaunches; ++i) launch();
    accelerator_.wait(accelerator_.ticket());
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() /
           kLaunches;
  }
  void time(const std::string& name, i64 bytes, const std::function<void()>& launch) {
    seconds_of(launch);
    std::vector<double> times;
    for (int i = 0; i < rounds_; ++i) times.push_back(seconds_of(launch));
    std::nth_element(times.begin(), times.begin() + rounds_ / 2, times.end());
    table_.push_back({name, bytes, times[static_cast<size_t>(rounds_ / 2)]});
  }
  void time(const std::string& name, i64 bytes, const AnyWork& work) {
    time(name, bytes, [&] { accelerator_.run(work); });
  }

  void copies() {
    std::byte* const from = array<std::byte>(0);
    std::byte* const to = array<std::byte>(1);
    time("copy, contiguous", 2 * bytes_, BoxCopy{{0, 0, bytes_, {}}, from, to});
    for (const i64 run : {2, 16, 256}) {
      const i64 rows = bytes_ / (2 * run);
      time(fmt::format("copy, every other {} bytes", run), 2 * rows * run,
           BoxCopy{{0, 0, run, {{rows, 2 * run, run}}}, from, to});
    }
    std::byte* const here = memory_[0].here();
    time("to the accelerator, pinned", bytes_,
         [=, this] { accelerator_.upload(here, static_cast<size_t>(bytes_), from); });
    time("from the accelerator, pinned", bytes_,
         [=, this] { accelerator_.download(from, static_cast<size_t>(bytes_), here); });
    time("fill of 8", bytes_,
         Fill<std::uint64_t>{array<std::uint64_t>(0), count<std::uint64_t>(), 0});
  }

  template <class T>
  void products_of(const std::string& number, i64 tokens) {
    const i64 rows = bytes_ / (2 * kHidden);
    const StoredMatrix w{Dtype::kBF16, array<std::byte>(0), rows, kHidden};
    const i64 read = rows * kHidden * 2;
    time(fmt::format("rows of bf16 x {} {}", tokens, number), read,
         RowProducts<T>{w,
                        NumberMap::kBits,
                        {array<const T>(1), tokens, kHidden},
                        {array<T>(2), tokens, rows}});
    // Rows of x are as long as w has rows.
    const i64 fitting = std::min(rows, count<T>() / tokens);
    time(fmt::format("columns of bf16 x {} {}", tokens, number), fitting * kHidden * 2,
         ColumnProducts<T>{{Dtype::kBF16, array<std::byte>(0), fitting, kHidden},
                           NumberMap::kBits,
                           {array<const T>(1), tokens, fitting},
                           {array<T>(2), tokens, kHidden}});
  }
  void products() {
    products_of<Field>("residues", 3);
    products_of<double>("doubles", 8);
    products_of<float>("floats", 8);
  }

  template <class T>
  void elementwise_of(const std::string& number) {
    const i64 n = count<T>();
    FoldParts<T> fold;
    fold.parts = kParts;
    fold.n = n / kParts;
    for (i64 i = 0; i < kParts; ++i) fold.part[static_cast<size_t>(i)] = array<T>(0) + i * fold.n;
    fold.y = array<T>(1);
    const auto size = static_cast<i64>(sizeof(T));
    time(fmt::format("sum of {} ranks, {}", kParts, number), (kParts + 1) * fold.n * size, fold);
    time("silu times a gate, " + number, 3 * n * size,
         ActivateAll<T>{ActivationKind::kSilu, array<T>(0), array<T>(1), n, array<T>(2)});
    time("sum of two arrays, " + number, 3 * n * size,
         CombineAll<T>{false, array<T>(0), array<T>(1), n, array<T>(2)});
    const i64 tokens = n / kHidden;
    const RowView<const T> x{array<T>(0), tokens, kHidden};
    time("compare, " + number, 2 * tokens * kHidden * size,
         Comparison<T>{{x, {array<T>(1), tokens, kHidden}, kHidden, nullptr, 0, kHidden, 0},
                       array<Disagreement>(2)});
    time("scale of columns, " + number, 2 * tokens * kHidden * size,
         ScaleRows<T>{x, kHidden, array<T>(1), {array<T>(2), tokens, kHidden}});
  }
  void elementwise() {
    elementwise_of<Field>("residues");
    elementwise_of<double>("doubles");
    const i64 n = count<double>();
    time("decode of bf16 to doubles", 10 * n,
         DecodeNumbers<double>{Dtype::kBF16, array<std::byte>(0), n, array<double>(1)});
    const i64 floats = count<float>();
    time("encode of floats as bf16", 6 * floats,
         EncodeFloats{Dtype::kBF16, array<float>(0), floats, array<std::byte>(1)});
    time(
        "decode of bf16 to residues", 10 * n,
        DecodeResidues{Dtype::kBF16, 2, NumberMap::kBits, array<std::byte>(0), n, array<Field>(1)});
  }

  template <class T>
  void rows_of(const std::string& number) {
    const i64 tokens = count<T>() / kHidden;
    const auto size = static_cast<i64>(sizeof(T));
    const RowView<const T> x{array<T>(0), tokens, kHidden};
    const RowView<T> y{array<T>(1), tokens, kHidden};
    time("rms norm, " + number, 2 * tokens * kHidden * size,
         NormRows<T>{{NormKind::kRms, 1e-5, false}, x, kHidden, array<T>(2), nullptr, y});
    time("rotation, " + number, 2 * tokens * kHidden * size,
         RotateHeads<T>{RotaryPairs::kHalf, x, kHeads, kHead, 0, 1, array<T>(2), array<T>(2),
                        kHead / 2, y});
    attention_of<T>(number);
  }
  /// Sequences of few tokens: queries, keys and values are read once each.
  template <class T>
  void attention_of(const std::string& number) {
    constexpr i64 kLength = 8;
    const i64 tokens = count<T>() / (4 * kHidden) / kLength * kLength;
    AttendHeads<T> work;
    work.queries = {array<T>(0), tokens, kHidden};
    work.keys = {array<T>(0) + tokens * kHidden, tokens, kHidden};
    work.values = {array<T>(0) + 2 * tokens * kHidden, tokens, kHidden};
    work.heads = kHeads;
    work.key_size = work.value_size = kHead;
    work.key_of = work.value_of = array<i64>(2);
    work.length = work.scores_stride = kLength;
    work.scores = array<T>(2) + kHeads;
    work.y = {array<T>(1), tokens, kHidden};
    time("attention of 8 tokens, " + number, 4 * tokens * kHidden * static_cast<i64>(sizeof(T)),
         work);
  }
  void rows() {
    clear();
    rows_of<Field>("residues");
    rows_of<double>("doubles");
    RouterSpec spec;
    spec.experts = kExperts;
    spec.top_k = 8;
    const i64 tokens = count<double>() / kExperts / 2;
    time("router of 64, doubles", 2 * tokens * kExperts * 8,
         RouteRows<double>{spec,
                           {array<double>(0), tokens, kExperts},
                           nullptr,
                           {array<double>(1), tokens, kExperts},
                           array<i64>(2),
                           array<double>(1) + tokens * kExperts});
  }

  Accelerator& accelerator_;
  const i64 bytes_;
  const int rounds_;
  std::vector<PairedMemory> memory_;
  std::vector<Row> table_;
};

}  // namespace

std::string accelerator_table(Accelerator& accelerator, i64 bytes, int rounds) {
  return Bench(accelerator, bytes, rounds).table();
}

}  // namespace shardtool::kernels
