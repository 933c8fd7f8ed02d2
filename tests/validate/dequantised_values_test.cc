// validate --values compares the numbers of unpacked and cast shards with those of their reference.
#include <doctest/doctest.h>

#include <string>

#include "lib/api/transform.h"
#include "lib/api/validate.h"
#include "tests/validate/dequantised_ways.h"
#include "tests/validate/quantised_model.h"

namespace shardtool::test {
namespace {

TEST_CASE("validate --values proves shards against the quantised model, and finds a changed bit") {
  Random random(17);
  i64 proved = 0;
  for (const std::string& form : quantised_forms()) {
    CAPTURE(form);
    const QuantisedModel model = quantised_model(form, 2, random);
    const Ways ways(model, 2, any_dtype(random));
    if (!ways.split("source", "direct", true)) continue;
    ++proved;
    api::ValidateOptions options;
    options.sources = {ways.at("direct")};
    options.reference = ways.at("source");
    options.compares_values = true;
    options.resources.threads = 1;
    const api::ValidateReport report = api::validate(options);
    CAPTURE(report.faults.empty() ? "" : report.faults.front().diagnosis);
    CAPTURE(report.findings.empty() ? "" : report.findings.front().message);
    CHECK(report.passes());
    REQUIRE(report.bytes);
    CHECK(report.bytes->parts == report.parts);
    CHECK(report.bytes->differing == 0);
    const std::string weight =
        ways.change("direct", form == "mxfp4" ? "down_proj" : "o_proj.weight");
    CHECK_FALSE(weight.empty());
    const api::ValidateReport changed = api::validate(options);
    CHECK_FALSE(changed.passes());
  }
  CHECK(proved > 15);
}

TEST_CASE("validate --values casts the reference as the manifest records it") {
  Random random(19);
  const QuantisedModel model = quantised_model("gptq", 2, random);
  const Ways ways(model, 2, Dtype::kF32);
  ways.merge("source", "floats", true);
  api::SplitOptions options;
  options.source = ways.at("floats");
  options.mapping.mesh = mesh::Mesh({{"tp", 1}});
  options.write.output = ways.at("halves");
  options.write.dtype = Dtype::kF16;
  api::split(options);
  api::ValidateOptions proof;
  proof.sources = {ways.at("halves")};
  proof.reference = ways.at("floats");
  CHECK_FALSE(api::validate(proof).passes());
  proof.compares_values = true;
  const api::ValidateReport report = api::validate(proof);
  CHECK(report.passes());
  REQUIRE(report.bytes);
  CHECK(report.bytes->parts == report.parts);
  CHECK(report.bytes->differing == 0);
  // The codes lead to the same, by an unpacking and a cast.
  proof.reference = ways.at("source");
  CHECK(api::validate(proof).passes());
  CHECK(ways.diff("source", "halves").equal);
}

}  // namespace
}  // namespace shardtool::test
