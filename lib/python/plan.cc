#include "cli/print/plan.h"

#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <cstring>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "lib/api/plan.h"
#include "lib/api/transfer/sources/open_source.h"
#include "lib/base/error.h"
#include "lib/python/bindings.h"
#include "lib/python/document.h"
#include "lib/python/options.h"

namespace nb = nanobind;

namespace shardtool::python {
namespace {

/// One row, as numpy sees it. Offsets are those of the first element that is sent.
struct TransferRow {
  i64 tensor;
  i64 src_rank;  ///< -1: the files
  i64 dst_rank;
  i64 src_offset;  ///< bytes, in the sender's shard, or the whole tensor
  i64 dst_offset;  ///< bytes, in the receiver's shard
  i64 bytes;
};

/// The boxes of a row: numbers of Transfers::boxes. Tensors with equal holders share them.
struct RowBoxes {
  i64 begin;
  i64 end;
};

/// Transfers of a plan by tensor, sender and receiver.
struct Transfers {
  std::vector<TransferRow> rows;
  std::vector<RowBoxes> boxes_of_row;
  std::vector<i64> boxes;  ///< of each box: axes, then per axis its begin in the sender's shard,
                           ///< its begin in the receiver's, and its size
  std::vector<std::string> tensors;  ///< names
  Py_ssize_t count = 0;
  Py_ssize_t stride = sizeof(TransferRow);
};

/// Adds a box to Transfers::boxes.
void add_box(std::vector<i64>& boxes, const plan::TransferBox& box) {
  boxes.push_back(std::ssize(box.sizes));
  for (const Shape* part : {&box.from, &box.to, &box.sizes})
    boxes.insert(boxes.end(), part->begin(), part->end());
}

/// One row of a group of tensors with equal holders, and its boxes.
struct GroupRow {
  TransferRow row;
  RowBoxes boxes;
};

/// Returns the rows of a group, and adds their boxes to `boxes`.
std::vector<GroupRow> rows_of(const plan::Traffic& each, std::vector<i64>& boxes) {
  std::vector<GroupRow> rows;
  size_t next = 0;
  for (size_t t = 0; t < each.transfers.size(); ++t) {
    const plan::Transfer& transfer = each.transfers[t];
    const plan::TransferBox& first = each.boxes.at(next);
    const i64 begin = std::ssize(boxes);
    for (; next < each.boxes.size() && each.boxes[next].transfer == t; ++next)
      add_box(boxes, each.boxes[next]);
    rows.push_back(
        {{0, transfer.from, transfer.to, first.from_offset, first.to_offset, transfer.bytes},
         {begin, std::ssize(boxes)}});
  }
  return rows;
}

Transfers transfers_of(const api::PlanReport& report) {
  Transfers all;
  if (!report.reshard) return all;
  all.tensors = report.tensors;
  std::vector<std::vector<GroupRow>> groups;
  for (const plan::ReshardGroup& group : report.reshard->groups)
    groups.push_back(rows_of(group.each, all.boxes));
  for (size_t t = 0; t < report.tensors.size(); ++t) {
    for (GroupRow& group_row : groups[report.reshard->group_of_tensor[t]]) {
      group_row.row.tensor = static_cast<i64>(t);
      all.rows.push_back(group_row.row);
      all.boxes_of_row.push_back(group_row.boxes);
    }
  }
  all.count = std::ssize(all.rows);
  return all;
}

/// One axis of records of 64-bit fields, which numpy.asarray makes a structured array of.
int get_rows(PyObject* self, Py_buffer* view, int flags) {
  Transfers& transfers = *nb::inst_ptr<Transfers>(nb::handle(self));
  static char format[] = "T{q:tensor:q:src_rank:q:dst_rank:q:src_offset:q:dst_offset:q:bytes:}";
  *view = {};
  if ((flags & PyBUF_WRITABLE) != 0) {
    PyErr_SetString(PyExc_BufferError, "the transfers of a plan are read-only");
    return -1;
  }
  view->buf = transfers.rows.data();
  view->len = transfers.count * transfers.stride;
  view->itemsize = transfers.stride;
  view->readonly = 1;
  view->ndim = 1;
  if ((flags & PyBUF_FORMAT) != 0) view->format = format;
  if ((flags & PyBUF_ND) != 0) view->shape = &transfers.count;
  if ((flags & PyBUF_STRIDES) == PyBUF_STRIDES) view->strides = &transfers.stride;
  view->obj = Py_NewRef(self);
  return 0;
}

PyType_Slot kRowSlots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_rows)}, {0, nullptr}};

/// The row's index, counted from the end if it is negative. Throws IndexError.
size_t index_of(const Transfers& self, i64 number) {
  const i64 at = number < 0 ? number + self.count : number;
  if (at < 0 || at >= self.count) throw nb::index_error("there is no such transfer");
  return static_cast<size_t>(at);
}

nb::tuple row_of(const Transfers& self, i64 number) {
  const TransferRow& row = self.rows[index_of(self, number)];
  return nb::make_tuple(text(self.tensors[static_cast<size_t>(row.tensor)]), row.src_rank,
                        row.dst_rank, row.src_offset, row.dst_offset, row.bytes);
}

/// [(dst, src, shape), ...]: receiver[dst] = sender[src].
nb::list boxes_of(const Transfers& self, i64 number) {
  const RowBoxes& range = self.boxes_of_row[index_of(self, number)];
  nb::list all;
  for (auto at = self.boxes.begin() + range.begin; at != self.boxes.begin() + range.end;) {
    const i64 axes = *at++;
    const Shape from(at, at + axes);
    const Shape to(at + axes, at + 2 * axes);
    const Shape sizes(at + 2 * axes, at + 3 * axes);
    all.append(nb::make_tuple(slices_of(to, sizes), slices_of(from, sizes), tuple_of(sizes)));
    at += 3 * axes;
  }
  return all;
}

template <class Value>
nb::bytes bytes_of(const std::vector<Value>& values) {
  return nb::bytes(values.data(), values.size() * sizeof(Value));
}

template <class Value>
std::vector<Value> values_of(const nb::bytes& bytes) {
  std::vector<Value> values(bytes.size() / sizeof(Value));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(Value));
  return values;
}

/// Rows and boxes as bytes, and the names: what is pickled and copied.
using TransfersState = std::tuple<nb::bytes, nb::bytes, nb::bytes, std::vector<std::string>>;

TransfersState state_of(const Transfers& self) {
  return {bytes_of(self.rows), bytes_of(self.boxes_of_row), bytes_of(self.boxes), self.tensors};
}

void make_of_state(Transfers& self, const TransfersState& state) {
  const auto& [rows, boxes_of_row, boxes, tensors] = state;
  new (&self) Transfers;
  self.rows = values_of<TransferRow>(rows);
  self.boxes_of_row = values_of<RowBoxes>(boxes_of_row);
  self.boxes = values_of<i64>(boxes);
  self.tensors = tensors;
  self.count = std::ssize(self.rows);
}

api::PlanOptions plan_options(std::vector<std::string> sources, const Keywords& keywords) {
  api::PlanOptions options;
  options.sources = std::move(sources);
  api::MappingChoice choice = mapping_choice(keywords);
  // The mesh is that of the destination: a whole checkpoint is read from its files. Where
  // config.json stands alone, there are none.
  if (!api::is_config_alone(options.sources)) {
    options.to_mesh = std::exchange(choice.mesh, std::nullopt);
    options.to_preset = std::exchange(choice.preset, {});
    if (!choice.path.empty()) options.to = std::exchange(choice.path, {});
  }
  keywords.set("layout", choice.engine_layout);
  options.mapping = std::move(choice);
  keywords.set("budget", options.device.bytes, kSize);
  keywords.set("context", options.workload.context, kCount);
  keywords.set("batch", options.workload.batch, kCount);
  return options;
}

nb::tuple plan(std::vector<Path> sources, nb::dict given) {
  api::PlanOptions options = plan_options(bytes_of(std::move(sources)), Keywords(std::move(given)));
  options.boxes = plan::Boxes::kListed;
  std::string json;
  Transfers transfers;
  {
    const nb::gil_scoped_release release;
    const api::PlanReport report = api::make_plan(options);
    json = document("plan", report.memory.fits != false,
                    [&](JsonWriter& out) { cli::write_fields(out, report); });
    transfers = transfers_of(report);
  }
  return nb::make_tuple(json, std::move(transfers));
}

/// The plan as data for this program: what `plan --emit` prints.
std::string emit(std::vector<Path> sources, nb::dict given, const std::string& program) {
  api::PlanOptions options = plan_options(bytes_of(std::move(sources)), Keywords(std::move(given)));
  options.emit = api::emit_format_named(program);
  if (!options.emit) {
    throw Error(ErrorCode::kUsage, fmt::format("no program '{}' takes plans", program))
        .help("use \"dtensor\", \"nccl-m2n\" or \"mooncake\"");
  }
  options.prices_forward = false;
  const nb::gil_scoped_release release;
  return api::make_plan(options).emitted;
}

}  // namespace

void bind_plan(nb::module_& module) {
  nb::class_<Transfers>(module, "Transfers", nb::type_slots(kRowSlots))
      .def_ro("tensors", &Transfers::tensors)
      .def("__len__", [](const Transfers& self) { return self.count; })
      .def("_row", row_of)
      .def("_boxes", boxes_of)
      .def("__getstate__", state_of)
      .def("__setstate__", make_of_state);
  module.def("plan", plan);
  module.def("emit", emit);
}

}  // namespace shardtool::python
