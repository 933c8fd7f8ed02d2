#include "lib/check/baseline.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/checked.h"
#include "lib/base/error.h"
#include "lib/base/json_reader.h"
#include "lib/base/json_writer.h"
#include "lib/base/text.h"

namespace shardtool::check {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kVersion = "2.0";

/// True if one of two folders is inside the other, given the path between them.
bool is_straight(const fs::path& relative) {
  const auto is_up = [](const fs::path& name) { return name == ".."; };
  return std::ranges::all_of(relative, is_up) || std::ranges::none_of(relative, is_up);
}

/// Absolute path without symbolic links; resolves as much of the path as exists.
fs::path resolved(const fs::path& path) {
  return fs::weakly_canonical(fs::absolute(path));
}

fs::path folder_of(const std::string& path) {
  return resolved(path).parent_path();
}

void require_version(const JsonReader& in, const std::string& version, const std::string& path) {
  if (version.starts_with("2.")) return;
  throw in.error("the baseline cannot be read", quote_for_message(version), std::string(kVersion))
      .help(fmt::format("version 1 knew files by their names alone, so that an entry for one "
                        "folder hid the same fault in another: write the file again with "
                        "`shardtool check ... --write-baseline {}`, without --baseline",
                        quote_for_message(path)));
}

}  // namespace

/// Keeps the last name: a link counts under its own name, not under its target.
std::string Baseline::known_path(const std::string& file) const {
  if (file.empty()) return file;
  const fs::path typed = fs::absolute(file).lexically_normal();
  const fs::path path =
      typed.has_filename() ? resolved(typed.parent_path()) / typed.filename() : resolved(typed);
  const fs::path relative = path.lexically_relative(root_);
  const bool is_inside = !relative.empty() && *relative.begin() != "..";
  return (is_inside ? relative : path).generic_string();
}

Baseline::Key Baseline::key_of(const Finding& finding) const {
  return {std::string(rule_info(finding.rule).id), known_path(finding.file), finding.tensor,
          finding.rank};
}

Baseline Baseline::of(const std::vector<Finding>& findings, const std::string& path) {
  Baseline baseline;
  baseline.root_ = resolved(".");
  const fs::path from_file = baseline.root_.lexically_relative(folder_of(path));
  baseline.stated_root_ = (is_straight(from_file) ? from_file : baseline.root_).generic_string();
  for (const Finding& finding : findings) ++baseline.known_[baseline.key_of(finding)];
  return baseline;
}

bool Baseline::take(const Finding& finding) {
  const auto found = known_.find(key_of(finding));
  if (found == known_.end() || found->second == 0) return false;
  --found->second;
  return true;
}

std::string Baseline::to_json() const {
  std::string text;
  JsonWriter json(text, kJsonSpaced);
  json.begin_object().field("format_version", kVersion).field("root", stated_root_);
  json.key("findings").begin_array({"\n  ", ",\n  ", ""});
  for (const auto& [key, count] : known_) {
    const auto& [id, file, tensor, rank] = key;
    json.begin_object().field("id", id).field("file", file).field("tensor", tensor);
    json.field("rank", rank).field("count", count).end_object();
  }
  text += '\n';
  json.end_array().end_object();
  return text;
}

Baseline Baseline::parse(std::string_view text, const std::string& path) {
  constexpr int kMaxDepth = 8;
  Baseline baseline;
  JsonReader in(text, {path, ErrorCode::kMalformed}, kMaxDepth);
  const auto read_finding = [&] {
    Key key;
    std::get<3>(key) = -1;
    i64 count = 1;
    in.object({{"id", [&] { std::get<0>(key) = in.string(); }},
               {"file", [&] { std::get<1>(key) = in.string(); }, false},
               {"tensor", [&] { std::get<2>(key) = in.string(); }, false},
               {"rank", [&] { std::get<3>(key) = in.integer(); }, false},
               {"count", [&] { count = in.integer(); }, false}});
    if (count < 0) throw in.error("a count is negative", std::to_string(count), "0 or more");
    i64& known = baseline.known_[key];
    const auto sum = checked_add(known, count);
    if (!sum) throw in.error("the counts of a fault are too large", std::to_string(count), "less");
    known = *sum;
  };
  in.object({{"format_version", [&] { require_version(in, in.string(), path); }},
             {"root", [&] { baseline.stated_root_ = in.string(); }},
             {"findings", [&] {
                in.begin_array();
                while (in.next_element()) read_finding();
              }}});
  in.finish();
  baseline.root_ = resolved(folder_of(path) / baseline.stated_root_);
  return baseline;
}

}  // namespace shardtool::check
