#include "tests/check/broken_checkpoints.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <stdexcept>

#include "lib/base/dtype.h"
#include "tests/support/safetensors_text.h"

namespace shardtool::test {

namespace fs = std::filesystem;

api::CheckOptions options_for(std::string source) {
  api::CheckOptions options;
  options.sources = {std::move(source)};
  return options;
}

api::CheckOptions reading(api::CheckOptions options) {
  options.data = check::DataSubset{};
  return options;
}

std::string write_tensors(const TempFolder& folder, const std::string& name,
                          const std::vector<WrittenTensor>& tensors) {
  std::string json = R"({"__metadata__":{"format":"pt"})";
  i64 end = 0;
  for (const WrittenTensor& tensor : tensors) {
    const i64 begin = end;
    end += byte_size(parse_dtype(tensor.dtype).value(), tensor.shape).value();
    json += fmt::format(R"(,"{}":{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                        tensor.name, tensor.dtype, fmt::join(tensor.shape, ","), begin, end);
  }
  json += "}";
  json.resize((json.size() + 7) / 8 * 8, ' ');
  std::string data(static_cast<size_t>(end), '\0');
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<char>(1 + i % 100);
  return folder.write(name, safetensors_bytes(json, data));
}

std::string copy_sample(const TempFolder& folder) {
  const std::string to = folder / "model";
  fs::copy(SHARDTOOL_SAMPLE, to, fs::copy_options::recursive);
  return to;
}

std::string split_sample(const TempFolder& folder, const std::vector<i64>& ranks) {
  api::SplitOptions options;
  options.source = SHARDTOOL_SAMPLE;
  options.mapping.preset = "llama";
  options.mapping.mesh = mesh::parse_mesh("tp=2");
  options.ranks = ranks;
  options.write.output = folder / fmt::format("tp2{}", fmt::join(ranks, ""));
  api::split(options);
  return options.write.output;
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

void edit(const std::string& path, const std::string& from, const std::string& to) {
  std::string text = read_file(path);
  const size_t at = text.find(from);
  if (at == std::string::npos) throw std::runtime_error("no '" + from + "' in " + path);
  text.replace(at, from.size(), to);
  std::ofstream(path, std::ios::binary) << text;
}

void drop_digest(const std::string& output, const std::string& tensor) {
  const std::string path = output + "/manifest.json";
  const std::string text = read_file(path);
  const size_t entry = text.find("\"" + tensor + "\":{");
  const size_t digest = text.find(",\"digest\":\"", entry);
  if (entry == std::string::npos || digest == std::string::npos) {
    throw std::runtime_error("no digest of " + tensor);
  }
  constexpr size_t kBytes = 28;  // ,"digest":"0123456789abcdef"
  std::ofstream(path, std::ios::binary) << std::string(text).erase(digest, kBytes);
}

void mark_unread(const std::string& output, const std::string& tensor) {
  const std::string path = output + "/manifest.json";
  const std::string text = read_file(path);
  const size_t begin = text.find("\"" + tensor + "\":{");
  if (begin == std::string::npos) throw std::runtime_error("no tensor " + tensor);
  const size_t end = text.find('\n', begin);
  std::string entry =
      std::regex_replace(text.substr(begin, end - begin), std::regex(R"(,"xxh3":"[0-9a-f]*")"), "");
  entry = std::regex_replace(entry, std::regex(R"(,"digest":)"), R"(,"unread":true,"digest":)");
  std::ofstream(path, std::ios::binary) << text.substr(0, begin) << entry << text.substr(end);
}

i64 count_of(const api::CheckReport& report, check::CheckRule rule) {
  for (const check::RuleCount& row : report.rules) {
    if (row.rule == rule) return row.count;
  }
  return 0;
}

}  // namespace shardtool::test
