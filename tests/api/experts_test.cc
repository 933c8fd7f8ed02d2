// Experts on meshes of every kind, as bytes: by name and as a dimension, on one device or several.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <set>

#include "shardtool/api/transform.h"
#include "tests/mapping/models.h"
#include "tests/support/checkpoint_files.h"
#include "tests/support/throws.h"

namespace shardtool::api {
namespace {

using test::TempFolder;
using test::Tensors;

constexpr auto kNamed = "model.layers.0.block_sparse_moe.experts.{}.{}.weight";
constexpr auto kUp = "model.layers.0.mlp.experts.gate_up_proj";
constexpr auto kDown = "model.layers.0.mlp.experts.down_proj";

/// Six experts over three devices; the busy ones, 0 and 3, on more than one of them.
constexpr auto kRepeated = R"("experts": {"owners": [[0, 1, 2], [3, 0, 4], [5, 0, 3]]})";
const std::vector<std::vector<i64>> kOwned = {{0, 1, 2}, {3, 0, 4}, {5, 0, 3}};

/// A Mixtral of one layer and six experts, written into a folder, and mappings for it.
class Mixtral {
 public:
  explicit Mixtral(bool stacked) {
    mapping::TinyModel model = mapping::tiny_mixtral({.layers = 1, .mlp = 12}, 6);
    if (stacked) {
      std::erase_if(model.tensors, [](const TensorSpec& spec) {
        return spec.name.find("block_sparse_moe.experts") != std::string::npos;
      });
      model.tensors.push_back({kUp, Dtype::kBF16, {6, 24, 64}});
      model.tensors.push_back({kDown, Dtype::kBF16, {6, 64, 12}});
    }
    for (const TensorSpec& spec : model.tensors) whole_[spec.name] = test::distinct_tensor(spec);
    test::write_checkpoint(folder_ / "whole", whole_, 2);
    folder_.write("whole/config.json", model.config);
  }

  MappingChoice choice(const std::string& mesh, const std::string& axes) const {
    MappingChoice choice;
    choice.path = folder_.write(
        "mapping.json",
        fmt::format(R"({{"version": 1, "extends": ["preset:mixtral"], "axes": {{{}}}}})", axes));
    choice.mesh = mesh::parse_mesh(mesh);
    return choice;
  }
  std::string split(const std::string& name, const std::string& mesh,
                    const std::string& axes = "") const {
    SplitOptions options;
    options.source = folder_ / "whole";
    options.mapping = choice(mesh, axes);
    options.write.output = folder_ / name;
    api::split(options);
    return options.write.output;
  }
  TransformReport merge(const std::string& parts) const {
    MergeOptions options;
    options.sources = {parts};
    options.write.output = parts + "-merged";
    return api::merge(options);
  }
  std::string reshard(const std::string& parts, const std::string& mesh,
                      const std::string& axes = "") const {
    ReshardOptions options;
    options.sources = {parts};
    options.to = choice(mesh, axes);
    options.write.output = parts + "-resharded";
    api::reshard(options);
    return options.write.output;
  }
  const test::Tensor& tensor(const std::string& name) const { return whole_.at(name); }
  const Tensors& whole() const { return whole_; }

 private:
  TempFolder folder_;
  Tensors whole_;
};

Tensors shards(const std::string& parts, size_t rank) {
  return test::read_tensors(parts, fmt::format("model-rank-{}-", rank));
}

/// Whether two sets hold the same names with the same bytes.
bool same(const Tensors& a, const Tensors& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.first == y.first && x.second.spec.shape == y.second.spec.shape &&
           x.second.bytes == y.second.bytes;
  });
}

/// Rows of the first axis, in this order.
test::Bytes rows(const test::Tensor& tensor, const std::vector<i64>& numbers) {
  const size_t row = tensor.bytes.size() / static_cast<size_t>(tensor.spec.shape[0]);
  test::Bytes picked;
  for (const i64 number : numbers) {
    const auto begin = tensor.bytes.begin() + static_cast<std::ptrdiff_t>(row) * number;
    picked.insert(picked.end(), begin, begin + static_cast<std::ptrdiff_t>(row));
  }
  return picked;
}

TEST_CASE("experts by name on several devices: shards, merge and reshard keep every byte") {
  const Mixtral model(false);
  const std::string parts = model.split("ep", "ep=3", kRepeated);
  for (size_t rank = 0; rank < 3; ++rank) {
    const Tensors here = shards(parts, rank);
    const std::set<i64> owned(kOwned[rank].begin(), kOwned[rank].end());
    for (i64 e = 0; e < 6; ++e) {
      for (const std::string part : {"w1", "w2", "w3"}) {
        const std::string name = fmt::format(kNamed, e, part);
        CHECK(here.contains(name) == owned.contains(e));
        if (here.contains(name)) CHECK(here.at(name).bytes == model.tensor(name).bytes);
      }
    }
  }
  const TransformReport merged = model.merge(parts);
  CHECK(merged.replicas_compared >= 3 * 3);  // expert 0 twice more, expert 3 once, three each
  CHECK(same(test::read_tensors(parts + "-merged", "model"), model.whole()));
  CHECK(test::folder_content(model.reshard(parts, "tp=2")) ==
        test::folder_content(model.split("tp", "tp=2")));
}

TEST_CASE("experts as a dimension on several devices: rows in the order of the list") {
  const Mixtral model(true);
  const std::string parts = model.split("ep", "ep=3", kRepeated);
  for (size_t rank = 0; rank < 3; ++rank) {
    const Tensors here = shards(parts, rank);
    for (const char* name : {kUp, kDown}) {
      CHECK(here.at(name).spec.shape[0] == 3);
      CHECK(here.at(name).bytes == rows(model.tensor(name), kOwned[rank]));
    }
  }
  model.merge(parts);
  CHECK(same(test::read_tensors(parts + "-merged", "model"), model.whole()));
  CHECK(test::folder_content(model.reshard(parts, "ep=2,tp=2")) ==
        test::folder_content(model.split("ep-tp", "ep=2,tp=2")));
}

TEST_CASE("a repeated expert of which one copy differs is refused by name") {
  const Mixtral model(false);
  const std::string parts = model.split("ep", "ep=3", kRepeated);
  const std::string file = parts + "/model-rank-2-part-0.safetensors";
  std::string content = test::folder_content(parts).at("model-rank-2-part-0.safetensors");
  const test::Bytes& expert = model.tensor(fmt::format(kNamed, 3, "w2")).bytes;
  const size_t at = content.find(std::string(expert.begin(), expert.end()));
  REQUIRE(at != std::string::npos);
  content[at + 5] = static_cast<char>(content[at + 5] ^ 1);
  std::ofstream(file, std::ios::binary) << content;
  const auto e = testing::error_of([&] { return model.merge(parts); });
  REQUIRE(e);
  CHECK(e->code() == ErrorCode::kDataMismatch);
  CHECK(e->tensor_name() == fmt::format(kNamed, 3, "w2"));
}

TEST_CASE("reshard between tensor, expert and pipeline parallelism is the split, file for file") {
  struct Target {
    const char* mesh;
    const char* axes;
  };
  const std::vector<Target> targets = {
      {"tp=4", ""},
      {"ep=4", ""},
      {"ep=3", kRepeated},
      {"ep=2,tp=2", R"("experts": {"owners": "round_robin"})"},
      {"fsdp=2,tp=2", R"("embed": "fsdp", "expert_embed": "fsdp")"},
      {"dp=2,ep=2", ""}};
  for (const bool stacked : {false, true}) {
    CAPTURE(stacked);
    const Mixtral model(stacked);
    for (size_t from = 0; from < targets.size(); ++from) {
      const Target& a = targets[from];
      const Target& b = targets[(from + 1) % targets.size()];
      CAPTURE(a.mesh);
      CAPTURE(b.mesh);
      const std::string parts = model.split(fmt::format("from-{}", from), a.mesh, a.axes);
      CHECK(test::folder_content(model.reshard(parts, b.mesh, b.axes)) ==
            test::folder_content(model.split(fmt::format("to-{}", from), b.mesh, b.axes)));
    }
  }
}

}  // namespace
}  // namespace shardtool::api
