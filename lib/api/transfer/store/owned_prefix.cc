#include "lib/api/transfer/store/owned_prefix.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <random>

#include "lib/api/transfer/scratch_folder.h"
#include "lib/format/checkpoint.h"
#include "lib/store/local/output_claim.h"
#include "lib/store/local/output_files.h"
#include "lib/store/reader.h"
#include "lib/store/s3/upload.h"

namespace shardtool::api {
namespace {

constexpr std::string_view kMarkText =
    "shardtool deletes this object when the output is complete\nowner ";
constexpr std::string_view kPartIsThere = "\na part of the output before is left\n";
constexpr int kSuccess = 2;
constexpr int kAbsent = 404;

std::string mark_text(std::string_view owner, Former former) {
  const std::string_view more = former == Former::kWhole  ? store::kStillThere
                                : former == Former::kPart ? kPartIsThere
                                                          : "\n";
  return fmt::format("{}{}{}", kMarkText, owner, more);
}

std::string_view owner_in(std::string_view mark) {
  if (!mark.starts_with(kMarkText)) return {};
  mark.remove_prefix(kMarkText.size());
  return mark.substr(0, mark.find('\n'));
}

/// A request that the store refuses unless the object has this ETag. The condition is a hint only:
/// not every store knows it.
store::s3::PlainRequest conditional(const char* method, store::s3::Url url, const std::string& etag,
                                    std::string_view body = {}) {
  store::s3::PlainRequest request{method, std::move(url), {}, body, true};
  request.headers = {{"if-match", etag}};
  request.may_conflict = true;
  request.may_be_refused = true;
  return request;
}

}  // namespace

OwnedPrefix::OwnedPrefix(const StorePlace& place, std::string owner)
    : place_(place), owner_(std::move(owner)), client_(store::s3::shared_client()) {}

void OwnedPrefix::put_mark(Former former) const {
  store::s3::put_object(client_, place_.mark_url(), mark_text(owner_, former));
}

void OwnedPrefix::require_may_delete() const {
  try {
    store::s3::remove_object(client_, place_.hidden(owner_, "may-delete"));
  } catch (Error& error) {
    if (error.code() == ErrorCode::kStoreRefused) {
      error.note("when",
                 "before anything was sent: what a run leaves below the prefix meanwhile "
                 "must be deleted in the end");
    }
    throw;
  }
}

void OwnedPrefix::mark(Former former) {
  if (owner_of(place_) != owner_) put_mark(former);
  is_marked_ = true;
  former_ = former;
}

StorePlace::Found OwnedPrefix::take(const StorePlace::Found& found) {
  put_mark(found.former());
  StorePlace::Found now = place_.look();
  if (now.has_manifest() && !found.has_manifest()) {
    if (owner_of(place_) == owner_) {
      place_.discard_runs(now);
      unmark();
    }
    throw store::output_exists(place_.prefix());
  }
  require();
  if (now.mark == Former::kWhole && !now.has_manifest()) {
    change_mark(Former::kPart);  // the run that had the prefix has deleted it meanwhile
    now.mark = Former::kPart;
  }
  is_marked_ = true;
  former_ = *now.mark;
  return now;
}

void OwnedPrefix::require() const {
  own_mark();
}

/// The mark. Throws kOtherRun unless it names this owner.
store::s3::HttpAnswer OwnedPrefix::own_mark() const {
  auto found = client_.ask({"GET", place_.mark_url(), {}, {}, true});
  if (found.status / 100 == kSuccess && owner_in(found.text) == owner_) return found;
  throw lost();
}

Error OwnedPrefix::lost() const {
  return Error(ErrorCode::kOtherRun,
               "another run has begun to write this output, or has written it")
      .at({place_.prefix(), 0, 0, {}})
      .help("have each run write a prefix of its own, or start them one after the other");
}

std::optional<std::string> OwnedPrefix::next_owner() const {
  if (!is_marked_) return std::nullopt;
  try {
    const auto owner = owner_of(place_);
    return owner != owner_ ? std::optional(owner.value_or("")) : std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
}

void OwnedPrefix::clear(const std::vector<std::string>& names) {
  if (names.empty()) {
    if (former_ != Former::kNothing) change_mark(Former::kNothing);
    return;
  }
  std::vector<store::s3::ListedObject> objects = client_.list(place_.url("")).objects;
  std::erase_if(objects, [&](const auto& object) {
    return std::ranges::find(names, object.name) == names.end();
  });
  const auto first = std::ranges::partition(
      objects, [](const auto& object) { return object.name == format::kManifestName; });
  change_mark(Former::kPart);
  remove_listed({objects.begin(), first.begin()});
  remove_listed({first.begin(), objects.end()});
  change_mark(Former::kNothing);
  store::forget_listing(place_.prefix());
}

void OwnedPrefix::change_mark(Former former) {
  const auto found = own_mark();
  const std::string text = mark_text(owner_, former);
  if (found.text != text) {
    const auto request = conditional("PUT", place_.mark_url(), found.header("etag"), text);
    if (client_.ask(request).status / 100 != kSuccess) {
      require();
      put_mark(former);
    }
  }
  former_ = former;
}

/// Deletes objects that are still those of a listing. Swift refuses the condition for objects that
/// were made of parts, so that a refusal alone says nothing.
void OwnedPrefix::remove_listed(std::span<const store::s3::ListedObject> objects) const {
  std::vector<store::s3::PlainRequest> requests;
  for (const auto& object : objects) {
    requests.push_back(conditional("DELETE", place_.url(object.name), object.info.etag));
  }
  const auto answers = client_.ask(requests);
  for (size_t i = 0; i < answers.size(); ++i) {
    if (answers[i].status / 100 == kSuccess || answers[i].status == kAbsent) continue;
    require();
    store::s3::remove_object(client_, requests[i].url);
  }
}

void OwnedPrefix::put_file(const std::string& path, std::string_view name, i64 memory) const {
  require();
  if (store::s3::put_new_file(client_, path, place_.url(name))) return;
  // The file is large, or an object is there: this run's, or that of another one.
  store::s3::put_file(client_, path, place_.url(name), memory, [this] { require(); });
}

void OwnedPrefix::put_manifest(const format::Manifest& head, size_t count,
                               const RecordOf& record) const {
  const ScratchFolder scratch(std::filesystem::temp_directory_path().string(), "upload");
  store::OutputFiles files(scratch / ".");
  write_manifest(head, count, record, files.create(format::kManifestName), exec::IoMode::kBuffered);
  put_file(scratch / format::kManifestName, format::kManifestName, store::s3::kLeastPartBytes);
}

void OwnedPrefix::unmark() const {
  const store::s3::Url mark = place_.mark_url();
  const std::string etag = own_mark().header("etag");
  const i64 status = client_.ask(conditional("DELETE", mark, etag)).status;
  const auto next = status / 100 == kSuccess ? std::nullopt : owner_of(place_);
  if (next && next != owner_) throw lost();
  if (next) store::s3::remove_object(client_, mark);
  store::forget_listing(place_.prefix());
}

void OwnedPrefix::publish(const std::optional<std::string>& id) const {
  require();
  place_.abort_all_uploads();
  if (id) place_.discard(*id);
  unmark();
}

Former former_in(std::string_view mark) {
  if (mark.find(store::kStillThere) != mark.npos) return Former::kWhole;
  return mark.find(kPartIsThere) != mark.npos ? Former::kPart : Former::kNothing;
}

std::optional<std::string> owner_of(const StorePlace& place) {
  const auto answer = store::s3::shared_client().ask({"GET", place.mark_url(), {}, {}, true});
  if (answer.status / 100 != kSuccess) return std::nullopt;
  return std::string(owner_in(answer.text));
}

std::string random_word() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
}

}  // namespace shardtool::api
