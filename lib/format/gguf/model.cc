#include "lib/format/gguf/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/format/names.h"
#include "lib/format/reader.h"

namespace shardtool::format::gguf {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEnding = ".gguf";

/// Stem and number of parts in a name such as model-00001-of-00003.gguf.
struct SplitName {
  std::string stem;
  int parts = 0;
};

std::optional<SplitName> split_name(const std::string& name) {
  constexpr std::string_view kForm = "-00001-of-00001.gguf";
  if (name.size() <= kForm.size()) return std::nullopt;
  const size_t stem = name.size() - kForm.size();
  for (size_t i = 0; i < kForm.size(); ++i) {
    const bool is_digit = kForm[i] == '0' || kForm[i] == '1';
    const char c = name[stem + i];
    if (is_digit ? c < '0' || c > '9' : c != kForm[i]) return std::nullopt;
  }
  const int parts = std::stoi(name.substr(name.size() - std::string_view("00001.gguf").size(), 5));
  if (parts == 0) return std::nullopt;
  return SplitName{name.substr(0, stem), parts};
}

std::vector<std::string> names_of_parts(const SplitName& split) {
  std::vector<std::string> names;
  for (int part = 1; part <= split.parts; ++part) {
    names.push_back(fmt::format("{}-{:05}-of-{:05}{}", split.stem, part, split.parts, kEnding));
  }
  return names;
}

ModelFile read_file(const std::string& folder, const std::string& name, const ProblemSink& report) {
  ModelFile opened{name, folder == "." ? name : folder + "/" + name, 0, {}};
  const store::Reader file = store::open_reader(opened.path);
  opened.size = store::identity(file).size;
  const Input input{opened.path, opened.size, [&file](i64 offset, std::span<std::byte> into) {
                      store::read_exact(file, into, offset);
                    }};
  opened.header = read_header(input, [&](Problem problem) {
    problem.file = name;
    report(std::move(problem));
  });
  return opened;
}

/// Reports a count of a split's part that the names contradict.
void check_count(const ModelFile& file, const char* key, i64 expected, const ProblemSink& report) {
  const Pair* pair = file.header.find(key);
  const i64 found = pair == nullptr ? -1 : pair->number.value_or(-1);
  if (found == expected) return;
  report({ProblemKind::kSplitParts,
          Error(ErrorCode::kMalformed, fmt::format("the part's {} is not that of its name", key))
              .at({file.path, 0, 0, ""})
              .note("found", found < 0 ? "nothing" : std::to_string(found))
              .note("expected", std::to_string(expected)),
          file.name});
}

void check_parts(const ModelFiles& model, size_t parts, const ProblemSink& report) {
  i64 tensors = 0;
  for (const ModelFile& file : model.files) {
    tensors += std::ssize(file.header.tensors);
    const size_t at = file.name.size() - kEnding.size() - std::string_view("00001-of-00001").size();
    check_count(file, "split.no", std::stoi(file.name.substr(at, 5)) - 1, report);
    check_count(file, "split.count", static_cast<i64>(parts), report);
  }
  if (model.files.size() != parts) return;
  for (const ModelFile& file : model.files) {
    check_count(file, "split.tensors.count", tensors, report);
  }
}

void check_names(const ModelFiles& model, const ProblemSink& report) {
  std::map<std::string_view, const ModelFile*> known;
  for (const ModelFile& file : model.files) {
    for (const TensorInfo& tensor : file.header.tensors) {
      const auto [first, is_new] = known.emplace(tensor.name, &file);
      if (is_new) continue;
      report({ProblemKind::kTensorInTwoFiles,
              Error(ErrorCode::kMalformed, "a tensor is in two parts")
                  .at({file.path, 0, 0, ""})
                  .tensor(quote_for_message(tensor.name))
                  .note("first", first->second->name),
              file.name});
    }
  }
}

}  // namespace

std::string folder_of(const std::string& place) {
  if (store::is_folder(place)) return place;
  const fs::path parent = fs::path(place).parent_path();
  return parent.empty() ? "." : parent.string();
}

std::vector<std::string> file_names(const FolderListing& listing) {
  std::vector<std::string> names;
  std::copy_if(listing.foreign_weights.begin(), listing.foreign_weights.end(),
               std::back_inserter(names),
               [](const std::string& name) { return name.ends_with(kEnding); });
  return names;
}

bool is_gguf(const TypedLocation& location) {
  if (!location.format.empty()) return location.format == kGguf;
  if (!store::is_folder(location.place)) return location.place.ends_with(kEnding);
  const FolderListing listing = list_folder(location.place);
  const bool has_others = !listing.weights.empty() || !listing.indices.empty() ||
                          !listing.torch_weights.empty() || !listing.torch_indices.empty() ||
                          !listing.dcp_data.empty();
  return !has_others && !file_names(listing).empty();
}

std::vector<std::vector<std::string>> models_at(const std::string& place) {
  if (!store::is_folder(place)) {
    const std::string name = fs::path(place).filename().string();
    const auto split = split_name(name);
    return {split ? names_of_parts(*split) : std::vector<std::string>{name}};
  }
  std::vector<std::vector<std::string>> models;
  std::set<std::string> seen;
  for (const std::string& name : file_names(list_folder(place))) {
    const auto split = split_name(name);
    const auto names = split ? names_of_parts(*split) : std::vector<std::string>{name};
    if (seen.insert(names.front()).second) models.push_back(names);
  }
  if (models.empty()) {
    throw Error(ErrorCode::kFileMissing, "the folder has no GGUF model").at({place, 0, 0, ""});
  }
  return models;
}

ModelFiles open_files(const std::string& folder, const std::vector<std::string>& names,
                      const ProblemSink& report) {
  ModelFiles model{folder, {}};
  for (const std::string& name : names) {
    try {
      model.files.push_back(read_file(folder, name, report));
    } catch (const Error& error) {
      if (store::is_of_store(error)) throw;
      const bool is_missing = error.code() == ErrorCode::kFileMissing;
      report({is_missing ? ProblemKind::kFileMissing : ProblemKind::kUnreadable, error, name});
    }
  }
  if (split_name(names.front())) check_parts(model, names.size(), report);
  check_names(model, report);
  return model;
}

ModelFiles open_model(const std::string& place, const ProblemSink& report) {
  const auto models = models_at(place);
  if (models.size() == 1) return open_files(folder_of(place), models.front(), report);
  std::vector<std::string> firsts;
  for (const auto& names : models) firsts.push_back(names.front());
  throw Error(ErrorCode::kUnsupported, "the folder has several GGUF models")
      .at({place, 0, 0, ""})
      .note("found", list_for_message(firsts))
      .help("name the file of the one that you mean");
}

}  // namespace shardtool::format::gguf
