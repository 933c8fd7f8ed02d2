#include "lib/python/tensor_index.h"

#include <string>
#include <vector>

namespace nb = nanobind;

namespace shardtool::python {
namespace {

void add_axis(IndexedBox& box, i64 begin, i64 size) {
  box.begin.push_back(begin);
  box.sizes.push_back(size);
  box.shape.push_back(size);
}

void add_slice(IndexedBox& box, i64 extent, nb::handle slice) {
  Py_ssize_t begin = 0;
  Py_ssize_t end = 0;
  Py_ssize_t step = 0;
  if (PySlice_Unpack(slice.ptr(), &begin, &end, &step) != 0) throw nb::python_error();
  if (step != 1) throw nb::value_error("slices of tensors have step 1");
  add_axis(box, 0, PySlice_AdjustIndices(extent, &begin, &end, step));
  box.begin.back() = begin;
}

/// Refuses bool, which is an integer to Python but a mask to torch and NumPy.
i64 integer_of(nb::handle index) {
  if (nb::isinstance<nb::bool_>(index) || PyIndex_Check(index.ptr()) == 0)
    throw nb::type_error("a subscript is integers, slices with step 1, and ...");
  const Py_ssize_t at = PyNumber_AsSsize_t(index.ptr(), PyExc_IndexError);
  if (at == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
  return at;
}

void add_integer(IndexedBox& box, i64 extent, nb::handle index) {
  const i64 at = integer_of(index);
  const i64 begin = at < 0 ? at + extent : at;
  if (begin < 0 || begin >= extent) {
    const std::string message =
        "index " + std::to_string(at) + " is outside of an axis of " + std::to_string(extent);
    throw nb::index_error(message.c_str());
  }
  box.begin.push_back(begin);
  box.sizes.push_back(1);
}

/// The subscript as a list with one entry per axis; null: the whole axis.
std::vector<nb::handle> per_axis(size_t axes, nb::handle subscript) {
  std::vector<nb::handle> given;
  if (nb::isinstance<nb::tuple>(subscript)) {
    for (const nb::handle part : nb::borrow<nb::tuple>(subscript)) given.push_back(part);
  } else {
    given.push_back(subscript);
  }
  size_t dots = given.size();
  for (size_t g = 0; g < given.size(); ++g) {
    if (!given[g].is(nb::ellipsis())) continue;
    if (dots != given.size()) throw nb::index_error("a subscript has one ... at most");
    dots = g;
  }
  const size_t named = given.size() - (dots == given.size() ? 0 : 1);
  if (named > axes) throw nb::index_error("too many indices for the tensor");
  std::vector<nb::handle> all(given.begin(), given.begin() + static_cast<std::ptrdiff_t>(dots));
  all.resize(dots + axes - named);
  for (size_t g = dots + 1; g < given.size(); ++g) all.push_back(given[g]);
  return all;
}

}  // namespace

IndexedBox box_of(const Shape& shape, nb::handle subscript) {
  IndexedBox box;
  const std::vector<nb::handle> parts = per_axis(shape.size(), subscript);
  for (size_t a = 0; a < shape.size(); ++a) {
    if (!parts[a].is_valid()) {
      add_axis(box, 0, shape[a]);
    } else if (nb::isinstance<nb::slice>(parts[a])) {
      add_slice(box, shape[a], parts[a]);
    } else {
      add_integer(box, shape[a], parts[a]);
    }
  }
  return box;
}

}  // namespace shardtool::python
