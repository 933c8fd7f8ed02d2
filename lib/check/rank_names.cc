#include "lib/check/rank_names.h"

#include <re2/re2.h>

#include <map>

#include "lib/store/reader.h"

namespace shardtool::check {
namespace {

constexpr size_t kMostDigits = 9;

/// Number in a name; nullopt if empty or longer than nine digits.
std::optional<i64> number(const std::string& digits) {
  if (digits.empty() || digits.size() > kMostDigits) return std::nullopt;
  return std::stoll(digits);
}

/// Captures rank, part and count; an empty group is absent.
const std::vector<const char*>& patterns() {
  static const std::vector<const char*> kPatterns{
      R"(.*-rank-(\d+)-part-(\d+)()\.safetensors)",
      R"((?:.*[-_.])?rank[-_]?(\d+)()()\.safetensors)",
      R"(model(\d+)()-mp(\d+)\.safetensors)",
      R"(.*[-_]TP-(\d+)()()\.safetensors)",
      R"(consolidated\.(\d+)()()\.(?:safetensors|pth))",
      R"((?:mp_|tp_)?rank[-_]?(\d+)()())",
  };
  return kPatterns;
}

}  // namespace

std::optional<RankName> parse_rank_name(std::string_view name) {
  for (const char* pattern : patterns()) {
    std::string rank;
    std::string part;
    std::string ranks;
    if (!re2::RE2::FullMatch(re2::StringPiece(name.data(), name.size()), pattern, &rank, &part,
                             &ranks)) {
      continue;
    }
    const auto of_rank = number(rank);
    if (!of_rank) return std::nullopt;
    return RankName{*of_rank, number(part), number(ranks)};
  }
  return std::nullopt;
}

std::optional<std::pair<std::string, i64>> parse_part_name(std::string_view name) {
  std::string stem;
  std::string count;
  if (!re2::RE2::FullMatch(re2::StringPiece(name.data(), name.size()),
                           R"((?:shard-\d{5}-)?(.*)-\d{5}-of-(\d{5})\.safetensors)", &stem,
                           &count)) {
    return std::nullopt;
  }
  return std::pair(stem, *number(count));
}

std::vector<std::string> rank_folders(const std::string& folder) {
  std::map<i64, std::string> by_rank;
  for (const std::string& name : store::folders_in(folder)) {
    const auto rank = parse_rank_name(name);
    if (!rank) continue;
    if (!by_rank.emplace(rank->rank, folder + "/" + name).second) return {};
  }
  std::vector<std::string> folders;
  for (auto& [rank, path] : by_rank) folders.push_back(std::move(path));
  return folders;
}

}  // namespace shardtool::check
