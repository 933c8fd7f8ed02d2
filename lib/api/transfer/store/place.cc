#include "lib/api/transfer/store/place.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/api/transfer/output_checks.h"
#include "lib/api/transfer/share_record.h"
#include "lib/api/transfer/store/owned_prefix.h"
#include "lib/base/shell.h"
#include "lib/format/manifest/manifest.h"
#include "lib/store/local/output_claim.h"
#include "lib/store/reader.h"
#include "lib/store/s3/upload.h"

namespace shardtool::api {
namespace {

using store::s3::PartedObject;
using store::s3::Url;

constexpr std::string_view kHiddenFront = ".shardtool-";
constexpr std::string_view kUploadsName = "uploads";
constexpr std::string_view kFragmentsName = "fragments/";

/// Whole text of a small object; nullopt if there is none.
std::optional<std::string> text_of(store::s3::Client& client, const Url& url) {
  const auto answer = client.ask({"GET", url, {}, {}, true});
  constexpr int kFound = 2;
  if (answer.status / 100 != kFound) return std::nullopt;
  return answer.text;
}

}  // namespace

StorePlace::StorePlace(const std::string& output)
    : prefix_(output), client_(store::s3::shared_client()) {
  while (prefix_.ends_with('/')) prefix_.pop_back();
  if (!store::s3::parse_url(prefix_).key.empty()) return;
  throw Error(ErrorCode::kUsage, "the output is a whole bucket")
      .note("found", prefix_)
      .note("expected", "s3://bucket/prefix");
}

Url StorePlace::url(std::string_view name) const {
  return store::s3::parse_url(fmt::format("{}/{}", prefix_, name));
}

Url StorePlace::mark_url() const {
  return url(store::kUnfinishedName);
}

Url StorePlace::hidden(const std::string& id, std::string_view name) const {
  Url place = store::s3::parse_url(prefix_);
  place.key += fmt::format("/{}{}/{}", kHiddenFront, id, name);
  return place;
}

Url StorePlace::fragments(const std::string& id) const {
  return hidden(id, kFragmentsName);
}

Url StorePlace::record(const std::string& id, const Share& share) const {
  return hidden(id, fmt::format("{}-of-{}.share", share.number, share.of));
}

std::vector<Share> StorePlace::ended_shares(const std::string& id) const {
  std::vector<Share> ended;
  for (const std::string& name : hidden_names(id)) {
    if (const auto share = share_of_name(name)) ended.push_back(*share);
  }
  return ended;
}

StorePlace::Found StorePlace::look() const {
  store::forget_listing(prefix_);
  Found found;
  found.names = store::names_below(prefix_);
  if (std::erase(found.names, store::kUnfinishedName) > 0) {
    const auto mark = text_of(client_, mark_url());
    if (mark) found.mark = former_in(*mark);
  }
  for (const std::string& folder : store::folders_in(prefix_)) {
    if (folder.starts_with(kHiddenFront)) {
      found.runs.push_back(folder.substr(kHiddenFront.size()));
    } else {
      found.has_others = true;
    }
  }
  return found;
}

Former StorePlace::Found::former() const {
  if (has_manifest() && !is_unfinished()) return Former::kWhole;
  return names.empty() ? Former::kNothing : Former::kPart;
}

bool StorePlace::Found::has_manifest() const {
  return std::ranges::find(names, format::kManifestName) != names.end();
}

void StorePlace::require_writable(const Found& found, bool force) const {
  if (found.is_empty() || found.is_unfinished()) return;
  if (!force) throw store::output_exists(prefix_);
  check_own_output(prefix_, found.names);
}

void StorePlace::discard_runs(const Found& found) const {
  for (const std::string& id : found.runs) discard(id);
}

std::optional<UploadTable> StorePlace::uploads(const std::string& id) const {
  const auto text = text_of(client_, hidden(id, kUploadsName));
  return text ? std::optional(parse_uploads(*text, prefix_)) : std::nullopt;
}

UploadTable StorePlace::begin_uploads(const std::string& id, UploadTable own,
                                      const std::function<void(UploadTable& own)>& settle) const {
  std::vector<Url> urls;
  for (const PartedObject& object : own.objects) urls.push_back(object.url);
  const std::vector<std::string> ids = store::s3::begin_uploads(client_, urls);
  for (size_t i = 0; i < ids.size(); ++i) own.objects[i].upload = ids[i];
  settle(own);
  // The condition is a hint only: stores let several writers win. The one that is there counts.
  const std::string text = own.to_text();
  client_.ask({"PUT", hidden(id, kUploadsName), {}, text, false, {{"if-none-match", "*"}}, true});
  UploadTable known = uploads(id).value_or(own);
  if (!known.has_same_uploads(own)) {
    for (const PartedObject& object : own.objects) {
      store::s3::abort_upload(client_, object.url, object.upload);
    }
  }
  return known;
}

void StorePlace::remove(const std::vector<std::string>& names) const {
  std::vector<store::s3::PlainRequest> requests;
  for (const std::string& name : names) requests.push_back({"DELETE", url(name), {}, {}, true});
  client_.ask(requests);
}

void StorePlace::discard(const std::string& id) const {
  std::vector<store::s3::PlainRequest> requests;
  if (const auto table = uploads(id)) {
    for (const PartedObject& object : table->objects) {
      requests.push_back({"DELETE", object.url, {{"uploadId", object.upload}}, {}, true});
    }
  }
  for (const std::string_view folder : {kFragmentsName, std::string_view()}) {
    const Url place = hidden(id, folder);
    for (const auto& object : client_.list(place).objects) {
      requests.push_back({"DELETE", {place.bucket, place.key + object.name}, {}, {}, true});
    }
  }
  // The table goes last: a run that is cut off here can be discarded again.
  const Url table = hidden(id, kUploadsName);
  std::ranges::stable_partition(requests, [&](const auto& r) { return r.url != table; });
  client_.ask(requests);
}

void StorePlace::abort_all_uploads() const {
  const Url below = url("");
  try {
    for (const auto& upload : store::s3::list_uploads(client_, below)) {
      const bool is_direct = upload.key.find('/', below.key.size()) == upload.key.npos;
      if (is_direct) store::s3::abort_upload(client_, {below.bucket, upload.key}, upload.id);
    }
  } catch (const Error&) {
    // Not every key may list uploads, and not every store can; `doctor` tells of them.
  }
}

std::vector<std::string> StorePlace::hidden_names(const std::string& id) const {
  std::vector<std::string> names;
  for (auto& object : client_.list(hidden(id, "")).objects) names.push_back(object.name);
  return names;
}

std::vector<std::pair<std::string, std::string>> StorePlace::hidden_texts(
    const std::string& id, std::string_view front) const {
  std::vector<std::pair<std::string, std::string>> texts;
  for (const std::string& name : hidden_names(id)) {
    if (!name.starts_with(front)) continue;
    if (auto text = text_of(client_, hidden(id, name))) texts.emplace_back(name, std::move(*text));
  }
  return texts;
}

bool take_up_parts(store::s3::PartedOutput& output, Former former) {
  for (const size_t o : output.take_up()) {
    if (former != Former::kNothing) return false;
    // Objects were deleted before the first was made: one that is there was made of its parts.
    const store::s3::PartedObject& object = output.object(o);
    const auto info = store::s3::shared_client().head(object.url);
    i64 bytes = 0;
    for (const i64 part : object.parts) bytes += part;
    if (!info || info->bytes != bytes) return false;
    output.set_made(o);
  }
  return true;
}

Error no_uploads(const StorePlace& place) {
  return Error(ErrorCode::kOtherRun,
               "the uploads of the unfinished output are gone, and with them what was sent")
      .at({place.prefix(), 0, 0, {}})
      .help(fmt::format("delete the rest: shardtool resume --discard {}, and run again",
                        path_argument(place.prefix())));
}

void check_apart_on_store(const LogicalCheckpoint& source, const std::string& output) {
  const std::string to = StorePlace(output).prefix() + "/";
  for (const format::Checkpoint& part : source.parts) {
    const std::string from = part.folder() + "/";
    if (!from.starts_with(to) && !to.starts_with(from)) continue;
    throw Error(
        ErrorCode::kOutputAliasesInput,
        fmt::format("one of the output {} and the input {} contains the other", output, part.path))
        .help("write to a prefix beside the checkpoint");
  }
}

}  // namespace shardtool::api
