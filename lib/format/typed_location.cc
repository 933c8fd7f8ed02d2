#include "lib/format/typed_location.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <optional>

#include "lib/base/error.h"
#include "lib/base/shell.h"
#include "lib/base/text.h"
#include "lib/format/hugging_face/hf_cache.h"
#include "lib/format/names.h"
#include "lib/format/reader.h"
#include "lib/store/reader.h"

namespace shardtool::format {
namespace {

Error unknown_format(const std::string& word, const std::vector<std::string>& known) {
  Error error(ErrorCode::kUsage, fmt::format("unknown format '{}'", quote_for_message(word)));
  if (const auto hint = did_you_mean(word, known); !hint.empty()) error.help(hint);
  return std::move(error.help(fmt::format("known are: {}", fmt::join(known, ", "))));
}

/// Moves "FORMAT:" from the front of a place.
void take_format(TypedLocation& typed, std::span<const std::string> forms) {
  const size_t colon = typed.place.find(':');
  if (colon == std::string::npos || typed.place.compare(colon, 3, "://") == 0) return;
  const std::string word = typed.place.substr(0, colon);
  const std::string rest = typed.place.substr(colon + 1);
  std::vector<std::string> known = format_names();
  known.insert(known.end(), forms.begin(), forms.end());
  const bool is_known = std::ranges::count(known, word) > 0;
  if (store::exists(typed.place)) return;
  if (!is_known && (rest.empty() || !store::exists(rest))) return;
  if (!is_known) throw unknown_format(word, known);
  typed.format = word;
  typed.place = rest;
}

void take_prefix(TypedLocation& typed) {
  const size_t hash = typed.place.rfind('#');
  if (hash == std::string::npos || store::exists(typed.place)) return;
  typed.prefix = typed.place.substr(hash + 1);
  typed.place.resize(hash);
}

bool holds_no_weights(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename().string();
  return is_other_file_name(name) && !is_entry_of_folder(name) && store::is_file(path);
}

}  // namespace

TypedLocation parse_location(const std::string& location, std::span<const std::string> forms) {
  TypedLocation typed{"", location, ""};
  take_format(typed, forms);
  take_prefix(typed);
  if (is_hf_location(typed.place)) typed.place = resolve_hf_location(typed.place);
  while (typed.place.size() > 1 && typed.place.back() == '/') typed.place.pop_back();
  return typed;
}

void require_locations(const std::vector<std::string>& locations) {
  if (locations.empty()) {
    throw Error(ErrorCode::kUsage, "no checkpoint is named: the list of paths is empty")
        .help("name a file or a folder; if a pattern made the list, nothing matches the pattern");
  }
  std::vector<std::string> without;
  std::ranges::copy_if(locations, std::back_inserter(without), holds_no_weights);
  if (without.empty()) return;
  const std::string folder = std::filesystem::path(without.front()).parent_path().string();
  throw Error(ErrorCode::kUsage, "there are no weights in " + list_for_message(without))
      .help(fmt::format("name the folder, not the files in it: {}",
                        path_argument(folder.empty() ? "." : folder)));
}

}  // namespace shardtool::format
