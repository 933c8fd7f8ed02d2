#include "lib/store/s3/transfer.h"

#include <algorithm>
#include <cstring>

namespace shardtool::store::s3 {
namespace {

constexpr i64 kMaxTextBytes = 64 << 20;
constexpr int kPartialContent = 206;

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

/// True if the bytes of an answer 206 are those of the version and from the place requested.
bool is_asked_for(const HttpRequest& request, const HttpAnswer& answer) {
  const std::string_view version = request.header("if-match");
  const std::string etag = answer.header("etag");
  if (!version.empty() && !etag.empty() && etag != version) return false;
  constexpr std::string_view kUnit = "bytes=";
  std::string_view range = request.header("range");
  range.remove_prefix(std::min(kUnit.size(), range.size()));
  const std::string begin = "bytes " + std::string(range.substr(0, range.find('-'))) + "-";
  return answer.header("content-range").starts_with(begin);
}

/// Returns what `take` returns. No exception may pass through curl, which is C: it is kept, and 0
/// ends the transfer.
template <class Take>
size_t guarded(Transfer& transfer, Take take) noexcept {
  try {
    return take();
  } catch (...) {
    transfer.thrown = std::current_exception();
    return 0;
  }
}

}  // namespace

size_t Transfer::on_body(char* data, size_t one, size_t count, void* transfer) {
  Transfer& self = *static_cast<Transfer*>(transfer);
  return guarded(self, [&] { return self.take({data, one * count}); });
}

size_t Transfer::on_header(char* data, size_t one, size_t count, void* transfer) {
  Transfer& self = *static_cast<Transfer*>(transfer);
  return guarded(self, [&] {
    self.take_header({data, one * count});
    return one * count;
  });
}

size_t Transfer::on_upload(char* into, size_t one, size_t count, void* transfer) {
  return static_cast<Transfer*>(transfer)->give(into, one * count);
}

void Transfer::progress(size_t bytes) {
  const Clock::time_point now = Clock::now();
  Deadline& deadline = exchange->request.deadline;
  deadline.pass(now - last_progress);
  deadline.move(static_cast<i64>(bytes));
  last_progress = now;
}

bool Transfer::is_whole() const {
  if (!is_done) return false;
  const HttpAnswer& answer = exchange->answer;
  return answer.failure == HttpFailure::kNone && answer.status == kPartialContent &&
         answer.received == exchange->request.into.bytes;
}

/// Takes bytes of the body; returns fewer to end the transfer.
size_t Transfer::take(std::string_view bytes) {
  progress(bytes.size());
  HttpAnswer& answer = exchange->answer;
  const i64 expected = exchange->request.into.bytes;
  const bool is_text = answer.status != kPartialContent || expected == 0;
  if (!is_text && !has_bytes_ && !is_asked_for(exchange->request, answer)) return 0;
  has_bytes_ = true;
  const i64 room = is_text ? kMaxTextBytes - std::ssize(answer.text) : expected - answer.received;
  answer.overflows = std::ssize(bytes) > room;
  if (answer.overflows) return 0;
  is_text ? static_cast<void>(answer.text += bytes) : scatter(bytes);
  return bytes.size();
}

void Transfer::scatter(std::string_view bytes) {
  const ScatteredMemory& into = exchange->request.into;
  if (exchange->answer.received == 0) in_range_ = static_cast<size_t>(into.skip);
  exchange->answer.received += std::ssize(bytes);
  while (!bytes.empty()) {
    const std::span<std::byte> memory = into.ranges[range_].into;
    if (in_range_ >= memory.size()) {
      in_range_ -= memory.size();
      ++range_;
      continue;
    }
    const size_t count = std::min(bytes.size(), memory.size() - in_range_);
    std::memcpy(memory.data() + in_range_, bytes.data(), count);
    in_range_ += count;
    bytes.remove_prefix(count);
  }
}

void Transfer::take_header(std::string_view line) {
  progress(0);
  HttpAnswer& answer = exchange->answer;
  while (line.ends_with('\n') || line.ends_with('\r')) line.remove_suffix(1);
  if (line.starts_with("HTTP/")) {  // also after "100 Continue"
    answer.headers.clear();
    const size_t space = line.find(' ');
    answer.status = space == line.npos ? 0 : std::atoi(line.data() + space + 1);
    return;
  }
  const size_t colon = line.find(':');
  if (colon == line.npos) return;
  std::string_view value = line.substr(colon + 1);
  value.remove_prefix(std::min(value.find_first_not_of(" \t"), value.size()));
  answer.headers[lower(line.substr(0, colon))] = value;
}

size_t Transfer::give(char* into, size_t room) {
  const std::string_view body = exchange->request.body;
  const size_t bytes = std::min(room, body.size() - sent_);
  progress(bytes);
  std::memcpy(into, body.data() + sent_, bytes);
  sent_ += bytes;
  return bytes;
}

}  // namespace shardtool::store::s3
