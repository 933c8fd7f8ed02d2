#include "cli/print/plan_tables.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/text.h"

namespace shardtool::cli {
namespace {

std::string fits_cell(const std::optional<bool>& fits) {
  return !fits ? "" : *fits ? "yes" : "no";
}

std::string share_cell(i64 part, i64 whole) {
  return whole == 0 ? ""
                    : fmt::format("{:.1f}%",
                                  100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

/// Compares devices, ignoring which of several replicas counts as the first.
bool alike(const api::PlanDevice& a, const api::PlanDevice& b) {
  return a.by_class == b.by_class && a.training == b.training && a.gathered == b.gathered &&
         a.kv == b.kv && a.kv_per_token == b.kv_per_token && a.states == b.states &&
         a.activations == b.activations && a.total == b.total;
}

bool alike(const api::SourceRequests& a, const api::SourceRequests& b) {
  return a.requests == b.requests && a.bytes == b.bytes &&
         a.read_amplification == b.read_amplification;
}

std::string device_cell(i64 rank) {
  return rank == plan::kStorage ? "files" : fmt::format("{}", rank);
}

struct PartOfDevice {
  const char* title;
  i64 api::PlanDevice::*bytes;
};

/// Columns of the device table; gathered weights and states only if some device has them. Copies
/// only in exact tables: devices that share a row may have different ones.
std::vector<PartOfDevice> parts_of(const api::MemoryReport& memory, bool exact) {
  using Device = api::PlanDevice;
  std::vector<PartOfDevice> parts{{"weights", &Device::weights},
                                  {"copies", &Device::replicated},
                                  {"gathered", &Device::gathered},
                                  {"kv per token", &Device::kv_per_token},
                                  {"kv", &Device::kv},
                                  {"states", &Device::states},
                                  {"training", &Device::training},
                                  {"activations", &Device::activations},
                                  {"overhead", &Device::overhead},
                                  {"total", &Device::total}};
  if (!exact) {
    std::erase_if(parts,
                  [](const PartOfDevice& part) { return part.bytes == &Device::replicated; });
  }
  for (const auto rare : {&Device::gathered, &Device::states}) {
    const bool has_any = std::ranges::any_of(
        memory.devices, [rare](const Device& device) { return device.*rare > 0; });
    if (has_any) continue;
    std::erase_if(parts, [rare](const PartOfDevice& part) { return part.bytes == rare; });
  }
  return parts;
}

}  // namespace

std::string bytes_cell(i64 bytes, bool exact) {
  return exact ? fmt::format("{}", bytes) : format_bytes(bytes);
}

std::string ranges_text(const std::vector<i64>& numbers) {
  std::string text;
  for (size_t begin = 0; begin < numbers.size();) {
    size_t end = begin + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    text += fmt::format("{}{}", text.empty() ? "" : ",", numbers[begin]);
    if (end - begin > 1) text += fmt::format("-{}", numbers[end - 1]);
    begin = end;
  }
  return text;
}

Table parts_table(const api::MemoryReport& memory, bool exact) {
  const api::PlanDevice& device = memory.devices[memory.fullest];
  const bool all_alike =
      std::all_of(memory.devices.begin(), memory.devices.end(),
                  [&](const api::PlanDevice& other) { return alike(device, other); });
  const auto title = memory.devices.size() == 1 ? std::string("on one device")
                     : all_alike ? fmt::format("on each of {} devices", memory.devices.size())
                                 : fmt::format("on rank {}, the fullest", device.rank);
  Table table{{{title}, {"bytes", true}, {"share", true}}, {}};
  const auto add = [&](const std::string& name, i64 bytes) {
    table.rows.push_back({name, bytes_cell(bytes, exact), share_cell(bytes, device.total)});
  };
  // Devices that are alike otherwise may have different copies and padding.
  const auto add_most = [&](std::string name, i64 api::PlanDevice::*part) {
    const auto [least, most] = std::ranges::minmax(memory.devices, {}, part);
    if (most.*part == 0) return;
    if (least.*part < most.*part) name += ", at most";
    add(name, most.*part);
  };
  if (device.training > 0) {
    add("weights, gradients, optimizer", device.training);
  } else {
    for (size_t c = 0; c < memory.classes.size(); ++c) {
      if (device.by_class[c] > 0) add("  " + memory.classes[c], device.by_class[c]);
    }
    add("weights", device.weights);
    if (all_alike) {
      add_most("  of which replicated", &api::PlanDevice::replicated);
      add_most("  of these, padding", &api::PlanDevice::padding);
    } else if (device.padding > 0) {
      add("  of these, padding", device.padding);
    }
  }
  if (device.gathered > 0) add("gathered for the largest layer", device.gathered);
  if (device.kv > 0) add("kv cache", device.kv);
  if (device.cross_kv > 0) add("  of these, the encoder's positions", device.cross_kv);
  if (device.states > 0) add("recurrent states", device.states);
  if (device.activations > 0) add("activations, about", device.activations);
  if (device.overhead > 0) add("overhead", device.overhead);
  const i64 first = device.training > 0 ? device.training : device.weights;
  if (device.total != first) add("total", device.total);
  return table;
}

Table reads_table(const api::SourceReads& reads, bool exact) {
  Table table{{{exact ? "rank" : "ranks"},
               {"requests", true},
               {"bytes", true},
               {"read amplification", true}},
              {}};
  const bool has_copies = reads.to_same_store.copies > 0;
  if (has_copies) table.columns.insert(table.columns.end(), {{"copies", true}, {"copied", true}});
  const auto add = [&](const std::string& ranks, const api::SourceRequests& requests) {
    auto& row = table.rows.emplace_back();
    row = {ranks, fmt::format("{}", requests.requests), bytes_cell(requests.bytes, exact),
           fmt::format("{:.2f}", requests.read_amplification)};
    if (!has_copies) return;
    row.push_back(fmt::format("{}", requests.copies));
    row.push_back(bytes_cell(requests.copied_bytes, exact));
  };
  add("all together", reads.together);
  if (has_copies) add("all, to the same store", reads.to_same_store);
  const auto& alone = reads.alone;
  for (size_t begin = 0; begin < alone.size();) {
    size_t end = begin + 1;
    while (!exact && end < alone.size() && alike(alone[end], alone[begin])) ++end;
    add(end - begin == 1 ? fmt::format("{} alone", begin)
                         : fmt::format("each of {}-{}", begin, end - 1),
        alone[begin]);
    begin = end;
  }
  return table;
}

Table devices_table(const api::MemoryReport& memory, bool exact) {
  Table table{{{exact ? "rank" : "ranks"}}, {}};
  for (const std::string& name : memory.classes) table.columns.push_back({name, true});
  const std::vector<PartOfDevice> parts = parts_of(memory, exact);
  for (const PartOfDevice& part : parts) table.columns.push_back({part.title, true});
  table.columns.push_back({"fits"});
  for (size_t begin = 0; begin < memory.devices.size();) {
    const api::PlanDevice& device = memory.devices[begin];
    size_t end = begin + 1;
    while (!exact && end < memory.devices.size() && alike(device, memory.devices[end])) ++end;
    auto& row = table.rows.emplace_back();
    row.push_back(end - begin == 1 ? fmt::format("{}", begin)
                                   : fmt::format("{}-{}", begin, end - 1));
    for (const i64 bytes : device.by_class) row.push_back(bytes_cell(bytes, exact));
    for (const PartOfDevice& part : parts) {
      row.push_back(bytes_cell(device.*part.bytes, exact));
    }
    row.push_back(fits_cell(device.fits));
    begin = end;
  }
  return table;
}

Table layouts_table(const std::vector<api::LayoutRow>& rows, bool exact) {
  const bool timed = std::any_of(rows.begin(), rows.end(),
                                 [](const auto& row) { return row.decode_us.has_value(); });
  Table table{
      {{"layout"}, {"devices", true}, {"weights", true}, {"kv cache", true}, {"total", true}}, {}};
  if (timed) table.columns.push_back({"decode step", true});
  table.columns.push_back({"fits"});
  for (const api::LayoutRow& row : rows) {
    std::vector<std::string> cells{row.name, fmt::format("{}", row.devices)};
    if (row.refusal.empty()) {
      for (const i64 bytes : {row.weights, row.kv, row.total}) {
        cells.push_back(bytes_cell(bytes, exact));
      }
      if (timed) cells.push_back(row.decode_us ? plan::format_modelled_us(*row.decode_us) : "");
    }
    cells.resize(table.columns.size() - 1);
    cells.push_back(row.refusal.empty() ? fits_cell(row.fits) : row.refusal);
    table.rows.push_back(std::move(cells));
  }
  return table;
}

Table methods_table(const plan::ReshardPlan& reshard, bool exact) {
  Table table{{{"plan"}, {"bytes moved", true}, {"kept", true}}, {}};
  const auto add = [&](const char* name, i64 moved) {
    table.rows.push_back({name, bytes_cell(moved, exact),
                          bytes_cell(std::max<i64>(0, reshard.bytes_total - moved), exact)});
  };
  add("direct", reshard.bytes_moved);
  if (reshard.renumbering) add("ranks renumbered", reshard.renumbering->bytes_moved);
  if (reshard.from_storage) return table;
  table.rows.push_back(
      {"gathering first", bytes_cell(reshard.gather_first_bytes, exact), std::string()});
  return table;
}

Table moves_table(const api::PlanReport& report, bool exact) {
  const plan::ReshardPlan& reshard = *report.reshard;
  Table table{
      {{"name"}, {"bytes moved", true}, {"kept", true}, {"lower bound", true}, {"transfers", true}},
      {}};
  for (size_t t = 0; t < report.tensors.size(); ++t) {
    const plan::Traffic& each = reshard.groups[reshard.group_of_tensor[t]].each;
    if (each.moved == 0) continue;
    table.rows.push_back({report.tensors[t], bytes_cell(each.moved, exact),
                          bytes_cell(each.kept, exact), bytes_cell(each.lower_bound, exact),
                          fmt::format("{}", each.transfers.size())});
  }
  return table;
}

Table transfers_table(const plan::Traffic& traffic, bool exact) {
  Table table{{{"from", true}, {"to", true}, {"bytes", true}}, {}};
  for (const plan::Transfer& transfer : traffic.transfers) {
    table.rows.push_back(
        {device_cell(transfer.from), device_cell(transfer.to), bytes_cell(transfer.bytes, exact)});
  }
  return table;
}

}  // namespace shardtool::cli
