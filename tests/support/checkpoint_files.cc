#include "tests/support/checkpoint_files.h"

#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

namespace shardtool::test {
namespace {

namespace fs = std::filesystem;

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// A minimal safetensors writer: length, JSON, data.
std::string safetensors_file(const std::vector<const Tensor*>& tensors) {
  nlohmann::json header = nlohmann::json::object();
  std::string data;
  for (const Tensor* tensor : tensors) {
    const size_t begin = data.size();
    data.append(tensor->bytes.begin(), tensor->bytes.end());
    header[tensor->spec.name] = {{"dtype", std::string(to_string(tensor->spec.dtype))},
                                 {"shape", tensor->spec.shape},
                                 {"data_offsets", {begin, data.size()}}};
  }
  const std::string json = header.dump();
  std::string length(8, '\0');
  for (size_t i = 0; i < 8; ++i) length[i] = static_cast<char>(json.size() >> (8 * i));
  return length + json + data;
}

void add_file(Tensors& into, const std::string& content) {
  size_t length = 0;
  for (size_t i = 8; i-- > 0;) length = length << 8 | static_cast<unsigned char>(content[i]);
  const auto header = nlohmann::json::parse(content.substr(8, length));
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    const auto begin = entry["data_offsets"][0].get<size_t>();
    const auto end = entry["data_offsets"][1].get<size_t>();
    const std::string bytes = content.substr(8 + length + begin, end - begin);
    into[name] = {
        {name, *parse_dtype(entry["dtype"].get<std::string>()), entry["shape"].get<Shape>()},
        Bytes(bytes.begin(), bytes.end())};
  }
}

}  // namespace

Tensor numbered_tensor(const std::string& name, Dtype dtype, const Shape& shape) {
  return {{name, dtype, shape}, reference::numbered(element_count(shape).value(), bits(dtype))};
}

Tensor distinct_tensor(const TensorSpec& spec) {
  const i64 size = element_count(spec.shape).value() * bits(spec.dtype) / 8;
  Tensor tensor{spec, Bytes(static_cast<size_t>(size))};
  std::uint64_t state = 14695981039346656037ULL;  // FNV-1a of the name, then a linear sequence
  for (const char c : spec.name) state = (state ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  for (std::uint8_t& byte : tensor.bytes) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    byte = static_cast<std::uint8_t>(state >> 56);
  }
  return tensor;
}

void write_checkpoint(const std::string& folder, const Tensors& tensors, int files) {
  fs::create_directories(folder);
  std::vector<std::vector<const Tensor*>> members(static_cast<size_t>(files));
  size_t next = 0;
  for (const auto& [name, tensor] : tensors) members[next++ % members.size()].push_back(&tensor);
  nlohmann::json index = {{"metadata", {{"total_size", 0}}},
                          {"weight_map", nlohmann::json::object()}};
  i64 total = 0;
  for (size_t f = 0; f < members.size(); ++f) {
    const std::string name = files == 1
                                 ? "model.safetensors"
                                 : fmt::format("model-{:05}-of-{:05}.safetensors", f + 1, files);
    std::ofstream(fs::path(folder) / name, std::ios::binary) << safetensors_file(members[f]);
    for (const Tensor* tensor : members[f]) {
      index["weight_map"][tensor->spec.name] = name;
      total += static_cast<i64>(tensor->bytes.size());
    }
  }
  index["metadata"]["total_size"] = total;
  if (files > 1) std::ofstream(fs::path(folder) / "model.safetensors.index.json") << index.dump();
}

Tensors read_tensors(const std::string& folder, const std::string& prefix) {
  Tensors tensors;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename();
    if (entry.path().extension() != ".safetensors" || name.rfind(prefix, 0) != 0) continue;
    add_file(tensors, read_file(entry.path()));
  }
  return tensors;
}

void flip_bit_of_last_shard(const std::string& folder, const std::string& tensor) {
  std::ifstream in(folder + "/manifest.json");
  const nlohmann::json manifest = nlohmann::json::parse(in);
  const nlohmann::json& shard = manifest["tensors"][tensor]["shards"].back();
  const auto& name = manifest["files"][shard["file"].get<size_t>()]["name"];
  const auto at = shard["offset"].get<std::streamoff>() + shard["bytes"].get<std::streamoff>() / 2;
  flip_bits(folder + "/" + name.get<std::string>(), at, 0x10);
}

std::map<std::string, std::string> folder_content(const std::string& folder) {
  std::map<std::string, std::string> content;
  for (const auto& entry : fs::directory_iterator(folder)) {
    content[entry.path().filename()] = read_file(entry.path());
  }
  return content;
}

}  // namespace shardtool::test
