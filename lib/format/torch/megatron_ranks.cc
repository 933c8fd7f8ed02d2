#include "lib/format/torch/megatron_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/format/read_headers.h"
#include "lib/format/torch/archive.h"
#include "lib/format/torch/reader.h"
#include "lib/store/reader.h"

namespace shardtool::format::torch {
namespace {

/// Removes digits from the front: at least `least`, at most nine. Returns nullopt if there are
/// fewer or more.
std::optional<i64> take_digits(std::string_view& text, size_t least) {
  constexpr size_t kMostDigits = 9;
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  if (digits < least || digits > kMostDigits) return std::nullopt;
  i64 number = 0;
  std::from_chars(text.data(), text.data() + digits, number);
  text.remove_prefix(digits);
  return number;
}

/// Removes "_NNN" from the front; -1 if the text is at its end.
std::optional<i64> take_further_rank(std::string_view& text) {
  constexpr size_t kDigits = 3;
  if (text.empty()) return -1;
  if (text.front() != '_') return std::nullopt;
  text.remove_prefix(1);
  return take_digits(text, kDigits);
}

bool is_never_entry_of_ranks(std::string_view) {
  return false;
}

bool recognises_megatron(const Location& location) {
  return location.file.empty() && !location.listing.rank_folders.empty();
}

Error unsupported_ranks(const std::string& message, const std::string& path) {
  return Error(ErrorCode::kUnsupported, message)
      .at({path, 0, 0, ""})
      .help("convert the checkpoint with Megatron's --ckpt-convert-format torch_dist");
}

/// Folders of all ranks, with those that are missing.
std::vector<std::string> folders_of(const Location& location) {
  MegatronRank most;
  for (const std::string& name : location.listing.rank_folders) {
    const MegatronRank rank = megatron_rank(name).value();
    most.tp = std::max(most.tp, rank.tp);
    most.second = std::max(most.second, rank.second);
    most.third = std::max(most.third, rank.third);
  }
  constexpr i64 kMostRanks = 100'000;
  const auto stages = checked_mul(most.second + 2, most.third + 2);
  if (!stages || checked_mul(most.tp + 1, *stages).value_or(kMostRanks) >= kMostRanks) {
    throw Error(ErrorCode::kLimit, "the names of the folders count too many ranks")
        .at({location.folder, 0, 0, ""});
  }
  const auto further = [](i64 most_of, i64 number) {
    return most_of < 0 ? std::string() : fmt::format("_{:03}", number);
  };
  std::vector<std::string> folders;
  for (i64 second = 0; second <= std::max(most.second, i64{0}); ++second) {
    for (i64 third = 0; third <= std::max(most.third, i64{0}); ++third) {
      for (i64 tp = 0; tp <= most.tp; ++tp) {
        folders.push_back(fmt::format("mp_rank_{:02}{}{}", tp, further(most.second, second),
                                      further(most.third, third)));
      }
    }
  }
  return folders;
}

/// Older versions with the distributed optimizer write model_rng.pt.
std::string file_in(const std::string& folder, const std::string& rank) {
  const std::string older = rank + "/model_rng.pt";
  return store::is_file(folder + "/" + older) ? older : rank + "/model_optim_rng.pt";
}

/// Requires the rows of q, k and v of a group of heads to follow each other.
void check_version(const Archive& archive, const std::string& path) {
  constexpr double kGrouped = 2;
  const auto version = archive.tree.root().find("checkpoint_version");
  const double number = !version                           ? 0
                        : version->is(ValueKind::kFloat)   ? version->number()
                        : version->is(ValueKind::kInteger) ? static_cast<double>(version->integer())
                                                           : 0;
  if (number >= kGrouped) return;
  throw unsupported_ranks("the rows of q, k and v have the order of an old version of Megatron",
                          path)
      .note("found", version ? fmt::format("checkpoint_version {}", number) : "no version")
      .note("expected", "checkpoint_version 2 or later");
}

void read_rank(Checkpoint& checkpoint, SourceFile& source, const store::Reader& file,
               const ProblemSink&) {
  const size_t warnings = checkpoint.warnings.size();
  const Archive archive = read_archive(file);
  check_version(archive, file.path());
  const std::string folder = source.name.substr(0, source.name.find('/'));
  const auto number = static_cast<int>(checkpoint.files.size());
  for (NamedSlot& tensor : read_state_dict(checkpoint, source, archive, file.path()).tensors) {
    std::string name = folder + "." + tensor.name;
    if (!megatron_tensor(name)) continue;
    require_whole(tensor, file.path());
    checkpoint.tensors.push_back({std::move(name), tensor.slot.dtype, std::move(tensor.slot.shape),
                                  number, tensor.slot.offset, tensor.slot.bytes});
  }
  if (number > 0) checkpoint.warnings.resize(warnings);  // as of the first rank
}

void open_megatron(Checkpoint& checkpoint, Location& location, const ProblemSink& report) {
  checkpoint.format = kMegatronRanks;
  std::vector<std::string> files;
  for (const std::string& folder : folders_of(location)) {
    files.push_back(file_in(checkpoint.folder(), folder));
  }
  read_files(checkpoint, files, read_rank, report);
  checkpoint.warnings.push_back(
      {"the state of the optimizer and the random state are left out", "", Oddity::kOtherEntry});
}

}  // namespace

std::optional<MegatronRank> megatron_rank(std::string_view folder) {
  constexpr std::string_view kBegin = "mp_rank_";
  if (!folder.starts_with(kBegin)) return std::nullopt;
  folder.remove_prefix(kBegin.size());
  const auto tp = take_digits(folder, 2);
  const auto second = tp ? take_further_rank(folder) : std::nullopt;
  const auto third = second ? take_further_rank(folder) : std::nullopt;
  if (!third || !folder.empty()) return std::nullopt;
  return MegatronRank{*tp, *second, *third};
}

std::optional<MegatronTensor> megatron_tensor(std::string_view stored) {
  constexpr std::string_view kModel = "model";
  const size_t folder = stored.find('.');
  if (folder == std::string_view::npos) return std::nullopt;
  const auto rank = megatron_rank(stored.substr(0, folder));
  stored.remove_prefix(folder + 1);
  if (!rank || !stored.starts_with(kModel)) return std::nullopt;
  stored.remove_prefix(kModel.size());
  const auto chunk = take_digits(stored, 0);
  if (!chunk || !stored.starts_with('.')) return std::nullopt;
  return MegatronTensor{*rank, *chunk, std::string(stored.substr(1))};
}

const Reader kMegatronReader{"torch", is_never_entry_of_ranks, recognises_megatron, open_megatron};

}  // namespace shardtool::format::torch
