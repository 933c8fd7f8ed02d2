#pragma once

#include <atomic>
#include <string>

#include "lib/plan/collective/hardware_profile.h"

/// What a machine does, measured: the numbers of a hardware profile.
namespace shardtool::api {

/// "Intel(R) Xeon(R) CPU, 8 processors, 31.36 GiB".
std::string host_class();
std::string host_name();
i64 memory_bytes();
/// "2026-11-22", in UTC.
std::string today();

/// As many digits as a measurement has: four.
double measured_digits(double value);

/// Of memory that no cache holds, bytes read and bytes written, in all threads together; GB/s.
double copy_gb_per_s(i64 threads, i64 rounds);

/// Of a bf16 matrix that stays in a core's cache with floats, in all threads together; TFLOP/s.
double product_tflops(i64 threads, i64 rounds);

struct StorageOptions {
  std::string folder;
  i64 bytes = 0;  ///< of the files; small requests get fewer
  i64 rounds = 1;
  const std::atomic<bool>* cancel = nullptr;
};

/// Requests of 4 KiB to 4 MiB one behind the other past the page cache, as many at a time as a move
/// makes; writes with their sync. Where the file system has no direct I/O, through the page cache,
/// emptied before reads. Needs room for two times `bytes`. Throws as calibrate does.
plan::Storage storage_times(const StorageOptions& options);

}  // namespace shardtool::api
