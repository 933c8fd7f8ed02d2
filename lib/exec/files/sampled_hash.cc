#include "lib/exec/files/sampled_hash.h"

#include <algorithm>
#include <atomic>
#include <cstddef>

#include "kernels/xxh3/xxh3.h"
#include "lib/exec/workers.h"

namespace shardtool::exec {
namespace {

constexpr i64 kSamples = 32;
constexpr i64 kSampleBytes = 4 << 10;

/// Most files at a time: a store answers slowly, but many requests at once.
constexpr i64 kThreads = 16;

std::string sampled_hash(const SourceFile& file) {
  const bool is_short = file.size() <= kSamples * kSampleBytes;
  std::vector<std::byte> sample(static_cast<size_t>(is_short ? file.size() : kSampleBytes));
  const i64 last = file.size() - std::ssize(sample);
  kernels::Xxh3 hash;
  for (i64 i = 0; i < (is_short ? 1 : kSamples); ++i) {
    // The last sample ends with the file, whatever the division leaves over.
    file.read_exact(sample, i + 1 == kSamples ? last : i * (last / (kSamples - 1)));
    hash.update(sample);
  }
  return hash.hex();
}

}  // namespace

std::vector<std::string> sampled_hashes(std::span<const SurveyedFile> files) {
  std::vector<std::string> hashes(files.size());
  std::atomic<size_t> next = 0;
  run_workers(std::min<i64>(kThreads, std::ssize(files)), [&](const std::atomic<bool>& stop) {
    for (size_t f = next++; f < files.size() && !stop; f = next++) {
      hashes[f] = sampled_hash(SourceFile(files[f], IoMode::kBuffered));
    }
  });
  return hashes;
}

}  // namespace shardtool::exec
