#include "tests/kernels/accelerator_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <random>
#include <vector>

namespace shardtool::kernels {
namespace {

/// Launches timed together, so that launch overhead is small.
constexpr int kLaunches = 4;
/// A slow kernel gets fewer rounds, but three of them.
constexpr double kSecondsPerRow = 1;
/// Widths of a model with 8 billion parameters.
constexpr i64 kHidden = 4096;
constexpr i64 kHead = 128;
constexpr i64 kHeads = kHidden / kHead;
constexpr i64 kParts = 4;
constexpr i64 kExperts = 64;

class Bench {
 public:
  Bench(Accelerator& accelerator, i64 bytes, int rounds, const TableSink& print)
      : accelerator_(accelerator),
        bytes_(std::max(bytes, i64{1} << 20)),
        rounds_(rounds),
        print_(print) {
    for (int i = 0; i < 3; ++i) memory_.emplace_back(accelerator, static_cast<size_t>(bytes_));
  }

  void run() {
    print_(
        fmt::format("{}, arrays of {} bytes\n\n"
                    "| kernel | bytes | time, us | GB/s | of the copy's |\n"
                    "|---|---|---|---|---|\n",
                    accelerator_.name(), bytes_));
    copies();
    products();
    elementwise();
    rows();
  }

 private:
  /// Random numbers in array i: GPUs are faster on zeros. 1 MiB of them, repeated.
  template <class T>
  void randomise(int i) {
    constexpr size_t kPattern = size_t{1} << 20;
    std::mt19937_64 random(7);
    std::vector<T> pattern(kPattern / sizeof(T));
    for (T& number : pattern) number = random_number<T>(random);
    const PairedMemory& memory = memory_[static_cast<size_t>(i)];
    for (size_t at = 0; at < memory.size(); at += kPattern) {
      std::memcpy(memory.here() + at, pattern.data(), std::min(kPattern, memory.size() - at));
    }
    accelerator_.upload(memory.here(), memory.size(), memory.there());
    accelerator_.wait(accelerator_.ticket());
  }
  /// Bits of a bf16 for 16-bit integers; of absolute value 1 to 2.
  template <class T>
  static T random_number(std::mt19937_64& random) {
    if constexpr (std::is_same_v<T, Field>) return to_field(random());
    if constexpr (std::is_same_v<T, std::uint16_t>) {
      return static_cast<std::uint16_t>((random() & 0x807f) | 0x3f80);
    }
    if constexpr (std::is_floating_point_v<T>) {
      return std::uniform_real_distribution<T>(-1, 1)(random);
    }
  }
  template <class T>
  void randomise_all() {
    for (int i = 0; i < 3; ++i) randomise<T>(i);
  }
  /// Zeros are valid indices.
  void clear(int i) { accelerator_.run(Fill<std::uint8_t>{array<std::uint8_t>(i), bytes_, 0}); }
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
    std::vector<double> times{seconds_of(launch)};
    const double fitting = kSecondsPerRow / (times.front() * kLaunches);
    const auto rounds =
        static_cast<int>(std::clamp<double>(fitting, std::min(3, rounds_), rounds_));
    while (static_cast<int>(times.size()) < rounds) times.push_back(seconds_of(launch));
    const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
    std::nth_element(times.begin(), middle, times.end());
    const double rate = static_cast<double>(bytes) / *middle;
    if (ceiling_ == 0) ceiling_ = rate;
    print_(fmt::format("| {} | {} | {:.1f} | {:.1f} | {:.2f} |\n", name, bytes, *middle * 1e6,
                       rate / 1e9, rate / ceiling_));
  }
  void time(const std::string& name, i64 bytes, const AnyWork& work) {
    time(name, bytes, [&] { accelerator_.run(work); });
  }

  void copies() {
    randomise<std::uint16_t>(0);
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
    randomise<std::uint16_t>(0);
    randomise<T>(1);
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
    if (accelerator_.product_library().is_here()) library_products();
  }
  /// Times the library with the weights that `rows of bf16` reads.
  void library_products() {
    randomise<std::uint16_t>(0);
    randomise<std::uint16_t>(1);
    const i64 rows = bytes_ / (2 * kHidden);
    for (const i64 tokens : {8, 512}) {
      time(fmt::format("rows of bf16 x {} by the library", tokens), rows * kHidden * 2,
           NativeProducts{{Dtype::kBF16, array<std::byte>(0), rows, kHidden},
                          {Dtype::kBF16, array<std::byte>(1), std::min(tokens, rows), kHidden},
                          {array<float>(2), std::min(tokens, rows), rows},
                          false});
    }
  }

  template <class T>
  void elementwise_of(const std::string& number) {
    randomise_all<T>();
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
    time("weighed sum of experts, " + number, 3 * tokens * kHidden * size,
         WeighRows<T>{x, kHidden, array<T>(1), 1, {array<T>(2), tokens, kHidden}, true});
    time("scale of columns, " + number, 2 * tokens * kHidden * size,
         ScaleRows<T>{x, kHidden, array<T>(1), {array<T>(2), tokens, kHidden}});
  }
  void elementwise() {
    elementwise_of<Field>("residues");
    elementwise_of<double>("doubles");
    randomise<std::uint16_t>(0);
    const i64 n = count<double>();
    time("decode of bf16 to doubles", 10 * n,
         DecodeNumbers<double>{Dtype::kBF16, array<std::byte>(0), n, array<double>(1)});
    const i64 floats = count<float>();
    randomise<float>(0);
    time("encode of floats as bf16", 6 * floats,
         EncodeFloats{Dtype::kBF16, array<float>(0), floats, array<std::byte>(1)});
    randomise<std::uint16_t>(0);
    time(
        "decode of bf16 to residues", 10 * n,
        DecodeResidues{Dtype::kBF16, 2, NumberMap::kBits, array<std::byte>(0), n, array<Field>(1)});
  }

  template <class T>
  void rows_of(const std::string& number) {
    randomise_all<T>();
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
    clear(2);
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
    rows_of<Field>("residues");
    rows_of<double>("doubles");
    randomise<double>(0);
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
  double ceiling_ = 0;  ///< bytes per second of the contiguous copy
  const TableSink& print_;
};

}  // namespace

void accelerator_table(Accelerator& accelerator, i64 bytes, int rounds, const TableSink& print) {
  Bench(accelerator, bytes, rounds, print).run();
}

}  // namespace shardtool::kernels
