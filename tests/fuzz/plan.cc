// The plan of a reshard: the object under "apply", in a document of this version under its seal.
#include "lib/api/plan.h"

#include <string>

#include "lib/api/planning/plan_file.h"
#include "tests/fuzz/property.h"
#include "tests/fuzz/targets.h"

namespace shardtool::fuzz {
namespace {

std::string document(std::string_view apply) {
  return api::sealed(
      R"({"format_version":"1.0","tool":{"name":"shardtool","version":")" SHARDTOOL_VERSION
      R"("},"command":"plan","apply":)" +
      std::string(apply));
}

/// Checks that an edit of any byte of a plan is rejected.
void refuses_edits(const std::string& text, std::string_view input) {
  std::string edited = text;
  edited[input.size() % edited.size()] ^= 1;
  holds(!accepted([&] { return api::parse_plan(edited, "plan.json"); }), "an edit was accepted");
}

}  // namespace

void plan(std::string_view input) {
  holds(!accepted([&] { return api::parse_plan(std::string(input), "plan.json"); }) ||
            input.find("\"seal\":\"") != input.npos,
        "a plan without a seal was accepted");
  const std::string text = document(input);
  const auto recipe = accepted([&] { return api::parse_plan(text, "plan.json"); });
  if (!recipe) return;
  holds(recipe->node_size >= 1, "nodes without devices");
  holds(recipe->bytes_moved >= 0 && recipe->bytes_kept >= 0 && recipe->transfers >= 0,
        "a negative count was accepted");
  for (const auto& file : recipe->files) holds(file.bytes >= 0, "a file of negative size");
  const std::string written = to_json(*recipe);
  holds(to_json(api::parse_plan(document(written), "again")) == written,
        "written and read again, the plan differs");
  refuses_edits(text, input);
}

}  // namespace shardtool::fuzz
