#include "tests/golden/models.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "lib/base/tensor_spec.h"
#include "tests/presets/name_patterns.h"
#include "tests/support/numpy_random.h"
#include "tests/support/safetensors_text.h"
#include "tests/support/temp_folder.h"

namespace shardtool::golden {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

const fs::path kGolden = SHARDTOOL_SOURCE_DIR "/tests/golden";

/// CRC-32 as in zlib.
std::uint32_t crc32(std::string_view bytes) {
  std::uint32_t crc = ~std::uint32_t{0};
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? 0xedb88320 : 0);
  }
  return ~crc;
}

ordered_json description(const std::string& name) {
  std::ifstream file(kGolden / "models" / (name + ".json"));
  if (!file) throw std::invalid_argument("no golden model is called " + name);
  return ordered_json::parse(file);
}

/// Generates the tensors of one model.
class Weights {
 public:
  explicit Weights(std::string model) : model_(std::move(model)) {}

  /// Returns the bytes of a tensor; `regenerated` in weights.py computes the same.
  std::string bytes(const std::string& name, const ordered_json& tensor) {
    if (tensor.contains("values")) {
      return tensor.at("dtype") == "I64" ? listed<std::int64_t>(tensor) : listed<float>(tensor);
    }
    std::string all;
    if (!tensor.contains("parts")) append_part(tensor, name, tensor.at("shape"), all);
    for (const ordered_json& part : tensor.value("parts", ordered_json::array())) {
      Shape shape = tensor.at("shape");
      shape.front() = part.at("rows");
      append_part(part, name, shape, all);
    }
    return all;
  }

 private:
  struct Source {
    test::NumpyRandom random;
    std::vector<double> drawn;
  };

  template <class T>
  static void append(T value, std::string& bytes) {
    char raw[sizeof(T)];
    std::memcpy(raw, &value, sizeof(T));
    bytes.append(raw, sizeof(T));
  }

  template <class T>
  static std::string listed(const ordered_json& tensor) {
    std::string bytes;
    for (const ordered_json& value : tensor.at("values")) append(value.get<T>(), bytes);
    return bytes;
  }

  double normal(Source& source, i64 index) {
    while (std::ssize(source.drawn) <= index) source.drawn.push_back(source.random.normal());
    return source.drawn[static_cast<size_t>(index)];
  }

  void append_part(const ordered_json& part, const std::string& name, const Shape& shape,
                   std::string& bytes) {
    const std::string of = part.value("of", name);
    const std::uint32_t seed = crc32(model_ + "/" + of);
    Source& source = sources_.try_emplace(of, Source{test::NumpyRandom(seed), {}}).first->second;
    const double mean = part.value("mean", 0.0), gain = part.at("gain");
    const double root = std::sqrt(part.value("fan_in", 1.0));
    Shape strides(shape.size(), 1);
    for (size_t a = shape.size(); a-- > 1;) strides[a - 1] = strides[a] * shape[a];
    if (part.contains("strides")) strides = part.at("strides").get<Shape>();
    Shape at(shape.size(), 0);
    i64 index = part.value("start", i64{0});
    for (i64 left = element_count(shape).value(); left > 0; --left) {
      append(static_cast<float>(mean + gain * normal(source, index) / root), bytes);
      for (size_t a = shape.size(); a-- > 0;) {
        index += strides[a];
        if (++at[a] < shape[a]) break;
        index -= strides[a] * std::exchange(at[a], 0);
      }
    }
  }

  std::string model_;
  std::map<std::string, Source> sources_;
};

/// The tensors in the order of the safetensors library's files: by the width of their elements,
/// then by name. A name with {0,1} means several tensors.
using Tensors = std::map<std::pair<bool, std::string>, ordered_json>;
Tensors in_file_order(const ordered_json& described) {
  Tensors tensors;
  for (const auto& [pattern, says] : described.items()) {
    for (const std::string& number : test::numbers_of(pattern)) {
      ordered_json tensor = says;
      if (says.contains("of")) tensor["of"] = test::numbered(says.at("of"), number);
      const bool is_narrow = says.value("dtype", "F32") != "I64";
      tensors[{is_narrow, test::numbered(pattern, number)}] = std::move(tensor);
    }
  }
  return tensors;
}

/// The data of model.safetensors, and its header.
struct Content {
  ordered_json header = {{"__metadata__", {{"format", "pt"}}}};
  std::string data;
};

Content content(const std::string& name, const ordered_json& tensors) {
  Content made;
  Weights weights(name);
  for (const auto& [key, says] : in_file_order(tensors)) {
    const std::string& tensor = key.second;
    const size_t begin = made.data.size();
    made.data += weights.bytes(tensor, says);
    made.header[tensor] = {{"dtype", says.value("dtype", "F32")},
                           {"shape", says.at("shape")},
                           {"data_offsets", {begin, made.data.size()}}};
  }
  return made;
}

}  // namespace

const std::vector<std::string>& model_names() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(kGolden / "models"))
      names.push_back(entry.path().stem());
    std::sort(names.begin(), names.end());
    return names;
  }();
  return kNames;
}

void write_model(const std::string& name, const std::string& folder) {
  const ordered_json model = description(name);
  const Content made = content(name, model.at("tensors"));
  std::string header = made.header.dump();
  header.append((8 - header.size() % 8) % 8, ' ');
  fs::create_directories(folder);
  std::ofstream(folder + "/config.json") << model.at("config").dump(2) << '\n';
  std::ofstream(folder + "/model.safetensors", std::ios::binary)
      << test::safetensors_bytes(header, made.data);
}

const std::string& model_folder(const std::string& name) {
  static const test::TempFolder kScratch;
  static std::map<std::string, std::string> folders;
  const auto [entry, is_new] = folders.try_emplace(name, kScratch / name);
  if (is_new) write_model(name, entry->second);
  return entry->second;
}

std::string expected_file(const std::string& name) {
  return kGolden / "expected" / (name + ".safetensors");
}

std::string packed_model(const std::string& format) {
  return fs::path(SHARDTOOL_PACKED_MODELS) / format;
}

Checksums checksums(const std::string& name) {
  const ordered_json model = description(name);
  return {model.at("crc32"), crc32(content(name, model.at("tensors")).data)};
}

}  // namespace shardtool::golden
