// Files of torch.save are read like safetensors files: every command gives the same for both.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <rapidcheck.h>

#include <filesystem>

#include "lib/api/diff.h"
#include "lib/api/transform.h"
#include "tests/api/model_files.h"
#include "tests/support/generators.h"
#include "tests/support/throws.h"
#include "tests/support/torch_files.h"

namespace shardtool::api {
namespace {

using test::same_tensors;
using test::TempFolder;
using test::Tensors;

constexpr const char* kRowsAndColumns =
    R"({"version": 1, "unused_rule": "ignore", "mesh": [{"axis": "tp", "size": 2}],
  "rules": [{"match": "cut.*", "strategy": {"type": "axiswise", "axis": 0}},
            {"match": "whole.*", "strategy": "replicate"}]})";

Tensors random_tensors() {
  Tensors tensors;
  const i64 count = *gen::between(1, 6);
  for (i64 t = 0; t < count; ++t) {
    const Shape shape = *gen::shape();
    const std::string name = fmt::format("{}.{}", shape.empty() ? "whole" : "cut", t);
    const Dtype dtype = *rc::gen::element(Dtype::kBool, Dtype::kI64, Dtype::kBF16, Dtype::kF32,
                                          Dtype::kF8E4M3, Dtype::kF16, Dtype::kF64);
    tensors[name] = test::numbered_tensor(name, dtype, shape);
  }
  return tensors;
}

void split_to(const TempFolder& folder, const std::string& source, const std::string& output) {
  SplitOptions options;
  options.source = source;
  options.mapping.path = folder / "mapping.json";
  options.mapping.allow_empty_shards = true;
  options.write.output = output;
  split(options);
}

void merge_torch_to(const std::string& source, const std::string& output) {
  MergeOptions options;
  options.sources = {source};
  options.write.output = output;
  merge(options);
}

TEST_CASE("split of torch files is split of safetensors files, and merge gives the tensors back") {
  CHECK(rc::check([] {
    const TempFolder folder;
    const Tensors tensors = random_tensors();
    folder.write("mapping.json", kRowsAndColumns);
    test::write_checkpoint(folder / "safetensors", tensors);
    test::write_torch_checkpoint(folder / "torch", tensors,
                                 static_cast<int>(*gen::between(1, std::ssize(tensors))),
                                 *rc::gen::arbitrary<bool>());
    split_to(folder, folder / "safetensors", folder / "a");
    split_to(folder, folder / "torch", folder / "b");
    for (const char* rank : {"model-rank-0-", "model-rank-1-"}) {
      RC_ASSERT(same_tensors(test::read_tensors(folder / "a", rank),
                             test::read_tensors(folder / "b", rank)));
    }
    merge_torch_to(folder / "b", folder / "merged");
    RC_ASSERT(same_tensors(test::read_tensors(folder / "merged", "model"), tensors));
    RC_ASSERT(diff({.a = folder / "torch", .b = folder / "a", .resources = {}}).equal);
  }));
}

}  // namespace
}  // namespace shardtool::api
