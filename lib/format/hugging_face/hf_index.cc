#include "lib/format/hugging_face/hf_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/json_reader.h"
#include "lib/base/text.h"
#include "lib/format/names.h"

namespace shardtool::format {
namespace {

constexpr int kMaxIndexDepth = 16;

/// Problem with the file name read last; nullopt if the name is valid.
std::optional<Problem> objection(JsonReader& in, const std::string& name,
                                 const IndexedFiles& accepted) {
  const bool is_plain = is_plain_file_name(name);
  if (is_plain && accepted.accepts(name)) return std::nullopt;
  const std::string plain = fmt::format("a plain name such as {}", accepted.example);
  const std::string found = quote_for_message(name);
  if (is_plain) {
    return Problem{ProblemKind::kIndexEscapes,
                   in.error("the index names a file of another format", found,
                            fmt::format("a name that ends in {}", accepted.extension)),
                   ""};
  }
  if (is_inside_path(name)) {
    return Problem{
        ProblemKind::kIndexInvalid,
        in.error("the index names a file in a subfolder, which is not read", found, plain)
            .help("move the files beside the index, and name them so"),
        ""};
  }
  return Problem{ProblemKind::kIndexEscapes,
                 in.error("a file name leaves the folder of the index or is hidden", found, plain),
                 ""};
}

/// Numbers the files in the order of their names.
void number_files(HfIndex& index, const std::map<std::string, std::vector<size_t>>& users) {
  for (const auto& [file, weights] : users) {
    for (const size_t weight : weights)
      index.weights[weight].file = static_cast<int>(index.files.size());
    index.files.push_back(file);
  }
}

/// Returns the file names that are not valid, each reported once.
std::set<std::string> read_weight_map(JsonReader& in, HfIndex& index, const IndexedFiles& accepted,
                                      const ProblemSink& report) {
  std::map<std::string, std::vector<size_t>> users;
  std::set<std::string> refused;
  in.begin_object();
  for (std::string tensor; in.next_key(tensor);) {
    const std::string file = in.string();
    if (auto problem = objection(in, file, accepted)) {
      if (refused.insert(file).second) report(std::move(*problem));
      continue;
    }
    users[file].push_back(index.weights.size());
    index.weights.push_back({tensor, 0});
  }
  number_files(index, users);
  return refused;
}

void read_metadata(JsonReader& in, HfIndex& index) {
  const auto read_total = [&] {
    index.total_size = in.integer();
    if (*index.total_size < 0) {
      throw in.error("total_size is negative", std::to_string(*index.total_size), "0 or more");
    }
  };
  in.object({{"total_size", read_total, false}});
}

Error invalid(const std::string& path, const std::string& message) {
  return Error(ErrorCode::kIndexInvalid, message).at({path, 0, 0, ""});
}

/// Lines "tensor (file)" about an index that differs from the headers.
struct IndexDifference {
  std::vector<std::string> absent;    ///< named by the index, missing in that file
  std::vector<std::string> unlisted;  ///< in a file, not named by the index
  i64 bytes = 0;                      ///< total of all tensors
  bool is_total_known = true;         ///< false if a name stands twice: one copy would not count
};

/// A name that the index gives another file is absent there, not unlisted here. Further copies of a
/// tensor that the named file holds are no difference: report_tensors_in_two_files reports them.
IndexDifference compare_index(const HfIndex& index, const std::vector<StoredTensor>& tensors) {
  IndexDifference difference;
  std::map<std::string_view, std::vector<int>> holders;
  for (const StoredTensor& tensor : tensors) {
    holders[tensor.name].push_back(tensor.file);
    difference.bytes += tensor.bytes;
  }
  difference.is_total_known = holders.size() == tensors.size();
  const auto file = [&index](int number) { return index.files[static_cast<size_t>(number)]; };
  for (const auto& [tensor, number] : index.weights) {
    const auto found = holders.extract(tensor);
    if (found.empty()) {
      difference.absent.push_back(fmt::format("{} ({})", tensor, file(number)));
    } else if (std::ranges::find(found.mapped(), number) == found.mapped().end()) {
      difference.absent.push_back(
          fmt::format("{} ({}; {} holds it)", tensor, file(number), file(found.mapped().front())));
    }
  }
  for (const auto& [tensor, numbers] : holders)
    difference.unlisted.push_back(fmt::format("{} ({})", tensor, file(numbers.front())));
  return difference;
}

}  // namespace

HfIndex parse_index(std::string_view text, const std::string& path, const ProblemSink& report,
                    const IndexedFiles& accepted) {
  HfIndex index;
  JsonReader in(text, {path, ErrorCode::kIndexInvalid}, kMaxIndexDepth);
  std::set<std::string> refused;
  in.object({{"weight_map", [&] { refused = read_weight_map(in, index, accepted, report); }},
             {"metadata", [&] { read_metadata(in, index); }, false}});
  in.finish();
  if (!refused.empty()) index.total_size.reset();  // it counts their tensors, too
  if (index.weights.empty() && refused.empty()) throw invalid(path, "the weight_map is empty");
  std::sort(index.weights.begin(), index.weights.end(),
            [](const auto& a, const auto& b) { return a.tensor < b.tensor; });
  const auto twice =
      std::adjacent_find(index.weights.begin(), index.weights.end(),
                         [](const auto& a, const auto& b) { return a.tensor == b.tensor; });
  if (twice != index.weights.end()) {
    throw invalid(path, "a tensor occurs twice in the weight_map")
        .tensor(quote_for_message(twice->tensor));
  }
  return index;
}

std::vector<Warning> check_index(const HfIndex& index, const std::vector<StoredTensor>& tensors,
                                 const std::string& path, const ProblemSink& report) {
  const IndexDifference difference = compare_index(index, tensors);
  const std::string help = "the index and the files are of different downloads: fetch both again";
  if (!difference.absent.empty()) {
    report({ProblemKind::kIndexNamesAbsent,
            invalid(path, "the index names tensors that their file does not hold")
                .note("found", list_for_message(difference.absent))
                .help(help),
            ""});
  }
  if (!difference.unlisted.empty()) {
    report({ProblemKind::kIndexLacks,
            invalid(path, "the files hold tensors that the index does not name")
                .note("found", list_for_message(difference.unlisted))
                .help(help),
            ""});
  }
  if (!index.total_size || !difference.is_total_known || *index.total_size == difference.bytes)
    return {};
  return {{fmt::format("metadata.total_size says {} bytes, the tensors have {}", *index.total_size,
                       difference.bytes),
           path, Oddity::kTotalSize}};
}

}  // namespace shardtool::format
