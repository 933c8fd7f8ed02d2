#include "lib/format/torch/state_dict.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <map>
#include <string>
#include <vector>

#include "tests/support/generators.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"
#include "tests/support/torch_files.h"

namespace shardtool::format::torch {
namespace {

using namespace std::string_literals;
using test::PickleWriter;
using test::TempFolder;
using test::torch_tensor;
using test::torch_zip;

StateDict read_state(const TempFolder& folder, const std::string& content) {
  const std::string path = folder.write("model.pt", content);
  return state_dict(read_archive(store::open_read(path)), path);
}

/// Reads a zip file whose only storage, "0", has 24 bytes.
StateDict read_pickle(const std::string& opcodes) {
  const TempFolder folder;
  const std::string pickle = PickleWriter().raw(opcodes).finished();
  return read_state(folder, torch_zip(pickle, {{"0", std::string(24, 'x')}}));
}

Error refusal(const std::string& opcodes) {
  const auto error = testing::error_of([&] { return read_pickle(opcodes); });
  REQUIRE(error.has_value());
  return *error;
}

/// Opcodes of a tensor over the 24 bytes of storage "0".
std::string f32(const Shape& shape, i64 offset = 0, std::vector<i64> stride = {}) {
  if (stride.empty()) stride = test::row_major(shape);
  return torch_tensor({"", Dtype::kF32, shape}, {"0", 6, offset, std::move(stride)});
}

std::string dict(const std::string& entries) {
  return "}(" + entries + "u";
}

std::string entry(const std::string& key, const std::string& value) {
  return PickleWriter().text(key).raw(value).opcodes();
}

std::vector<std::string> names(const StateDict& content) {
  std::vector<std::string> all;
  for (const NamedSlot& tensor : content.tensors) all.push_back(tensor.name);
  return all;
}

test::Tensors random_tensors() {
  test::Tensors tensors;
  for (i64 t = *gen::between(1, 5); t > 0; --t) {
    const std::string name = "layer." + std::to_string(t);
    const Dtype dtype = *rc::gen::element(
        Dtype::kBool, Dtype::kU8, Dtype::kI8, Dtype::kI16, Dtype::kI32, Dtype::kI64, Dtype::kF16,
        Dtype::kBF16, Dtype::kF32, Dtype::kF64, Dtype::kC64, Dtype::kU16, Dtype::kU32, Dtype::kU64,
        Dtype::kF8E4M3, Dtype::kF8E5M2, Dtype::kF8E8M0, Dtype::kF8E4M3Fnuz, Dtype::kF8E5M2Fnuz);
    tensors[name] = test::numbered_tensor(name, dtype, *gen::shape());
  }
  return tensors;
}

TEST_CASE("every tensor of the zip form and of the legacy form is where its bytes are") {
  const TempFolder folder;
  CHECK(rc::check([&] {
    const test::Tensors tensors = random_tensors();
    for (const std::string& file : {test::torch_zip(tensors), test::torch_legacy(tensors)}) {
      const StateDict content = read_state(folder, file);
      RC_ASSERT(content.tensors.size() == tensors.size());
      RC_ASSERT(content.others.empty());
      for (const NamedSlot& tensor : content.tensors) {
        const test::Tensor& expected = tensors.at(tensor.name);
        RC_ASSERT(tensor.slot.dtype == expected.spec.dtype);
        RC_ASSERT(tensor.slot.shape == expected.spec.shape);
        const std::string bytes = file.substr(static_cast<size_t>(tensor.slot.offset),
                                              static_cast<size_t>(tensor.slot.bytes));
        RC_ASSERT(bytes == std::string(expected.bytes.begin(), expected.bytes.end()));
      }
    }
  }));
}

TEST_CASE("both forms are refused at every cut, and with a byte more") {
  const TempFolder folder;
  const test::Tensors tensors = {{"a", test::numbered_tensor("a", Dtype::kF32, {2, 3})},
                                 {"b", test::numbered_tensor("b", Dtype::kF8E4M3, {5})}};
  for (const std::string& file : {test::torch_zip(tensors), test::torch_legacy(tensors)}) {
    for (size_t bytes = 0; bytes < file.size(); ++bytes) {
      CAPTURE(bytes);
      CHECK(
          testing::error_of([&] { return read_state(folder, file.substr(0, bytes)); }).has_value());
    }
    CHECK_ERROR(kMalformed, read_state(folder, file + "x"));
  }
}

TEST_CASE("names of nested dicts and lists are joined by dots, what is no tensor is listed") {
  const StateDict content = read_pickle(
      dict(entry("model", dict(entry("a.weight", f32({2, 3})))) +
           entry("optimizer", dict("K\x07" + dict(entry("step", f32({}))))) +
           entry("list", "](" + f32({1}) + "K\x01" + "e") + entry("epoch", "K\x03") +
           entry("history",
                 "](K\x01K\x02"
                 "e") +
           entry("args", PickleWriter().global("argparse", "Namespace").raw(")R}b").opcodes())));
  CHECK(names(content) == std::vector<std::string>{"model.a.weight", "optimizer.7.step", "list.0"});
  REQUIRE(content.others.size() == 4);
  CHECK(content.others[0].name == "list.1");
  CHECK(content.others[1].what == "an integer");
  CHECK(content.others[2].what == "a list");
  CHECK(content.others[3].name == "args");
  CHECK(content.others[3].what == "argparse.Namespace");
}

TEST_CASE("tied tensors and views of one storage are ranges of it") {
  const StateDict content = read_pickle(
      dict(entry("a", f32({2, 3})) + entry("tied", f32({2, 3})) + entry("half", f32({3}, 3)) +
           entry("row", f32({1, 3}, 0, {99, 1})) + entry("nothing", f32({0, 4}, 0, {7, 7}))));
  REQUIRE(content.tensors.size() == 5);
  const i64 begin = content.tensors[0].slot.offset;
  CHECK(content.tensors[1].slot.offset == begin);
  CHECK(content.tensors[2].slot.offset == begin + 12);
  CHECK(content.tensors[2].slot.bytes == 12);
  CHECK(content.tensors[4].slot.bytes == 0);
}

TEST_CASE("parameters and typed tensors are the tensors inside them") {
  const std::string hooks = PickleWriter().global("collections", "OrderedDict").raw(")R").opcodes();
  const std::string parameter = PickleWriter()
                                    .global("torch._utils", "_rebuild_parameter")
                                    .raw("(" + f32({6}) + "\x88" + hooks + "tR")
                                    .opcodes();
  // _rebuild_from_type_v2(function, type, arguments, state)
  const std::string call = f32({6});
  const size_t arguments = call.find("((");
  const std::string typed = PickleWriter()
                                .global("torch._tensor", "_rebuild_from_type_v2")
                                .raw("(")
                                .raw(call.substr(0, arguments))
                                .global("torch.nn.parameter", "Buffer")
                                .raw(call.substr(arguments, call.size() - arguments - 1) + "}tR")
                                .opcodes();
  CHECK(names(read_pickle(dict(entry("p", parameter) + entry("b", typed)))) ==
        std::vector<std::string>{"p", "b"});
}

/// Opcodes of a call of a function of torch._utils without arguments.
std::string rebuilt(const std::string& function) {
  return PickleWriter().global("torch._utils", function).raw("(tR").opcodes();
}

TEST_CASE("tensors that are no stretch of a storage are refused by name with a way out") {
  const std::string conjugate = [] {
    std::string tensor = f32({6});
    tensor.resize(tensor.size() - 2);  // tR
    return tensor + dict(entry("conj", "\x88")) + "tR";
  }();
  const std::map<std::string, std::string> kinds = {
      {f32({3, 2}, 0, {1, 3}), "not contiguous"},
      {f32({2}, 0, {0}), "not contiguous"},
      {f32({2}, 0, {2}), "not contiguous"},
      {f32({4, 6}, 0, {0, 1}), "not contiguous"},  // more elements than the storage: expanded
      {rebuilt("_rebuild_sparse_tensor"), "sparse"},
      {rebuilt("_rebuild_qtensor"), "quantised"},
      {rebuilt("_rebuild_nested_tensor"), "nested"},
      {rebuilt("_rebuild_meta_tensor_no_storage"), "meta device"},
      {rebuilt("_rebuild_wrapper_subclass"), "subclass"},
      {rebuilt("_rebuild_of_tomorrow"), "kind that is not read"},
      {conjugate, "conjugate"},
  };
  for (const auto& [tensor, message] : kinds) {
    const Error error = refusal(dict(entry("w", tensor)));
    CAPTURE(message);
    CHECK(error.code() == ErrorCode::kUnsupported);
    CHECK(error.message().find(message) != std::string::npos);
    CHECK(error.tensor_name() == "w");
    CHECK(error.help_lines().size() == 1);
  }
}

/// Opcodes of a tensor whose storage has this class and so many elements.
std::string of_storage(const std::string& module, const std::string& name, i64 numel,
                       const std::string& last = "") {
  return PickleWriter()
      .global("torch._utils", last.empty() ? "_rebuild_tensor_v2" : "_rebuild_tensor_v3")
      .raw("((")
      .text("storage")
      .global(module, name)
      .text("0")
      .text("cpu")
      .integer(numel)
      .raw("tQK\0"s)
      .integers({2})
      .integers({1})
      .raw("\x89N" + last + "tR")
      .opcodes();
}

TEST_CASE("element types that safetensors lacks are refused") {
  const std::string f4 = PickleWriter().global("torch", "float4_e2m1fn_x2").opcodes();
  for (const std::string& tensor :
       {of_storage("torch", "QInt8Storage", 24), of_storage("torch", "ComplexDoubleStorage", 2),
        of_storage("torch.storage", "UntypedStorage", 24, f4), of_storage("os", "system", 24)}) {
    CHECK(refusal(dict(entry("w", tensor))).code() == ErrorCode::kUnsupported);
  }
}

TEST_CASE("tensors that contradict their storage are invalid") {
  const std::string u8 = PickleWriter().global("torch", "uint8").opcodes();
  const std::vector<std::string> tensors = {
      f32({7}),                                                // behind the end
      f32({2, 3}, 1),                                          // the same
      f32({6}, 7),                                             // the same
      f32({i64{1} << 61, 4}),                                  // an overflow
      f32({2, 3}, i64{1} << 62),                               // the same
      f32({2, 3}, 0, {1}),                                     // strides of another rank
      f32({-1}, 0, {1}),                                       // a negative extent
      f32({1}, -1),                                            // a negative offset
      of_storage("torch", "FloatStorage", 5),                  // another size of the storage
      of_storage("torch", "FloatStorage", 7),                  // the same
      of_storage("torch.storage", "UntypedStorage", 24),       // no dtype
      of_storage("torch.storage", "UntypedStorage", 23, u8),   // another size
      torch_tensor({"", Dtype::kF32, {1}}, {"1", 6, 0, {1}}),  // a storage that is absent
      rebuilt("_rebuild_tensor_v2"),                           // no arguments
  };
  for (const std::string& tensor : tensors) {
    const Error error = refusal(dict(entry("w", tensor)));
    CAPTURE(error.message());
    CHECK(error.code() == ErrorCode::kTensorInvalid);
    CHECK(error.tensor_name() == "w");
  }
}

TEST_CASE("data that has no name in a state dict is refused, not lost") {
  const std::string object = PickleWriter()
                                 .global("torch.nn.modules.linear", "Linear")
                                 .raw(")\x81" + dict(entry("w", f32({6}))) + "b")
                                 .opcodes();
  const std::string storage = PickleWriter()
                                  .raw("(")
                                  .text("storage")
                                  .global("torch", "FloatStorage")
                                  .text("0")
                                  .text("cpu")
                                  .integer(6)
                                  .raw("tQ")
                                  .opcodes();
  using enum ErrorCode;
  const std::vector<std::pair<std::string, ErrorCode>> cases = {
      {object, kUnsupported},                           // a whole module
      {dict(entry("model", object)), kUnsupported},     // the same
      {dict(entry("s", storage)), kUnsupported},        // a storage without a tensor
      {f32({6}), kUnsupported},                         // a tensor alone
      {dict(entry("epoch", "K\x01")), kUnsupported},    // no tensor at all
      {dict("N" + f32({6})), kTensorInvalid},           // a key that gives no name
      {dict(entry("\xff", f32({6}))), kTensorInvalid},  // a key that is not UTF-8
      {dict(entry("a.b", f32({6})) + entry("a", dict(entry("b", f32({6}))))), kTensorInvalid},
      {dict(entry("a", f32({6})) + entry("a", f32({6}))), kTensorInvalid},  // a key twice
  };
  for (const auto& [opcodes, code] : cases) {
    const Error error = refusal(opcodes);
    CAPTURE(error.message());
    CHECK(error.code() == code);
  }
}

TEST_CASE("objects that share or contain their parts end in bounded time") {
  // Each list holds the one before it twice, so that a plain walk would take 2^60 steps.
  std::string bomb = "](" + f32({6}) + "eq\x01";
  for (int i = 0; i < 60; ++i) bomb = "](" + bomb + "h\x01" + "eq\x01";
  CHECK(refusal(bomb).code() == ErrorCode::kLimit);
  std::string deep = f32({6});
  for (int i = 0; i < 200; ++i) deep = "](" + deep + "e";
  CHECK(refusal(deep).code() == ErrorCode::kLimit);
  const std::string loop = "]q\x01(" + f32({6}) + "h\x01" + "e";
  CHECK(refusal(loop).code() == ErrorCode::kLimit);
}

TEST_CASE("names that are joined at many places take bounded memory") {
  const auto below = [](size_t key_bytes) {
    return dict(entry(std::string(key_bytes, 'A'), "](" + std::string(4000, 'N') + f32({6}) + "e"));
  };
  CHECK(refusal(below(100'000)).code() == ErrorCode::kLimit);
  const StateDict content = read_pickle(below(1000));
  CHECK(content.tensors.size() == 1);
  CHECK(content.others.size() == 4000);
}

TEST_CASE("a tensor has at most 64 axes") {
  const StateDict content = read_pickle(dict(entry("w", f32(Shape(64, 1)))));
  CHECK(content.tensors.front().slot.shape == Shape(64, 1));
  CHECK(refusal(dict(entry("w", f32(Shape(65, 1))))).code() == ErrorCode::kTensorInvalid);
}

TEST_CASE("files that torch wrote are read in both forms") {
  for (const char* form : {"zip.pt", "legacy.pt"}) {
    const std::string path = std::string(SHARDTOOL_TORCH_FIXTURES) + "/" + form;
    CAPTURE(path);
    const store::File file = store::open_read(path);
    const StateDict content = state_dict(read_archive(file), path);
    CHECK(names(content) == std::vector<std::string>{"a", "b", "tied", "row"});
    REQUIRE(content.others.size() == 1);
    CHECK(content.others[0].name == "epoch");
    CHECK(content.tensors[1].slot.dtype == Dtype::kBF16);
    CHECK(content.tensors[2].slot.offset == content.tensors[0].slot.offset);
    std::vector<float> row(3);
    store::read_exact(file, std::as_writable_bytes(std::span(row)), content.tensors[3].slot.offset);
    CHECK(row == std::vector<float>{3, 4, 5});
  }
}

TEST_CASE("zip archives that are no checkpoint of torch are refused") {
  const TempFolder folder;
  const std::string pickle = PickleWriter().raw(dict(entry("w", f32({6})))).finished();
  const std::vector<std::vector<test::ZipPart>> archives = {
      {{"a/b", ""}},
      {{"data.pkl", pickle}},
      {{"a/data.pkl", pickle}, {"b/data/0", "x"}},
      {{"a/data.pkl", pickle}, {"a/constants.pkl", "x"}},
      {{"a/data.pkl", pickle}, {"a/code/x.py", "x"}},
      {{"a/data.pkl", pickle}, {"a/byteorder", "big"}},
  };
  for (const auto& parts : archives) {
    CHECK_ERROR(kUnsupported, read_state(folder, test::zip_archive(parts)));
  }
}

TEST_CASE("pickles that are no checkpoint of torch are refused") {
  const TempFolder folder;
  const std::string file =
      test::torch_legacy({{"a", test::numbered_tensor("a", Dtype::kF32, {2, 3})}});
  const auto with = [&file](const std::string& from, const std::string& to) {
    std::string changed = file;
    return changed.replace(changed.find(from), from.size(), to);
  };
  CHECK_ERROR(kUnsupported, read_state(folder, PickleWriter().integer(1).finished()));
  CHECK_ERROR(kUnsupported, read_state(folder, with("little_endian\x88", "little_endian\x89")));
  CHECK_ERROR(kMalformed, read_state(folder, with("J\xe9\x03", "J\xea\x03")));
  CHECK_ERROR(kUnsupported, read_state(folder, with("NtQ", "\x88tQ")));
  CHECK_ERROR(kMalformed, read_state(folder, with("](X\x01\0\0\0"s + "0", "](X\x01\0\0\0"s + "1")));
  CHECK_ERROR(kMalformed, read_state(folder, with("e.\x06", "e.\x07")));
  CHECK_ERROR(kUnsupported, read_state(folder, "neither"));
}

TEST_CASE("a dtype of the legacy form that is not read is refused with the file and the tensor") {
  const TempFolder folder;
  std::string file =
      test::torch_legacy({{"a", test::numbered_tensor("a", Dtype::kF64, {2})},
                          {"deeper.b", test::numbered_tensor("deeper.b", Dtype::kF32, {2, 3})}});
  const std::string from = "FloatStorage";
  file.replace(file.find(from), from.size(), "ComplexDoubleStorage");
  const auto error = testing::error_of([&] { return read_state(folder, file); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kUnsupported);
  REQUIRE(error->place());
  CHECK(error->place()->file == folder / "model.pt");
  CHECK(error->tensor_name() == "deeper.b");
}

TEST_CASE("a refusal of the whole saved object names no empty entry") {
  const std::string tensor = f32({2, 3});
  for (const Error& error :
       {refusal(PickleWriter().global("torch.nn", "Linear").raw(")\x81").opcodes() + "}(" +
                entry("w", tensor) + "ub"),
        refusal("}(\x88" + tensor + "u")}) {
    for (const auto& [label, text] : error.notes()) CHECK_FALSE(text.empty());
  }
  const Error inside = refusal(dict(entry("a", "}(\x88" + tensor + "u")));
  CHECK(inside.notes().front() == std::pair{"entry"s, "a"s});
}

TEST_CASE("a whole module is refused as one in the legacy form, too, which names classes by ids") {
  const TempFolder folder;
  const std::string file =
      test::torch_legacy({{"a", test::numbered_tensor("a", Dtype::kF32, {2, 3})}});
  const std::string dict = PickleWriter().global("collections", "OrderedDict").raw(")R(").opcodes();
  const std::string module = PickleWriter()
                                 .raw("(")
                                 .text("module")
                                 .global("torch.nn", "Linear")
                                 .raw("NNtQ)\x81(")
                                 .opcodes();
  std::string changed = file;
  const Error error = *testing::error_of(
      [&] { return read_state(folder, changed.replace(changed.find(dict), dict.size(), module)); });
  CHECK(error.code() == ErrorCode::kUnsupported);
  CHECK(error.message() == "the file holds tensors inside an object that is no dict");
}

}  // namespace
}  // namespace shardtool::format::torch
