// Folders that --ranks wrote on several machines: together they are the model, if they are of one.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>

#include "lib/api/check.h"
#include "lib/api/transform.h"
#include "tests/api/model_files.h"
#include "tests/support/checkpoint_files.h"
#include "tests/support/generators.h"
#include "tests/support/throws.h"

namespace shardtool::api {
namespace {

using test::same_tensors;
using test::TempFolder;
using test::Tensors;

/// A Mixtral whose layers, experts and heads can be on different ranks.
struct Machines {
  TempFolder folder;
  Tensors whole;

  Machines() {
    const mapping::TinyModel model = mapping::tiny_mixtral();
    for (const TensorSpec& spec : model.tensors) {
      whole[spec.name] = test::numbered_tensor(spec.name, spec.dtype, spec.shape);
    }
    test::write_checkpoint(folder / "whole", whole);
    folder.write("whole/config.json", model.config);
  }
  std::string split(const std::string& name, const std::string& mesh, std::vector<i64> ranks,
                    const std::string& from = "whole", std::optional<Dtype> dtype = {}) const {
    SplitOptions options;
    options.source = folder / from;
    options.mapping.mesh = mesh::parse_mesh(mesh);
    options.ranks = std::move(ranks);
    options.write.output = folder / name;
    options.write.force = true;
    options.write.dtype = dtype;
    api::split(options);
    return options.write.output;
  }
  Tensors merged(const std::vector<std::string>& parts) const {
    MergeOptions options;
    options.sources = parts;
    options.write.output = folder / "merged";
    options.write.force = true;
    merge(options);
    return test::read_tensors(folder / "merged", "model");
  }
};

i64 errors(const std::vector<std::string>& parts) {
  CheckOptions options;
  options.sources = parts;
  return check(options).errors;
}

TEST_CASE("parts of one split, its ranks dealt out to folders in any way, are the model together") {
  const Machines machines;
  CHECK(rc::check([&] {
    const std::string mesh = *rc::gen::element<std::string>("pp=2", "ep=4", "pp=2,tp=2",
                                                            "dp=2,pp=2", "pp=2,ep=2", "tp=2");
    const i64 devices = mesh::parse_mesh(mesh).size();
    std::vector<std::vector<i64>> ranks(static_cast<size_t>(*gen::between(1, devices)));
    for (i64 rank = 0; rank < devices; ++rank) {
      ranks[static_cast<size_t>(*gen::between(0, std::ssize(ranks) - 1))].push_back(rank);
    }
    std::vector<std::string> parts;
    for (const auto& chosen : ranks) {
      if (chosen.empty()) continue;
      parts.push_back(machines.split("part" + std::to_string(parts.size()), mesh, chosen));
    }
    RC_ASSERT(same_tensors(machines.merged(parts), machines.whole));
    RC_ASSERT(errors(parts) == 0);
    ReshardOptions options;
    options.sources = parts;
    options.to.mesh = mesh::parse_mesh("tp=2");
    options.write.output = machines.folder / "resharded";
    options.write.force = true;
    reshard(options);
    RC_ASSERT(test::folder_content(machines.folder / "resharded") ==
              test::folder_content(machines.split("expected", "tp=2", {})));
  }));
}

TEST_CASE("parts join whose source was read from another place, or by way of another layout") {
  const Machines machines;
  std::filesystem::copy(machines.folder / "whole", machines.folder / "copied");
  std::filesystem::rename(machines.folder / "copied/model.safetensors",
                          machines.folder / "copied/renamed.safetensors");
  const std::string first = machines.split("first", "pp=2", {0});
  const std::string second = machines.split("second", "pp=2", {1}, "copied");
  CHECK(same_tensors(machines.merged({first, second}), machines.whole));
  machines.split("between", "tp=2", {});
  ReshardOptions options;
  options.sources = {machines.folder / "between"};
  options.to.mesh = mesh::parse_mesh("pp=2");
  options.ranks = {1};
  options.write.output = machines.folder / "third";
  reshard(options);
  CHECK(same_tensors(machines.merged({first, machines.folder / "third"}), machines.whole));
}

TEST_CASE("folders that lack tensors of the split are no model, however many there are") {
  const Machines machines;
  for (const std::string mesh : {"ep=4", "pp=2,ep=2"}) {
    std::vector<std::string> parts;
    for (i64 rank = 0; rank < 4; ++rank) {
      parts.push_back(machines.split("part" + std::to_string(rank), mesh, {rank}));
    }
    CHECK_ERROR(kCoverage, machines.merged({parts.begin() + 1, parts.end()}));
    CHECK_ERROR(kCoverage, machines.merged({parts.front()}));
    CHECK(same_tensors(machines.merged(parts), machines.whole));
  }
}

TEST_CASE("a stage can be resharded alone for some ranks, and lacks the others' tensors still") {
  const Machines machines;
  ReshardOptions options;
  options.sources = {machines.split("stage0", "pp=2", {0})};
  options.to.mesh = mesh::parse_mesh("tp=2");
  options.write.output = machines.folder / "all";
  CHECK_ERROR(kCoverage, reshard(options));
  options.ranks = {0};
  options.write.output = machines.folder / "rank0";
  reshard(options);
  options.ranks = {1};
  options.write.output = machines.folder / "rank1";
  reshard(options);
  CHECK_ERROR(kCoverage, machines.merged({machines.folder / "rank0", options.write.output}));
}

TEST_CASE("a part of another checkpoint is refused, and check says so") {
  const Machines machines;
  Tensors other = machines.whole;
  for (auto& [name, tensor] : other) {
    if (tensor.spec.shape.size() > 1) std::ranges::reverse(tensor.bytes);  // norms stay equal
  }
  test::write_checkpoint(machines.folder / "other", other, 2);
  std::filesystem::copy(machines.folder / "whole/config.json",
                        machines.folder / "other/config.json");
  for (const std::string mesh : {"tp=2", "pp=2", "ep=2"}) {
    const std::string first = machines.split("first", mesh, {0});
    const std::string second = machines.split("second", mesh, {1}, "other");
    CHECK_ERROR(kManifestInvalid, machines.merged({first, second}));
    CHECK(errors({first, second}) > 0);
    // The help works.
    const std::string again = machines.split("second", mesh, {1});
    CHECK(same_tensors(machines.merged({first, again}), machines.whole));
  }
}

TEST_CASE("parts whose values were cast on different ways are refused") {
  const Machines machines;
  machines.split("rounded", "tp=2", {}, "whole", Dtype::kF16);
  for (const std::string mesh : {"tp=2", "pp=2", "ep=2"}) {
    const std::string first = machines.split("first", mesh, {0}, "whole", Dtype::kF32);
    const std::string as_stored = machines.split("second", mesh, {1});
    CHECK_ERROR(kManifestInvalid, machines.merged({first, as_stored}));
    ReshardOptions options;
    options.sources = {machines.folder / "rounded"};
    options.to.mesh = mesh::parse_mesh(mesh);
    options.ranks = {1};
    options.write.output = machines.folder / "by_f16";
    options.write.force = true;
    options.write.dtype = Dtype::kF32;
    reshard(options);
    CHECK_ERROR(kManifestInvalid, machines.merged({first, machines.folder / "by_f16"}));
    const std::string alike = machines.split("second", mesh, {1}, "whole", Dtype::kF32);
    CHECK(machines.merged({first, alike}).size() == machines.whole.size());
  }
}

}  // namespace
}  // namespace shardtool::api
