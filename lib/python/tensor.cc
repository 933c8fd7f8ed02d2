#include "lib/python/tensor.h"

#include <nanobind/ndarray.h>
#include <sys/mman.h>

#include <array>
#include <climits>
#include <cstdlib>
#include <string_view>

#include "lib/base/error.h"
#include "lib/python/convert.h"

namespace nb = nanobind;

namespace shardtool::python {
namespace {

constexpr i64 kHugePage = 2 << 20;
constexpr i64 kCacheLine = 64;

/// Large tensors lie in huge pages where the system has them: filling fresh memory is then twice as
/// fast.
std::shared_ptr<std::byte> allocate(i64 bytes) {
  const bool is_large = bytes >= 2 * kHugePage;
  const i64 alignment = is_large ? kHugePage : kCacheLine;
  const auto size = static_cast<size_t>(round_up(std::max<i64>(bytes, 1), alignment));
  void* memory = std::aligned_alloc(static_cast<size_t>(alignment), size);
  if (memory == nullptr) throw Error(ErrorCode::kLimit, "no memory for a tensor");
  if (is_large) madvise(memory, size, MADV_HUGEPAGE);
  return {static_cast<std::byte*>(memory), [](std::byte* owned) { std::free(owned); }};
}

/// Views of an element type: a character of Python's struct module, and a type of DLPack 1.1. BF16
/// and the 8-bit floats, which struct lacks, are unsigned integers of their size there.
struct ElementView {
  Dtype dtype;
  const char* format;
  std::uint8_t dlpack;
};
enum : std::uint8_t {
  kInt = 0,
  kUInt = 1,
  kFloat = 2,
  kBfloat = 4,
  kComplex = 5,
  kBool = 6,
  kF8E4M3 = 10,
  kF8E4M3Fnuz = 11,
  kF8E5M2 = 12,
  kF8E5M2Fnuz = 13,
  kF8E8M0 = 14,
};
constexpr auto kViews = std::to_array<ElementView>({
    {Dtype::kBool, "?", kBool},     {Dtype::kU8, "B", kUInt},
    {Dtype::kI8, "b", kInt},        {Dtype::kU16, "H", kUInt},
    {Dtype::kI16, "h", kInt},       {Dtype::kU32, "I", kUInt},
    {Dtype::kI32, "i", kInt},       {Dtype::kU64, "Q", kUInt},
    {Dtype::kI64, "q", kInt},       {Dtype::kF16, "e", kFloat},
    {Dtype::kF32, "f", kFloat},     {Dtype::kF64, "d", kFloat},
    {Dtype::kC64, "Zf", kComplex},  {Dtype::kBF16, "H", kBfloat},
    {Dtype::kF8E4M3, "B", kF8E4M3}, {Dtype::kF8E4M3Fnuz, "B", kF8E4M3Fnuz},
    {Dtype::kF8E5M2, "B", kF8E5M2}, {Dtype::kF8E5M2Fnuz, "B", kF8E5M2Fnuz},
    {Dtype::kF8E8M0, "B", kF8E8M0},
});

const ElementView* find_view(Dtype dtype) {
  for (const ElementView& view : kViews) {
    if (view.dtype == dtype) return &view;
  }
  return nullptr;
}

Shape strides_of(Dtype dtype, const Shape& shape) {
  Shape strides(shape.size());
  i64 stride = bits(dtype) / CHAR_BIT;
  for (size_t a = shape.size(); a-- > 0;) {
    strides[a] = stride;
    stride *= shape[a];
  }
  return strides;
}

static_assert(sizeof(Py_ssize_t) == sizeof(i64));
Py_ssize_t* extents(const Shape& shape) {
  return reinterpret_cast<Py_ssize_t*>(const_cast<i64*>(shape.data()));
}

/// Fills a view of the tensor; elements below a byte are seen as bytes.
int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  const Tensor& tensor = *nb::inst_ptr<Tensor>(nb::handle(self));
  const ElementView* element = find_view(tensor.dtype());
  *view = {};
  view->buf = tensor.data();
  view->len = tensor.bytes();
  view->itemsize = element == nullptr ? 1 : bits(tensor.dtype()) / CHAR_BIT;
  view->ndim = 1;
  if ((flags & PyBUF_FORMAT) != 0) {
    view->format = const_cast<char*>(element == nullptr ? "B" : element->format);
  }
  if ((flags & PyBUF_ND) != 0) {
    const bool is_typed = element != nullptr;
    view->ndim = is_typed ? static_cast<int>(tensor.shape().size()) : 1;
    view->shape = is_typed ? extents(tensor.shape()) : &view->len;
    if ((flags & PyBUF_STRIDES) == PyBUF_STRIDES) {
      view->strides = is_typed ? extents(tensor.strides()) : &view->itemsize;
    }
  }
  view->obj = Py_NewRef(self);
  return 0;
}

PyType_Slot kSlots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)}, {0, nullptr}};

/// The tensor's own DLPack object, which keeps `self` alive.
nb::object dlpack_of(nb::handle self) {
  const Tensor& tensor = nb::cast<const Tensor&>(self);
  const ElementView* element = find_view(tensor.dtype());
  if (element == nullptr) {
    throw Error(ErrorCode::kUnsupported, "DLPack has no elements below a byte")
        .note("dtype", std::string(to_string(tensor.dtype())))
        .help("its buffer has the bytes");
  }
  const std::vector<size_t> shape(tensor.shape().begin(), tensor.shape().end());
  const nb::dlpack::dtype dtype{element->dlpack, static_cast<std::uint8_t>(bits(tensor.dtype())),
                                1};
  return nb::cast(
      nb::ndarray<nb::array_api>(tensor.data(), shape.size(), shape.data(), self, nullptr, dtype));
}

}  // namespace

Tensor::Tensor(Dtype dtype, Shape shape, i64 bytes)
    : Tensor(dtype, std::move(shape), bytes, allocate(bytes)) {}

Tensor::Tensor(Dtype dtype, Shape shape, i64 bytes, std::shared_ptr<std::byte> memory)
    : dtype_(dtype),
      shape_(std::move(shape)),
      strides_(strides_of(dtype, shape_)),
      bytes_(bytes),
      memory_(std::move(memory)) {}

std::string converter_of(nb::handle framework) {
  if (framework.is_none()) return "";
  const std::string name = to_text("framework", framework);
  if (name == "np" || name == "numpy") return "numpy";
  if (name == "pt" || name == "torch" || name == "pytorch") return "torch";
  throw Error(ErrorCode::kUsage, "there is no framework '" + name + "'")
      .help("use framework=\"np\" or \"pt\", or none: the tensor has a buffer and DLPack");
}

nb::object in_framework(Tensor tensor, nb::handle framework) {
  nb::object object = nb::cast(std::move(tensor));
  const std::string converter = converter_of(framework);
  return converter.empty() ? object : object.attr(converter.c_str())();
}

void bind_tensor(nb::module_& module) {
  nb::class_<Tensor>(module, "Tensor", nb::type_slots(kSlots),
                     "Elements in memory. The buffer protocol and DLPack share them with numpy, "
                     "torch, jax and others.")
      .def_prop_ro(
          "dtype", [](const Tensor& self) { return text(to_string(self.dtype())); },
          "The type as safetensors names it, such as BF16.")
      .def_prop_ro(
          "shape", [](const Tensor& self) { return tuple_of(self.shape()); },
          "The extents in elements.")
      .def_prop_ro("nbytes", &Tensor::bytes, "The size in bytes.")
      .def("__len__",
           [](const Tensor& self) {
             if (self.shape().empty()) throw nb::type_error("len() of a scalar");
             return self.shape().front();
           })
      .def("__repr__",
           [](const Tensor& self) {
             return "Tensor(dtype=" + std::string(to_string(self.dtype())) +
                    ", shape=" + to_string(self.shape()) + ")";
           })
      .def("__dlpack__",
           [](nb::handle self, const nb::kwargs& arguments) {
             return dlpack_of(self).attr("__dlpack__")(**arguments);
           })
      .def("__dlpack_device__",
           [](nb::handle self) { return dlpack_of(self).attr("__dlpack_device__")(); })
      .def(
          "numpy",
          [](nb::handle self) {
            return nb::module_::import_("shardtool._frameworks").attr("to_numpy")(self);
          },
          "The same memory as a numpy.ndarray. BF16 and FP8 need ml_dtypes.")
      .def(
          "torch",
          [](nb::handle self) {
            return nb::module_::import_("shardtool._frameworks").attr("to_torch")(self);
          },
          "The same memory as a torch.Tensor.");
}

}  // namespace shardtool::python
