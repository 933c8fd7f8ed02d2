#include "lib/api/proof/verdict_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>

#include "kernels/xxh3/xxh3.h"
#include "lib/api/transfer/share_record.h"
#include "lib/base/error.h"
#include "lib/engine/diagnosis/verdict_json.h"
#include "lib/store/local/failure.h"
#include "lib/store/local/shared_folder.h"
#include "lib/store/reader.h"
#include "lib/store/s3/upload.h"

namespace shardtool::check {

// Must be in the types' namespace for nlohmann::json.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Finding, rule, message, file, line, column, tensor, axis, rank,
                                   found, expected, fix, severity)

}  // namespace shardtool::check

namespace shardtool::engine {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CollectiveRow, tier, axis, move, predicted_count, counted,
                                   predicted_elements, counted_elements, element_bytes)

}  // namespace shardtool::engine

namespace shardtool::api {

using nlohmann::json;

namespace {

template <class T>
json to_list(const std::optional<T>& value) {
  return value ? json::array({*value}) : json::array();
}

/// JSON has no infinities: null stands for them.
json number_json(double number) {
  return std::isinf(number) ? json() : json(number);
}
double number_in(const json& from) {
  return from.is_null() ? std::numeric_limits<double>::infinity() : from.get<double>();
}

template <class T>
void take_list(const json& from, std::optional<T>& into) {
  into.reset();
  if (!from.empty()) into = from.at(0).get<T>();
}

}  // namespace

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Share, number, of)

void to_json(json& to, const ValidateTier& tier) {
  to = json{{"kind", tier.kind},
            {"outcome", tier.outcome},
            {"checked", tier.checked},
            {"mismatches", tier.mismatches},
            {"worst", number_json(tier.worst)},
            {"rounding", number_json(tier.rounding)},
            {"reordered", tier.reordered},
            {"first", to_list(tier.first)}};
}

void from_json(const json& from, ValidateTier& tier) {
  from.at("kind").get_to(tier.kind);
  from.at("outcome").get_to(tier.outcome);
  from.at("checked").get_to(tier.checked);
  from.at("mismatches").get_to(tier.mismatches);
  tier.worst = number_in(from.at("worst"));
  tier.rounding = number_in(from.at("rounding"));
  from.at("reordered").get_to(tier.reordered);
  take_list(from.at("first"), tier.first);
}

namespace {

constexpr std::string_view kSuffix = ".verdict";

/// The fields of a report but the optional ones.
struct PlainReport : ValidateReport {};

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PlainReport, outcome, engine, backend, accelerators, libraries,
                                   native, native_type, family, mesh, ranks, layers, tensors,
                                   has_reference, tiers, findings, faults, reordered, collectives,
                                   odd_weights, parts, undecidable_tokens, untested, coverage,
                                   digest, not_proved, notes, ran, bytes_read, seconds)

std::string hash_of(std::string_view text) {
  return kernels::xxh3_hex(std::as_bytes(std::span(text)));
}

std::string to_text(const VerdictRecord& record) {
  const json document{{"run", record.run},
                      {"require_coverage", record.require_coverage},
                      {"share", to_list(record.report.share)},
                      {"bytes", to_list(record.report.bytes)},
                      {"report", PlainReport{record.report}}};
  const std::string text = document.dump(-1, ' ', true, json::error_handler_t::replace);
  return hash_of(text) + "\n" + text;
}

Error damaged(const std::string& path, const Share& share) {
  return std::move(Error(ErrorCode::kManifestInvalid, "the record of a share is damaged")
                       .at({path, 0, 0, {}})
                       .help(fmt::format("run share {} again", format_share(share))));
}

VerdictRecord parse_record(const std::string& text, const std::string& path, const Share& share) {
  const size_t end = std::min(text.find('\n'), text.size());
  const std::string rest = text.substr(std::min(end + 1, text.size()));
  if (text.substr(0, end) != hash_of(rest)) throw damaged(path, share);
  try {
    const json document = json::parse(rest);
    VerdictRecord record;
    document.at("run").get_to(record.run);
    document.at("require_coverage").get_to(record.require_coverage);
    record.report = document.at("report").get<PlainReport>();
    take_list(document.at("share"), record.report.share);
    take_list(document.at("bytes"), record.report.bytes);
    if (record.report.share == share) return record;
  } catch (const json::exception&) {
  }
  throw damaged(path, share);
}

std::vector<std::string> names_in(const std::string& folder) {
  if (store::is_remote(folder)) {
    store::forget_listing(folder);
    return store::names_below(folder);
  }
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    names.push_back(entry.path().filename().string());
  }
  return names;
}

}  // namespace

std::string VerdictFolder::path_of(const Share& share) const {
  return fmt::format("{}/{}-of-{}{}", path_, share.number, share.of, kSuffix);
}

Error VerdictFolder::other_run(const Share& share) const {
  return std::move(Error(ErrorCode::kOtherRun, "the folder has a share of another validation")
                       .at({path_of(share), 0, 0, {}})
                       .help("give every validation a folder of its own, or delete this one"));
}

void VerdictFolder::begin(const std::string& run, const Share& share) const {
  if (!store::is_remote(path_)) {
    std::error_code error;
    std::filesystem::create_directories(path_, error);
    if (error) throw store::write_failure("create the folder", path_, error.value());
  }
  for (const Share& other : ended()) {
    if (other.of != share.of || read(other).run != run) throw other_run(other);
  }
}

void VerdictFolder::put(const VerdictRecord& record) const {
  const std::string path = path_of(*record.report.share);
  if (store::is_remote(path_)) {
    put_object(store::s3::shared_client(), store::s3::parse_url(path), to_text(record));
  } else {
    store::put_whole(fmt::format("{}/.unfinished.{:08x}", path_, std::random_device()()), path,
                     path_, to_text(record));
  }
}

std::vector<Share> VerdictFolder::ended() const {
  std::vector<Share> shares;
  for (const std::string& name : names_in(path_)) {
    if (!name.ends_with(kSuffix)) continue;
    const std::string_view front(name.data(), name.size() - kSuffix.size());
    if (const auto share = share_of_name(fmt::format("{}.share", front))) shares.push_back(*share);
  }
  std::ranges::sort(shares, {}, [](const Share& one) { return std::pair(one.of, one.number); });
  return shares;
}

VerdictRecord VerdictFolder::read(const Share& share) const {
  const std::string path = path_of(share);
  store::forget_listing(path);
  return parse_record(store::read_source_text(path, std::numeric_limits<i64>::max()), path, share);
}

}  // namespace shardtool::api
