#include "cli/print/plan.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <cstring>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "lib/api/plan.h"
#include "lib/python/bindings.h"
#include "lib/python/document.h"
#include "lib/python/options.h"

namespace nb = nanobind;

namespace shardtool::python {
namespace {

/// One row, as numpy sees it.
struct TransferRow {
  i64 tensor;
  i64 src_rank;  ///< -1: the files
  i64 dst_rank;
  i64 bytes;
};

/// Transfers of a plan by tensor, sender and receiver.
struct Transfers {
  std::vector<TransferRow> rows;
  std::vector<std::string> tensors;  ///< names
  Py_ssize_t count = 0;
  Py_ssize_t stride = sizeof(TransferRow);
};

Transfers transfers_of(const api::PlanReport& report) {
  Transfers all;
  if (!report.reshard) return all;
  all.tensors = report.tensors;
  for (size_t t = 0; t < report.tensors.size(); ++t) {
    const auto& each = report.reshard->groups[report.reshard->group_of_tensor[t]].each;
    for (const plan::Transfer& transfer : each.transfers) {
      all.rows.push_back({static_cast<i64>(t), transfer.from, transfer.to, transfer.bytes});
    }
  }
  all.count = std::ssize(all.rows);
  return all;
}

/// One axis of records with four 64-bit fields, which numpy.asarray makes a structured array of.
int get_rows(PyObject* self, Py_buffer* view, int flags) {
  Transfers& transfers = *nb::inst_ptr<Transfers>(nb::handle(self));
  static char format[] = "T{q:tensor:q:src_rank:q:dst_rank:q:bytes:}";
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

nb::tuple row_of(const Transfers& self, i64 number) {
  const i64 at = number < 0 ? number + self.count : number;
  if (at < 0 || at >= self.count) throw nb::index_error("there is no such transfer");
  const TransferRow& row = self.rows[static_cast<size_t>(at)];
  return nb::make_tuple(text(self.tensors[static_cast<size_t>(row.tensor)]), row.src_rank,
                        row.dst_rank, row.bytes);
}

/// Rows as bytes, and the names: what is pickled and copied.
using TransfersState = std::tuple<nb::bytes, std::vector<std::string>>;

TransfersState state_of(const Transfers& self) {
  return {nb::bytes(self.rows.data(), self.rows.size() * sizeof(TransferRow)), self.tensors};
}

void make_of_state(Transfers& self, const TransfersState& state) {
  const auto& [rows, tensors] = state;
  new (&self) Transfers;
  self.tensors = tensors;
  self.rows.resize(rows.size() / sizeof(TransferRow));
  self.count = std::ssize(self.rows);
  if (self.count > 0) std::memcpy(self.rows.data(), rows.data(), rows.size());
}

api::PlanOptions plan_options(std::vector<std::string> sources, const Keywords& keywords) {
  api::PlanOptions options;
  options.sources = std::move(sources);
  api::MappingChoice choice = mapping_choice(keywords);
  // The mesh is that of the destination: a whole checkpoint is read from its files.
  options.to_mesh = std::exchange(choice.mesh, std::nullopt);
  options.to_preset = std::exchange(choice.preset, {});
  if (!choice.path.empty()) options.to = std::exchange(choice.path, {});
  options.mapping = std::move(choice);
  keywords.set("budget", options.device.bytes, kSize);
  keywords.set("context", options.workload.context, kCount);
  keywords.set("batch", options.workload.batch, kCount);
  return options;
}

nb::tuple plan(std::vector<Path> sources, nb::dict given) {
  const api::PlanOptions options =
      plan_options(bytes_of(std::move(sources)), Keywords(std::move(given)));
  std::string json;
  Transfers transfers;
  {
    const nb::gil_scoped_release release;
    const api::PlanReport report = api::make_plan(options);
    json = document("plan", true, [&](JsonWriter& out) { cli::write_fields(out, report); });
    transfers = transfers_of(report);
  }
  return nb::make_tuple(json, std::move(transfers));
}

}  // namespace

void bind_plan(nb::module_& module) {
  nb::class_<Transfers>(module, "Transfers", nb::type_slots(kRowSlots))
      .def_ro("tensors", &Transfers::tensors)
      .def("__len__", [](const Transfers& self) { return self.count; })
      .def("_row", row_of)
      .def("__getstate__", state_of)
      .def("__setstate__", make_of_state);
  module.def("plan", plan);
}

}  // namespace shardtool::python
