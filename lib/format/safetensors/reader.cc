#include "lib/format/safetensors/reader.h"

#include <algorithm>

#include "lib/base/error.h"
#include "lib/format/chunks.h"
#include "lib/format/names.h"
#include "lib/format/read_headers.h"

namespace shardtool::format::safetensors {
namespace {

bool is_never_entry(std::string_view) {
  return false;
}

/// Also takes files of any other name, which no reader knows.
bool recognises_safetensors(const Location& location) {
  if (location.file.empty()) return !location.listing.weights.empty();
  if (is_entry_of_folder(location.file)) return false;
  return !is_torch_name(location.file) || !location.format.empty();
}

/// True for names of files with the shards of ranks, which vLLM and SGLang use as well.
bool are_of_ranks(const std::vector<std::string>& names) {
  return std::ranges::all_of(names, [](const std::string& name) {
    const bool has_rank = name.starts_with("model-rank-") || name.starts_with("model-pp-");
    return has_rank && name.find("-part-") != name.npos;
  });
}

std::string advice_to_choose(const std::vector<std::string>& names) {
  if (!are_of_ranks(names)) {
    return "several files need model.safetensors.index.json beside them; name one file to open it "
           "alone";
  }
  return "these are shards of ranks: put the manifest.json beside them that `shardtool split` "
         "wrote";
}

void open_safetensors(Checkpoint& checkpoint, Location& location, const ProblemSink& report) {
  checkpoint.format = "safetensors";
  if (!location.file.empty()) return read_headers(checkpoint, {location.file}, report);
  const std::vector<std::string>& weights = location.listing.weights;
  const std::vector<std::string> series = series_of(weights, ".safetensors");
  if (weights.size() == 1 && series.size() <= 1) {
    read_sharded_headers(checkpoint, weights, report);
    return group_chunks(checkpoint, report);
  }
  if (are_sharded(checkpoint.folder(), weights)) {
    checkpoint.format = "safetensors of torch.distributed.checkpoint";
    read_sharded_headers(checkpoint, weights, report);
    return group_chunks(checkpoint, report);
  }
  if (series.empty()) {
    report({ProblemKind::kUnclearChoice,
            unclear_choice(checkpoint.path, weights, advice_to_choose(weights)), ""});
    checkpoint.format = "safetensors files";
    return read_headers(checkpoint, weights, report);
  }
  if (series.size() == weights.size()) warn_of_no_index(checkpoint);
  read_headers(checkpoint, series, report);
  report_tensors_in_two_files(checkpoint, report);
}

}  // namespace

const Reader kReader{"safetensors", is_never_entry, recognises_safetensors, open_safetensors};

}  // namespace shardtool::format::safetensors
