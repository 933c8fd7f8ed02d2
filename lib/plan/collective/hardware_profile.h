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

/// Devices of one domain that reach each other over links and switches of their own, or over the
/// host's bus. Bandwidths are per direction and device.
struct Links {
  enum class Kind { kNvlink, kXgmi, kPcie };
  Kind kind = Kind::kNvlink;
  i64 domain = 1;                   ///< devices that reach each other without the network
  double peak_gb_per_s = 0;         ///< of the data sheet
  double ring_gb_per_s = 0;         ///< that rings of NCCL reach
  double low_latency_gb_per_s = 0;  ///< the most that its low-latency protocol reaches
  double in_switch_gb_per_s = 0;    ///< through switches that reduce; 0: they do not
};

/// A torus of devices, of `axes` dimensions. Each mesh axis is taken to lie along its own.
struct Torus {
  i64 domain = 1;  ///< devices of the largest slice
  i64 axes = 2;
  double link_gb_per_s = 0;  ///< one link, one way
  double hop_us = 1;
  i64 wraps_from = 1;  ///< an axis of so many devices or more is a ring
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

/// The files of a node: what one request takes when as many are under way as keep the storage busy.
struct Storage {
  TimeTable read_us_of_bytes;
  TimeTable write_us_of_bytes;
};

/// When numbers were measured and on what kind of machine.
struct Measured {
  std::string date;  ///< "2026-11-22"
  std::string host;
};

/// The kinds of numbers that devices multiply.
enum class Arithmetic { kBf16, kInt8, kFp8, kFp4 };
inline constexpr std::array kArithmetics{Arithmetic::kBf16, Arithmetic::kInt8, Arithmetic::kFp8,
                                         Arithmetic::kFp4};
std::string_view to_string(Arithmetic arithmetic);

/// Operations per second by the kind of the numbers, dense.
struct Rates {
  double bf16_tflops = 0;
  std::optional<double> int8_tflops;
  std::optional<double> fp8_tflops;
  std::optional<double> fp4_tflops;

  /// Of what the device multiplies at best; numbers that it does not are widened to bf16.
  double tflops(Arithmetic arithmetic) const;
  bool has(Arithmetic arithmetic) const;
};

/// What a device is, in its data sheet's units: GB is 1e9 bytes, GiB is 2^30.
///
/// H1 every number is finite and inside the range that its field has in the decoder
/// H2 runtime_bytes < usable_bytes, which is at most the memory with its GB read as GiB
struct HardwareProfile {
  std::string name;
  std::string description;
  std::vector<std::string> source;  ///< where the numbers come from
  i64 memory_bytes = 0;
  i64 usable_bytes = 0;   ///< of memory, what programs get; memory_bytes where nobody measured it
  i64 runtime_bytes = 0;  ///< of that, what the runtime itself takes; 0 where nobody measured it
  double memory_gb_per_s = 0;
  Rates rates;
  std::variant<Links, Torus, Messages> fabric;
  std::optional<double> host_gb_per_s;  ///< per direction
  double network_gb_per_s = 0;          ///< per device and direction
  double compute_efficiency = 1;        ///< of the peak, that kernels reach
  double memory_efficiency = 1;
  double launch_us = 0;  ///< before an op begins; 0: nothing is known, or ops are compiled together
  std::vector<Timing> timings;
  std::optional<Storage> storage;
  std::optional<Measured> measured;

  /// Devices that reach each other without the network.
  i64 domain() const;
};

/// Decodes one profile. Throws kHardwareProfile with the place of a field that is unknown, missing
/// or out of range, and for text that is no strict JSON. `file` is for messages.
HardwareProfile decode_profile(std::string_view text, const std::string& file);
/// The text of which decode_profile makes the same profile, with a newline at its end.
std::string to_json(const HardwareProfile& profile);

}  // namespace shardtool::plan
