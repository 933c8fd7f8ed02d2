#pragma once

#include <string>

#include "lib/plan/collective/hardware_profile.h"

/// Measurements for a hardware profile.
namespace shardtool::api {

/// "Intel(R) Xeon(R) CPU, 8 processors, 31.36 GiB".
std::string host_class();
std::string host_name();
i64 memory_bytes();
/// "2026-11-22", in UTC.
std::string today();

/// Rounds to the four digits that a measurement has.
double measured_digits(double value);

/// Returns the bytes read and written per second when copying memory that no cache holds, summed
/// over all threads; GB/s.
double copy_gb_per_s(i64 threads, i64 rounds);

/// Returns the rate of products of a bf16 matrix that fits a core's cache with floats, summed over
/// all threads; TFLOP/s.
double product_tflops(i64 threads, i64 rounds);

struct StorageOptions {
  std::string folder;
  i64 bytes = 0;  ///< size of the files; small requests read only a part
  i64 rounds = 1;
};

/// Measures requests of 4 KiB to 4 MiB in sequence, past the page cache, as many in parallel as a
/// move has. Writes include their sync. Without direct I/O it uses the page cache and empties it
/// before reads. Needs disk space for twice `bytes`. Throws as calibrate does.
plan::Storage storage_times(const StorageOptions& options);

}  // namespace shardtool::api
