#include "lib/store/s3/upload.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/error.h"
#include "lib/base/interruption.h"
#include "lib/base/text.h"
#include "lib/store/local/file.h"
#include "lib/store/s3/refusal.h"
#include "lib/store/s3/xml.h"

namespace shardtool::store::s3 {
namespace {

constexpr i64 kMinPartBytes = 16 << 20;
constexpr i64 kMaxPartBytes = i64{5} << 30;
constexpr i64 kMaxParts = 10'000;
constexpr i64 kPartsAtOnce = 8;
/// A service sends a blank from time to time while it joins parts, for minutes
/// (docs.aws.amazon.com/AmazonS3/latest/API/API_CompleteMultipartUpload.html).
constexpr i64 kCompletionMs = 600'000;
constexpr int kAbsent = 404;

i64 part_bytes_for(const Url& url, i64 bytes) {
  const i64 part = std::max(kMinPartBytes, round_up(ceil_div(bytes, kMaxParts), i64{1} << 20));
  if (part <= kMaxPartBytes) return part;
  throw Error(ErrorCode::kLimit, "the file is too large for an object")
      .at({url.text(), 0, 0, ""})
      .note("found", format_bytes(bytes));
}

Error not_written(const Url& url, std::string found) {
  return Error(ErrorCode::kWriteFailed, "the object is not what was written")
      .at({url.text(), 0, 0, ""})
      .note("found", std::move(found));
}

std::string completion_of(std::span<const std::string> tags) {
  std::string text = "<CompleteMultipartUpload>";
  for (size_t i = 0; i < tags.size(); ++i) {
    text += fmt::format("<Part><PartNumber>{}</PartNumber><ETag>{}</ETag></Part>", i + 1, tags[i]);
  }
  return text + "</CompleteMultipartUpload>";
}

std::string read_part(const File& file, i64 offset, i64 size) {
  std::string part(static_cast<size_t>(size), '\0');
  read_exact(file, std::as_writable_bytes(std::span(part)), offset);
  return part;
}

void check_size(Client& client, const Url& url, i64 bytes) {
  const auto info = client.head(url);
  if (!info) throw not_written(url, "no object");
  if (info->bytes != bytes) throw not_written(url, fmt::format("{} bytes", info->bytes));
}

}  // namespace

std::vector<std::string> begin_uploads(Client& client, std::span<const Url> urls) {
  std::vector<PlainRequest> requests;
  for (const Url& url : urls) requests.push_back({"POST", url, {{"uploads", ""}}});
  std::vector<std::string> ids;
  for (const HttpAnswer& answer : client.ask(requests)) {
    const Url& url = urls[ids.size()];
    ids.push_back(document_of(answer, url, client.settings()).value("UploadId"));
    if (ids.back().empty()) throw not_written(url, "an upload without an id");
  }
  return ids;
}

void complete_upload(Client& client, const Url& url, const std::string& id,
                     std::span<const std::string> etags, i64 bytes) {
  const std::string body = completion_of(etags);
  PlainRequest request{"POST", url, {{"uploadId", id}}, body, true};
  request.may_fail_late = true;
  request.deadline_ms = kCompletionMs;
  const HttpAnswer answer = client.ask(request);
  if (answer.status != kAbsent) {  // an answer that was lost leaves no upload behind
    const XmlElement root = document_of(answer, url, client.settings());
    if (root.name != "CompleteMultipartUploadResult") {
      throw not_written(url, quote_for_message(root.name + " " + root.value("Code")));
    }
  }
  check_size(client, url, bytes);
}

void abort_upload(Client& client, const Url& url, const std::string& id) {
  client.ask({"DELETE", url, {{"uploadId", id}}, {}, true});
}

Upload::Upload(Client& client, Url url, i64 bytes)
    : client_(client),
      url_(std::move(url)),
      bytes_(bytes),
      part_bytes_(part_bytes_for(url_, bytes)),
      id_(begin_uploads(client, {&url_, 1}).front()) {}

Upload::~Upload() {
  if (is_finished_) return;
  const Interruptible scope(interruption(), kLastPatience);
  try {
    abort_upload(client_, url_, id_);
  } catch (const Error&) {
  }
}

void Upload::send(std::span<const std::string_view> parts) {
  std::vector<PlainRequest> requests;
  for (const std::string_view part : parts) {
    const size_t number = tags_.size() + requests.size() + 1;
    requests.push_back(
        {"PUT", url_, {{"partNumber", std::to_string(number)}, {"uploadId", id_}}, part});
  }
  for (const HttpAnswer& answer : client_.ask(requests)) tags_.push_back(answer.header("etag"));
}

void Upload::finish() {
  complete_upload(client_, url_, id_, tags_, bytes_);
  is_finished_ = true;
}

void put_object(Client& client, const Url& url, std::string_view bytes) {
  client.ask({"PUT", url, {}, bytes});
}

void put_file(Client& client, const std::string& path, const Url& url, i64 memory,
              const std::function<void()>& between) {
  const File file = open_read(path);
  const i64 bytes = identity(file).size;
  between();
  if (bytes <= kMinPartBytes) {
    put_object(client, url, read_part(file, 0, bytes));
    return check_size(client, url, bytes);
  }
  Upload upload(client, url, bytes);
  const i64 at_once = std::clamp<i64>(memory / upload.part_bytes(), 1, kPartsAtOnce);
  for (i64 at = 0; at < bytes;) {
    between();
    std::vector<std::string> parts;
    while (at < bytes && std::ssize(parts) < at_once) {
      parts.push_back(read_part(file, at, std::min(upload.part_bytes(), bytes - at)));
      at += std::ssize(parts.back());
    }
    upload.send(std::vector<std::string_view>(parts.begin(), parts.end()));
  }
  upload.finish();
}

bool put_new_file(Client& client, const std::string& path, const Url& url) {
  const File file = open_read(path);
  const i64 size = identity(file).size;
  if (size > kMinPartBytes) return false;
  const std::string bytes = read_part(file, 0, size);
  PlainRequest request{"PUT", url, {}, bytes, true, {{"if-none-match", "*"}}, true};
  request.may_be_refused = true;
  return client.ask(request).succeeded();
}

void remove_object(Client& client, const Url& url) {
  client.ask({"DELETE", url, {}, {}, true});
}

std::vector<OpenUpload> list_uploads(Client& client, const Url& url) {
  std::vector<OpenUpload> open;
  std::string key_marker;
  std::string id_marker;
  while (true) {
    PlainRequest request{"GET", {url.bucket, ""}, {{"uploads", ""}, {"prefix", url.key}}};
    if (!key_marker.empty()) {
      request.query.insert(request.query.end(),
                           {{"key-marker", key_marker}, {"upload-id-marker", id_marker}});
    }
    const XmlElement root = document_of(client.ask(request), url, client.settings());
    for (const XmlElement& entry : root.children) {
      if (entry.name != "Upload") continue;
      open.push_back({entry.value("Key"), entry.value("UploadId"), entry.value("Initiated")});
    }
    const std::string next = root.value("NextKeyMarker");
    const std::string next_id = root.value("NextUploadIdMarker");
    const bool is_further = next > key_marker || (next == key_marker && next_id != id_marker);
    if (root.value("IsTruncated") != "true" || !is_further) return open;
    key_marker = next;
    id_marker = next_id;
  }
}

std::optional<std::vector<SentPart>> list_parts(Client& client, const Url& url,
                                                const std::string& id) {
  std::vector<SentPart> parts;
  i64 marker = 0;
  while (true) {
    const PlainRequest request{
        "GET", url, {{"uploadId", id}, {"part-number-marker", std::to_string(marker)}}, {}, true};
    const HttpAnswer answer = client.ask(request);
    if (answer.status == kAbsent) return std::nullopt;
    const XmlElement root = document_of(answer, url, client.settings());
    for (const XmlElement& entry : root.children) {
      if (entry.name != "Part") continue;
      const i64 number = number_of(entry.value("PartNumber"));
      if (number <= marker || number > kMaxParts) continue;
      parts.push_back(
          {static_cast<int>(number), number_of(entry.value("Size")), entry.value("ETag")});
    }
    const i64 last = parts.empty() ? 0 : parts.back().number;
    if (root.value("IsTruncated") != "true" || last <= marker) return parts;
    marker = last;
  }
}

}  // namespace shardtool::store::s3
