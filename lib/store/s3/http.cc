#include "lib/store/s3/http.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>

#include "lib/base/error.h"
#include "lib/base/interruption.h"
#include "lib/store/s3/refusal.h"
#include "lib/store/s3/transfer.h"

namespace shardtool::store::s3 {
namespace {

using Clock = Transfer::Clock;

constexpr int kTickMs = 100;
/// Larger than curl's 16 KiB: fewer calls for the same bytes.
constexpr long kBufferBytes = 512 << 10;
/// Handles that are kept for later requests, with what curl has allocated for them.
constexpr size_t kKeptHandles = 64;
/// CURLOPT_QUICK_EXIT of libcurl 7.87: not to wait for a resolver that does not answer.
constexpr auto kQuickExit = static_cast<CURLoption>(CURLOPTTYPE_LONG + 322);

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

Error no_memory() {
  return {ErrorCode::kLimit, "no memory for a request"};
}

/// A request, and the same one again once it is slow.
struct Pair {
  Transfer first;
  Exchange again;
  Transfer second;
  bool is_settled = false;

  bool may_repeat() const {
    const HttpRequest& request = first.exchange->request;
    return !first.is_done && second.exchange == nullptr && request.into.bytes > 0 &&
           !request.header("if-match").empty();
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

}  // namespace

std::string_view HttpRequest::header(std::string_view name) const {
  const auto found = std::ranges::find(headers, name, &Headers::value_type::first);
  return found == headers.end() ? "" : std::string_view(found->second);
}

std::string HttpAnswer::header(std::string_view name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? "" : found->second;
}

struct Connections::Impl {
  const CurlLibrary& curl;
  CURLM* multi = curl.multi_init();
  std::vector<CURL*> idle;
  std::string ca_bundle;
  Limits limits;

  Impl(const Settings& settings, const CurlLibrary& library)
      : curl(library), ca_bundle(settings.ca_bundle), limits(settings.limits) {
    idle.reserve(kKeptHandles);
  }
  ~Impl() {
    for (CURL* easy : idle) curl.easy_cleanup(easy);
    curl.multi_cleanup(multi);
  }

  template <class Value>
  void set(CURL* easy, CURLoption option, Value value) const {
    curl.easy_setopt(easy, option, value);
  }

  /// Sends a request. release() is due also if this throws.
  void begin(Transfer& transfer) {
    take_handle(transfer);
    transfer.exchange->answer = {};
    transfer.begun = transfer.last_progress = Clock::now();
    for (const auto& [name, value] : transfer.exchange->request.headers) {
      add_header(transfer, value.empty() ? name + ";" : name + ": " + value);
    }
    add_header(transfer, "Expect:");
    add_header(transfer, "Accept:");
    set_options(transfer);
    if (curl.multi_add_handle(multi, transfer.easy) != CURLM_OK) throw no_memory();
  }

  void take_handle(Transfer& transfer) {
    if (idle.empty()) {
      transfer.easy = curl.easy_init();
    } else {
      transfer.easy = idle.back();
      idle.pop_back();
    }
    if (transfer.easy == nullptr) throw no_memory();
  }

  void add_header(Transfer& transfer, const std::string& line) const {
    curl_slist* const longer = curl.slist_append(transfer.headers, line.c_str());
    if (longer == nullptr) throw no_memory();
    transfer.headers = longer;
  }

  void set_options(Transfer& transfer) const {
    CURL* const easy = transfer.easy;
    const HttpRequest& request = transfer.exchange->request;
    set(easy, CURLOPT_URL, request.url.c_str());
    set(easy, CURLOPT_PATH_AS_IS, 1L);
    set(easy, CURLOPT_FOLLOWLOCATION, 0L);
    set(easy, CURLOPT_NOSIGNAL, 1L);
    set(easy, kQuickExit, 1L);
    set(easy, CURLOPT_BUFFERSIZE, kBufferBytes);
    set(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    set(easy, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(limits.connect_ms));
    set(easy, CURLOPT_HTTPHEADER, transfer.headers);
    set(easy, CURLOPT_WRITEFUNCTION, Transfer::on_body);
    set(easy, CURLOPT_WRITEDATA, static_cast<void*>(&transfer));
    set(easy, CURLOPT_HEADERFUNCTION, Transfer::on_header);
    set(easy, CURLOPT_HEADERDATA, static_cast<void*>(&transfer));
    set(easy, CURLOPT_PRIVATE, static_cast<void*>(&transfer));
    if (!ca_bundle.empty()) set(easy, CURLOPT_CAINFO, ca_bundle.c_str());
    if (request.method == "HEAD") set(easy, CURLOPT_NOBODY, 1L);
    if (request.method == "PUT" || request.method == "POST") {
      set(easy, CURLOPT_UPLOAD, 1L);
      set(easy, CURLOPT_READFUNCTION, Transfer::on_upload);
      set(easy, CURLOPT_READDATA, static_cast<void*>(&transfer));
      set(easy, CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
    }
    if (request.method != "GET" && request.method != "HEAD") {
      set(easy, CURLOPT_CUSTOMREQUEST, request.method.c_str());
    }
  }

  void end(Transfer& transfer, HttpFailure failure, std::string reason) {
    transfer.is_done = true;
    transfer.progress(0);
    transfer.exchange->answer.failure = failure;
    transfer.exchange->answer.reason = std::move(reason);
    release(transfer);
  }

  void release(Transfer& transfer) noexcept {
    if (transfer.easy == nullptr) return;
    curl.multi_remove_handle(multi, transfer.easy);
    curl.easy_reset(transfer.easy);
    idle.size() < kKeptHandles ? idle.push_back(transfer.easy) : curl.easy_cleanup(transfer.easy);
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
    const HttpRequest& request = transfer.exchange->request;
    const i64 patience = std::max(request.patience_ms, limits.stall_ms);
    const auto still = Clock::now() - transfer.last_progress;
    // A write that has just begun may end: what it makes once it is cut off, nobody would delete.
    const bool writes = request.method != "GET" && request.method != "HEAD";
    const bool may_end = writes && Clock::now() - transfer.begun < kLastPatience;
    if (!may_end) check_interrupted(still);
    if (still > std::chrono::milliseconds(patience)) {
      return end(transfer, HttpFailure::kStalled, "no byte came in time");
    }
    if (!request.deadline.is_over_after(still)) return;
    end(transfer, HttpFailure::kStalled,
        fmt::format("fewer than {} bytes a second came", Deadline::kLeastSpeed));
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
    for (const Transfer* transfer : {&pair.first, &pair.second}) {
      if (transfer->thrown) std::rethrow_exception(transfer->thrown);
    }
    const Transfer* const outcome = pair.outcome();
    if (outcome == nullptr) return;
    if (hedging != nullptr && outcome->is_whole())
      hedging->finished(outcome->exchange->answer.received, Clock::now() - outcome->begun);
    if (outcome == &pair.second) pair.first.exchange->answer = std::move(pair.again.answer);
    release(pair.first);
    release(pair.second);
    pair.is_settled = true;
  }

  /// Curl points to the pairs: none is left with it, also after a failure.
  void perform(std::vector<Pair>& pairs, Hedging* hedging) {
    try {
      perform_all(pairs, hedging);
    } catch (...) {
      for (Pair& pair : pairs) {
        release(pair.first);
        release(pair.second);
      }
      throw;
    }
  }

  void perform_all(std::vector<Pair>& pairs, Hedging* hedging) {
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

Connections::Connections(const Settings& settings) : Connections(settings, curl_library()) {}

Connections::Connections(const Settings& settings, const CurlLibrary& curl)
    : impl_(std::make_unique<Impl>(settings, curl)) {}

Connections::~Connections() = default;

void Connections::perform(std::span<Exchange* const> exchanges, Hedging* hedging) {
  std::vector<Pair> pairs(exchanges.size());
  for (size_t i = 0; i < exchanges.size(); ++i) pairs[i].first.exchange = exchanges[i];
  impl_->perform(pairs, hedging);
}

}  // namespace shardtool::store::s3
