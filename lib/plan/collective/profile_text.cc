#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "lib/base/json_text.h"
#include "lib/plan/collective/hardware_profile.h"
#include "lib/plan/collective/units.h"

namespace shardtool::plan {
namespace {

std::string quoted_list(const std::vector<std::string>& texts) {
  std::vector<std::string> quoted;
  for (const std::string& text : texts) quoted.push_back("\n    " + json_quote(text));
  return fmt::format("[{}\n  ]", fmt::join(quoted, ","));
}

std::string memory_text(const HardwareProfile& profile) {
  std::string text = fmt::format("{{\"gb\": {}", static_cast<double>(profile.memory_bytes) / kGb);
  if (profile.usable_bytes != profile.memory_bytes) {
    text += fmt::format(", \"usable_gib\": {}", static_cast<double>(profile.usable_bytes) / kGib);
  }
  text += fmt::format(", \"gb_per_s\": {}", profile.memory_gb_per_s);
  if (profile.runtime_bytes > 0) {
    text += fmt::format(", \"runtime_gib\": {}", static_cast<double>(profile.runtime_bytes) / kGib);
  }
  return text + "}";
}

std::string rates_text(const Rates& rates) {
  std::string text = fmt::format("{{\"bf16\": {}", rates.bf16_tflops);
  const auto add = [&text](const char* name, const std::optional<double>& rate) {
    if (rate) text += fmt::format(", \"{}\": {}", name, *rate);
  };
  add("int8", rates.int8_tflops);
  add("fp8", rates.fp8_tflops);
  add("fp4", rates.fp4_tflops);
  return text + "}";
}

std::string fabric_text(const Links& links) {
  constexpr std::array<const char*, 3> kKinds{"nvlink", "xgmi", "pcie"};
  std::string text = fmt::format(
      R"({{"kind": "{}", "domain": {}, "peak_gb_per_s": {}, "ring_gb_per_s": {}, "low_latency_gb_per_s": {})",
      kKinds[static_cast<size_t>(links.kind)], links.domain, links.peak_gb_per_s,
      links.ring_gb_per_s, links.low_latency_gb_per_s);
  if (links.in_switch_gb_per_s > 0) {
    text += fmt::format(R"(, "in_switch_gb_per_s": {})", links.in_switch_gb_per_s);
  }
  return text + "}";
}

std::string fabric_text(const Torus& torus) {
  return fmt::format(
      R"({{"kind": "torus", "domain": {}, "axes": {}, "link_gb_per_s": {}, "hop_us": {}, "wraps_from": {}}})",
      torus.domain, torus.axes, torus.link_gb_per_s, torus.hop_us, torus.wraps_from);
}

std::string fabric_text(const Messages& messages) {
  return fmt::format(R"({{"kind": "messages", "domain": {}, "latency_us": {}, "gb_per_s": {}}})",
                     messages.domain, messages.latency_us, messages.gb_per_s);
}

std::string table_text(const TimeTable& table) {
  std::vector<std::string> points;
  for (const auto& [bytes, us] : table) points.push_back(fmt::format("[{}, {}]", bytes, us));
  return fmt::format("[{}]", fmt::join(points, ", "));
}

std::string timings_text(const std::vector<Timing>& timings) {
  std::vector<std::string> texts;
  for (const Timing& timing : timings) {
    texts.push_back(fmt::format(
        "\n    {{\"op\": \"{}\", \"devices\": {}, \"nodes\": {},\n     "
        "\"us_of_bytes\": {}}}",
        to_string(timing.op), timing.devices, timing.nodes, table_text(timing.us_of_bytes)));
  }
  return fmt::format("[{}\n  ]", fmt::join(texts, ","));
}

}  // namespace

std::string to_json(const HardwareProfile& profile) {
  std::vector<std::string> fields;
  const auto add = [&fields](const char* name, const std::string& value) {
    fields.push_back(fmt::format("\n  \"{}\": {}", name, value));
  };
  add("version", "1");
  add("name", json_quote(profile.name));
  add("description", json_quote(profile.description));
  add("source", quoted_list(profile.source));
  add("memory", memory_text(profile));
  add("dense_tflops", rates_text(profile.rates));
  add("fabric", std::visit([](const auto& fabric) { return fabric_text(fabric); }, profile.fabric));
  if (profile.host_gb_per_s) add("host_gb_per_s", fmt::format("{}", *profile.host_gb_per_s));
  add("network_gb_per_s", fmt::format("{}", profile.network_gb_per_s));
  add("efficiency", fmt::format(R"({{"compute": {}, "memory": {}}})", profile.compute_efficiency,
                                profile.memory_efficiency));
  if (profile.launch_us > 0) add("launch_us", fmt::format("{}", profile.launch_us));
  if (!profile.timings.empty()) add("timings", timings_text(profile.timings));
  if (profile.storage) {
    add("storage", fmt::format("{{\"read_us_of_bytes\": {},\n    \"write_us_of_bytes\": {}}}",
                               table_text(profile.storage->read_us_of_bytes),
                               table_text(profile.storage->write_us_of_bytes)));
  }
  if (profile.measured) {
    add("measured", fmt::format(R"({{"date": {}, "host": {}}})", json_quote(profile.measured->date),
                                json_quote(profile.measured->host)));
  }
  return fmt::format("{{{}\n}}\n", fmt::join(fields, ","));
}

}  // namespace shardtool::plan
