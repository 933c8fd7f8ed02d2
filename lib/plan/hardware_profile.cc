#include "shardtool/plan/hardware_profile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "shardtool/base/json_reader.h"
#include "shardtool/base/text.h"

namespace shardtool::plan {
namespace {

constexpr int kMaxDepth = 8;
constexpr double kGb = 1e9;
constexpr double kGib = 1024.0 * 1024.0 * 1024.0;

constexpr double kMostGb =
    1e5;  ///< of memory, GB per second, or TFLOP/s times ten: beyond is a typo
constexpr double kMostRate = 1e6;
constexpr i64 kMostDevices = 1'000'000;

/// Reads the values of one profile, each inside its range.
class Decoder {
 public:
  Decoder(std::string_view text, const std::string& file)
      : in_(text, {file, ErrorCode::kHardwareProfile}, kMaxDepth) {}

  HardwareProfile profile();

 private:
  using Field = JsonReader::Field;

  void object(std::initializer_list<Field> fields) {
    std::vector<std::string> known;
    for (const Field& field : fields) known.emplace_back(field.name);
    in_.object(fields, [&](const std::string& key) {
      Error error = in_.error(fmt::format("'{}' is no field of a profile", quote_for_message(key)),
                              quote_for_message(key), fmt::format("{}", fmt::join(known, ", ")));
      const std::string hint = did_you_mean(key, known);
      if (!hint.empty()) error.help(hint);
      throw error;
    });
  }
  double number(double above, double most) {
    const double value = in_.number();
    if (value > above && value <= most) return value;
    throw in_.error("the number is out of range", fmt::format("{}", value),
                    fmt::format("more than {} and at most {}", above, most));
  }
  i64 count(i64 least, i64 most = kMostDevices) {
    const i64 value = in_.integer();
    if (value >= least && value <= most) return value;
    throw in_.error("the number is out of range", fmt::format("{}", value),
                    fmt::format("{} to {}", least, most));
  }
  Field gb_per_s(std::string_view name, double& into, bool required = true) {
    return {name, [this, &into] { into = number(0, kMostRate); }, required};
  }
  Field rate(std::string_view name, std::optional<double>& into) {
    return {name, [this, &into] { into = number(0, kMostRate); }, false};
  }

  void version();
  void read_source(HardwareProfile& into);
  void read_memory(HardwareProfile& into);
  void read_rates(Rates& into);
  void read_fabric(HardwareProfile& into);
  void read_timings(std::vector<Timing>& into);
  void read_timing(std::vector<Timing>& into);
  void read_points(Timing& into);

  JsonReader in_;
};

void Decoder::version() {
  if (const i64 found = in_.integer(); found != 1) {
    throw in_.error("the profile is of another version", fmt::format("{}", found), "1");
  }
}

void Decoder::read_source(HardwareProfile& into) {
  in_.begin_array();
  while (in_.next_element()) into.source.push_back(in_.string());
  if (into.source.empty()) {
    throw in_.error("a profile says where its numbers come from", "no source", "one or more");
  }
}

void Decoder::read_memory(HardwareProfile& into) {
  double gb = 0;
  double usable_gib = 0;
  double runtime_gib = 0;
  object({{"gb", [&] { gb = number(0, kMostGb); }},
          {"usable_gib", [&] { usable_gib = number(0, kMostGb); }, false},
          {"runtime_gib", [&] { runtime_gib = number(0, kMostGb); }, false},
          gb_per_s("gb_per_s", into.memory_gb_per_s)});
  into.memory_bytes = std::llround(gb * kGb);
  into.usable_bytes = usable_gib > 0 ? std::llround(usable_gib * kGib) : into.memory_bytes;
  into.runtime_bytes = std::llround(runtime_gib * kGib);
  // Data sheets say GB and mean GiB for some devices: an 80 GB H100 shows 79.18 GiB.
  const double most = gb * kGib;
  if (static_cast<double>(into.usable_bytes) > most || into.runtime_bytes >= into.usable_bytes) {
    throw in_.error("the parts of the memory exceed it",
                    fmt::format("{} GiB usable and {} GiB of the runtime in {} GB", usable_gib,
                                runtime_gib, gb),
                    "runtime_gib < usable_gib <= gb");
  }
}

void Decoder::read_rates(Rates& into) {
  object({{"bf16", [&] { into.bf16_tflops = number(0, kMostRate); }},
          rate("int8", into.int8_tflops),
          rate("fp8", into.fp8_tflops),
          rate("fp4", into.fp4_tflops)});
}

/// One object whose fields depend on its "kind": everything is read, then held against the kind.
void Decoder::read_fabric(HardwareProfile& into) {
  std::string kind;
  Links links;
  Torus torus;
  std::vector<std::string> seen;
  const auto noting = [&seen](Field field) {
    return Field{field.name,
                 [&seen, field] {
                   seen.emplace_back(field.name);
                   field.read();
                 },
                 false};
  };
  object({{"kind", [&] { kind = in_.string(); }},
          {"domain", [&] { links.domain = torus.domain = count(1); }},
          noting(gb_per_s("peak_gb_per_s", links.peak_gb_per_s)),
          noting(gb_per_s("ring_gb_per_s", links.ring_gb_per_s)),
          noting(gb_per_s("low_latency_gb_per_s", links.low_latency_gb_per_s)),
          gb_per_s("in_switch_gb_per_s", links.in_switch_gb_per_s, false),
          noting({"axes", [&] { torus.axes = count(1, 8); }}),
          noting(gb_per_s("link_gb_per_s", torus.link_gb_per_s)),
          noting({"hop_us", [&] { torus.hop_us = number(0, 1000); }}),
          noting({"wraps_from", [&] { torus.wraps_from = count(1); }})});
  const std::vector<std::string> of_links{"peak_gb_per_s", "ring_gb_per_s", "low_latency_gb_per_s"};
  const std::vector<std::string> of_torus{"axes", "link_gb_per_s", "hop_us", "wraps_from"};
  const bool is_torus = kind == "torus";
  if (!is_torus && kind != "nvlink" && kind != "xgmi" && kind != "pcie") {
    throw in_.error("the kind of the fabric is not known", quote_for_message(kind),
                    "nvlink, xgmi, pcie or torus");
  }
  std::sort(seen.begin(), seen.end());
  auto expected = is_torus ? of_torus : of_links;
  std::sort(expected.begin(), expected.end());
  if (seen != expected || (is_torus && links.in_switch_gb_per_s > 0)) {
    throw in_.error(fmt::format("the fields do not describe a fabric of kind '{}'", kind),
                    fmt::format("{}", fmt::join(seen, ", ")),
                    fmt::format("{}", fmt::join(expected, ", ")));
  }
  if (is_torus) {
    into.fabric = torus;
    return;
  }
  links.kind = kind == "nvlink" ? Links::Kind::kNvlink
               : kind == "xgmi" ? Links::Kind::kXgmi
                                : Links::Kind::kPcie;
  into.fabric = links;
}

void Decoder::read_points(Timing& into) {
  in_.begin_array();
  while (in_.next_element()) {
    in_.begin_array();
    std::vector<double> pair;
    while (in_.next_element()) {
      pair.push_back(pair.empty() ? static_cast<double>(count(1, i64{1} << 50)) : number(0, 1e12));
    }
    const bool rises =
        pair.size() == 2 && (into.us_of_bytes.empty() ||
                             (pair[0] > static_cast<double>(into.us_of_bytes.back().first) &&
                              pair[1] >= into.us_of_bytes.back().second));
    if (!rises) {
      throw in_.error("a point of a timing is [bytes, microseconds], larger than the one before",
                      fmt::format("[{}]", fmt::join(pair, ", ")), "rising sizes and times");
    }
    into.us_of_bytes.emplace_back(static_cast<i64>(pair[0]), pair[1]);
  }
  if (into.us_of_bytes.size() < 2) {
    throw in_.error("a timing has two points or more",
                    plural(std::ssize(into.us_of_bytes), "point"), "[[bytes, microseconds], ...]");
  }
}

void Decoder::read_timing(std::vector<Timing>& into) {
  Timing timing;
  object({{"op",
           [&] {
             const std::string word = in_.string();
             const auto op = parse_collective_op(word);
             if (!op) throw in_.error("no such collective", quote_for_message(word), "all_reduce");
             timing.op = *op;
           }},
          {"devices", [&] { timing.devices = count(2); }},
          {"nodes", [&] { timing.nodes = count(1); }, false},
          {"us_of_bytes", [&] { read_points(timing); }}});
  into.push_back(std::move(timing));
}

void Decoder::read_timings(std::vector<Timing>& into) {
  in_.begin_array();
  while (in_.next_element()) read_timing(into);
}

HardwareProfile Decoder::profile() {
  HardwareProfile profile;
  double host = 0;
  object({{"version", [&] { version(); }},
          {"name", [&] { profile.name = in_.string(); }},
          {"description", [&] { profile.description = in_.string(); }},
          {"source", [&] { read_source(profile); }},
          {"memory", [&] { read_memory(profile); }},
          {"dense_tflops", [&] { read_rates(profile.rates); }},
          {"fabric", [&] { read_fabric(profile); }},
          gb_per_s("host_gb_per_s", host, false),
          gb_per_s("network_gb_per_s", profile.network_gb_per_s),
          {"efficiency",
           [&] {
             object({{"compute", [&] { profile.compute_efficiency = number(0, 1); }},
                     {"memory", [&] { profile.memory_efficiency = number(0, 1); }}});
           }},
          {"timings", [&] { read_timings(profile.timings); }, false}});
  in_.finish();
  if (host > 0) profile.host_gb_per_s = host;
  return profile;
}

}  // namespace

i64 HardwareProfile::domain() const {
  return std::visit([](const auto& kind) { return kind.domain; }, fabric);
}

HardwareProfile decode_profile(std::string_view text, const std::string& file) {
  return Decoder(text, file).profile();
}

}  // namespace shardtool::plan
