#include "lib/store/s3/parted_output.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <optional>

#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/store/s3/xml.h"

namespace shardtool::store::s3 {
namespace {

constexpr int kConditionFails = 412;
/// A service sends nothing while it copies; Swift copies 128 MiB in two seconds when it is idle.
constexpr i64 kCopyPatienceMs = 300'000;
/// ETag of the parts of an object that exists.
constexpr const char* kMade = "made";

std::string_view view_of(const std::byte* bytes, i64 count) {
  return {reinterpret_cast<const char*>(bytes), static_cast<size_t>(count)};
}

i64 overlap(const ByteRange& a, const ByteRange& b) {
  return std::max<i64>(std::min(a.end(), b.end()) - std::max(a.offset, b.offset), 0);
}

/// Joins ranges that touch or overlap.
std::vector<ByteRange> joined(std::vector<ByteRange> ranges) {
  std::ranges::sort(ranges);
  std::vector<ByteRange> all;
  for (const ByteRange& range : ranges) {
    if (all.empty() || all.back().end() < range.offset) {
      all.push_back(range);
    } else {
      all.back().bytes = std::max(all.back().end(), range.end()) - all.back().offset;
    }
  }
  return all;
}

Error changed_source(const PartCopy& copy) {
  return Error(ErrorCode::kInputChanged, "the object is not the one whose header was read")
      .at({copy.source.text(), 0, 0, ""})
      .help("run again once nothing writes to the input");
}

/// Root of an answer; an empty element for other texts.
XmlElement root_of(const std::string& text) {
  try {
    return parse_xml(text);
  } catch (const Error&) {
    return {};
  }
}

/// Object and range of a fragment with this name; nullopt for other names.
std::optional<std::pair<size_t, ByteRange>> parse_fragment(std::string_view name) {
  const size_t first = name.find('-');
  const size_t last = name.rfind('-');
  if (first == name.npos || first == last) return std::nullopt;
  const i64 object = number_of(name.substr(0, first));
  const ByteRange range{number_of(name.substr(first + 1, last - first - 1)),
                        number_of(name.substr(last + 1))};
  if (object < 0 || range.offset < 0 || range.bytes <= 0) return std::nullopt;
  return std::pair(static_cast<size_t>(object), range);
}

}  // namespace

bool covers(std::vector<ByteRange> ranges, const ByteRange& whole) {
  return std::ranges::any_of(joined(std::move(ranges)), [&](const ByteRange& range) {
    return range.offset <= whole.offset && range.end() >= whole.end();
  });
}

/// Pages that no byte comes to cost no memory.
PartedOutput::Waiting::Waiting(i64 part_bytes)
    : memory(static_cast<std::byte*>(::mmap(nullptr, static_cast<size_t>(part_bytes),
                                            PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                                            0))),
      size(part_bytes) {
  if (memory == MAP_FAILED) throw std::bad_alloc();
}

PartedOutput::Waiting::~Waiting() {
  ::munmap(memory, static_cast<size_t>(size));
}

/// Counts bytes as being sent, by this thread, without the lock.
class PartedOutput::Sending {
 public:
  Sending(PartedOutput& output, std::unique_lock<std::mutex>& lock, i64 bytes,
          int* leaving = nullptr)
      : output_(output), lock_(lock), bytes_(bytes), leaving_(leaving) {
    ++output_.sending_;
    if (leaving_ != nullptr) ++*leaving_;
    lock_.unlock();
  }
  ~Sending() {
    lock_.lock();
    --output_.sending_;
    if (leaving_ != nullptr) --*leaving_;
    output_.held_ -= bytes_;
    output_.sent_.notify_all();
  }
  Sending(const Sending&) = delete;
  Sending& operator=(const Sending&) = delete;

 private:
  PartedOutput& output_;
  std::unique_lock<std::mutex>& lock_;
  i64 bytes_;
  int* leaving_;
};

PartedOutput::PartedOutput(Client& client, std::vector<PartedObject> objects, Url fragments,
                           i64 memory)
    : client_(client),
      objects_(std::move(objects)),
      fragments_(std::move(fragments)),
      memory_(memory) {
  for (const PartedObject& object : objects_) {
    std::vector<Part>& parts = parts_.emplace_back();
    i64 offset = 0;
    for (const i64 bytes : object.parts) {
      parts.push_back({{offset, bytes}});
      offset += bytes;
    }
  }
  is_made_.resize(objects_.size());
}

Url PartedOutput::fragment_url(size_t object, const ByteRange& range) const {
  return {fragments_.bucket,
          fmt::format("{}{}-{}-{}", fragments_.key, object, range.offset, range.bytes)};
}

size_t PartedOutput::part_with(size_t object, i64 offset) const {
  const std::vector<Part>& parts = parts_[object];
  const auto after = std::ranges::upper_bound(parts, offset, {},
                                              [](const Part& part) { return part.range.offset; });
  return static_cast<size_t>(after - parts.begin()) - 1;
}

std::vector<size_t> PartedOutput::take_up() {
  std::vector<size_t> unknown;
  for (size_t o = 0; o < objects_.size(); ++o) {
    const auto sent = list_parts(client_, objects_[o].url, objects_[o].upload);
    if (!sent) unknown.push_back(o);
    for (const SentPart& part : sent.value_or(std::vector<SentPart>())) {
      const auto p = static_cast<size_t>(part.number) - 1;
      if (p < parts_[o].size() && parts_[o][p].range.bytes == part.bytes) {
        parts_[o][p].etag = part.etag;
      }
    }
  }
  take_up_fragments();
  return unknown;
}

void PartedOutput::take_up_fragments() {
  for (const ListedObject& listed : client_.list(fragments_).objects) {
    const auto fragment = parse_fragment(listed.name);
    if (!fragment || fragment->first >= objects_.size() ||
        fragment->second.bytes != listed.info.bytes) {
      continue;
    }
    const auto& [object, range] = *fragment;
    Part& part = parts_[object][part_with(object, range.offset)];
    const bool is_inside = range.end() <= part.range.end();
    if (is_inside && std::ranges::find(part.fragments, range) == part.fragments.end()) {
      part.fragments.push_back(range);
    }
  }
}

bool PartedOutput::has(size_t object, const ByteRange& range) const {
  if (range.bytes == 0) return true;
  const std::lock_guard lock(mutex_);
  const std::vector<Part>& parts = parts_[object];
  for (size_t p = part_with(object, range.offset);
       p < parts.size() && parts[p].range.offset < range.end(); ++p) {
    const Part& part = parts[p];
    const i64 begin = std::max(range.offset, part.range.offset);
    const i64 end = std::min(range.end(), part.range.end());
    if (!part.is_sent() && !covers(part.fragments, {begin, end - begin})) return false;
  }
  return true;
}

void PartedOutput::set_made(size_t object) {
  is_made_[object] = true;
  for (Part& part : parts_[object]) part.etag = kMade;
}

void PartedOutput::expect(size_t object, const ByteRange& range) {
  count_expected(object, range, 1);
}

void PartedOutput::except(size_t object, const ByteRange& range) {
  count_expected(object, range, -1);
}

void PartedOutput::count_expected(size_t object, const ByteRange& range, int sign) {
  if (range.bytes == 0) return;
  std::vector<Part>& parts = parts_[object];
  for (size_t p = part_with(object, range.offset);
       p < parts.size() && parts[p].range.offset < range.end(); ++p) {
    parts[p].expected += sign * overlap(parts[p].range, range);
  }
}

void PartedOutput::write(size_t object, std::span<const std::byte> bytes, i64 offset) {
  while (!bytes.empty()) {
    const Place place{object, part_with(object, offset)};
    const i64 room = at(place).range.end() - offset;
    const auto fragment = bytes.first(static_cast<size_t>(std::min(room, std::ssize(bytes))));
    write_in(place, fragment, offset);
    bytes = bytes.subspan(fragment.size());
    offset += std::ssize(fragment);
  }
}

void PartedOutput::write_in(const Place& place, std::span<const std::byte> bytes, i64 offset) {
  std::unique_lock lock(mutex_);
  Part& part = at(place);
  if (part.is_sent()) return;
  const i64 count = std::ssize(bytes);
  make_room(lock, count);
  if (!part.waiting) {
    part.waiting = std::make_shared<Waiting>(part.range.bytes);
    waiting_.insert(place);
  }
  const std::shared_ptr<Waiting> waiting = part.waiting;
  ++waiting->writers;
  waiting->ranges.push_back({offset, count});
  waiting->bytes += count;
  held_ += count;
  peak_ = std::max(peak_, held_);
  lock.unlock();
  std::memcpy(waiting->memory + (offset - part.range.offset), bytes.data(), bytes.size());
  lock.lock();
  if (--waiting->writers == 0) sent_.notify_all();
  part.arrived += count;
  if (part.arrived < part.expected) return;
  if (part.arrived > part.expected) {
    throw Error(ErrorCode::kInternal, "bytes of an object were written twice")
        .at({objects_[place.object].url.text(), 0, 0, ""});
  }
  // Taken before waiting, so that nobody sends it as fragments meanwhile.
  const std::shared_ptr<Waiting> all = take(place);
  sent_.wait(lock, [&part] { return part.leaving == 0; });
  const Sending sending(*this, lock, all->bytes);
  end(place, *all);
}

/// Waits for what is being sent, or sends the largest part that waits as fragments.
void PartedOutput::make_room(std::unique_lock<std::mutex>& lock, i64 bytes) {
  while (held_ > 0 && held_ + bytes > memory_) {
    std::optional<Place> largest;
    for (const Place& place : waiting_) {
      const Waiting& waiting = *at(place).waiting;
      if (waiting.writers > 0) continue;
      if (!largest || waiting.bytes > at(*largest).waiting->bytes) largest = place;
    }
    // Bytes that are neither sent nor wait are those that other threads are copying.
    if (sending_ > 0 || !largest) {
      sent_.wait(lock);
      continue;
    }
    const std::shared_ptr<Waiting> waiting = take(*largest);
    const Sending sending(*this, lock, waiting->bytes, &at(*largest).leaving);
    send_fragments(*largest, *waiting);
  }
}

/// Takes a part's bytes in memory, which are then this thread's.
std::shared_ptr<PartedOutput::Waiting> PartedOutput::take(const Place& place) {
  waiting_.erase(place);
  return std::move(at(place).waiting);
}

/// Sends a part of which this process has no more bytes to write.
void PartedOutput::end(const Place& place, const Waiting& waiting) {
  const Part& part = at(place);
  std::vector<ByteRange> ranges = waiting.ranges;
  ranges.insert(ranges.end(), part.fragments.begin(), part.fragments.end());
  if (!covers(ranges, part.range)) return send_fragments(place, waiting);
  if (waiting.bytes < part.range.bytes) read_fragments(place, waiting.memory);
  send_part(place, waiting.memory);
}

void PartedOutput::send_part(const Place& place, const std::byte* memory) {
  const PartedObject& object = objects_[place.object];
  Part& part = at(place);
  const HttpAnswer answer =
      client_.ask({"PUT",
                   object.url,
                   {{"partNumber", std::to_string(place.part + 1)}, {"uploadId", object.upload}},
                   view_of(memory, part.range.bytes)});
  const std::lock_guard lock(mutex_);
  part.etag = answer.header("etag");
  if (part.etag.empty()) {
    throw Error(ErrorCode::kWriteFailed, "the object store gives a part no ETag")
        .at({object.url.text(), 0, 0, ""});
  }
}

void PartedOutput::send_fragments(const Place& place, const Waiting& waiting) {
  Part& part = at(place);
  const std::vector<ByteRange> ranges = joined(waiting.ranges);
  std::vector<PlainRequest> requests;
  for (const ByteRange& range : ranges) {
    requests.push_back({"PUT",
                        fragment_url(place.object, range),
                        {},
                        view_of(waiting.memory + (range.offset - part.range.offset), range.bytes)});
  }
  client_.ask(requests);
  const std::lock_guard lock(mutex_);
  part.fragments.insert(part.fragments.end(), ranges.begin(), ranges.end());
}

void PartedOutput::read_fragments(const Place& place, std::byte* memory) {
  const Part& part = at(place);
  for (const ByteRange& range : part.fragments) {
    const Url url = fragment_url(place.object, range);
    const auto info = client_.head(url);
    if (!info || info->bytes != range.bytes) {
      throw Error(ErrorCode::kFileMissing, "a fragment of an unfinished object is gone or cut off")
          .at({url.text(), 0, 0, ""})
          .help("run the command again: it writes the fragment again");
    }
    const RangeRead read{
        0, {memory + (range.offset - part.range.offset), static_cast<size_t>(range.bytes)}};
    client_.read(url, *info, {&read, 1});
  }
}

bool PartedOutput::is_sent(size_t object, size_t part) const {
  const std::lock_guard lock(mutex_);
  return parts_[object][part].is_sent();
}

std::vector<std::string> PartedOutput::copy(std::span<const PartCopy> copies) {
  std::vector<PlainRequest> requests;
  std::vector<size_t> asked;
  for (size_t i = 0; i < copies.size(); ++i) {
    const PartCopy& copy = copies[i];
    if (is_sent(copy.object, copy.part)) continue;
    const PartedObject& object = objects_[copy.object];
    const i64 bytes = parts_[copy.object][copy.part].range.bytes;
    PlainRequest request{
        "PUT",
        object.url,
        {{"partNumber", std::to_string(copy.part + 1)}, {"uploadId", object.upload}}};
    request.headers = {{"x-amz-copy-source", fmt::format("/{}/{}", copy.source.bucket,
                                                         uri_encoded(copy.source.key, false))},
                       {"x-amz-copy-source-range",
                        fmt::format("bytes={}-{}", copy.offset, copy.offset + bytes - 1)},
                       {"x-amz-copy-source-if-match", copy.etag}};
    request.may_be_refused = request.may_fail_late = true;
    request.patience_ms = request.deadline_ms = kCopyPatienceMs;
    requests.push_back(std::move(request));
    asked.push_back(i);
  }
  std::vector<std::string> refusals(copies.size());
  const std::vector<HttpAnswer> answers = client_.ask(requests);
  for (size_t a = 0; a < answers.size(); ++a) {
    const PartCopy& copy = copies[asked[a]];
    if (answers[a].status == kConditionFails) throw changed_source(copy);
    const XmlElement root = root_of(answers[a].text);
    std::string etag = root.value("ETag");
    if (!answers[a].succeeded() || root.name != "CopyPartResult" || etag.empty()) {
      refusals[asked[a]] =
          fmt::format("status {} {}", answers[a].status, quote_for_message(root.value("Code")));
      continue;
    }
    const std::lock_guard lock(mutex_);
    at({copy.object, copy.part}).etag = std::move(etag);
  }
  return refusals;
}

bool PartedOutput::gather() {
  take_up_fragments();
  bool is_whole = true;
  for (size_t o = 0; o < parts_.size(); ++o) {
    for (size_t p = 0; p < parts_[o].size(); ++p) {
      Part& part = parts_[o][p];
      if (part.is_sent()) continue;
      if (!covers(part.fragments, part.range)) {
        is_whole = false;
        continue;
      }
      const Waiting all(part.range.bytes);
      read_fragments({o, p}, all.memory);
      send_part({o, p}, all.memory);
    }
  }
  return is_whole;
}

void PartedOutput::complete() {
  for (size_t o = 0; o < objects_.size(); ++o) {
    if (is_made_[o]) continue;
    std::vector<std::string> etags;
    i64 bytes = 0;
    for (const Part& part : parts_[o]) {
      if (!part.is_sent()) {
        throw Error(ErrorCode::kInternal, "a part was not wholly written: nothing was published")
            .at({objects_[o].url.text(), 0, 0, ""})
            .help("please report this with the command line that led to it");
      }
      etags.push_back(part.etag);
      bytes += part.range.bytes;
    }
    complete_upload(client_, objects_[o].url, objects_[o].upload, etags, bytes);
  }
}

void PartedOutput::abort() noexcept {
  for (const PartedObject& object : objects_) {
    try {
      abort_upload(client_, object.url, object.upload);
    } catch (const std::exception&) {
    }
  }
}

i64 PartedOutput::peak_bytes() const {
  const std::lock_guard lock(mutex_);
  return peak_;
}

}  // namespace shardtool::store::s3
