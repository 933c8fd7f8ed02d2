#include "shardtool/check/baseline.h"

#include <fmt/format.h>

#include "shardtool/base/json_reader.h"
#include "shardtool/base/json_text.h"

namespace shardtool::check {

Baseline::Key Baseline::key_of(const Finding& finding) {
  const size_t slash = finding.file.rfind('/');
  const std::string name =
      slash == std::string::npos ? finding.file : finding.file.substr(slash + 1);
  return {std::string(rule_info(finding.rule).id), name, finding.tensor, finding.rank};
}

Baseline Baseline::of(const std::vector<Finding>& findings) {
  Baseline baseline;
  for (const Finding& finding : findings) ++baseline.known_[key_of(finding)];
  return baseline;
}

bool Baseline::take(const Finding& finding) {
  const auto found = known_.find(key_of(finding));
  if (found == known_.end() || found->second == 0) return false;
  --found->second;
  return true;
}

std::string Baseline::to_json() const {
  std::string text = "{\"format_version\": \"1.0\", \"findings\": [";
  std::string_view separator = "\n";
  for (const auto& [key, count] : known_) {
    const auto& [id, file, tensor, rank] = key;
    text += fmt::format(
        "{}  {{\"id\": {}, \"file\": {}, \"tensor\": {}, \"rank\": {}, "
        "\"count\": {}}}",
        separator, json_quote(id), json_quote(file), json_quote(tensor), rank, count);
    separator = ",\n";
  }
  return text + "\n]}\n";
}

Baseline Baseline::parse(std::string_view text, const std::string& path) {
  constexpr int kMaxDepth = 8;
  Baseline baseline;
  JsonReader in(text, {path, ErrorCode::kUsage}, kMaxDepth);
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
    baseline.known_[key] += count;
  };
  in.object({{"format_version", [&] { in.string(); }}, {"findings", [&] {
                                                          in.begin_array();
                                                          while (in.next_element()) read_finding();
                                                        }}});
  in.finish();
  return baseline;
}

}  // namespace shardtool::check
