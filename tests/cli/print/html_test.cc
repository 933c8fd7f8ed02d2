#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>

#include "cli/print/findings/findings.h"
#include "cli/print/html/html_writer.h"
#include "cli/print/html/pages.h"
#include "cli/print/json.h"
#include "cli/print/plan.h"
#include "cli/print/validate.h"
#include "cli/session.h"
#include "lib/api/check.h"
#include "lib/api/inspect.h"
#include "lib/api/plan.h"
#include "lib/api/planning/plan_diff.h"
#include "lib/api/transform.h"
#include "lib/api/validate.h"
#include "tests/cli/print/html_page.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

namespace shardtool::cli {
namespace {

using nlohmann::json;

api::PlanReport plan_for(const char* mesh, const char* to_mesh) {
  api::PlanOptions options;
  options.sources = {kTinyLlama};
  options.mapping.mesh = mesh::parse_mesh(mesh);
  options.mapping_is_given = true;
  if (to_mesh != nullptr) options.to_mesh = mesh::parse_mesh(to_mesh);
  options.workload.context = 64;
  options.device.bytes = 100'000;
  options.draws = true;
  return api::make_plan(options);
}

TEST_CASE("every number of a plan's page is that of its document") {
  for (const char* mesh : {"tp=1", "tp=2", "tp=8", "dp=2,tp=4"}) {
    for (const char* to : {static_cast<const char*>(nullptr), "tp=2", "tp=4"}) {
      const api::PlanReport report = plan_for(mesh, to);
      const std::string document = document_of("plan", report);
      const std::string page = html_page(document);
      CHECK(check_numbers(page) > 60);
      CHECK(island_of(page) == json::parse(document));
      CHECK(html_page(document) == page);
    }
  }
}

/// The page of the difference between two meshes, and its document.
struct DiffPage {
  std::string document;
  std::string page;
};

DiffPage page_of_diff(const api::PlanReport& before, const api::PlanReport& after) {
  const test::TempFolder folder;
  folder.write("a.html", html_page(document_of("plan", before)));
  folder.write("b.json", document_of("plan", after));
  const api::PlanDiff diff = api::diff_plans(folder / "a.html", folder / "b.json", true);
  DiffPage made{document_of("plan_diff", diff, diff.equal() ? "ok" : "findings"), ""};
  made.page = html_page(made.document);
  return made;
}

size_t times_in(const std::string& text, const std::string& word) {
  size_t count = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

TEST_CASE("every number of a page of two plans is that of its document") {
  const std::pair<const char*, const char*> kMeshes[] = {
      {"tp=2", "tp=4"}, {"tp=1", "dp=2,tp=4"}, {"pp=2", "pp=2,tp=2"}, {"tp=8", "pp=2,tp=4"}};
  for (const auto& [before, after] : kMeshes) {
    CAPTURE(before);
    const auto& [document, page] =
        page_of_diff(plan_for(before, nullptr), plan_for(after, nullptr));
    CHECK(check_numbers(page) > 100);
    CHECK(island_of(page) == json::parse(document));
    for (const char* heading : {"Memory of each device", "What is held elsewhere"})
      CHECK(page.find(heading) != std::string::npos);
    const json island = island_of(page);
    CHECK(page.find(fmt::format("{} values<", island.at("changes").size())) != std::string::npos);
    for (const auto& [side, mesh] : {std::pair("before", before), std::pair("after", after)}) {
      std::string words = mesh;
      if (const size_t comma = words.find(','); comma != std::string::npos)
        words.insert(comma + 1, " ");
      CHECK(times_in(page, fmt::format(">{}: {}<", side, words)) >= 5);
    }
  }
}

TEST_CASE("a page of two plans shows what of a reshard differs") {
  const auto& [document, page] = page_of_diff(plan_for("tp=2", "tp=4"), plan_for("tp=2", "tp=8"));
  CHECK(check_numbers(page) > 100);
  CHECK(page.find("What moves") != std::string::npos);
  CHECK(document.find("\"pairs\"") == std::string::npos);
}

TEST_CASE("a page of equal plans says so and draws nothing") {
  const auto& [document, page] = page_of_diff(plan_for("tp=2", nullptr), plan_for("tp=2", nullptr));
  CHECK(page.find("The plans are equal.") != std::string::npos);
  CHECK(page.find("viewBox") == std::string::npos);
}

TEST_CASE("a page of two plans draws only the rules that are held otherwise") {
  const auto& [document, page] =
      page_of_diff(plan_for("dp=2,tp=2", nullptr), plan_for("tp=2", nullptr));
  const size_t whole = page.find("Whole on every rank, before and after: ");
  REQUIRE(whole != std::string::npos);
  CHECK(page.find("#norms", whole) != std::string::npos);
  CHECK(page.substr(0, whole).find("#norms<") == std::string::npos);
  CHECK(page.find("Fits no longer") == std::string::npos);
}

TEST_CASE("plans that were edited are refused as plans") {
  const json document =
      json::parse(page_of_diff(plan_for("tp=2", nullptr), plan_for("tp=4", nullptr)).document);
  for (const char* place :
       {"/plans/a/source", "/plans/b/mesh", "/plans/a/devices", "/plans/b/devices/0/total_bytes",
        "/plans/b/devices/1/weights_by_class/mlp", "/plans/a/verdict/fullest_rank",
        "/plans/b/rules/0/example", "/plans/a/rules/2/example/shards/0/slices"}) {
    for (const json& other : {json(), json("text"), json::array(), json(-1.5)}) {
      CAPTURE(place);
      json edited = document;
      edited[json::json_pointer(place)] = other;
      try {
        check_numbers(html_page(edited.dump()));
      } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::kPlanInvalid);
      }
    }
  }
}

TEST_CASE("files without a plan are refused by their names") {
  const test::TempFolder folder;
  folder.write("plan.html", html_page(document_of("plan", plan_for("tp=2", nullptr))));
  api::CheckReport check;
  folder.write("check.html", html_page(document_of("check", check)));
  folder.write("bare.html", "<!DOCTYPE html><p>a page</p>");
  folder.write("rules.json", R"({"command": "plan", "rules": [{"tensors": 1}]})");
  folder.write("reshard.json", R"({"command": "plan", "reshard": [1]})");
  for (const char* name : {"check.html", "bare.html", "rules.json", "reshard.json"}) {
    CAPTURE(name);
    CHECK_ERROR(kPlanInvalid, api::diff_plans(folder / "plan.html", folder / name, true));
  }
}

TEST_CASE("bars of two plans are as long as their bytes on one scale") {
  const auto& [document, page] = page_of_diff(plan_for("tp=2", nullptr), plan_for("tp=4", nullptr));
  const std::regex bar(
      "<rect class=\"f[0-9]\" x=\"[^\"]*\" y=\"[^\"]*\" width=\"([^\"]*)\" height=\"18\" "
      "data-at=\"/plans/([ab])/devices/[^\"]*\" data-value=\"([0-9]*)\"");
  double scale = 0;
  std::map<std::string, int> bars;
  for (std::sregex_iterator it(page.begin(), page.end(), bar), last; it != last; ++it) {
    ++bars[(*it)[2]];
    const double width = std::stod((*it)[1]), bytes = std::stod((*it)[3]);
    if (width < 5) continue;
    if (scale > 0) CHECK(width / bytes == doctest::Approx(scale).epsilon(0.01));
    scale = width / bytes;
  }
  CHECK(bars.at("a") >= 4);
  CHECK(bars.at("a") == bars.at("b"));
}

TEST_CASE("the bars of a device are as long as its bytes") {
  const std::string page = html_page(document_of("plan", plan_for("tp=2", nullptr)));
  const std::regex bar(
      "<rect class=\"f[0-9]\" x=\"([^\"]*)\" y=\"22\" width=\"([^\"]*)\" height=\"18\" "
      "data-at=\"/devices/0/[^\"]*\" data-value=\"([0-9]*)\"");
  double end = -1, scale = 0;
  for (std::sregex_iterator it(page.begin(), page.end(), bar), last; it != last; ++it) {
    const double x = std::stod((*it)[1]), width = std::stod((*it)[2]), bytes = std::stod((*it)[3]);
    if (end >= 0) CHECK(x == doctest::Approx(end).epsilon(0.001));
    if (scale > 0 && width > 5) CHECK(width / bytes == doctest::Approx(scale).epsilon(0.01));
    if (width > 5) scale = width / bytes;
    end = x + width;
  }
  CHECK(end > 0);
}

TEST_CASE("the layers of a plan add up to the weights of its fullest device") {
  for (const char* mesh : {"tp=2", "dp=2,tp=4"}) {
    const api::MemoryReport memory = plan_for(mesh, nullptr).memory;
    const api::PlanDevice& fullest = memory.devices[memory.fullest];
    CHECK(memory.layers.size() == 4);
    for (size_t c = 0; c < memory.classes.size(); ++c) {
      i64 sum = 0;
      for (const api::LayerWeights& layer : memory.layers) sum += layer.by_class[c];
      CHECK(sum == fullest.by_class[c]);
    }
  }
}

TEST_CASE("the pairs of a reshard add up to what moves") {
  const api::PlanReport report = plan_for("tp=2", "tp=8");
  i64 sum = 0;
  for (const plan::Transfer& pair : report.drawings->pairs) sum += pair.bytes;
  CHECK(sum == report.reshard->bytes_moved);
  CHECK(report.drawings->pairs.size() == static_cast<size_t>(report.reshard->pairs));
}

TEST_CASE("a plan's page answers in one order, and says what its tables leave out") {
  const std::string page = html_page(document_of("plan", plan_for("tp=8", "dp=4,tp=2")));
  size_t at = 0;
  for (const char* heading : {"Memory of each device", "Who holds what", "What moves",
                              "Weights by layer", "Peak memory over the order of tensors"}) {
    CAPTURE(heading);
    at = page.find(fmt::format("<h2>{}</h2>", heading), at);
    REQUIRE(at != page.npos);
  }
  const size_t pairs = island_of(page).at("reshard").at("pairs").size();
  REQUIRE(pairs > 16);
  CHECK(page.find(fmt::format("The other {} pairs are in the JSON", pairs - 16)) != page.npos);
}

TEST_CASE("the levels of a reshard reach its peak and move every tensor") {
  for (const char* to : {"tp=2", "tp=8"}) {
    const api::PlanReport report = plan_for("tp=4", to);
    const json reshard = json::parse(document_of("plan", report)).at("reshard");
    i64 highest = reshard.at("memory").at("begin_bytes"), tensors = 0;
    for (const json& level : reshard.at("memory").at("levels")) {
      for (const char* field : {"first_bytes", "last_bytes", "after_bytes"})
        highest = std::max(highest, level.at(field).get<i64>());
      tensors += level.at("tensors").get<i64>();
    }
    CHECK(highest == report.reshard->peak_bytes);
    CHECK(tensors == static_cast<i64>(report.tensors.size()));
  }
}

TEST_CASE("a page says on which ranks the tensors of a rule are") {
  for (const char* mesh : {"pp=2,tp=2", "tp=4"}) {
    const std::string page = html_page(document_of("plan", plan_for(mesh, nullptr)));
    const bool has_stages = std::string(mesh) != "tp=4";
    bool has_owners = false;
    const json island = island_of(page);
    for (const json& rule : island.at("rules")) {
      if (!rule.contains("owners")) continue;
      has_owners = true;
      i64 tensors = 0;
      for (const json& owners : rule.at("owners")) tensors += owners.at("tensors").get<i64>();
      CHECK(tensors == rule.at("tensors").get<i64>());
      CHECK(rule.at("owners").at(0).at("ranks") == json({0, 1}));
      CHECK(rule.at("owners").at(1).at("ranks") == json({2, 3}));
    }
    CHECK(has_owners == has_stages);
    CHECK((page.find("Its tensors are on different ranks:") != page.npos) == has_stages);
    CHECK(page.find("Whole on every rank") != page.npos);
  }
}

TEST_CASE("pages of other commands hold their documents") {
  const test::TempFolder folder;
  api::SplitOptions split;
  split.source = kTinyLlama;
  split.mapping.mesh = mesh::parse_mesh("tp=2");
  split.write.output = folder / "out";
  api::split(split);
  api::InspectOptions inspect;
  inspect.source = folder / "out";
  inspect.draws = true;
  CHECK(check_numbers(html_page(document_of("inspect", api::inspect(inspect)))) > 40);
  api::CheckOptions check;
  check.sources.push_back(folder / "out");
  CHECK(check_numbers(html_page(document_of("check", api::check(check)))) > 5);
  api::ValidateOptions validate;
  validate.sources.push_back(folder / "out");
  validate.reference = kTinyLlama;
  CHECK(check_numbers(html_page(document_of("validate", api::validate(validate)))) > 10);
}

TEST_CASE("names in a page cannot become markup") {
  CHECK(escape_html("<b>&\"'\x01\n") == "&lt;b&gt;&amp;&quot;&#39;\\x01\\x0a");
  api::CheckReport report;
  check::Finding& finding = report.findings.emplace_back();
  finding.rule = check::CheckRule::kUneven;
  finding.severity = check::Severity::kError;
  finding.message = "</script><script>alert(1)</script>";
  finding.tensor = "\"><img onerror=x>";
  const std::string page = html_page(document_of("check", report, "findings"));
  check_numbers(page);
  CHECK(page.find("<img") == std::string::npos);
  CHECK(page.find("<script>") == std::string::npos);
  CHECK(island_of(page).at("findings").at(0).at("message") == report.findings[0].message);
}

TEST_CASE("a document without a page is refused") {
  CHECK_ERROR(kInternal, html_page(R"({"command": "version"})"));
  CHECK_ERROR(kInternal, html_page(R"({"command": "check", "status": "ok"})"));
}

}  // namespace
}  // namespace shardtool::cli
