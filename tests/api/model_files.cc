#include "tests/api/model_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace shardtool::test {
namespace {

Tensors tensors_of(const mapping::TinyModel& model) {
  Tensors tensors;
  for (const TensorSpec& spec : model.tensors) tensors[spec.name] = distinct_tensor(spec);
  return tensors;
}

}  // namespace

ModelFiles::ModelFiles(const mapping::TinyModel& model)
    : ModelFiles(tensors_of(model), model.config) {}

ModelFiles::ModelFiles(Tensors tensors, const std::string& config) : whole_(std::move(tensors)) {
  write_checkpoint(folder_ / "whole", whole_, 2);
  folder_.write("whole/config.json", config);
}

void ModelFiles::extend(const std::string& preset, const std::string& axes,
                        const std::string& more) {
  mapping_ =
      folder_.write("mapping.json",
                    fmt::format(R"({{"version": 1, "extends": ["preset:{}"], "axes": {{{}}}{}{}}})",
                                preset, axes, more.empty() ? "" : ", ", more));
}

api::MappingChoice ModelFiles::choice(const std::string& mesh) const {
  api::MappingChoice choice;
  choice.path = mapping_;
  choice.mesh = mesh::parse_mesh(mesh);
  return choice;
}

std::string ModelFiles::split(const std::string& name, const std::string& mesh) const {
  api::SplitOptions options;
  options.source = folder_ / "whole";
  options.mapping = choice(mesh);
  options.write.output = folder_ / name;
  api::split(options);
  return options.write.output;
}

api::TransformReport ModelFiles::merge(const std::string& parts) const {
  api::MergeOptions options;
  options.sources = {parts};
  options.write.output = parts + "-merged";
  return api::merge(options);
}

Tensors ModelFiles::merged(const std::string& parts) const {
  merge(parts);
  return read_tensors(parts + "-merged", "model");
}

std::string ModelFiles::reshard(const std::string& parts, const std::string& mesh) const {
  api::ReshardOptions options;
  options.sources = {parts};
  options.to = choice(mesh);
  options.write.output = parts + "-resharded";
  api::reshard(options);
  return options.write.output;
}

Tensors shards(const std::string& parts, i64 rank) {
  return read_tensors(parts, fmt::format("model-rank-{}-", rank));
}

bool same_tensors(const Tensors& a, const Tensors& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.first == y.first && x.second.spec.dtype == y.second.spec.dtype &&
           x.second.spec.shape == y.second.spec.shape && x.second.bytes == y.second.bytes;
  });
}

Bytes rows(const Tensor& tensor, const std::vector<i64>& numbers) {
  const size_t row = tensor.bytes.size() / static_cast<size_t>(tensor.spec.shape[0]);
  Bytes picked;
  for (const i64 number : numbers) {
    const auto begin = tensor.bytes.begin() + static_cast<std::ptrdiff_t>(row) * number;
    picked.insert(picked.end(), begin, begin + static_cast<std::ptrdiff_t>(row));
  }
  return picked;
}

}  // namespace shardtool::test
