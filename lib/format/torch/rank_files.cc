#include "lib/format/torch/rank_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/format/chunks.h"
#include "lib/format/folder_listing.h"
#include "lib/format/names.h"
#include "lib/format/read_headers.h"
#include "lib/format/torch/reader.h"
#include "lib/store/reader.h"

namespace shardtool::format::torch {
namespace {

bool stands_never_for_folder(std::string_view) {
  return false;
}

bool recognises_rank_files(const Location& location) {
  return location.file.empty() &&
         std::ranges::any_of(location.listing.torch_weights,
                             [](const std::string& name) { return rank_file(name).has_value(); });
}

/// Removes a text from the front, and the number behind it. Returns nullopt if they are not there.
std::optional<int> take_number(std::string_view& text, std::string_view before) {
  constexpr std::ptrdiff_t kMostDigits = 5;
  if (!text.starts_with(before)) return std::nullopt;
  text.remove_prefix(before.size());
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const auto digits = end - text.data();
  const bool is_canonical = digits == 1 || (digits > 1 && text.front() != '0');
  if (error != std::errc() || number < 0 || !is_canonical || digits > kMostDigits) {
    return std::nullopt;
  }
  text.remove_prefix(static_cast<size_t>(digits));
  return number;
}

/// The number of ranks. Throws kUnsupported for files of several launches.
int world_size_of(const std::string& folder, const std::vector<std::string>& names) {
  int world_size = 0;
  for (const std::string& name : names) {
    const auto file = rank_file(name);
    if (!file) continue;
    if (world_size != 0 && file->world_size != world_size) {
      throw unclear_choice(folder, names,
                           "the files are of launches with different numbers of ranks: move one "
                           "set to a folder of its own");
    }
    world_size = file->world_size;
  }
  return world_size;
}

/// Tensors of a rank.
void read_rank_file(Checkpoint& checkpoint, SourceFile& source, const store::Reader& file,
                    const ProblemSink&) {
  const auto number = static_cast<int>(checkpoint.files.size());
  for (NamedSlot& tensor : read_state_dict(checkpoint, source, file).tensors) {
    const Shape& shape = tensor.slot.shape;
    PartOf part = tensor.part ? std::move(*tensor.part) : PartOf{shape, Shape(shape.size(), 0)};
    checkpoint.tensors.push_back(
        {std::move(tensor.name), tensor.slot.dtype, std::move(tensor.slot.shape), number,
         tensor.slot.offset, tensor.slot.bytes, std::make_shared<const PartOf>(std::move(part))});
  }
}

/// Leaves out parts that hold nothing of their tensor, unless it has no others.
void drop_empty_parts(std::vector<StoredTensor>& tensors) {
  const auto is_empty = [](const StoredTensor& tensor) {
    return tensor.bytes == 0 && element_count(*tensor.part->whole) != 0;
  };
  std::set<std::string> held;
  for (const StoredTensor& tensor : tensors) {
    if (!is_empty(tensor)) held.insert(tensor.name);
  }
  std::erase_if(tensors, [&](const StoredTensor& tensor) {
    return is_empty(tensor) && held.contains(tensor.name);
  });
}

/// Joins warnings that several ranks' files give alike.
void join_equal_warnings(std::vector<Warning>& warnings) {
  std::vector<Warning> joined;
  std::map<std::string, i64> others;
  for (Warning& warning : warnings) {
    const auto [found, is_new] = others.try_emplace(warning.message, 0);
    if (is_new) joined.push_back(std::move(warning));
    if (!is_new) ++found->second;
  }
  for (Warning& warning : joined) {
    const i64 count = others.at(warning.message);
    if (count > 0) {
      warning.message += fmt::format("; {} the same",
                                     plural(count, "other file") + (count == 1 ? " has" : " have"));
    }
  }
  warnings = std::move(joined);
}

/// Trainers put config.json and the tokenizer beside the rank files or into a folder of their own.
void find_other_folder(Checkpoint& checkpoint) {
  const std::string inner = checkpoint.folder() + "/huggingface";
  const bool is_inside = store::is_file(inner + "/config.json");
  if (!is_inside || has_name(checkpoint.other_files, "config.json")) return;
  checkpoint.other_folder = inner;
  checkpoint.other_files = list_folder(inner).others;
}

bool is_training_state(const std::string& name) {
  return name.starts_with("optim_world_size_") || name.starts_with("extra_state_world_size_");
}

/// Warns once of the files that trainers write beside those of the model.
void warn_of_training_state(Checkpoint& checkpoint, const std::vector<std::string>& names) {
  std::vector<std::string> states;
  std::ranges::copy_if(names, std::back_inserter(states), is_training_state);
  if (states.empty()) return;
  checkpoint.warnings.push_back(
      {fmt::format("files with the state of the optimizer and the trainer are left out: {}",
                   list_for_message(states)),
       "", Oddity::kOtherEntry});
}

void open_rank_files(Checkpoint& checkpoint, Location& location, const ProblemSink& report) {
  checkpoint.format = "torch files of FSDP ranks";
  const std::vector<std::string>& names = location.listing.torch_weights;
  const int world_size = world_size_of(checkpoint.folder(), names);
  std::vector<std::string> files;
  for (int rank = 0; rank < world_size; ++rank) {
    files.push_back(fmt::format("model_world_size_{}_rank_{}.pt", world_size, rank));
  }
  read_files(checkpoint, files, read_rank_file, report);
  drop_empty_parts(checkpoint.tensors);
  join_equal_warnings(checkpoint.warnings);
  std::vector<std::string> others = names;
  std::erase_if(others, is_training_state);
  warn_of_unlisted(checkpoint, others, "the model's rank files");
  warn_of_training_state(checkpoint, names);
  find_other_folder(checkpoint);
  group_chunks(checkpoint, report);
}

}  // namespace

std::optional<RankFile> rank_file(std::string_view name) {
  const auto world_size = take_number(name, "model_world_size_");
  const auto rank = take_number(name, "_rank_");
  if (!world_size || !rank || name != ".pt" || *rank >= *world_size) return std::nullopt;
  return RankFile{*world_size, *rank};
}

const Reader kRankFilesReader{"torch", stands_never_for_folder, recognises_rank_files,
                              open_rank_files};

}  // namespace shardtool::format::torch
