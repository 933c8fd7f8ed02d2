#include "lib/api/planning/emit/emit.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tests/support/throws.h"

namespace shardtool::api {
namespace {

using nlohmann::json;

/// Tensors over a mesh, for other programs.
class Layouts {
 public:
  explicit Layouts(const std::string& mesh) : mesh_(mesh::parse_mesh(mesh)) {}

  Layouts& add(const std::string& name, Shape shape, std::vector<layout::AxisExpr> axes,
               Dtype dtype = Dtype::kBF16, std::vector<layout::IndexAxis> index = {}) {
    std::vector<layout::LayoutAxis> cut;
    for (layout::AxisExpr& axis : axes) cut.push_back({std::move(axis), 1, ""});
    specs_.push_back({name, dtype, shape});
    layouts_.push_back(
        std::make_shared<const layout::Layout>(mesh_, shape, std::move(cut), std::move(index)));
    return *this;
  }

  EmittedLayout emitted() const {
    EmittedLayout layout{mesh_, {}};
    for (size_t t = 0; t < specs_.size(); ++t)
      layout.tensors.push_back({specs_[t], {&layouts_[t]->holders(), layouts_[t]->ranks()}});
    return layout;
  }

 private:
  mesh::Mesh mesh_;
  std::vector<TensorSpec> specs_;
  std::vector<std::shared_ptr<const layout::Layout>> layouts_;
};

const mesh::Over kOverDp{{"dp"}};
const mesh::Over kOverTp{{"tp"}};
const mesh::Over kOverPp{{"pp"}};

json dtensor_of(const Layouts& layouts) {
  return json::parse(dtensor_json(layouts.emitted()));
}

TEST_CASE("DTensor: placements along every mesh axis, on the devices that hold the tensor") {
  Layouts layouts("pp=2,dp=2,tp=2");
  layouts.add("both", {8, 4}, {layout::split(8, {{"dp"}, {"tp"}}), layout::whole(4)});
  layouts.add("columns", {6, 5}, {layout::whole(6), layout::split(5, kOverTp)});
  layouts.add("layer 1", {8}, {layout::split(8, kOverDp)}, Dtype::kF8E4M3,
              {{"layers", layout::split(4, kOverPp), 3}});
  layouts.add("scalar", {}, {}, Dtype::kF32);
  const json document = dtensor_of(layouts);
  const json& tensors = document.at("tensors");
  CHECK(tensors.at("both").at("placements") == json{"Replicate()", "Shard(0)", "Shard(0)"});
  CHECK(tensors.at("columns").at("placements") == json{"Replicate()", "Replicate()", "Shard(1)"});
  CHECK(tensors.at("scalar").at("placements").size() == 3);
  const json& layer = tensors.at("layer 1");
  CHECK(layer.at("placements") == json{"Shard(0)", "Replicate()"});
  CHECK(layer.at("dtype") == "float8_e4m3fn");
  CHECK(layer.at("shape") == json::array({8}));
  const json& mesh = document.at("meshes").at(layer.at("mesh").get<size_t>());
  CHECK(mesh.at("ranks") == json::array({4, 5, 6, 7}));
  CHECK(mesh.at("shape") == json::array({2, 2}));
  CHECK(mesh.at("dim_names") == json::array({"dp", "tp"}));
}

TEST_CASE("DTensor: the ranks of a mesh with an order of devices are listed in it") {
  Layouts layouts("dp=2,tp=2:0,2,3,1");
  layouts.add("w", {8}, {layout::split(8, {{"dp"}, {"tp"}})});
  layouts.add("rows", {8}, {layout::split(8, kOverTp)});
  const json document = dtensor_of(layouts);
  CHECK(document.at("meshes").size() == 1);
  CHECK(document.at("meshes").at(0).at("ranks") == json::array({0, 2, 3, 1}));
  CHECK(document.at("tensors").at("w").at("placements") == json{"Shard(0)", "Shard(0)"});
  CHECK(document.at("tensors").at("rows").at("placements") == json{"Replicate()", "Shard(0)"});
}

TEST_CASE("nccl-m2n: ranks that do not have the parts in their order are refused") {
  Layouts from("tp=2:1,0");
  Layouts to("tp=2");
  for (Layouts* layouts : {&from, &to}) layouts->add("w", {8}, {layout::split(8, kOverTp)});
  CHECK_ERROR(kUnsupported, nccl_m2n_json(from.emitted(), to.emitted()));
}

TEST_CASE("DTensor: what Shard does not give every rank is refused") {
  const auto with = [](Shape shape, std::vector<layout::AxisExpr> axes,
                       Dtype dtype = Dtype::kBF16) {
    return dtensor_of(Layouts("dp=2,tp=4").add("w", std::move(shape), std::move(axes), dtype));
  };
  CHECK_ERROR(kUnsupported,
              with({5}, {layout::split(5, kOverTp)}));  // 2 1 1 1, and torch.chunk: 2 2 1
  CHECK_NOTHROW(with({5}, {layout::split(5, kOverTp, layout::kCeil)}));
  // DTensor cuts along the mesh axes in their order.
  CHECK_ERROR(kUnsupported, with({16}, {layout::split(16, {{"tp"}, {"dp"}})}));
  CHECK_ERROR(
      kUnsupported,
      with({24}, {layout::concat({layout::split(16, kOverTp), layout::split(8, kOverTp)})}));
  CHECK_ERROR(kUnsupported, with({8}, {layout::split(8, {{"tp", 1, 2}})}));  // KV heads in pairs
  CHECK_ERROR(kUnsupported,
              with({8, 8}, {layout::split(8, kOverTp), layout::whole(8)}, Dtype::kF4));
}

json m2n_of(const Layouts& from, const Layouts& to) {
  return json::parse(nccl_m2n_json(from.emitted(), to.emitted()));
}

TEST_CASE("nccl-m2n: two meshes, whose ranks follow each other") {
  Layouts from("tp=2");
  from.add("w", {8, 4}, {layout::split(8, kOverTp), layout::whole(4)});
  from.add("norm", {4}, {layout::whole(4)});
  Layouts to("dp=2,tp=4");
  to.add("w", {8, 4}, {layout::whole(8), layout::split(4, kOverTp)});
  to.add("norm", {4}, {layout::split(4, kOverDp)});
  const json document = m2n_of(from, to);
  CHECK(document.at("ranks") == json{{"src", 2}, {"dst", 8}});
  const json& w = document.at("tensors").at(0);
  CHECK(w.at("dtype") == "ncclBfloat16");
  CHECK(w.at("ndims") == 2);
  CHECK(w.at("src").at("localShape") == json::array({4, 4}));
  CHECK(w.at("src").at("mesh") == json{{"dims", {1, 2}}, {"startRank", 0}, {"placement", {-1, 0}}});
  CHECK(w.at("dst").at("localShape") == json::array({8, 1}));
  CHECK(w.at("dst").at("mesh") == json{{"dims", {2, 4}}, {"startRank", 2}, {"placement", {-1, 1}}});
  const json& norm = document.at("tensors").at(1);
  CHECK(norm.at("src").at("mesh") ==
        json{{"dims", {2, 1}}, {"startRank", 0}, {"placement", {-1, 0}}});
  CHECK(norm.at("dst").at("mesh") ==
        json{{"dims", {2, 4}}, {"startRank", 2}, {"placement", {0, -1}}});
}

TEST_CASE("nccl-m2n: unequal parts, cuts of two axes, four axes and fp4 are refused") {
  const auto with = [](const Shape& shape, std::vector<layout::AxisExpr> axes,
                       Dtype dtype = Dtype::kBF16) {
    std::vector<layout::AxisExpr> uncut;
    for (const i64 n : shape) uncut.push_back(layout::whole(n));
    return m2n_of(Layouts("tp=1").add("w", shape, uncut, dtype),
                  Layouts("dp=2,tp=2").add("w", shape, std::move(axes), dtype));
  };
  CHECK_NOTHROW(with({4, 4}, {layout::split(4, kOverTp), layout::whole(4)}));
  CHECK_ERROR(kUnsupported, with({5}, {layout::split(5, kOverTp)}));
  CHECK_ERROR(kUnsupported, with({4, 4}, {layout::split(4, kOverTp), layout::split(4, kOverDp)}));
  CHECK_ERROR(kUnsupported,
              with({8}, {layout::concat({layout::split(4, kOverTp), layout::split(4, kOverTp)})}));
  CHECK_ERROR(kUnsupported, with({2, 2, 2, 2}, {layout::whole(2), layout::whole(2),
                                                layout::whole(2), layout::whole(2)}));
  CHECK_ERROR(kUnsupported, with({}, {}));
  CHECK_ERROR(kUnsupported,
              with({4, 4}, {layout::split(4, kOverTp), layout::whole(4)}, Dtype::kF4));
}

TEST_CASE("mooncake: cuts, copies and owners, with the identities that it computes") {
  Layouts layouts("pp=2,tp=2");
  layouts.add(
      "a", {8, 4},
      {layout::concat({layout::split(4, kOverTp), layout::split(4, kOverTp)}), layout::whole(4)});
  layouts.add("a.b", {5}, {layout::split(5, kOverTp)}, Dtype::kF32,
              {{"layers", layout::split(4, kOverPp), 3}});
  layouts.add("norm", {4}, {layout::whole(4)});
  const json placement = json::parse(mooncake_json(layouts.emitted(), "model"));
  const json& tensors = placement.at("tensors");
  const auto semantics = [&](size_t tensor) {
    std::string all;
    for (const json& axis : tensors.at(tensor).at("parallel_axes")) {
      all += axis.at("kind").get<std::string>() + " " + axis.at("semantics").get<std::string>() +
             (axis.contains("dim") ? axis.at("dim").dump() : "") + ", ";
    }
    return all;
  };
  CHECK(semantics(0) == "pp replicated, tp split0, ");
  CHECK(semantics(1) == "pp ownership, tp split0, ");
  CHECK(semantics(2) == "pp replicated, tp replicated, ");
  const json& first = placement.at("parts").at(0).at("fragments");
  REQUIRE(first.size() == 3);
  CHECK(first.at(0).at("global_offset") == json::array({0, 0}));
  CHECK(first.at(1).at("global_offset") == json::array({4, 0}));
  CHECK(first.at(1).at("local_shape") == json::array({2, 4}));
  CHECK(first.at(1).at("nbytes") == 16);
  // As mooncake.reshard (commit 3b5a59413) computed them of the same content.
  CHECK(placement.at("topology").at("topology_id") ==
        "sha256:a698baca3c1af2c5a521226be36fa0d2da506a23a09b6ee8ce7eb0223bad42ee");
  CHECK(placement.at("placement_id") ==
        "sha256:6dfec31304f2dc0aa03637a368cdcba18cca0b19ca80b0a4beeec19b9ef7917f");
}

TEST_CASE("mooncake: repeated parts, padding, fp4, scalars and other axes are refused") {
  const auto with = [](Shape shape, std::vector<layout::AxisExpr> axes, Dtype dtype = Dtype::kBF16,
                       const char* mesh = "ep=2,tp=4") {
    const Layouts layouts = Layouts(mesh).add("w", std::move(shape), std::move(axes), dtype);
    return mooncake_json(layouts.emitted(), "model");
  };
  CHECK_NOTHROW(with({4, 8}, {layout::split(4, {{"ep"}}), layout::split(8, kOverTp)}));
  CHECK_ERROR(kUnsupported, with({4, 8}, {layout::whole(4), layout::split(8, {{"ep"}})}));
  CHECK_ERROR(kUnsupported, with({8}, {layout::split(8, {{"ep"}, {"tp"}})}));
  CHECK_ERROR(kUnsupported, with({8}, {layout::split(8, {{"tp", 1, 2}})}));
  CHECK_ERROR(kUnsupported, with({6}, {layout::split(6, kOverTp, layout::padded(8))}));
  CHECK_ERROR(kUnsupported, with({3}, {layout::split(3, kOverTp)}));
  CHECK_ERROR(kUnsupported,
              with({8, 8}, {layout::split(8, kOverTp), layout::whole(8)}, Dtype::kF4));
  CHECK_ERROR(kUnsupported, with({}, {}));
  CHECK_ERROR(kUsage, with({4}, {layout::whole(4)}, Dtype::kBF16, "x=2"));
}

}  // namespace
}  // namespace shardtool::api
