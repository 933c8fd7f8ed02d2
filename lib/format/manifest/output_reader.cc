#include "lib/format/manifest/output_reader.h"

#include <utility>

#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/format/dcp/open.h"
#include "lib/format/hugging_face/index_reader.h"
#include "lib/format/manifest/manifest_against_headers.h"
#include "lib/format/read_headers.h"

namespace shardtool::format {
namespace {

bool is_manifest(std::string_view file) {
  return file == kManifestName;
}

bool recognises_output(const Location& location) {
  return location.manifest.has_value();
}

void open_output(Checkpoint& checkpoint, Location& location, const ProblemSink& report) {
  const std::string path = checkpoint.path + "/" + kManifestName;
  checkpoint.format = "shardtool output";
  try {
    checkpoint.manifest = parse_manifest(*std::exchange(location.manifest, std::nullopt), path);
  } catch (const Error& error) {
    report({ProblemKind::kManifestInvalid, error, kManifestName});
    return read_headers(checkpoint, location.listing.weights, report);
  }
  check_files(*checkpoint.manifest, checkpoint.path, report);
  std::vector<std::string> names;
  for (const FileRecord& file : checkpoint.manifest->files) names.push_back(file.name);
  const std::string& format = checkpoint.manifest->format;
  if (format == kDcp) {
    dcp::read_files(checkpoint, report, names);
  } else if (format == kSafetensors) {
    read_headers(checkpoint, names, report);
    // Programs that load a whole output find its tensors by the index, not by the manifest.
    if (checkpoint.manifest->ranks.size() == 1) {
      check_index_beside(checkpoint, location.listing, report);
    }
  } else {
    throw Error(ErrorCode::kManifestInvalid, "the files have an unknown format")
        .at({path, 0, 0, "/format"})
        .note("found", quote_for_message(format))
        .help("use the version of shardtool that wrote the folder");
  }
  check_against_headers(checkpoint, report);
  for (Warning& extra : extra_files({names.begin(), names.end()}, location.listing)) {
    checkpoint.warnings.push_back(std::move(extra));
  }
}

}  // namespace

std::vector<Warning> extra_files(const std::set<std::string>& own, const FolderListing& listing) {
  std::vector<Warning> extra;
  for (const auto* names : {&listing.weights, &listing.dcp_data}) {
    for (const std::string& name : *names) {
      if (!own.contains(name)) extra.push_back(unlisted_file(name, kManifestName));
    }
  }
  return extra;
}

const Reader kOutputReader{"manifest", is_manifest, recognises_output, open_output};

}  // namespace shardtool::format
