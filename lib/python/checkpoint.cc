#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>

#include <algorithm>
#include <climits>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>

#include "lib/api/reading/opened_checkpoint.h"
#include "lib/base/error.h"
#include "lib/exec/files/stored_box.h"
#include "lib/python/bindings.h"
#include "lib/python/convert.h"
#include "lib/python/options.h"
#include "lib/python/tensor.h"
#include "lib/python/tensor_index.h"
#include "lib/store/local/mapped_range.h"

namespace nb = nanobind;

namespace shardtool::python {
namespace {

using Opened = std::shared_ptr<const api::OpenedCheckpoint>;

/// Strided boxes from this size on are copied out of mapped pages.
constexpr i64 kLeastCopied = 32 << 10;
/// Boxes in one piece from this size on have a mapping of their own, which takes less time than a
/// copy. Below it a page fault takes longer than to read.
constexpr i64 kLeastMapped = 256 << 10;

/// Threads that one read uses; more do not read faster out of the page cache.
int reading_threads() {
  constexpr unsigned kMost = 4;
  // The system reads a file to answer.
  static const unsigned processors = std::thread::hardware_concurrency();
  return static_cast<int>(std::clamp(processors, 1U, kMost));
}

/// A tensor, or a shard of one, whose data is read by subscripts.
struct Source {
  Opened checkpoint;
  api::TensorReader reader;
  nb::object framework;

  nb::object read(const IndexedBox& box) const {
    Tensor tensor = [&] {
      const nb::gil_scoped_release release;
      return read_box(box);
    }();
    return in_framework(std::move(tensor), framework);
  }
  /// Maps what is large and in one piece; everything else is copied.
  Tensor read_box(const IndexedBox& box) const {
    const i64 bytes = reader.bytes_of(box.sizes);
    std::optional<api::TensorReader::FileBox> place;
    if (bytes >= kLeastCopied) place = reader.in_file(box.begin, box.sizes);
    const bool is_strided = place && !place->copy.loops.empty();
    if (place && (is_strided || bytes >= kLeastMapped)) return from_pages(box, *place);
    Tensor tensor(reader.dtype(), box.shape, bytes);
    if (place) {
      exec::read_from(*place->file, tensor.span(), place->offset);
    } else {
      reader.read(box.begin, box.sizes, reading_threads(), tensor.span());
    }
    return tensor;
  }
  Tensor from_pages(const IndexedBox& box, const api::TensorReader::FileBox& place) const {
    const i64 bytes = reader.bytes_of(box.sizes);
    const i64 width = std::max(bits(reader.dtype()) / CHAR_BIT, 1);
    if (!place.copy.loops.empty() || place.offset % width != 0) {
      Tensor tensor(reader.dtype(), box.shape, bytes);
      const api::MapWindow::View pages = checkpoint->view(place);
      place.copy_out(pages.data, reading_threads(), tensor.data());
      return tensor;
    }
    auto range = std::make_shared<store::MappedRange>(place.file->file(), place.offset, place.bytes,
                                                      store::MapAccess::kReadAndOwnWrites);
    std::byte* const data = range->data();
    return {reader.dtype(), box.shape, bytes, {std::move(range), data}};
  }
  nb::object read_all() const {
    return read({Shape(reader.shape().size(), 0), reader.shape(), reader.shape()});
  }
};

/// Names in the order of the checkpoint.
nb::list names_of(const api::OpenedCheckpoint& checkpoint, const std::vector<size_t>& tensors) {
  nb::list names;
  for (const size_t tensor : tensors) names.append(text(checkpoint.spec(tensor).name));
  return names;
}

nb::list all_names(const api::OpenedCheckpoint& checkpoint) {
  nb::list names;
  for (size_t t = 0; t < checkpoint.size(); ++t) names.append(text(checkpoint.spec(t).name));
  return names;
}

/// The cut of one tensor over the ranks.
struct CutOfTensor {
  Opened checkpoint;
  size_t tensor;

  api::TensorCut cut() const { return checkpoint->cut(tensor); }
  index::Region region(i64 rank) const {
    const api::TensorCut all = cut();
    if (const auto holder = all.holder_of(rank)) return all.holders->region(*holder);
    throw Error(ErrorCode::kCoverage, "rank " + std::to_string(rank) + " does not hold the tensor")
        .tensor(checkpoint->spec(tensor).name);
  }
};

/// [(dst, src, shape), ...]: shard[dst] = whole[src].
nb::list slices(const CutOfTensor& self, i64 rank) {
  nb::list all;
  for (const index::PlacedBox& box : index::placed_boxes(self.region(rank))) {
    all.append(nb::make_tuple(slices_of(box.local, box.sizes), slices_of(box.global, box.sizes),
                              tuple_of(box.sizes)));
  }
  return all;
}

nb::tuple placements(const CutOfTensor& self) {
  const api::TensorCut cut = self.cut();
  nb::list all;
  for (const auto& axis : layout::torch_placements(*cut.mesh, *cut.holders, cut.ranks)) {
    all.append(nb::cast(axis));
  }
  return nb::tuple(all);
}

/// Shards of one rank.
struct Rank {
  Opened checkpoint;
  i64 rank;
  nb::object framework;

  Source source(std::string_view name) const {
    return {checkpoint, checkpoint->shard(checkpoint->number_of(name), rank), framework};
  }
};

nb::object or_own(const nb::object& framework, const nb::object& own) {
  return framework.is_none() ? own : framework;
}

void bind_source(nb::module_& module) {
  const auto dtype = [](const Source& self) { return text(to_string(self.reader.dtype())); };
  nb::class_<Source>(module, "TensorSlice",
                     "A tensor that is not read yet. A subscript reads its part: integers, slices "
                     "with step 1, and `...`.")
      .def_prop_ro(
          "shape", [](const Source& self) { return tuple_of(self.reader.shape()); },
          "The extents in elements.")
      .def_prop_ro("dtype", dtype, "The type as safetensors names it, such as BF16.")
      .def(
          "get_shape", [](const Source& self) { return nb::list(tuple_of(self.reader.shape())); },
          "The shape as a list, as safetensors has it.")
      .def("get_dtype", dtype, "The same as dtype.")
      .def(
          "__getitem__",
          [](const Source& self, nb::handle subscript) {
            return self.read(box_of(self.reader.shape(), subscript));
          },
          nb::arg("subscript").none());
}

void bind_layout(nb::module_& module) {
  nb::class_<CutOfTensor>(module, "Layout")
      .def_prop_ro("mesh", [](const CutOfTensor& self) { return to_dict(*self.cut().mesh); })
      .def_prop_ro("_device_order",
                   [](const CutOfTensor& self) {
                     const std::span<const i64> order = self.cut().mesh->device_order();
                     return std::vector<i64>(order.begin(), order.end());
                   })
      .def_prop_ro("ranks",
                   [](const CutOfTensor& self) {
                     const auto cut = self.cut();
                     return std::vector<i64>(cut.ranks.begin(), cut.ranks.end());
                   })
      .def_prop_ro("rule", [](const CutOfTensor& self) { return text(self.cut().rule); })
      .def(
          "shape",
          [](const CutOfTensor& self, i64 rank) {
            return tuple_of(index::local_shape(self.region(rank)));
          },
          nb::arg("rank"))
      .def("_slices", slices, nb::arg("rank"))
      .def("_placements", placements);
}

/// The entries as a dict; None if the files have none, as safe_open says it.
nb::object metadata_of(const Rank& self) {
  std::map<std::string, std::string> entries;
  {
    const nb::gil_scoped_release release;
    entries = self.checkpoint->metadata(self.rank);
  }
  if (entries.empty()) return nb::none();
  nb::dict all;
  for (const auto& [key, value] : entries) all[text(key)] = text(value);
  return all;
}

void bind_rank(nb::module_& module) {
  const auto framework = nb::arg("framework").none() = nb::none();
  nb::class_<Rank>(module, "Rank", "What a rank holds, with the methods of safetensors.safe_open.")
      .def_ro("rank", &Rank::rank, "Its number in the mesh.")
      .def(
          "keys",
          [](const Rank& self) {
            return names_of(*self.checkpoint, self.checkpoint->held_by(self.rank));
          },
          "The names of the tensors of which the rank holds some.")
      .def(
          "offset_keys",
          [](const Rank& self) {
            return names_of(*self.checkpoint, self.checkpoint->held_in_file_order(self.rank));
          },
          "keys() in the order of their bytes in the files.")
      .def("metadata", metadata_of,
           "The entries of `__metadata__` in the files that hold the rank's tensors; of a key that "
           "several have, that of the first file. None if there are none.")
      .def(
          "get_tensor",
          [](const Rank& self, std::string_view name, const nb::object& wanted) {
            Source source = self.source(name);
            source.framework = or_own(wanted, self.framework);
            return source.read_all();
          },
          nb::arg("name"), framework, "Reads the rank's shard of a tensor.")
      .def(
          "get_tensors",
          [](const Rank& self, const nb::object& wanted) {
            nb::dict tensors;
            for (const nb::handle name :
                 names_of(*self.checkpoint, self.checkpoint->held_in_file_order(self.rank))) {
              Source source = self.source(nb::cast<std::string_view>(name));
              source.framework = or_own(wanted, self.framework);
              tensors[name] = source.read_all();
            }
            return tensors;
          },
          framework, "Reads everything that the rank holds.")
      .def(
          "get_slice",
          [](const Rank& self, std::string_view name, const nb::object& wanted) {
            Source source = self.source(name);
            source.framework = or_own(wanted, self.framework);
            return source;
          },
          nb::arg("name"), framework,
          "The rank's shard of a tensor, of which subscripts read parts.")
      .def("__enter__", [](nb::object self) { return self; })
      .def("__exit__", [](const Rank&, const nb::args&) {});
}

Source whole(const Opened& self, std::string_view name, const nb::object& framework) {
  return {self, self->whole(self->number_of(name)), framework};
}

/// A tensor's header.
struct TensorHeader {
  Opened checkpoint;
  size_t tensor;

  const TensorSpec& spec() const { return checkpoint->spec(tensor); }
};

void bind_header(nb::module_& module) {
  nb::class_<TensorHeader>(module, "TensorHeader")
      .def_prop_ro("name", [](const TensorHeader& self) { return text(self.spec().name); })
      .def_prop_ro("dtype",
                   [](const TensorHeader& self) { return text(to_string(self.spec().dtype)); })
      .def_prop_ro("shape", [](const TensorHeader& self) { return tuple_of(self.spec().shape); })
      .def_prop_ro("nbytes",
                   [](const TensorHeader& self) {
                     return byte_size(self.spec().dtype, self.spec().shape).value_or(0);
                   })
      .def_prop_ro("_layout", [](const TensorHeader& self) {
        self.checkpoint->cut(self.tensor);
        return CutOfTensor{self.checkpoint, self.tensor};
      });
}

void bind_opened(nb::module_& module) {
  const auto framework = nb::arg("framework").none() = nb::none();
  // nanobind has no holders of const objects, so the pointer is wrapped.
  struct Handle {
    Opened opened;
  };
  nb::class_<Handle>(module, "Checkpoint")
      .def_prop_ro("path", [](const Handle& self) { return Path{self.opened->path()}; })
      .def_prop_ro("format", [](const Handle& self) { return self.opened->format(); })
      .def_prop_ro("warnings", [](const Handle& self) { return self.opened->warnings(); })
      .def_prop_ro("mesh",
                   [](const Handle& self) -> nb::object {
                     if (self.opened->mesh() == nullptr) return nb::none();
                     return to_dict(*self.opened->mesh());
                   })
      .def("__len__", [](const Handle& self) { return self.opened->size(); })
      .def("__contains__",
           [](const Handle& self, std::string_view name) {
             return self.opened->find(name).has_value();
           })
      .def("keys", [](const Handle& self) { return all_names(*self.opened); })
      .def("__iter__", [](const Handle& self) { return nb::iter(all_names(*self.opened)); })
      .def("_header",
           [](const Handle& self, std::string_view name) {
             return TensorHeader{self.opened, self.opened->number_of(name)};
           })
      .def(
          "rank",
          [](const Handle& self, i64 rank, const nb::object& wanted) {
            self.opened->require_rank(rank);
            converter_of(wanted);
            return Rank{self.opened, rank, wanted};
          },
          nb::arg("rank"), framework)
      .def(
          "get_tensor",
          [](const Handle& self, std::string_view name, const nb::object& wanted) {
            return whole(self.opened, name, wanted).read_all();
          },
          nb::arg("name"), framework)
      .def(
          "get_slice",
          [](const Handle& self, std::string_view name, const nb::object& wanted) {
            return whole(self.opened, name, wanted);
          },
          nb::arg("name"), framework);
  module.def("open", [](std::vector<Path> sources, const nb::dict& keywords) {
    api::OpenOptions options{bytes_of(std::move(sources)), given_mapping(Keywords(keywords))};
    const nb::gil_scoped_release release;
    return Handle{std::make_shared<const api::OpenedCheckpoint>(options)};
  });
}

}  // namespace

void bind_checkpoint(nb::module_& module) {
  bind_source(module);
  bind_layout(module);
  bind_rank(module);
  bind_header(module);
  bind_opened(module);
}

}  // namespace shardtool::python
