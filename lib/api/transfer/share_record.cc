#include "lib/api/transfer/share_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "kernels/xxh3/xxh3.h"
#include "lib/base/error.h"
#include "lib/base/json_writer.h"
#include "lib/store/local/output_claim.h"

namespace shardtool::api {
namespace {

constexpr int kTitleDepth = 3;

std::string hash_of_text(std::string_view text) {
  return kernels::xxh3_hex(std::as_bytes(std::span(text)));
}

/// Parses a number from 0 up to the most shares and removes it from the text.
std::optional<int> take_number(std::string_view& text) {
  int number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0 || number > kMostShares) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return number;
}

}  // namespace

const std::string kUnknownSha256(64, '0');

std::optional<Share> share_of_name(std::string_view name) {
  constexpr std::string_view kBetween = "-of-";
  std::string_view rest = name;
  const auto number = take_number(rest);
  if (!number || !rest.starts_with(kBetween)) return std::nullopt;
  rest.remove_prefix(kBetween.size());
  const auto of = take_number(rest);
  if (!of || *number >= *of || rest != ".share") return std::nullopt;
  const bool is_name = name == fmt::format("{}-of-{}.share", *number, *of);
  return is_name ? std::optional(Share{*number, *of}) : std::nullopt;
}

int read_share_number(JsonReader& in) {
  const i64 number = in.integer();
  if (number >= 0 && number <= kMostShares) return static_cast<int>(number);
  throw in.error("no number of shares", std::to_string(number),
                 fmt::format("0 to {}", kMostShares));
}

std::string format_share(const Share& share) {
  return fmt::format("{}/{}", share.number, share.of);
}

std::string to_text(const ShareRecord& record) {
  const std::string manifest = to_json(record.manifest);
  std::string text;
  JsonWriter json(text, kJsonCompact);
  json.begin_object().field("share", record.share.number).field("of", record.share.of);
  json.field("run", record.run).field("tensors", record.tensors).key("others").begin_array();
  for (const store::WrittenFile& file : record.others) {
    json.begin_object().field("name", file.name).field("bytes", file.bytes).end_object();
  }
  json.end_array().key("filled").begin_array();
  for (const std::string& name : record.filled) json.value(name);
  json.end_array().field("xxh3", hash_of_text(manifest)).end_object();
  return text + manifest;
}

ShareRecord parse_share_record(const std::string& text, const std::string& path) {
  const size_t end = std::min(text.find('\n'), text.size());
  const std::string title = text.substr(0, end);
  ShareRecord record;
  std::string hash;
  JsonReader in(title, {path, ErrorCode::kManifestInvalid}, kTitleDepth);
  const auto read_others = [&] {
    in.begin_array();
    while (in.next_element()) {
      store::WrittenFile& file = record.others.emplace_back();
      in.object({{"name", [&] { file.name = in.string(); }},
                 {"bytes", [&] { file.bytes = in.integer(); }}});
    }
  };
  const auto read_filled = [&] {
    in.begin_array();
    while (in.next_element()) record.filled.push_back(in.string());
  };
  in.object({{"share", [&] { record.share.number = read_share_number(in); }},
             {"of", [&] { record.share.of = read_share_number(in); }},
             {"run", [&] { record.run = in.string(); }},
             {"tensors", [&] { record.tensors = in.integer(); }},
             {"others", read_others},
             {"filled", read_filled},
             {"xxh3", [&] { hash = in.string(); }}});
  in.finish();
  const std::string manifest = text.substr(std::min(end + 1, text.size()));
  if (hash != hash_of_text(manifest)) {
    throw Error(ErrorCode::kManifestInvalid, "the record of a share is damaged")
        .at({path, 0, 0, {}})
        .help(fmt::format("run share {} again", format_share(record.share)));
  }
  record.manifest = format::parse_manifest(manifest, path);
  return record;
}

std::vector<Share> ended_shares(const store::OutputPlace& place, const std::string& id) {
  std::vector<Share> shares;
  for (const std::string& path : store::hidden_records(place, id)) {
    const size_t name = path.rfind('.', path.rfind(".share") - 1) + 1;
    const auto share = share_of_name(std::string_view(path).substr(name));
    const bool is_record =
        share && store::hidden_record(place, id, share->number, share->of) == path;
    if (is_record) shares.push_back(*share);
  }
  std::ranges::sort(shares, {},
                    [](const Share& share) { return std::pair(share.of, share.number); });
  return shares;
}

}  // namespace shardtool::api
