#include <sys/auxv.h>

#include <bit>
#include <vector>

#include "kernels/crc64/crc64.h"
#include "kernels/crc64/implementation.h"
#include "kernels/crc64/polynomial.h"

namespace shardtool::kernels {
namespace {

std::vector<Implementation> supported() {
  std::vector<Implementation> list;
#if defined(__x86_64__)
  const bool clmul = __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("ssse3");
  const bool wide = __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("vpclmulqdq");
  if (clmul && wide) list.push_back(kAvx512);
  if (clmul) list.push_back(kLanes);
#elif defined(__aarch64__)
  if ((getauxval(AT_HWCAP) & HWCAP_PMULL) != 0) list.push_back(kLanes);
#endif
  list.push_back(kPortable);
  return list;
}

const Implementation& fastest() {
  return implementations().front();
}

}  // namespace

std::span<const Implementation> implementations() {
  static const std::vector<Implementation> list = supported();
  return list;
}

std::uint64_t Crc64::of(std::span<const std::byte> message) {
  if (message.empty()) return 0;
  return fastest().rows({.first = message.data(), .run = static_cast<i64>(message.size())});
}

std::uint64_t Crc64::extend(std::uint64_t crc, std::span<const std::byte> message) {
  return shift(crc, static_cast<i64>(message.size())) ^ of(message);
}

std::uint64_t Crc64::shift(std::uint64_t crc, i64 bytes) {
  return multiply(crc, power(bytes));
}

std::uint64_t Crc64::power(i64 bytes) {
  std::uint64_t result = 1;
  for (auto rest = static_cast<std::uint64_t>(bytes); rest != 0; rest &= rest - 1) {
    result = multiply(result, kPowersOfTwo[static_cast<size_t>(std::countr_zero(rest))]);
  }
  return result;
}

std::uint64_t Crc64::multiply(std::uint64_t a, std::uint64_t b) {
  return fastest().multiply(a, b);
}

}  // namespace shardtool::kernels
