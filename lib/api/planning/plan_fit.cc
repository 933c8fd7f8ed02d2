#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lib/api/mapping/applied_mapping.h"
#include "lib/api/mapping/full_places.h"
#include "lib/api/mapping/mapping_choice.h"
#include "lib/api/planning/plan_forward.h"
#include "lib/api/planning/plan_memory.h"
#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/mapping/document/glob.h"

namespace shardtool::api {
namespace {

constexpr int kWide = 16;  // bits of an element that weights of fewer bits replace

/// The axis that grows with the number of devices: tp, or the last one.
std::string scaled_axis(const mesh::Mesh& mesh) {
  if (mesh.axes().empty()) return "tp";
  return mesh.has_axis("tp") ? "tp" : mesh.axes().back().name;
}

/// Sets the size of that axis so that the mesh has `devices`. Throws kMesh if the other axes do not
/// divide them.
mesh::Mesh scaled(const mesh::Mesh& mesh, i64 devices) {
  const std::string scaled = scaled_axis(mesh);
  std::vector<mesh::MeshAxis> axes(mesh.axes().begin(), mesh.axes().end());
  if (axes.empty()) axes.push_back({scaled, 1});
  i64 others = 1;
  for (const auto& axis : axes) others *= axis.name == scaled ? 1 : axis.size;
  if (devices % others != 0) {
    throw Error(ErrorCode::kMesh, fmt::format("the other axes of {} take {} devices, which do not "
                                              "divide {}",
                                              to_string(mesh), others, devices));
  }
  for (auto& axis : axes) {
    if (axis.name == scaled) axis.size = devices / others;
  }
  return mesh::Mesh(std::move(axes));
}

LayoutRow row_of(std::string name, const MemoryReport& memory) {
  const PlanDevice& fullest = memory.devices[memory.fullest];
  LayoutRow row;
  row.name = std::move(name);
  row.devices = memory.mesh.size();
  row.weights = fullest.weights;
  row.kv = fullest.kv;
  row.total = fullest.total;
  row.fits = memory.fits;
  return row;
}

/// The inputs that are the same for all layouts.
struct Question {
  const LogicalCheckpoint& source;
  const mapping::ModelConfig* config;
  const MappingChoice& choice;
  const PlanOptions& options;
};

/// Sets the lower bound of a decode step's time, if the hardware is known and the model fits.
void add_time(const Question& question, const AppliedMapping& applied, LayoutRow& row) {
  if (!question.options.hardware || question.options.training || row.fits == false) return;
  const CostReport cost = planned_cost(question.config, applied, question.options);
  if (cost.price) row.decode_us = cost.price->decode.roofline->step_us;
}

/// kYes computes the time of a step, which takes as long as all other columns.
enum class Timed { kNo, kYes };

/// Returns the row of the same choice over another mesh.
LayoutRow row_with(const Question& question, MappingChoice choice, const mesh::Mesh& mesh,
                   Timed timed) {
  choice.mesh = mesh;
  std::vector<std::string> notes;
  const AppliedMapping applied = without_left_out(apply_mapping(choice, question.source));
  LayoutRow row =
      row_of(to_string(mesh), device_memory(question.config, applied, question.options, notes));
  if (timed == Timed::kYes) add_time(question, applied, row);
  return row;
}

/// Returns what `make` returns, or a row with the reason if the layout is impossible.
template <class Make>
LayoutRow row_or_refusal(const std::string& name, i64 devices, Make make) {
  try {
    return make();
  } catch (const Error& error) {
    if (!is_mapping_error(error)) throw;
    LayoutRow row;
    row.name = name;
    row.devices = devices;
    row.refusal = error.what();
    return row;
  }
}

LayoutRow row_on(const Question& question, const mesh::Mesh& mesh, i64 devices, Timed timed) {
  return row_or_refusal(fmt::format("{} devices", devices), devices, [&] {
    return row_with(question, question.choice, scaled(mesh, devices), timed);
  });
}

/// Lower bound of the fullest device's bytes: an equal share of all weights without copies.
i64 least_on(const MemoryReport& now, i64 devices) {
  i64 once = 0;
  for (const PlanDevice& device : now.devices) {
    if (device.training == 0) once += device.weights - device.replicated - device.padding;
  }
  return ceil_div(once, devices);
}

/// Doubles or halves the devices to find the smallest number on which the model fits; nullopt if
/// there is none up to the limit.
std::optional<LayoutRow> smallest_fit(const Question& question, const MemoryReport& now) {
  constexpr i64 kMostDevices = 1024;
  std::optional<LayoutRow> best;
  if (now.fits == true) {
    for (i64 devices = now.mesh.size() / 2; devices >= 1; devices /= 2) {
      if (least_on(now, devices) > now.budget) break;
      LayoutRow row = row_on(question, now.mesh, devices, Timed::kNo);
      if (!row.refusal.empty()) continue;
      if (row.fits != true) break;
      best = std::move(row);
    }
    return best;
  }
  for (i64 devices = now.mesh.size() * 2; devices <= kMostDevices; devices *= 2) {
    if (least_on(now, devices) > now.budget) continue;
    LayoutRow row = row_on(question, now.mesh, devices, Timed::kNo);
    if (row.fits == true) return row;
  }
  return best;
}

/// True if all matrices have 16 bits or more: codes would not shrink, and their scales stay.
bool has_wide_weights(const AppliedMapping& applied) {
  return std::ranges::all_of(applied.specs, [](const TensorSpec& spec) {
    const DtypeInfo& dtype = dtype_info(spec.dtype);
    return spec.shape.size() < 2 || (dtype.kind == DtypeKind::kFloat && dtype.bits >= kWide);
  });
}

/// Returns the bytes of the fullest device if every weight of 16 bits or more is stored in `bits`.
i64 total_with_weights_of(const Question& question, const AppliedMapping& applied, int bits) {
  AppliedMapping narrow{applied.mapping, applied.resolution, applied.specs};
  std::vector<std::string> notes;
  for (TensorSpec& spec : narrow.specs) {
    const DtypeInfo& dtype = dtype_info(spec.dtype);
    if (spec.shape.size() < 2 || dtype.kind != DtypeKind::kFloat || dtype.bits < kWide) continue;
    spec.dtype = bits == 8 ? Dtype::kF8E4M3 : Dtype::kF4;
  }
  const MemoryReport memory = device_memory(question.config, narrow, question.options, notes);
  return memory.devices[memory.fullest].total;
}

void add_advice(const Question& question, const AppliedMapping& applied, MemoryReport& report) {
  if (!report.fits) return;
  const PlanOptions& options = question.options;
  const i64 total = report.devices[report.fullest].total;
  if (const auto row = smallest_fit(question, report)) {
    report.advice.push_back({"devices", row->name, row->total});
  }
  for (const int bits : {8, 4}) {
    if (*report.fits || options.training || !has_wide_weights(applied)) break;
    const i64 narrow = total_with_weights_of(question, applied, bits);
    if (narrow > report.budget) continue;
    report.advice.push_back({"weight bits", fmt::format("{}", bits), narrow});
    break;
  }
  const double least = static_cast<double>(total) / static_cast<double>(options.device.bytes);
  if (least <= 1) {
    constexpr double kDigits = 10000;  // rounds up: the printed fraction is enough
    report.advice.push_back(
        {"memory fraction", fmt::format("{:.4f}", std::ceil(least * kDigits) / kDigits), total});
  }
}

/// Returns the row of another mapping over the same mesh. Throws for a name that is none, and for a
/// mapping that cannot be read.
LayoutRow compared(const Question& question, const mesh::Mesh& mesh, const std::string& name) {
  MappingChoice choice = question.choice;
  const bool is_file = name.find('/') != name.npos || name.ends_with(".json");
  choice.path = is_file ? name : "";
  choice.preset = is_file ? "" : name;
  with_full_places(choice, [&] { return choose_mapping(choice, question.source); });
  LayoutRow row = row_or_refusal(name, mesh.size(),
                                 [&] { return row_with(question, choice, mesh, Timed::kYes); });
  row.name = name;
  return row;
}

void note_empty_classes(const PlanOptions& options, const AppliedMapping& applied,
                        std::vector<std::string>& notes) {
  for (const OwnClass& own : options.classes) {
    if (std::ranges::any_of(applied.specs, mapping::glob_filter(own.glob), &TensorSpec::name))
      continue;
    notes.push_back(
        fmt::format("class '{}' has no tensor: none matches '{}', in which * stops at "
                    "dots and ** does not",
                    quote_for_message(own.name), quote_for_message(own.glob)));
  }
}

}  // namespace

MemoryReport memory_report(const LogicalCheckpoint& source, const AppliedMapping& applied,
                           const MappingChoice& choice, const PlanOptions& options,
                           std::vector<std::string>& notes) {
  const auto config = model_config(choice, source);
  const Question question{source, config ? &*config : nullptr, choice, options};
  MemoryReport report = device_memory(question.config, applied, options, notes);
  note_empty_classes(options, applied, notes);
  for (const i64 devices : options.what_if) {
    report.what_if.push_back(row_on(question, report.mesh, devices, Timed::kYes));
  }
  for (const std::string& name : options.compare) {
    report.compare.push_back(compared(question, report.mesh, name));
  }
  add_advice(question, applied, report);
  return report;
}

}  // namespace shardtool::api
