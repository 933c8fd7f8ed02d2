#include <fmt/format.h>

#include "cli/print/findings/findings.h"
#include "cli/print/json.h"
#include "cli/print/validate.h"
#include "lib/api/catalogue/graphs.h"
#include "lib/api/check.h"
#include "lib/api/diff.h"
#include "lib/api/finish.h"
#include "lib/api/inspect.h"
#include "lib/api/transform.h"
#include "lib/api/validate.h"
#include "lib/format/typed_location.h"
#include "lib/python/bindings.h"
#include "lib/python/document.h"
#include "lib/python/options.h"
#include "lib/python/watched_run.h"

namespace nb = nanobind;

namespace shardtool::python {
namespace {

using Paths = std::vector<Path>;

/// Runs a command whose options have resources of their own.
template <class Options, class Report>
std::string run(std::string_view command, Options& options, exec::Resources& resources,
                nb::handle progress, Report (*verb)(const Options&), bool (*is_ok)(const Report&)) {
  std::optional<Report> report;
  run_watched(resources, progress, [&] { report = verb(options); });
  return document(command, is_ok(*report),
                  [&](JsonWriter& json) { cli::write_fields(json, *report); });
}

template <class Report>
bool always(const Report&) {
  return true;
}

bool passes(const api::ValidateReport& report) {
  return report.passes();
}

/// Keyword require_coverage, in percent. Throws kUsage.
void set_coverage(const Keywords& keywords, double& coverage) {
  constexpr double kHundred = 100;
  keywords.set("require_coverage", coverage);
  if (coverage >= 0 && coverage <= kHundred) return;
  throw Error(ErrorCode::kUsage, fmt::format("require_coverage={} is not from 0 to 100", coverage))
      .help("100 asks for results that depend on every tensor");
}

/// Keywords graph, quick, ordered, native, golden, values, seed, tokens and require_coverage.
/// Throws kUsage, and the errors of api::read_graph.
void set_proof(const Keywords& keywords, api::ValidateOptions& options) {
  std::string graph;
  keywords.set_path("graph", graph);
  if (!graph.empty()) options.graph = api::read_graph(graph);
  keywords.set("quick", options.quick);
  keywords.set("ordered", options.ordered);
  keywords.set("native", options.native);
  if (options.quick && options.native) {
    throw Error(ErrorCode::kUsage, "quick and native exclude each other").help("give one");
  }
  keywords.set_path("golden", options.golden);
  keywords.set("values", options.compares_values);
  keywords.set("seed", options.seed, {0});
  keywords.set("tokens", options.tokens, {1, api::kMostTokens});
  set_coverage(keywords, options.require_coverage);
}

std::string split(Path source, Path output, nb::dict given, nb::handle progress) {
  const Keywords keywords(std::move(given));
  api::SplitOptions options{.source = std::move(source.bytes),
                            .mapping = mapping_choice(keywords),
                            .ranks = ranks_of(keywords),
                            .write = write_options(std::move(output.bytes), keywords)};
  return run("split", options, options.write.resources, progress, api::split, always);
}

std::string merge(Paths sources, Path output, nb::dict given, nb::handle progress) {
  const Keywords keywords(std::move(given));
  api::MergeOptions options;
  options.sources = bytes_of(std::move(sources));
  options.write = write_options(std::move(output.bytes), keywords);
  keywords.set_path("model_config", options.config);
  keywords.set("compare_replicas", options.compare_replicas);
  return run("merge", options, options.write.resources, progress, api::merge, always);
}

std::string reshard(Paths sources, Path output, nb::dict given, nb::handle progress) {
  const Keywords keywords(std::move(given));
  api::ReshardOptions options;
  options.sources = bytes_of(std::move(sources));
  options.to = mapping_choice(keywords);
  options.write = write_options(std::move(output.bytes), keywords);
  options.ranks = ranks_of(keywords);
  keywords.set("compare_replicas", options.compare_replicas);
  return run("reshard", options, options.write.resources, progress, api::reshard, always);
}

std::string check(Paths sources, nb::dict given, nb::handle progress) {
  const Keywords keywords(std::move(given));
  api::CheckOptions options;
  options.sources = bytes_of(std::move(sources));
  format::require_locations(options.sources);
  options.mapping = given_mapping(keywords);
  keywords.set("profile", options.profile);
  keywords.set("ignore", options.ignore);
  bool reads_data = false;
  keywords.set("read_data", reads_data);
  if (reads_data) options.data = check::DataSubset{};
  set_resources(keywords, options.resources);
  return run(
      "check", options, options.resources, progress, api::check,
      +[](const api::CheckReport& report) { return report.errors == 0; });
}

std::string validate(Paths sources, nb::dict given, nb::handle progress) {
  const Keywords keywords(std::move(given));
  api::ValidateOptions options;
  options.sources = bytes_of(std::move(sources));
  options.mapping = mapping_choice(keywords);
  keywords.set_path("reference", options.reference);
  set_proof(keywords, options);
  options.share = share_of(keywords);
  keywords.set_path("verdicts", options.verdicts);
  if (options.share.has_value() == options.verdicts.empty()) {
    throw Error(ErrorCode::kUsage, "share and verdicts belong together")
        .help("give every share the same folder, such as share=\"3/8\", verdicts=\"verdicts\"");
  }
  set_resources(keywords, options.resources);
  return run("validate", options, options.resources, progress, api::validate_and_join, passes);
}

std::string finish(Path output, nb::dict given, nb::handle progress) {
  if (api::has_verdicts(output.bytes)) {
    const nb::gil_scoped_release release;
    const api::ValidateReport report = api::joined_verdict(output.bytes);
    return document("validate", report.passes(),
                    [&](JsonWriter& json) { cli::write_fields(json, report); });
  }
  const Keywords keywords(std::move(given));
  api::FinishOptions options;
  options.output = std::move(output.bytes);
  keywords.set("force", options.force);
  keywords.set("verify", options.verify);
  set_resources(keywords, options.resources);
  return run("finish", options, options.resources, progress, api::finish, always);
}

std::string diff(Path a, Path b, nb::dict given, nb::handle progress) {
  const Keywords keywords(std::move(given));
  api::DiffOptions options;
  options.a = std::move(a.bytes);
  options.b = std::move(b.bytes);
  keywords.set("metadata_only", options.metadata_only);
  keywords.set("values", options.values);
  set_resources(keywords, options.resources);
  return run(
      "diff", options, options.resources, progress, api::diff,
      +[](const api::DiffReport& report) { return report.equal; });
}

std::string inspect(Path source, nb::dict given) {
  const Keywords keywords(std::move(given));
  api::InspectOptions options;
  options.source = std::move(source.bytes);
  options.mapping = given_mapping(keywords);
  keywords.set("filter", options.filter);
  const nb::gil_scoped_release release;
  const api::InspectReport report = api::inspect(options);
  return document("inspect", true, [&](JsonWriter& json) { cli::write_fields(json, report); });
}

}  // namespace

void bind_commands(nb::module_& module) {
  const auto progress = nb::arg("progress").none();
  module.def("split", split, nb::arg(), nb::arg(), nb::arg(), progress);
  module.def("merge", merge, nb::arg(), nb::arg(), nb::arg(), progress);
  module.def("reshard", reshard, nb::arg(), nb::arg(), nb::arg(), progress);
  module.def("check", check, nb::arg(), nb::arg(), progress);
  module.def("validate", validate, nb::arg(), nb::arg(), progress);
  module.def("finish", finish, nb::arg(), nb::arg(), progress);
  module.def("diff", diff, nb::arg(), nb::arg(), nb::arg(), progress);
  module.def("inspect", inspect);
}

}  // namespace shardtool::python
