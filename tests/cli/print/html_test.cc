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
#include "cli/print/search/search.h"
#include "cli/print/search/training.h"
#include "cli/print/validate.h"
#include "cli/session.h"
#include "lib/api/catalogue/profiles.h"
#include "lib/api/check.h"
#include "lib/api/inspect.h"
#include "lib/api/plan.h"
#include "lib/api/plan_search.h"
#include "lib/api/planning/plan_diff.h"
#include "lib/api/transform.h"
#include "lib/api/validate.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

namespace shardtool::cli {
namespace {

using nlohmann::json;

const std::string kModel = std::string(SHARDTOOL_SAMPLES) + "/tiny-llama";

template <class Report>
std::string document_of(const char* command, const Report& report, const char* status = "ok") {
  std::string text;
  auto out = open_document([&text](std::string_view part) { text += part; }, command, status);
  write_fields(out, report);
  out.end_object();
  return text;
}

json island_of(const std::string& page) {
  constexpr std::string_view kBegin = R"(<script type="application/json" id="document">)";
  const auto begin = page.find(kBegin) + kBegin.size();
  return json::parse(page.substr(begin, page.find("</script>", begin) - begin));
}

std::string unescaped(std::string text) {
  for (const auto& [entity, character] :
       {std::pair("&quot;", "\""), std::pair("&#39;", "'"), std::pair("&lt;", "<"),
        std::pair("&gt;", ">"), std::pair("&amp;", "&")}) {
    text = std::regex_replace(text, std::regex(entity), character);
  }
  return text;
}

/// Checks P1 for every number of a page, and that it loads nothing; returns how many there are.
int check_numbers(const std::string& page) {
  const json island = island_of(page);
  const std::regex shown("data-at=\"([^\"]*)\" data-value=\"([^\"]*)\"");
  int count = 0;
  for (std::sregex_iterator it(page.begin(), page.end(), shown), end; it != end; ++it, ++count) {
    const std::string pointer = unescaped((*it)[1]);
    CAPTURE(pointer);
    CHECK(island.at(json::json_pointer(pointer)).dump() == unescaped((*it)[2]));
  }
  for (const char* loader : {" src=", " href=", "@import", "http:", "https:"})
    CHECK(page.find(loader) == std::string::npos);
  return count;
}

api::PlanReport plan_for(const char* mesh, const char* to_mesh) {
  api::PlanOptions options;
  options.sources = {kModel};
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
  split.source = kModel;
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
  validate.reference = kModel;
  CHECK(check_numbers(html_page(document_of("validate", api::validate(validate)))) > 10);
}

api::SearchOptions search_for(plan::Objective objective, std::optional<double> tpot_us) {
  api::SearchOptions options;
  options.plan.sources = {kModel};
  options.plan.hardware = api::load_profile("h100-sxm");
  options.plan.device.bytes = options.plan.hardware->usable_bytes;
  options.plan.device.price_per_hour = 2;
  options.devices = {1, 2, 3, 4};
  options.concurrency = {1, 16, 64};
  options.prompt_len = options.answer_len = 32;
  options.objective = objective;
  options.limits.tpot_us = tpot_us;
  return options;
}

std::string document_of(const api::SearchOptions& options, const api::SearchReport& report) {
  std::string text;
  auto out = open_document([&text](std::string_view part) { text += part; }, "plan_search",
                           report.optimum ? "ok" : "findings");
  write_fields(out, options, report);
  out.end_object();
  return text;
}

TEST_CASE("every number of a search's page is that of its document") {
  using plan::Objective;
  for (const Objective objective : {Objective::kThroughput, Objective::kUser, Objective::kLatency,
                                    Objective::kGoodput, Objective::kCost}) {
    const api::SearchOptions options = search_for(objective, 200.0);
    const api::SearchReport report = api::search_layouts(options);
    REQUIRE(report.optimum);
    const std::string document = document_of(options, api::with_named_rows(report, 200));
    const std::string page = html_page(document);
    CHECK(check_numbers(page) > 200);
    CHECK(island_of(page) == json::parse(document));
    const std::string best = report.rows[*report.optimum].layout.tp == 1 ? "tp=1" : "tp=";
    CHECK(page.find("Best: ") < page.find(best));
  }
  const api::SearchOptions none = search_for(Objective::kThroughput, 0.1);
  const std::string page = html_page(document_of(none, api::search_layouts(none)));
  CHECK(check_numbers(page) > 5);
  CHECK(page.find("No layout fits and keeps the limits.") != std::string::npos);
}

TEST_CASE(
    "a search's page tells an open load, cached prompts, fallbacks and answers of one token") {
  const auto page_of = [](const api::SearchOptions& options) {
    const api::SearchReport report = api::search_layouts(options);
    REQUIRE(report.optimum);
    const std::string page = html_page(document_of(options, report));
    CHECK(check_numbers(page) > 50);
    return page;
  };
  const auto has = [](const std::string& page, const char* words) {
    return page.find(words) != std::string::npos;
  };
  api::SearchOptions options = search_for(plan::Objective::kThroughput, std::nullopt);
  options.concurrency.clear();
  options.request_rate = 50;
  options.prefix_hit = 0.5;
  options.devices = {2, 4};
  options.survive = 1;
  const std::string open = page_of(options);
  for (const char* words : {" requests/s", " of them cached", " at once: ", " holds the load.",
                            "falls back to", "devices/request", "the shade is the front"})
    CHECK(has(open, words));
  options = search_for(plan::Objective::kThroughput, std::nullopt);
  options.answer_len = 1;
  const std::string one = page_of(options);
  CHECK(has(one, ", TPOT -."));
  CHECK_FALSE(has(one, "the shade is the front"));
}

TEST_CASE("the points of a front rise to the left and have their values") {
  const api::SearchOptions options = search_for(plan::Objective::kThroughput, std::nullopt);
  const api::SearchReport report = api::search_layouts(options);
  const std::string page = html_page(document_of(options, report));
  const std::regex point(
      "<circle class=\"f0\" cx=\"([^\"]*)\" cy=\"([^\"]*)\" r=\"[^\"]*\" "
      "data-at=\"[^\"]*\" data-value=\"([^\"]*)\"");
  double x = -1, y = 1e9, scale = 0;
  size_t count = 0;
  for (std::sregex_iterator it(page.begin(), page.end(), point), last; it != last; ++it, ++count) {
    CHECK(std::stod((*it)[1]) > x);
    CHECK(std::stod((*it)[2]) > 0);
    x = std::stod((*it)[1]);
    const double height = 350 - std::stod((*it)[2]);
    if (scale > 0) CHECK(height / std::stod((*it)[3]) == doctest::Approx(scale).epsilon(0.01));
    scale = height / std::stod((*it)[3]);
    CHECK(height < y);
    y = height;
  }
  CHECK(count == report.front.size());
  CHECK(count > 1);
}

api::TrainSearchOptions training_for(std::vector<i64> devices, i64 bytes) {
  api::TrainSearchOptions options;
  options.plan.sources = {kModel};
  options.plan.hardware = api::load_profile("h100-sxm");
  options.plan.device.bytes = bytes;
  options.devices = std::move(devices);
  options.sequence = 128;
  options.batch = 16;
  for (i64 part = 1; part < 8; ++part) options.smaller_budgets.push_back(bytes / 8 * part);
  return options;
}

std::string document_of(const api::TrainSearchOptions& options,
                        const api::TrainSearchReport& report) {
  std::string text;
  auto out = open_document([&text](std::string_view part) { text += part; }, "plan_search_train",
                           report.optimum ? "ok" : "findings");
  write_fields(out, options, report);
  out.end_object();
  return text;
}

TEST_CASE("every number of a training's page is that of its document") {
  for (const auto& devices : {std::vector<i64>{1}, {2}, {1, 2, 4}}) {
    for (const i64 bytes : {i64{3'500'000}, i64{80'000'000}}) {
      const api::TrainSearchOptions options = training_for(devices, bytes);
      const api::TrainSearchReport report = api::search_training(options);
      const std::string document = document_of(options, api::with_named_rows(report, 200));
      const std::string page = html_page(document);
      CHECK(check_numbers(page) > (report.optimum ? 30 : 4));
      CHECK(island_of(page) == json::parse(document));
      if (!report.optimum) continue;
      const json island = island_of(page);
      const json& best = island.at("rows").at(island.at("optimum").get<size_t>());
      CHECK(best.at("name") == to_string(report.rows[*report.optimum].way));
      CHECK(page.find("Best: " + best.at("name").get<std::string>()) != std::string::npos);
      CHECK(island.at("losses").size() == report.losses.size());
    }
  }
  const api::TrainSearchOptions none = training_for({1}, 100'000);
  const std::string page = html_page(document_of(none, api::search_training(none)));
  CHECK(check_numbers(page) > 2);
  CHECK(page.find("No way to train fits.") != std::string::npos);
}

TEST_CASE("the stages of a training take the memory that their bars have") {
  const api::TrainSearchOptions options = training_for({2}, 3'500'000);
  const api::TrainSearchReport report = api::search_training(options);
  REQUIRE(report.optimum);
  const json island = island_of(html_page(document_of(options, api::with_named_rows(report, 200))));
  for (const json& stage : island.at("rows").at(island.at("optimum").get<size_t>()).at("stages")) {
    i64 sum = 0;
    for (const char* part : {"state_bytes", "gathered_bytes", "activation_bytes"})
      sum += stage.at(part).get<i64>();
    CHECK(sum == stage.at("total_bytes").get<i64>());
    CHECK(stage.at("total_bytes").get<i64>() <= island.at("budget_bytes").get<i64>());
  }
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
