#include "tests/validate/dequantised_ways.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "tests/validate/weight_reader.h"

namespace shardtool::test {

Bytes rounded(const std::vector<double>& values, Dtype to, kernels::CastCounts* counts) {
  Bytes bytes(values.size() * static_cast<size_t>(bits(to)) / 8);
  const auto counted =
      kernels::cast(Dtype::kF64, to, reinterpret_cast<const std::byte*>(values.data()),
                    std::ssize(values), reinterpret_cast<std::byte*>(bytes.data()));
  if (counts != nullptr) *counts += counted;
  return bytes;
}

std::string file_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::optional<Dtype> any_dtype(Random& random) {
  return one_of<std::optional<Dtype>>(random,
                                      {std::nullopt, Dtype::kBF16, Dtype::kF16, Dtype::kF32});
}

Ways::Ways(const QuantisedModel& model, i64 tp, std::optional<Dtype> dtype)
    : model_(model), tp_(tp), dtype_(dtype) {
  write_checkpoint(at("source"), model.tensors, 2);
  folder_.write("source/config.json", model.config);
}

api::WriteOptions Ways::write(const std::string& to, bool dequantize) const {
  api::WriteOptions options;
  options.output = at(to);
  options.dequantize = dequantize;
  if (dequantize) options.dtype = dtype_;
  options.resources.max_memory = 4 << 20;
  return options;
}

api::TransformReport Ways::merge(const std::string& from, const std::string& to,
                                 bool dequantize) const {
  api::MergeOptions options;
  options.sources = {at(from)};
  options.write = write(to, dequantize);
  return api::merge(options);
}

bool Ways::split(const std::string& from, const std::string& to, bool dequantize,
                 const std::string& straddle, const std::vector<i64>& ranks) const {
  api::SplitOptions options;
  options.source = at(from);
  options.mapping.mesh = mesh::Mesh({{"tp", tp_}});
  options.mapping.settings = {{"straddle", straddle}};
  options.ranks = ranks;
  options.write = write(to, dequantize);
  try {
    api::split(options);
    return true;
  } catch (const Error& refusal) {
    INFO(refusal.message());
    CHECK(refusal.code() != ErrorCode::kInternal);
    return false;
  }
}

void Ways::reshard(const std::string& from, const std::string& to, bool dequantize) const {
  api::ReshardOptions options;
  options.sources = {at(from)};
  options.to.mesh = mesh::Mesh({{"tp", tp_}});
  options.write = write(to, dequantize);
  api::reshard(options);
}

bool Ways::same(const std::string& a, const std::string& b, const std::string& prefix) const {
  const Tensors left = read_tensors(at(a), prefix);
  const Tensors right = read_tensors(at(b), prefix);
  return !left.empty() && std::ranges::equal(left, right, [](const auto& x, const auto& y) {
    return x.first == y.first && x.second.spec.dtype == y.second.spec.dtype &&
           x.second.spec.shape == y.second.spec.shape && x.second.bytes == y.second.bytes;
  });
}

bool Ways::same_shards(const std::string& a, const std::string& b) const {
  for (i64 rank = 0; rank < tp_; ++rank) {
    if (!same(a, b, fmt::format("model-rank-{}-", rank))) return false;
  }
  return true;
}

api::DiffReport Ways::diff(const std::string& a, const std::string& b) const {
  api::DiffOptions options;
  options.a = at(a);
  options.b = at(b);
  options.values = true;
  return api::diff(options);
}

format::Manifest Ways::manifest(const std::string& output) const {
  const std::string path = at(output) + "/manifest.json";
  return format::parse_manifest(file_text(path), path);
}

std::string Ways::change(const std::string& output, const std::string& end) const {
  const format::Manifest found = manifest(output);
  for (const format::TensorRecord& record : found.tensors) {
    if (!record.name.ends_with(end)) continue;
    const format::ShardRecord& shard = record.shards.front();
    const std::string path = at(output) + "/" + found.files[static_cast<size_t>(shard.file)].name;
    flip_bits(path, shard.offset);
    return record.name;
  }
  return {};
}

void Ways::check_values(const std::string& output, const api::TransformReport& report) const {
  const Tensors expected = read_weights(model_);
  const Tensors found = read_tensors(at(output), "model");
  const Dtype to = report.dequantized->to;
  kernels::CastCounts counts;
  for (const auto& [name, tensor] : expected) {
    CAPTURE(name);
    REQUIRE(found.contains(name));
    CHECK(found.at(name).spec.shape == tensor.spec.shape);
    CHECK(found.at(name).spec.dtype == to);
    CHECK(found.at(name).bytes == rounded(doubles_of(tensor), to, &counts));
  }
  CHECK(report.dequantized->weights == std::ssize(expected));
  CHECK(report.dequantized->counts == counts);
  CHECK(file_text(at(output) + "/config.json").find("quantization_config") == std::string::npos);
}

}  // namespace shardtool::test
