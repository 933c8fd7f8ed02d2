#include "lib/store/s3/http.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "lib/base/error.h"
#include "lib/store/s3/curl_library.h"
#include "lib/store/s3/refusal.h"

namespace shardtool::store::s3 {
namespace {

using Clock = std::chrono::steady_clock;

constexpr i64 kMaxTextBytes = 64 << 20;
constexpr int kTickMs = 100;
/// Larger than curl's 16 KiB: fewer calls for the same bytes.
constexpr long kBufferBytes = 512 << 10;

constexpr int kPartialContent = 206;

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

HttpFailure failure_of(CURLcode code) {
  switch (code) {
    case CURLE_OK:
      return HttpFailure::kNone;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
      return HttpFailure::kConnect;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
      return HttpFailure::kTls;
    case CURLE_OPERATION_TIMEDOUT:
      return HttpFailure::kStalled;
    default:
      return HttpFailure::kCut;
  }
}

/// Value of a header of a request; empty without it.
std::string_view header_of(const HttpRequest& request, std::string_view name) {
  const auto found = std::ranges::find(request.headers, name, &Headers::value_type::first);
  return found == request.headers.end() ? "" : std::string_view(found->second);
}

/// True if the bytes of an answer 206 are those of the version and from the place requested.
bool is_asked_for(const HttpRequest& request, const HttpAnswer& answer) {
  const std::string_view version = header_of(request, "if-match");
  const std::string etag = answer.header("etag");
  if (!version.empty() && !etag.empty() && etag != version) return false;
  constexpr std::string_view kUnit = "bytes=";
  std::string_view range = header_of(request, "range");
  range.remove_prefix(std::min(kUnit.size(), range.size()));
  const std::string begin = "bytes " + std::string(range.substr(0, range.find('-'))) + "-";
  return answer.header("content-range").starts_with(begin);
}

/// One request under way.
struct Transfer {
  CURL* easy = nullptr;
  curl_slist* headers = nullptr;
  Exchange* exchange = nullptr;
  size_t sent = 0;
  Clock::time_point begun = Clock::now();
  Clock::time_point last_progress = begun;
  bool is_done = false;
  bool has_bytes = false;
  size_t range = 0;     ///< of the memory, where the next bytes go
  size_t in_range = 0;  ///< bytes of it that have come

  /// True once all bytes came that an answer with a range is to have.
  bool is_whole() const {
    if (!is_done) return false;
    const HttpAnswer& answer = exchange->answer;
    return answer.failure == HttpFailure::kNone && answer.status == kPartialContent &&
           answer.received == exchange->request.into.bytes;
  }

  /// Takes bytes of the body; returns fewer to end the transfer.
  size_t take(std::string_view bytes) {
    last_progress = Clock::now();
    HttpAnswer& answer = exchange->answer;
    const i64 expected = exchange->request.into.bytes;
    const bool is_text = answer.status != kPartialContent || expected == 0;
    if (!is_text && !has_bytes && !is_asked_for(exchange->request, answer)) return 0;
    has_bytes = true;
    const i64 room = is_text ? kMaxTextBytes - std::ssize(answer.text) : expected - answer.received;
    answer.overflows = std::ssize(bytes) > room;
    if (answer.overflows) return 0;
    is_text ? static_cast<void>(answer.text += bytes) : scatter(bytes);
    return bytes.size();
  }

  void scatter(std::string_view bytes) {
    const ScatteredMemory& into = exchange->request.into;
    if (exchange->answer.received == 0) in_range = static_cast<size_t>(into.skip);
    exchange->answer.received += std::ssize(bytes);
    while (!bytes.empty()) {
      const std::span<std::byte> memory = into.ranges[range].into;
      if (in_range >= memory.size()) {
        in_range -= memory.size();
        ++range;
        continue;
      }
      const size_t count = std::min(bytes.size(), memory.size() - in_range);
      std::memcpy(memory.data() + in_range, bytes.data(), count);
      in_range += count;
      bytes.remove_prefix(count);
    }
  }

  void take_header(std::string_view line) {
    last_progress = Clock::now();
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

  size_t give(char* into, size_t room) {
    last_progress = Clock::now();
    const std::string_view body = exchange->request.body;
    const size_t bytes = std::min(room, body.size() - sent);
    std::memcpy(into, body.data() + sent, bytes);
    sent += bytes;
    return bytes;
  }
};

/// A request, and the same one again once it is slow.
struct Pair {
  Transfer first;
  Exchange again;
  Transfer second;
  bool is_settled = false;

  bool may_repeat() const {
    const HttpRequest& request = first.exchange->request;
    return !first.is_done && second.exchange == nullptr && request.into.bytes > 0 &&
           !header_of(request, "if-match").empty();
  }
  /// Transfer whose answer counts; null while that is open.
  const Transfer* outcome() const {
    if (first.is_whole()) return &first;
    if (second.exchange != nullptr && second.is_whole()) return &second;
    const bool may_come = second.exchange != nullptr && !second.is_done;
    if (!first.is_done || (may_come && is_passing(first.exchange->answer))) return nullptr;
    return &first;
  }
};

size_t on_body(char* data, size_t one, size_t count, void* transfer) {
  return static_cast<Transfer*>(transfer)->take({data, one * count});
}

size_t on_header(char* data, size_t one, size_t count, void* transfer) {
  static_cast<Transfer*>(transfer)->take_header({data, one * count});
  return one * count;
}

size_t on_upload(char* into, size_t one, size_t count, void* transfer) {
  return static_cast<Transfer*>(transfer)->give(into, one * count);
}

}  // namespace

std::string HttpAnswer::header(std::string_view name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? "" : found->second;
}

struct Connections::Impl {
  const CurlLibrary& curl = curl_library();
  CURLM* multi = curl.multi_init();
  std::vector<CURL*> idle;
  std::string ca_bundle;
  Limits limits;

  ~Impl() {
    for (CURL* easy : idle) curl.easy_cleanup(easy);
    curl.multi_cleanup(multi);
  }

  template <class Value>
  void set(CURL* easy, CURLoption option, Value value) const {
    curl.easy_setopt(easy, option, value);
  }

  void begin(Transfer& transfer) {
    if (idle.empty()) idle.push_back(curl.easy_init());
    transfer.easy = idle.back();
    idle.pop_back();
    if (transfer.easy == nullptr) throw Error(ErrorCode::kLimit, "no memory for a request");
    transfer.exchange->answer = {};
    transfer.begun = transfer.last_progress = Clock::now();
    for (const auto& [name, value] : transfer.exchange->request.headers) {
      const std::string line = value.empty() ? name + ";" : name + ": " + value;
      transfer.headers = curl.slist_append(transfer.headers, line.c_str());
    }
    transfer.headers = curl.slist_append(transfer.headers, "Expect:");
    transfer.headers = curl.slist_append(transfer.headers, "Accept:");
    set_options(transfer);
    curl.multi_add_handle(multi, transfer.easy);
  }

  void set_options(Transfer& transfer) const {
    CURL* const easy = transfer.easy;
    const HttpRequest& request = transfer.exchange->request;
    set(easy, CURLOPT_URL, request.url.c_str());
    set(easy, CURLOPT_PATH_AS_IS, 1L);
    set(easy, CURLOPT_FOLLOWLOCATION, 0L);
    set(easy, CURLOPT_NOSIGNAL, 1L);
    set(easy, CURLOPT_BUFFERSIZE, kBufferBytes);
    set(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    set(easy, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(limits.connect_ms));
    set(easy, CURLOPT_HTTPHEADER, transfer.headers);
    set(easy, CURLOPT_WRITEFUNCTION, on_body);
    set(easy, CURLOPT_WRITEDATA, static_cast<void*>(&transfer));
    set(easy, CURLOPT_HEADERFUNCTION, on_header);
    set(easy, CURLOPT_HEADERDATA, static_cast<void*>(&transfer));
    set(easy, CURLOPT_PRIVATE, static_cast<void*>(&transfer));
    if (!ca_bundle.empty()) set(easy, CURLOPT_CAINFO, ca_bundle.c_str());
    if (request.method == "HEAD") set(easy, CURLOPT_NOBODY, 1L);
    if (request.method == "PUT" || request.method == "POST") {
      set(easy, CURLOPT_UPLOAD, 1L);
      set(easy, CURLOPT_READFUNCTION, on_upload);
      set(easy, CURLOPT_READDATA, static_cast<void*>(&transfer));
      set(easy, CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
    }
    if (request.method != "GET" && request.method != "HEAD") {
      set(easy, CURLOPT_CUSTOMREQUEST, request.method.c_str());
    }
  }

  void end(Transfer& transfer, HttpFailure failure, std::string reason) {
    transfer.is_done = true;
    transfer.exchange->answer.failure = failure;
    transfer.exchange->answer.reason = std::move(reason);
    release(transfer);
  }

  void release(Transfer& transfer) {
    if (transfer.easy == nullptr) return;
    curl.multi_remove_handle(multi, transfer.easy);
    curl.easy_reset(transfer.easy);
    idle.push_back(transfer.easy);
    curl.slist_free_all(transfer.headers);
    transfer.easy = nullptr;
    transfer.headers = nullptr;
  }

  void collect() {
    int left = 0;
    while (const CURLMsg* message = curl.multi_info_read(multi, &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      const CURLcode code = message->data.result;
      void* transfer = nullptr;
      curl.easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &transfer);
      end(*static_cast<Transfer*>(transfer), failure_of(code),
          code == CURLE_OK ? "" : curl.easy_strerror(code));
    }
  }

  void end_if_stalled(Transfer& transfer) {
    if (transfer.is_done || transfer.exchange == nullptr) return;
    const i64 patience = std::max(transfer.exchange->request.patience_ms, limits.stall_ms);
    if (Clock::now() - transfer.last_progress <= std::chrono::milliseconds(patience)) return;
    end(transfer, HttpFailure::kStalled, "no byte came in time");
  }

  /// Sends a slow request again. Returns the milliseconds until it is to be looked at.
  int repeat_if_slow(Pair& pair, Hedging& hedging) {
    if (!pair.may_repeat()) return kTickMs;
    const HttpRequest& request = pair.first.exchange->request;
    const auto limit = hedging.slow_after(request.into.bytes);
    if (!limit) return kTickMs;
    const Hedging::Duration left = *limit - (Clock::now() - pair.first.begun);
    if (left.count() <= 0 && hedging.take()) {
      pair.again.request = request;
      pair.second.exchange = &pair.again;
      begin(pair.second);
      return 0;
    }
    const i64 ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
    return static_cast<int>(std::clamp<i64>(ms, 1, kTickMs));
  }

  void settle_if_clear(Pair& pair, Hedging* hedging) {
    end_if_stalled(pair.first);
    end_if_stalled(pair.second);
    const Transfer* const outcome = pair.outcome();
    if (outcome == nullptr) return;
    if (hedging != nullptr && outcome->is_whole())
      hedging->finished(outcome->exchange->answer.received, Clock::now() - outcome->begun);
    if (outcome == &pair.second) pair.first.exchange->answer = std::move(pair.again.answer);
    release(pair.first);
    release(pair.second);
    pair.is_settled = true;
  }

  void perform(std::vector<Pair>& pairs, Hedging* hedging) {
    for (Pair& pair : pairs) begin(pair.first);
    while (true) {
      int running = 0;
      curl.multi_perform(multi, &running);
      collect();
      int wait_ms = kTickMs;
      size_t open = 0;
      for (Pair& pair : pairs) {
        if (!pair.is_settled) settle_if_clear(pair, hedging);
        if (pair.is_settled) continue;
        ++open;
        if (hedging != nullptr) wait_ms = std::min(wait_ms, repeat_if_slow(pair, *hedging));
      }
      if (open == 0) return;
      if (wait_ms > 0) curl.multi_poll(multi, nullptr, 0, wait_ms, nullptr);
    }
  }
};

Connections::Connections(const Settings& settings) : impl_(std::make_unique<Impl>()) {
  impl_->ca_bundle = settings.ca_bundle;
  impl_->limits = settings.limits;
}

Connections::~Connections() = default;

void Connections::perform(std::span<Exchange* const> exchanges, Hedging* hedging) {
  std::vector<Pair> pairs(exchanges.size());
  for (size_t i = 0; i < exchanges.size(); ++i) pairs[i].first.exchange = exchanges[i];
  impl_->perform(pairs, hedging);
}

}  // namespace shardtool::store::s3
