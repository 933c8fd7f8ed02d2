#include "lib/plan/collective/hardware_profile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <map>
#include <set>

#include "lib/base/json_reader.h"
#include "lib/base/schema_key.h"
#include "lib/base/text.h"
#include "lib/plan/collective/units.h"

namespace shardtool::plan {
namespace {

constexpr int kMaxDepth = 8;

constexpr double kMostGb = 1e5;  ///< upper limit of GB of memory; beyond is a typo
constexpr double kMostRate = 1e6;
constexpr i64 kMostDevices = 1'000'000;

/// Required fields of a fabric kind besides its domain, and the kind of links.
struct FabricKind {
  std::set<std::string> fields;
  std::optional<Links::Kind> links = std::nullopt;
};
const std::map<std::string, FabricKind>& fabric_kinds() {
  static const std::set<std::string> kLinkFields{"peak_gb_per_s", "ring_gb_per_s",
                                                 "low_latency_gb_per_s"};
  static const std::map<std::string, FabricKind> kKinds{
      {"nvlink", {kLinkFields, Links::Kind::kNvlink}},
      {"xgmi", {kLinkFields, Links::Kind::kXgmi}},
      {"pcie", {kLinkFields, Links::Kind::kPcie}},
      {"torus", {{"axes", "link_gb_per_s", "hop_us", "wraps_from"}}},
      {"messages", {{"latency_us", "gb_per_s"}}}};
  return kKinds;
}

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
      Error error =
          in_.error(fmt::format("'{}' is not a field of a profile", quote_for_message(key)),
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
  TimeTable read_table();
  void read_storage(HardwareProfile& into);
  void read_measured(HardwareProfile& into);

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
    throw in_.error("a profile must name the source of its numbers", "no source", "one or more");
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

/// Reads one object whose fields depend on its "kind": reads everything, then checks it for the
/// kind.
void Decoder::read_fabric(HardwareProfile& into) {
  std::string kind;
  Links links;
  Torus torus;
  Messages messages;
  std::set<std::string> seen;
  const auto noting = [&seen](Field field) {
    return Field{field.name,
                 [&seen, field] {
                   seen.emplace(field.name);
                   field.read();
                 },
                 false};
  };
  object({{"kind", [&] { kind = in_.string(); }},
          {"domain", [&] { links.domain = torus.domain = messages.domain = count(1); }},
          noting(gb_per_s("peak_gb_per_s", links.peak_gb_per_s)),
          noting(gb_per_s("ring_gb_per_s", links.ring_gb_per_s)),
          noting(gb_per_s("low_latency_gb_per_s", links.low_latency_gb_per_s)),
          noting(gb_per_s("in_switch_gb_per_s", links.in_switch_gb_per_s)),
          noting({"axes", [&] { torus.axes = count(1, 8); }}),
          noting(gb_per_s("link_gb_per_s", torus.link_gb_per_s)),
          noting({"hop_us", [&] { torus.hop_us = number(0, 1000); }}),
          noting({"wraps_from", [&] { torus.wraps_from = count(1); }}),
          noting({"latency_us", [&] { messages.latency_us = number(0, kMostRate); }}),
          noting(gb_per_s("gb_per_s", messages.gb_per_s))});
  const auto found = fabric_kinds().find(kind);
  if (found == fabric_kinds().end()) {
    throw in_.error("the kind of the fabric is not known", quote_for_message(kind),
                    "nvlink, xgmi, pcie, torus or messages");
  }
  std::set<std::string> needed = seen;
  if (found->second.links) needed.erase("in_switch_gb_per_s");
  if (needed != found->second.fields) {
    throw in_.error(fmt::format("the fields do not describe a fabric of kind '{}'", kind),
                    fmt::format("{}", fmt::join(seen, ", ")),
                    fmt::format("{}", fmt::join(found->second.fields, ", ")));
  }
  if (found->second.links) {
    links.kind = *found->second.links;
    into.fabric = links;
  } else if (kind == "torus") {
    into.fabric = torus;
  } else {
    into.fabric = messages;
  }
}

TimeTable Decoder::read_table() {
  TimeTable table;
  in_.begin_array();
  while (in_.next_element()) {
    in_.begin_array();
    std::vector<double> pair;
    while (in_.next_element()) {
      pair.push_back(pair.empty() ? static_cast<double>(count(1, i64{1} << 50)) : number(0, 1e12));
    }
    const bool rises =
        pair.size() == 2 && (table.empty() || (pair[0] > static_cast<double>(table.back().first) &&
                                               pair[1] >= table.back().second));
    if (!rises) {
      throw in_.error("a point of a timing is [bytes, microseconds], larger than the one before",
                      fmt::format("[{}]", fmt::join(pair, ", ")), "rising sizes and times");
    }
    table.emplace_back(static_cast<i64>(pair[0]), pair[1]);
  }
  if (table.size() >= 2) return table;
  throw in_.error("a timing has two points or more", plural(std::ssize(table), "point"),
                  "[[bytes, microseconds], ...]");
}

void Decoder::read_storage(HardwareProfile& into) {
  Storage storage;
  object({{"read_us_of_bytes", [&] { storage.read_us_of_bytes = read_table(); }},
          {"write_us_of_bytes", [&] { storage.write_us_of_bytes = read_table(); }}});
  into.storage = std::move(storage);
}

void Decoder::read_measured(HardwareProfile& into) {
  Measured measured;
  object({{"date", [&] { measured.date = in_.string(); }},
          {"host", [&] { measured.host = in_.string(); }}});
  into.measured = std::move(measured);
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
          {"us_of_bytes", [&] { timing.us_of_bytes = read_table(); }}});
  into.push_back(std::move(timing));
}

void Decoder::read_timings(std::vector<Timing>& into) {
  in_.begin_array();
  while (in_.next_element()) read_timing(into);
}

HardwareProfile Decoder::profile() {
  HardwareProfile profile;
  double host = 0;
  object({{kSchemaKey, [&] { in_.string(); }, false},
          {"version", [&] { version(); }},
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
          {"launch_us", [&] { profile.launch_us = number(0, kMostRate); }, false},
          {"timings", [&] { read_timings(profile.timings); }, false},
          {"storage", [&] { read_storage(profile); }, false},
          {"measured", [&] { read_measured(profile); }, false}});
  in_.finish();
  if (host > 0) profile.host_gb_per_s = host;
  return profile;
}

}  // namespace

std::string_view to_string(Arithmetic arithmetic) {
  constexpr auto kNames = std::to_array<std::string_view>({"bf16", "int8", "fp8", "fp4", "fp8"});
  return kNames[static_cast<size_t>(arithmetic)];
}

double Rates::tflops(Arithmetic arithmetic) const {
  const std::array rates{std::optional(bf16_tflops), int8_tflops, fp8_tflops, fp4_tflops,
                         fp4_tflops ? fp8_tflops : std::nullopt};
  return rates[static_cast<size_t>(arithmetic)].value_or(bf16_tflops);
}

bool Rates::has(Arithmetic arithmetic) const {
  const std::array given{true, int8_tflops.has_value(), fp8_tflops.has_value(),
                         fp4_tflops.has_value(), fp4_tflops && fp8_tflops};
  return given[static_cast<size_t>(arithmetic)];
}

i64 HardwareProfile::domain() const {
  return std::visit([](const auto& kind) { return kind.domain; }, fabric);
}

HardwareProfile decode_profile(std::string_view text, const std::string& file) {
  return Decoder(text, file).profile();
}

}  // namespace shardtool::plan
