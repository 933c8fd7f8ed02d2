#include "tests/api/quantised_weights.h"

#include <doctest/doctest.h>

#include "lib/api/check.h"
#include "lib/api/diff.h"

namespace shardtool::api {

Quantised::Quantised(const Tensors& tensors, const std::string& quantization,
                     const std::string& dims, i64 tp, const std::string& straddle)
    : tensors_(tensors) {
  test::write_checkpoint(folder_ / "whole", tensors);
  folder_.write("whole/config.json", R"({"quantization_config": )" + quantization + "}");
  splitting_.source = folder_ / "whole";
  splitting_.mapping.path = folder_.write(
      "mapping.json", fmt::format(R"({{"version": 1, "mesh": [{{"axis": "tp", "size": {}}}],
        "axes": {{"x": "tp"}}, "rules": [{{"match": "**", "dims": [{}]}}]}})",
                                  tp, dims));
  splitting_.mapping.settings = {{"straddle", straddle}};
  splitting_.write.output = folder_ / "parts";
  report_ = split(splitting_);
  check_has_no_findings();
}

void Quantised::check_has_no_findings() const {
  CheckOptions options;
  options.sources = {folder_ / "parts"};
  options.data = shardtool::check::DataSubset{};
  for (const auto& finding : api::check(options).findings) {
    if (finding.severity < shardtool::check::Severity::kWarning) continue;
    FAIL_CHECK(shardtool::check::rule_info(finding.rule).id << " " << finding.tensor << ": "
                                                            << finding.message);
  }
}

void Quantised::check_round_trip() const {
  MergeOptions merging;
  merging.sources = {parts()};
  merging.write.output = folder_ / "merged";
  merge(merging);
  const Tensors merged = test::read_tensors(folder_ / "merged", "model");
  REQUIRE(merged.size() == tensors_.size());
  for (const auto& [name, tensor] : tensors_) {
    CAPTURE(name);
    REQUIRE(merged.at(name).spec.shape == tensor.spec.shape);
    REQUIRE(merged.at(name).bytes == tensor.bytes);
  }
  DiffOptions comparing;
  comparing.a = folder_ / "whole";
  comparing.b = parts();
  CHECK(diff(comparing).equal);
}

void Quantised::check_complete(std::vector<i64> ranks) const {
  SplitOptions again = splitting_;
  again.ranks = std::move(ranks);
  again.write.output = folder_ / "again";
  again.write.force = true;
  split(again);
  again.write.force = false;
  again.write.resume = true;
  CHECK(split(again).was_complete);
}

void Quantised::check_reshard(i64 tp) const {
  WriteOptions write;
  write.output = folder_ / "resharded";
  MappingChoice to;
  to.mesh = mesh::parse_mesh(fmt::format("tp={}", tp));
  reshard({{parts()}, to, {}, true, write});
  SplitOptions direct;
  direct.source = folder_ / "whole";
  direct.mapping.path = folder_ / "mapping.json";
  direct.mapping.mesh = to.mesh;
  direct.write.output = folder_ / "direct";
  split(direct);
  for (i64 rank = 0; rank < tp; ++rank) {
    const std::string prefix = fmt::format("model-rank-{}-", rank);
    const Tensors a = test::read_tensors(folder_ / "resharded", prefix);
    const Tensors b = test::read_tensors(folder_ / "direct", prefix);
    for (const auto& [name, tensor] : b) {
      CAPTURE(name);
      REQUIRE(a.at(name).bytes == tensor.bytes);
    }
  }
}

}  // namespace shardtool::api
