// The stages of a pipeline that run the layers outside the blocks, which all stages have.
#include <doctest/doctest.h>

#include <map>
#include <string>

#include "lib/mapping/presets.h"
#include "lib/mapping/resolve/resolve.h"
#include "lib/model/flow/handoff.h"
#include "lib/model/graph/graph_list.h"
#include "lib/model/memory_facts.h"
#include "tests/model/published.h"
#include "tests/presets/fixture.h"

using namespace shardtool;

namespace {

using Ranks = std::vector<i64>;

struct Running {
  std::map<std::string, Ranks> devices;  ///< by layer
  i64 stages = 0;
};

Running running_of(const std::string& family, const std::string& mesh) {
  const mapping::Fixture& f = mapping::fixture(family);
  std::string why_not;
  const auto bound = model::bind_model(model::find_graph(f.config, why_not), f.config, f.tensors);
  mapping::ResolveOptions options;
  options.mesh = mesh::parse_mesh(mesh);
  const auto resolution = resolve(mapping::load_preset(f.preset), f.tensors, &f.config, options);
  const auto layouts = model::layouts_of(resolution, f.tensors.size());
  const auto devices = model::running_devices(bound, layouts);
  REQUIRE(devices.size() == bound.layers.size());
  Running found;
  for (size_t i = 0; i < devices.size(); ++i) found.devices[name_of(bound.layers[i])] = devices[i];
  found.stages = model::pipeline_stages(bound, devices);
  return found;
}

std::map<std::string, Ranks> running(const std::string& family, const std::string& mesh) {
  return running_of(family, mesh).devices;
}

}  // namespace

TEST_CASE("the first stage runs the embeddings, and the last one the head") {
  const auto llama = running("llama", "pp=2,tp=2");
  CHECK(llama.at("start") == Ranks{0, 1});
  CHECK(llama.at("end") == Ranks{2, 3});
  // A decoder begins at the first stage again.
  const auto t5 = running("t5", "pp=2");
  for (const auto& [name, devices] : t5) CHECK_MESSAGE(devices.size() == 1, name);
  CHECK(t5.at("encoder start") == Ranks{0});
  CHECK(t5.at("decoder start") == Ranks{0});
  CHECK(t5.at("end") == Ranks{1});
  CHECK(running("llama", "tp=2").at("end") == Ranks{0, 1});
}

TEST_CASE("an encoder and a decoder over the same devices have the same pipeline stages") {
  CHECK(running_of("t5", "pp=2").stages == 2);
  CHECK(running_of("t5", "tp=2").stages == 1);
  CHECK(running_of("llama", "pp=2,tp=2").stages == 2);
  CHECK(running_of("mixtral", "ep=2,tp=2").stages == 1);
}
