#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lib/base/checked.h"
#include "lib/plan/collective/collective.h"
#include "lib/plan/collective/time_table.h"

namespace shardtool::plan {

/// Devices of one domain that are connected by their own links and switches, or by the host's bus.
/// Bandwidths are per direction and device.
struct Links {
  enum class Kind { kNvlink, kXgmi, kPcie };
  Kind kind = Kind::kNvlink;
  i64 domain = 1;                   ///< devices connected without the network
  double peak_gb_per_s = 0;         ///< from the data sheet
  double ring_gb_per_s = 0;         ///< reached by rings of NCCL
  double low_latency_gb_per_s = 0;  ///< upper limit of NCCL's low-latency protocol
  double in_switch_gb_per_s = 0;    ///< through switches that reduce; 0: they cannot
};

/// Torus of devices with `axes` dimensions. Each mesh axis is assumed to use a torus axis of its
/// own.
struct Torus {
  i64 domain = 1;  ///< devices of the largest slice
  i64 axes = 2;
  double link_gb_per_s = 0;  ///< one link, one way
  double hop_us = 1;
  i64 wraps_from = 1;  ///< an axis with this many devices or more is a ring
};

/// Processes that send each other messages, each of which takes latency + bytes / bandwidth.
struct Messages {
  i64 domain = 1;  ///< processes of one machine
  double latency_us = 0;
  double gb_per_s = 0;
};

/// Measured times of one collective.
struct Timing {
  CollectiveOp op = CollectiveOp::kAllReduce;
  i64 devices = 0;
  i64 nodes = 1;
  TimeTable us_of_bytes;
};

/// Files of a node: time of one request when enough are in flight to keep the storage busy.
struct Storage {
  TimeTable read_us_of_bytes;
  TimeTable write_us_of_bytes;
};

/// Date and machine of a measurement.
struct Measured {
  std::string date;  ///< "2026-11-22"
  std::string host;
};

/// Number formats that devices multiply. kFp4WithFp8 has weights in FP4 and values in FP8, as
/// MXFP4 is run on devices that multiply FP4: at the rate of FP8 (TensorRT-LLM, Deployment Guide
/// for GPT-OSS: MXFP8 activations on Blackwell, BF16 ones on Hopper).
enum class Arithmetic { kBf16, kInt8, kFp8, kFp4, kFp4WithFp8 };
inline constexpr std::array kArithmetics{Arithmetic::kBf16, Arithmetic::kInt8, Arithmetic::kFp8,
                                         Arithmetic::kFp4, Arithmetic::kFp4WithFp8};
/// Returns the format of the values: "bf16", "int8", "fp8" or "fp4".
std::string_view to_string(Arithmetic arithmetic);

/// Operations per second by number format, dense.
struct Rates {
  double bf16_tflops = 0;
  std::optional<double> int8_tflops;
  std::optional<double> fp8_tflops;
  std::optional<double> fp4_tflops;

  /// Rate for a number format; formats that the device does not multiply are widened to bf16.
  double tflops(Arithmetic arithmetic) const;
  bool has(Arithmetic arithmetic) const;
};

/// Description of a device, in its data sheet's units: GB is 1e9 bytes, GiB is 2^30.
///
/// H1 every number is finite and inside the range that its field has in the decoder
/// H2 runtime_bytes < usable_bytes, which is at most the memory with its GB read as GiB
struct HardwareProfile {
  std::string name;
  std::string description;
  std::vector<std::string> source;  ///< origin of the numbers
  i64 memory_bytes = 0;
  i64 usable_bytes = 0;   ///< memory available to programs; memory_bytes if not measured
  i64 runtime_bytes = 0;  ///< part of it used by the runtime; 0 if not measured
  double memory_gb_per_s = 0;
  Rates rates;
  std::variant<Links, Torus, Messages> fabric;
  std::optional<double> host_gb_per_s;  ///< per direction
  double network_gb_per_s = 0;          ///< per device and direction
  double compute_efficiency = 1;        ///< fraction of the peak that kernels reach
  double memory_efficiency = 1;
  double launch_us = 0;  ///< overhead per op; 0: unknown, or ops are compiled together
  std::vector<Timing> timings;
  std::optional<Storage> storage;
  std::optional<Measured> measured;

  /// Number of devices connected without the network.
  i64 domain() const;
};

/// Decodes one profile. Throws kHardwareProfile with the place of a field that is unknown, missing
/// or out of range, and for text that is not strict JSON. `file` is for messages.
HardwareProfile decode_profile(std::string_view text, const std::string& file);
/// Text that decode_profile turns back into the same profile, with a final newline.
std::string to_json(const HardwareProfile& profile);

}  // namespace shardtool::plan
