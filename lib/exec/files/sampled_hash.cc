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
  const i64 apart = std::max(kSampleBytes, (file.size() - kSampleBytes) / (kSamples - 1));
  std::vector<std::byte> sample(kSampleBytes);
  kernels::Xxh3 hash;
  for (i64 i = 0; i < kSamples; ++i) {
    // The last sample ends with the file, whatever the division left over.
    const bool is_last = i + 1 == kSamples && file.size() > kSamples * kSampleBytes;
    const i64 begin = is_last ? file.size() - kSampleBytes : i * apart;
    if (begin >= file.size()) break;
    const i64 bytes = std::min(kSampleBytes, file.size() - begin);
    const std::span part = std::span(sample).first(static_cast<size_t>(bytes));
    file.read_exact(part, begin);
    hash.update(part);
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
