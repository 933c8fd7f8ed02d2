#include "tests/support/torch_files.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

namespace shardtool::test {
namespace {

namespace fs = std::filesystem;

std::string little_endian(std::uint64_t number, size_t bytes) {
  std::string text;
  for (size_t i = 0; i < bytes; ++i) text += static_cast<char>(number >> (8 * i));
  return text;
}

/// Name of a dtype's storage class in torch, or empty for dtypes that are younger than the classes.
std::string storage_class(Dtype dtype) {
  switch (dtype) {
    case Dtype::kBool:
      return "BoolStorage";
    case Dtype::kU8:
      return "ByteStorage";
    case Dtype::kI8:
      return "CharStorage";
    case Dtype::kI16:
      return "ShortStorage";
    case Dtype::kI32:
      return "IntStorage";
    case Dtype::kI64:
      return "LongStorage";
    case Dtype::kF16:
      return "HalfStorage";
    case Dtype::kBF16:
      return "BFloat16Storage";
    case Dtype::kF32:
      return "FloatStorage";
    case Dtype::kF64:
      return "DoubleStorage";
    case Dtype::kC64:
      return "ComplexFloatStorage";
    default:
      return "";
  }
}

std::string young_dtype(Dtype dtype) {
  switch (dtype) {
    case Dtype::kU16:
      return "uint16";
    case Dtype::kU32:
      return "uint32";
    case Dtype::kU64:
      return "uint64";
    case Dtype::kF8E4M3:
      return "float8_e4m3fn";
    case Dtype::kF8E5M2:
      return "float8_e5m2";
    case Dtype::kF8E4M3Fnuz:
      return "float8_e4m3fnuz";
    case Dtype::kF8E5M2Fnuz:
      return "float8_e5m2fnuz";
    case Dtype::kF8E8M0:
      return "float8_e8m0fnu";
    default:
      return "";
  }
}

std::string as_string(const Bytes& bytes) {
  return {bytes.begin(), bytes.end()};
}

/// Opcodes of an OrderedDict with these tensors; storage i has key i.
std::string state_dict(const Tensors& tensors, bool is_legacy) {
  PickleWriter pickle;
  pickle.global("collections", "OrderedDict").raw(")R(");
  i64 number = 0;
  for (const auto& [name, tensor] : tensors) {
    const TorchView view{std::to_string(number++), element_count(tensor.spec.shape).value(), 0,
                         row_major(tensor.spec.shape)};
    pickle.text(name).raw(torch_tensor(tensor.spec, view, is_legacy));
  }
  return pickle.raw("u").finished();
}

/// A record's place, for the central directory.
struct Placed {
  const ZipPart* part;
  size_t header;
};

std::string sizes(size_t bytes, bool is_wide) {
  return is_wide ? std::string(8, '\xff') : little_endian(bytes, 4) + little_endian(bytes, 4);
}

std::string wide_extra(const std::vector<size_t>& numbers) {
  std::string extra = little_endian(1, 2) + little_endian(8 * numbers.size(), 2);
  for (const size_t number : numbers) extra += little_endian(number, 8);
  return extra;
}

/// CRC-32 of zip archives, one bit a step; 0 if the form has none.
std::string checksum(const ZipPart& part, const ZipForm& form) {
  if (!form.has_checksums) return std::string(4, '\0');
  std::uint32_t rest = 0xffffffff;
  for (const char byte : part.content) {
    rest ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) rest = (rest & 1) != 0 ? rest >> 1 ^ 0xedb88320 : rest >> 1;
  }
  return little_endian(~rest, 4);
}

void add_record(std::string& out, const ZipPart& part, const ZipForm& form) {
  const size_t bytes = part.content.size();
  const bool has_descriptor = form.has_descriptors && bytes > 0;
  std::string extra = form.has_wide_extents ? wide_extra({bytes, bytes}) : "";
  const size_t fixed = out.size() + 30 + part.name.size() + extra.size() + 4;
  const size_t padding = (form.alignment - fixed % form.alignment) % form.alignment;
  extra += "FB" + little_endian(padding, 2) + std::string(padding, 'Z');
  out += "PK\x03\x04" + std::string(2, '\0') + little_endian(has_descriptor ? 0x808 : 0x800, 2) +
         std::string(6, '\0') + (has_descriptor ? std::string(4, '\0') : checksum(part, form));
  out += sizes(has_descriptor ? 0 : bytes, form.has_wide_extents) +
         little_endian(part.name.size(), 2) + little_endian(extra.size(), 2) + part.name + extra +
         part.content;
  if (has_descriptor) {
    out += "PK\x07\x08" + checksum(part, form) +
           little_endian(bytes, form.has_wide_extents ? 8 : 4) +
           little_endian(bytes, form.has_wide_extents ? 8 : 4);
  }
}

std::string directory_entry(const Placed& record, const ZipForm& form) {
  const size_t bytes = record.part->content.size();
  const std::string extra = form.has_wide_extents ? wide_extra({bytes, bytes, record.header}) : "";
  const bool has_descriptor = form.has_descriptors && bytes > 0;
  return "PK\x01\x02" + std::string(4, '\0') + little_endian(has_descriptor ? 0x808 : 0x800, 2) +
         std::string(6, '\0') + checksum(*record.part, form) + sizes(bytes, form.has_wide_extents) +
         little_endian(record.part->name.size(), 2) + little_endian(extra.size(), 2) +
         std::string(10, '\0') +
         (form.has_wide_extents ? std::string(4, '\xff') : little_endian(record.header, 4)) +
         record.part->name + extra;
}

}  // namespace

PickleWriter& PickleWriter::raw(std::string_view opcodes) {
  opcodes_ += opcodes;
  return *this;
}

PickleWriter& PickleWriter::text(std::string_view text) {
  return raw("X" + little_endian(text.size(), 4)).raw(text);
}

PickleWriter& PickleWriter::integer(i64 number) {
  if (number >= 0 && number < 256) return raw("K" + little_endian(static_cast<size_t>(number), 1));
  const bool is_short = number >= std::numeric_limits<std::int32_t>::min() &&
                        number <= std::numeric_limits<std::int32_t>::max();
  const auto bits = static_cast<std::uint64_t>(number);
  return is_short ? raw("J" + little_endian(bits, 4)) : raw("\x8a\x08" + little_endian(bits, 8));
}

PickleWriter& PickleWriter::integers(const std::vector<i64>& tuple) {
  raw("(");
  for (const i64 number : tuple) integer(number);
  return raw("t");
}

PickleWriter& PickleWriter::global(std::string_view module, std::string_view name) {
  return raw(fmt::format("c{}\n{}\n", module, name));
}

std::string zip_archive(const std::vector<ZipPart>& parts, const ZipForm& form) {
  std::string out;
  std::vector<Placed> records;
  for (const ZipPart& part : parts) {
    records.push_back({&part, out.size()});
    add_record(out, part, form);
  }
  const size_t directory = out.size();
  for (const Placed& record : records) out += directory_entry(record, form);
  const size_t end = out.size();
  const std::string count = little_endian(parts.size(), 8);
  const std::string extent = little_endian(end - directory, 8);
  const std::string offset = little_endian(directory, 8);
  if (form.has_zip64_end) {
    out += "PK\x06\x06" + little_endian(44, 8) + std::string(12, '\0') + count + count + extent +
           offset;
    out += "PK\x06\x07" + std::string(4, '\0') + little_endian(end, 8) + little_endian(1, 4);
  }
  const bool says_see_there = form.has_wide_extents && form.has_zip64_end;
  const std::string full(4, '\xff');
  return out + "PK\x05\x06" + std::string(4, '\0') + count.substr(0, 2) + count.substr(0, 2) +
         (says_see_there ? full + full : extent.substr(0, 4) + offset.substr(0, 4)) +
         std::string(2, '\0');
}

std::vector<i64> row_major(const Shape& shape) {
  std::vector<i64> strides(shape.size(), 1);
  for (size_t axis = shape.size(); axis-- > 1;) {
    strides[axis - 1] = strides[axis] * std::max<i64>(shape[axis], 1);
  }
  return strides;
}

std::string torch_tensor(const TensorSpec& spec, const TorchView& view, bool is_legacy) {
  const std::string old = storage_class(spec.dtype);
  const i64 numel = old.empty() ? view.numel * bits(spec.dtype) / 8 : view.numel;
  PickleWriter pickle;
  pickle.global("torch._utils", old.empty() ? "_rebuild_tensor_v3" : "_rebuild_tensor_v2")
      .raw("((");
  pickle.text("storage");
  old.empty() ? pickle.global("torch.storage", "UntypedStorage") : pickle.global("torch", old);
  pickle.text(view.key).text("cpu").integer(numel).raw(is_legacy ? "NtQ" : "tQ");
  pickle.integer(view.offset).integers(spec.shape).integers(view.stride).raw("\x89");
  pickle.global("collections", "OrderedDict").raw(")R");
  if (old.empty()) pickle.global("torch", young_dtype(spec.dtype));
  return pickle.raw("tR").opcodes();
}

std::string torch_zip(const std::string& pickle,
                      const std::vector<std::pair<std::string, std::string>>& storages,
                      const ZipForm& form) {
  std::vector<ZipPart> parts = {{"archive/data.pkl", pickle}, {"archive/byteorder", "little"}};
  for (const auto& [key, bytes] : storages) parts.push_back({"archive/data/" + key, bytes});
  parts.push_back({"archive/version", "3\n"});
  return zip_archive(parts, form);
}

std::string torch_zip(const Tensors& tensors) {
  std::vector<std::pair<std::string, std::string>> storages;
  for (const auto& [name, tensor] : tensors) {
    storages.emplace_back(std::to_string(storages.size()), as_string(tensor.bytes));
  }
  return torch_zip(state_dict(tensors, false), storages);
}

std::string torch_legacy(const Tensors& tensors) {
  using namespace std::string_literals;
  std::string out = "\x80\x02\x8a\x0al\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."s;
  out += PickleWriter().integer(1001).finished();
  out += PickleWriter()
             .raw("}(")
             .text("protocol_version")
             .integer(1001)
             .text("little_endian")
             .raw("\x88u")
             .finished();
  out += state_dict(tensors, true);
  PickleWriter keys;
  keys.raw("](");
  for (size_t i = 0; i < tensors.size(); ++i) keys.text(std::to_string(i));
  out += keys.raw("e").finished();
  for (const auto& [name, tensor] : tensors) {
    const bool is_young = storage_class(tensor.spec.dtype).empty();
    const auto numel =
        is_young ? static_cast<i64>(tensor.bytes.size()) : element_count(tensor.spec.shape).value();
    out += little_endian(static_cast<std::uint64_t>(numel), 8) + as_string(tensor.bytes);
  }
  return out;
}

void write_torch_checkpoint(const std::string& folder, const Tensors& tensors, int files,
                            bool is_legacy) {
  fs::create_directories(folder);
  std::vector<Tensors> members(static_cast<size_t>(files));
  size_t next = 0;
  nlohmann::json index = {{"weight_map", nlohmann::json::object()}};
  i64 total = 0;
  const auto file_name = [files](size_t file) {
    return files == 1 ? "pytorch_model.bin"
                      : fmt::format("pytorch_model-{:05}-of-{:05}.bin", file + 1, files);
  };
  for (const auto& [name, tensor] : tensors) {
    const size_t file = next++ % members.size();
    members[file].emplace(name, tensor);
    index["weight_map"][name] = file_name(file);
    total += static_cast<i64>(tensor.bytes.size());
  }
  index["metadata"]["total_size"] = total;
  for (size_t file = 0; file < members.size(); ++file) {
    std::ofstream(fs::path(folder) / file_name(file), std::ios::binary)
        << (is_legacy ? torch_legacy(members[file]) : torch_zip(members[file]));
  }
  if (files > 1) std::ofstream(fs::path(folder) / "pytorch_model.bin.index.json") << index.dump();
}

}  // namespace shardtool::test
