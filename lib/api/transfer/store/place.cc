#include "lib/api/transfer/store/place.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <random>

#include "lib/api/transfer/output_checks.h"
#include "lib/base/json_reader.h"
#include "lib/base/json_writer.h"
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
constexpr std::string_view kMarkText =
    "shardtool deletes this object when the output is complete\nowner ";
constexpr int kTableDepth = 6;
constexpr int kSuccess = 2;
constexpr int kAbsent = 404;
constexpr size_t kAtOnce = 16;

/// Sends requests, some at a time.
std::vector<store::s3::HttpAnswer> ask_all(store::s3::Client& client,
                                           std::span<const store::s3::PlainRequest> requests) {
  std::vector<store::s3::HttpAnswer> answers;
  for (size_t i = 0; i < requests.size(); i += kAtOnce) {
    std::ranges::move(client.ask(requests.subspan(i, std::min(kAtOnce, requests.size() - i))),
                      std::back_inserter(answers));
  }
  return answers;
}

/// Whole text of a small object; nullopt if there is none.
std::optional<std::string> text_of(store::s3::Client& client, const Url& url) {
  const auto answer = client.ask({"GET", url, {}, {}, true});
  if (answer.status / 100 != kSuccess) return std::nullopt;
  return answer.text;
}

/// Deletes an object if it has this ETag. The condition is a hint only: not every store knows it.
store::s3::PlainRequest conditional_delete(Url url, const std::string& etag) {
  store::s3::PlainRequest request{"DELETE", std::move(url),       {},  {},
                                  true,     {{"if-match", etag}}, true};
  request.may_be_refused = true;
  return request;
}

std::string mark_text(std::string_view owner, bool is_replaced) {
  return fmt::format("{}{}{}", kMarkText, owner, is_replaced ? store::kStillThere : "\n");
}

std::string_view owner_in(std::string_view mark) {
  if (!mark.starts_with(kMarkText)) return {};
  mark.remove_prefix(kMarkText.size());
  return mark.substr(0, mark.find('\n'));
}

/// Parts as [bytes, count] of those that follow each other with one size.
void write_parts(JsonWriter& json, const std::vector<i64>& parts) {
  json.key("parts").begin_array();
  for (size_t begin = 0, end = 0; begin < parts.size(); begin = end) {
    while (end < parts.size() && parts[end] == parts[begin]) ++end;
    json.begin_array().value(parts[begin]).value(static_cast<i64>(end - begin)).end_array();
  }
  json.end_array();
}

}  // namespace

std::string UploadTable::to_text() const {
  std::string text;
  JsonWriter json(text, kJsonCompact);
  json.begin_object()
      .field("run", run)
      .field("about", about)
      .field("copies", copies)
      .key("objects")
      .begin_array();
  for (const PartedObject& object : objects) {
    json.begin_object().field("name", object.url.key.substr(object.url.key.rfind('/') + 1));
    json.field("upload", object.upload);
    write_parts(json, object.parts);
    json.end_object();
  }
  json.end_array().end_object();
  return text;
}

bool UploadTable::has_same_uploads(const UploadTable& other) const {
  return std::ranges::equal(objects, other.objects, {}, &PartedObject::upload,
                            &PartedObject::upload);
}

UploadTable parse_uploads(const std::string& text, const StorePlace& place) {
  UploadTable table;
  JsonReader in(text, {place.prefix(), ErrorCode::kManifestInvalid}, kTableDepth);
  const auto read_parts = [&](std::vector<i64>& parts) {
    in.begin_array();
    while (in.next_element()) {
      std::vector<i64> pair;
      in.begin_array();
      while (in.next_element()) pair.push_back(in.integer());
      const bool is_good = pair.size() == 2 && pair[0] > 0 && pair[1] > 0 &&
                           pair[1] <= store::s3::kMostParts - std::ssize(parts);
      if (!is_good) throw in.error("these are no parts", "another list", "[bytes, count]");
      parts.insert(parts.end(), static_cast<size_t>(pair[1]), pair[0]);
    }
  };
  const auto read_objects = [&] {
    in.begin_array();
    while (in.next_element()) {
      PartedObject& object = table.objects.emplace_back();
      in.object({{"name", [&] { object.url = place.url(in.string()); }},
                 {"upload", [&] { object.upload = in.string(); }},
                 {"parts", [&] { read_parts(object.parts); }}});
    }
  };
  in.object({{"run", [&] { table.run = in.string(); }},
             {"about", [&] { table.about = in.string(); }},
             {"copies", [&] { table.copies = in.boolean(); }},
             {"objects", read_objects}});
  in.finish();
  return table;
}

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

Url StorePlace::hidden(const std::string& id, std::string_view name) const {
  Url place = store::s3::parse_url(prefix_);
  place.key += fmt::format("/{}{}/{}", kHiddenFront, id, name);
  return place;
}

Url StorePlace::fragments(const std::string& id) const {
  return hidden(id, kFragmentsName);
}

StorePlace::Found StorePlace::look() const {
  store::look_again(prefix_);
  Found found;
  found.names = store::names_below(prefix_);
  if (std::erase(found.names, store::kUnfinishedName) > 0) {
    const auto mark = text_of(client_, url(store::kUnfinishedName));
    found.is_replaced = mark && mark->find(store::kStillThere) != mark->npos;
    found.is_unfinished = mark && !found.is_replaced;
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

bool StorePlace::Found::has_manifest() const {
  return std::ranges::find(names, format::kManifestName) != names.end();
}

void StorePlace::require_writable(const Found& found, bool force) const {
  if (found.is_empty() || found.is_unfinished) return;
  if (!force) throw store::output_exists(prefix_);
  if (!found.has_manifest()) throw not_replaceable(prefix_);
}

void StorePlace::mark(std::string_view owner, bool is_replaced) const {
  store::s3::put_object(client_, url(store::kUnfinishedName), mark_text(owner, is_replaced));
}

StorePlace::Found StorePlace::take(const Found& found, std::string_view owner) const {
  mark(owner, found.has_manifest() && !found.is_unfinished);
  Found now = look();
  if (now.has_manifest() && !found.has_manifest()) {
    if (this->owner() == owner) {
      discard_runs(now);
      unmark(owner);
    }
    throw store::output_exists(prefix_);
  }
  require_own(owner);
  if (now.is_replaced && !now.has_manifest()) {
    remark(owner);  // the run that had the prefix has deleted it meanwhile
    now.is_replaced = false;
    now.is_unfinished = true;
  }
  return now;
}

std::optional<std::string> StorePlace::owner() const {
  const auto text = text_of(client_, url(store::kUnfinishedName));
  return text ? std::optional(std::string(owner_in(*text))) : std::nullopt;
}

void StorePlace::require_own(std::string_view owner) const {
  own_mark(owner);
}

/// The mark. Throws kOtherRun unless it names this owner.
store::s3::HttpAnswer StorePlace::own_mark(std::string_view owner) const {
  auto found = client_.ask({"GET", url(store::kUnfinishedName), {}, {}, true});
  if (found.status / 100 == kSuccess && owner_in(found.text) == owner) return found;
  throw lost();
}

Error StorePlace::lost() const {
  return Error(ErrorCode::kOtherRun,
               "another run has begun to write this output, or has written it")
      .at({prefix_, 0, 0, {}})
      .help("have each run write a prefix of its own, or start them one after the other");
}

void StorePlace::discard_runs(const Found& found) const {
  for (const std::string& id : found.runs) discard(id);
}

void StorePlace::clear(const std::vector<std::string>& names, std::string_view owner) const {
  if (names.empty()) return;
  std::vector<store::s3::ListedObject> objects = client_.list(url("")).objects;
  std::erase_if(objects, [&](const auto& object) {
    return std::ranges::find(names, object.name) == names.end();
  });
  const auto first = std::ranges::partition(
      objects, [](const auto& object) { return object.name == format::kManifestName; });
  remark(owner);
  remove_listed({objects.begin(), first.begin()}, owner);
  remove_listed({first.begin(), objects.end()}, owner);
  store::look_again(prefix_);
}

/// Changes the own mark to one that has readers refuse the prefix.
void StorePlace::remark(std::string_view owner) const {
  const auto found = own_mark(owner);
  const std::string text = mark_text(owner, false);
  if (found.text == text) return;
  store::s3::PlainRequest request{"PUT", url(store::kUnfinishedName),          {},  text,
                                  true,  {{"if-match", found.header("etag")}}, true};
  request.may_be_refused = true;
  if (client_.ask(request).status / 100 == kSuccess) return;
  require_own(owner);
  mark(owner);
}

/// Deletes objects that are still those of a listing. Swift refuses the condition for objects that
/// were made of parts, so that a refusal alone says nothing.
void StorePlace::remove_listed(std::span<const store::s3::ListedObject> objects,
                               std::string_view owner) const {
  std::vector<store::s3::PlainRequest> requests;
  for (const auto& object : objects) {
    requests.push_back(conditional_delete(url(object.name), object.info.etag));
  }
  const auto answers = ask_all(client_, requests);
  for (size_t i = 0; i < answers.size(); ++i) {
    if (answers[i].status / 100 == kSuccess || answers[i].status == kAbsent) continue;
    require_own(owner);
    store::s3::remove_object(client_, requests[i].url);
  }
}

void StorePlace::unmark(std::string_view owner) const {
  const Url mark = url(store::kUnfinishedName);
  const std::string etag = own_mark(owner).header("etag");
  const i64 status = client_.ask(conditional_delete(mark, etag)).status;
  const auto next = status / 100 == kSuccess ? std::nullopt : this->owner();
  if (next && next != owner) throw lost();
  if (next) store::s3::remove_object(client_, mark);
  store::look_again(prefix_);
}

std::optional<UploadTable> StorePlace::uploads(const std::string& id) const {
  const auto text = text_of(client_, hidden(id, kUploadsName));
  return text ? std::optional(parse_uploads(*text, *this)) : std::nullopt;
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

void StorePlace::put_file(const std::string& path, std::string_view name, std::string_view owner,
                          i64 memory, const std::function<void()>& between) const {
  require_own(owner);
  if (store::s3::put_new_file(client_, path, url(name))) return;
  // The file is large, or an object is there: this run's, or that of another one.
  store::s3::put_file(client_, path, url(name), memory, [&] {
    between();
    require_own(owner);
  });
}

void StorePlace::remove(const std::vector<std::string>& names) const {
  std::vector<store::s3::PlainRequest> requests;
  for (const std::string& name : names) requests.push_back({"DELETE", url(name), {}, {}, true});
  ask_all(client_, requests);
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
  ask_all(client_, requests);
}

void StorePlace::publish(const std::string& id, std::string_view owner) const {
  require_own(owner);
  abort_all_uploads();
  discard(id);
  unmark(owner);
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

std::string random_word() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
}

void take_up_parts(store::s3::PartedOutput& output, const StorePlace& place, bool is_replaced) {
  for (const size_t o : output.take_up()) {
    if (is_replaced) throw no_uploads(place);
    // Objects were deleted before the first was made: one that is there was made of its parts.
    const store::s3::PartedObject& object = output.object(o);
    const auto info = store::s3::shared_client().head(object.url);
    i64 bytes = 0;
    for (const i64 part : object.parts) bytes += part;
    if (!info || info->bytes != bytes) throw no_uploads(place);
    output.set_made(o);
  }
}

Error no_uploads(const StorePlace& place) {
  return Error(ErrorCode::kOtherRun,
               "the uploads of the unfinished output are gone, and with them what was sent")
      .at({place.prefix(), 0, 0, {}})
      .help(fmt::format("delete the rest: shardtool resume --discard '{}', and run again",
                        place.prefix()));
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
