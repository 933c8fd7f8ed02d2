#include "lib/store/s3/http.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "lib/base/error.h"
#include "lib/store/s3/curl_library.h"

namespace shardtool::store::s3 {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMaxTextBytes = 64 << 20;
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

/// One request under way.
struct Transfer {
  CURL* easy = nullptr;
  curl_slist* headers = nullptr;
  Exchange* exchange = nullptr;
  size_t sent = 0;
  Clock::time_point last_progress = Clock::now();
  bool is_done = false;

  /// Takes bytes of the body; returns fewer to end the transfer.
  size_t take(std::string_view bytes) {
    last_progress = Clock::now();
    HttpAnswer& answer = exchange->answer;
    const std::span<std::byte> into = exchange->request.into;
    const bool is_text = answer.status != kPartialContent || into.empty();
    const size_t used = is_text ? answer.text.size() : static_cast<size_t>(answer.received);
    const size_t room = (is_text ? kMaxTextBytes : into.size()) - used;
    answer.overflows = bytes.size() > room;
    if (answer.overflows) return 0;
    if (is_text) {
      answer.text += bytes;
    } else {
      std::memcpy(into.data() + used, bytes.data(), bytes.size());
      answer.received += std::ssize(bytes);
    }
    return bytes.size();
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

  void end_stalled(std::vector<Transfer>& transfers) {
    const auto now = Clock::now();
    for (Transfer& transfer : transfers) {
      if (transfer.is_done) continue;
      const i64 patience = std::max(transfer.exchange->request.patience_ms, limits.stall_ms);
      if (now - transfer.last_progress <= std::chrono::milliseconds(patience)) continue;
      end(transfer, HttpFailure::kStalled, "no byte came in time");
    }
  }

  void perform(std::vector<Transfer>& transfers) {
    for (Transfer& transfer : transfers) begin(transfer);
    const auto is_running = [](const Transfer& transfer) { return !transfer.is_done; };
    while (std::ranges::any_of(transfers, is_running)) {
      int running = 0;
      curl.multi_perform(multi, &running);
      collect();
      end_stalled(transfers);
      if (running > 0) curl.multi_poll(multi, nullptr, 0, kTickMs, nullptr);
    }
  }
};

Connections::Connections(const Settings& settings) : impl_(std::make_unique<Impl>()) {
  impl_->ca_bundle = settings.ca_bundle;
  impl_->limits = settings.limits;
}

Connections::~Connections() = default;

void Connections::perform(std::span<Exchange* const> exchanges) {
  std::vector<Transfer> transfers(exchanges.size());
  for (size_t i = 0; i < exchanges.size(); ++i) transfers[i].exchange = exchanges[i];
  impl_->perform(transfers);
}

}  // namespace shardtool::store::s3
