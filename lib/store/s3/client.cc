#include "lib/store/s3/client.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <random>
#include <set>
#include <thread>

#include "lib/base/error.h"
#include "lib/base/interruption.h"
#include "lib/base/sha256.h"
#include "lib/store/s3/refusal.h"
#include "lib/store/s3/xml.h"

namespace shardtool::store::s3 {
namespace {

using std::chrono::milliseconds;

constexpr i64 kMaxRequestBytes = 32 << 20;
constexpr i64 kPieceBytes = 16 << 20;
constexpr size_t kAtOnce = 16;
constexpr i64 kFirstPauseMs = 100;
constexpr i64 kMaxPauseMs = 5'000;
/// Keys that end sooner than this are replaced.
constexpr i64 kRefreshSeconds = 300;
constexpr int kMaxPages = 100'000;
constexpr int kServerError = 500;

std::string utc_time(const char* format) {
  const time_t now = ::time(nullptr);
  struct tm utc {};
  gmtime_r(&now, &utc);
  char text[32];
  return {text, strftime(text, sizeof text, format, &utc)};
}

i64 random_below(i64 limit) {
  thread_local std::minstd_rand random(std::random_device{}());
  return std::uniform_int_distribution<i64>(0, limit - 1)(random);
}

/// Pause before try number `tries`, of random length ("full jitter",
/// aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter).
milliseconds pause_before(int tries, const HttpAnswer& answer) {
  const i64 most = std::min(kMaxPauseMs, kFirstPauseMs << std::min(tries, 10));
  const i64 asked = std::clamp<i64>(number_of(answer.header("retry-after")), 0, 20) * 1000;
  return milliseconds(asked + random_below(most) + 1);
}

/// Sleeps for so long. Throws kInterrupted soon after this thread is interrupted.
void pause_for(milliseconds time) {
  constexpr milliseconds kTick{100};
  for (milliseconds passed{0}; passed < time; passed += kTick) {
    check_interrupted(passed);
    std::this_thread::sleep_for(std::min(kTick, time - passed));
  }
}

Error too_short(const Url& url, i64 got, i64 bytes) {
  return Error(ErrorCode::kMalformed, "the object store sends fewer bytes than its answer is for")
      .at({url.text(), 0, 0, ""})
      .note("found", fmt::format("{} of the {} bytes of a range", got, bytes))
      .help("try again, without a proxy between this machine and the store");
}

/// The first ranges that follow each other.
ScatteredMemory first_together(std::span<const RangeRead> ranges) {
  size_t count = 0;
  i64 bytes = 0;
  while (count < ranges.size() && ranges[count].offset == ranges.front().offset + bytes) {
    bytes += std::ssize(ranges[count++].into);
  }
  return {ranges.first(count), 0, bytes};
}

}  // namespace

/// One request with its tries.
struct Client::Call {
  std::string method;
  Url url;
  Query query = {};
  i64 offset = 0;             ///< of a range
  ScatteredMemory into = {};  ///< of a range
  const ObjectInfo* pinned = nullptr;
  bool may_be_absent = false;
  std::string_view body = {};
  Headers headers = {};
  bool may_conflict = false;
  bool may_be_refused = false;
  bool may_fail_late = false;
  i64 patience_ms = 0;
  i64 deadline_ms = 0;

  HttpAnswer answer = {};
  i64 got = 0;  ///< bytes of the range that earlier tries brought
  int tries = 0;
  Deadline deadline = {};
  bool is_done = false;

  bool is_range() const { return into.bytes > 0; }
};

struct Client::State {
  std::mutex mutex;  ///< guards the members up to `requests`
  std::vector<std::unique_ptr<Connections>> idle;
  size_t made = 0;  ///< connections, for which `idle` has room
  std::optional<Credentials> credentials;
  std::atomic<i64> requests = 0;
  Hedging hedging;

  explicit State(const Settings& settings) : hedging(milliseconds(settings.limits.hedge_ms)) {}
};

/// Connections that no other thread uses meanwhile.
class Client::Lease {
 public:
  explicit Lease(Client& client) : state_(*client.state_) {
    {
      const std::lock_guard lock(state_.mutex);
      if (state_.idle.empty()) {
        state_.idle.reserve(++state_.made);
      } else {
        held_ = std::move(state_.idle.back());
        state_.idle.pop_back();
      }
    }
    if (!held_) held_ = std::make_unique<Connections>(client.settings_);
  }
  ~Lease() {
    const std::lock_guard lock(state_.mutex);
    state_.idle.push_back(std::move(held_));
  }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  void perform(std::span<Exchange* const> exchanges) {
    state_.requests += std::ssize(exchanges);
    held_->perform(exchanges, &state_.hedging);
  }

 private:
  State& state_;
  std::unique_ptr<Connections> held_;
};

Client::Client(Settings settings, Environment environment)
    : settings_(std::move(settings)),
      environment_(std::move(environment)),
      state_(std::make_unique<State>(settings_)) {}

Client::~Client() = default;

i64 Client::requests() const {
  return state_->requests + hedged();
}

i64 Client::hedged() const {
  return state_->hedging.taken();
}

HttpAnswer Client::send_unsigned(HttpRequest request) {
  // The addresses of containers and instances are near, or not there at all.
  constexpr i64 kNearMs = 2'000;
  Settings near = settings_;
  near.limits.connect_ms = std::min(near.limits.connect_ms, kNearMs);
  request.deadline = Deadline(milliseconds(near.limits.give_up_ms));
  Connections connections(near);
  Exchange exchange{std::move(request), {}};
  Exchange* const one = &exchange;
  connections.perform({&one, 1});
  return std::move(exchange.answer);
}

Keys Client::keys() {
  const std::lock_guard lock(state_->mutex);
  auto& known = state_->credentials;
  const bool ends = known && known->expires_unix_s != 0 &&
                    known->expires_unix_s < ::time(nullptr) + kRefreshSeconds;
  if (!known || ends) {
    known = find_credentials(settings_, environment_, [this](HttpRequest request) {
      return send_unsigned(std::move(request));
    });
  }
  return known->keys;
}

HttpRequest Client::signed_request(const Call& call, const Keys& keys) const {
  const Address address = address_of(settings_, call.url);
  SignedParts parts{
      call.method, address.path, call.query, {{"host", address.host}}, sha256_hex(call.body)};
  parts.headers.insert(parts.headers.end(), call.headers.begin(), call.headers.end());
  if (call.is_range()) {
    const i64 begin = call.offset + call.got;
    const i64 end = call.offset + call.into.bytes;
    parts.headers.emplace_back("range", fmt::format("bytes={}-{}", begin, end - 1));
  }
  if (call.pinned != nullptr && !call.pinned->etag.empty())
    parts.headers.emplace_back("if-match", call.pinned->etag);
  if (!keys.is_anonymous()) {
    const SigningScope scope{settings_.region, "s3", utc_time("%Y%m%dT%H%M%SZ")};
    parts.headers.emplace_back("x-amz-date", scope.time);
    parts.headers.emplace_back("x-amz-content-sha256", parts.payload_hash);
    if (!keys.session_token.empty())
      parts.headers.emplace_back("x-amz-security-token", keys.session_token);
    const std::string value = authorization(parts, keys, scope);
    parts.headers.emplace_back("authorization", value);
  }
  HttpRequest request;
  request.method = call.method;
  const std::string query = encoded_query(call.query);
  request.url = address.origin + address.path + (query.empty() ? "" : "?" + query);
  request.headers = std::move(parts.headers);
  request.body = call.body;
  request.patience_ms = call.patience_ms;
  request.deadline = call.deadline;
  if (call.is_range()) request.into = call.into.behind(call.got);
  return request;
}

/// Marks a call as done, or leaves it for another try. Throws if none can help.
void Client::settle(Call& call) {
  if (call.may_fail_late && has_failed_late(call.answer)) call.answer.status = kServerError;
  const HttpAnswer& answer = call.answer;
  const bool is_part = call.is_range() && answer.status == 206;
  if (is_part) {
    if (call.pinned != nullptr)
      require_version(call.url, *call.pinned, answer, call.offset + call.got);
    call.got += answer.received;
    if (answer.received > 0) call.tries = 0;
  }
  const bool is_complete = !call.is_range() || (is_part && call.got == call.into.bytes);
  const bool is_fine =
      answer.failure == HttpFailure::kNone && (is_part || (!call.is_range() && answer.succeeded()));
  const bool is_absent = answer.status == 404 && answer.failure == HttpFailure::kNone;
  const bool conflicts =
      (answer.status == 409 || answer.status == 412) && answer.failure == HttpFailure::kNone;
  const bool is_refused = answer.failure == HttpFailure::kNone && answer.status >= 400 &&
                          !is_passing(answer) && call.may_be_refused;
  if ((is_fine && is_complete) || (is_absent && call.may_be_absent) ||
      (conflicts && call.may_conflict) || is_refused) {
    call.is_done = true;
    return;
  }
  if (call.pinned != nullptr && (answer.status == 412 || answer.status == 416))
    throw object_changed(call.url, fmt::format("status {}", answer.status));
  if (call.pinned != nullptr && is_absent) throw object_changed(call.url, "no object");
  const bool may_go_on = ++call.tries < settings_.limits.attempts && !call.deadline.is_over();
  if (may_go_on && (is_passing(answer) || is_fine)) return;
  if (call.is_range() && answer.status == 200)
    throw Error(ErrorCode::kUnsupported, "the object store ignores the range of a request")
        .at({call.url.text(), 0, 0, ""});
  if (is_fine) throw too_short(call.url, call.got, call.into.bytes);
  throw refusal(answer, {call.method, call.query, call.url}, settings_);
}

void Client::send_once(std::span<Call*> open) {
  check_interrupted();
  const Keys signing_keys = keys();
  std::vector<Exchange> exchanges(open.size());
  std::vector<Exchange*> pointers;
  for (size_t i = 0; i < open.size(); ++i) {
    exchanges[i].request = signed_request(*open[i], signing_keys);
    pointers.push_back(&exchanges[i]);
  }
  Lease(*this).perform(pointers);
  for (size_t i = 0; i < open.size(); ++i) {
    open[i]->answer = std::move(exchanges[i].answer);
    open[i]->deadline = exchanges[i].request.deadline;
    settle(*open[i]);
  }
}

void Client::send(std::span<Call> calls) {
  for (size_t at = 0; at < calls.size(); at += kAtOnce) {
    send_together(calls.subspan(at, std::min(kAtOnce, calls.size() - at)));
  }
}

void Client::send_together(std::span<Call> calls) {
  std::vector<Call*> open;
  for (Call& call : calls) {
    call.deadline = Deadline(milliseconds(std::max(call.deadline_ms, settings_.limits.give_up_ms)));
    open.push_back(&call);
  }
  while (true) {
    send_once(open);
    std::erase_if(open, [](const Call* call) { return call->is_done; });
    if (open.empty()) return;
    milliseconds pause{0};
    for (Call* call : open) {
      const milliseconds own = pause_before(call->tries, call->answer);
      call->deadline.pass(own);
      pause = std::max(pause, own);
    }
    pause_for(pause);
  }
}

/// Throws the service's own words for the refusal of a HEAD, whose answer has no text, unless they
/// say no more than `known`.
void Client::ask_why(const Url& url, const Error& known) {
  Call asked{"GET", {url.bucket, ""}, {{"max-keys", "1"}}};
  try {
    send({&asked, 1});
  } catch (const Error& told) {
    if (told.message() != known.message()) throw;
  }
}

std::optional<ObjectInfo> Client::head(const Url& url) {
  Call call{"HEAD", url};
  call.may_be_absent = true;
  try {
    send({&call, 1});
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kStoreRefused) throw;
    ask_why(url, error);
    throw;
  }
  if (call.answer.status == 404) return std::nullopt;
  return info_in(call.answer, number_of(call.answer.header("content-length")));
}

std::vector<HttpAnswer> Client::ask(std::span<const PlainRequest> requests) {
  std::vector<Call> calls;
  for (const PlainRequest& request : requests) {
    Call call{request.method, request.url, request.query};
    call.may_be_absent = request.may_be_absent;
    call.body = request.body;
    call.headers = request.headers;
    call.may_conflict = request.may_conflict;
    call.may_be_refused = request.may_be_refused;
    call.may_fail_late = request.may_fail_late;
    call.patience_ms = request.patience_ms;
    call.deadline_ms = request.deadline_ms;
    calls.push_back(std::move(call));
  }
  send(calls);
  std::vector<HttpAnswer> answers;
  for (Call& call : calls) answers.push_back(std::move(call.answer));
  return answers;
}

HttpAnswer Client::ask(const PlainRequest& request) {
  return std::move(ask({&request, 1}).front());
}

Listed Client::list(const Url& url) {
  Listed listed;
  std::set<std::string> tokens;
  std::string token;
  for (int page = 0; page < kMaxPages; ++page) {
    Call call{
        "GET", {url.bucket, ""}, {{"list-type", "2"}, {"delimiter", "/"}, {"prefix", url.key}}};
    if (!token.empty()) call.query.emplace_back("continuation-token", token);
    send({&call, 1});
    const auto next = add_page(document_of(call.answer, url, settings_), url, settings_, listed);
    if (!next) {
      sort_names(url, listed);
      return listed;
    }
    token = *next;
    if (!tokens.insert(token).second) throw bad_listing(url, "a list that does not end");
  }
  throw bad_listing(url, "a list that does not end");
}

void Client::read(const Url& url, const ObjectInfo& info, std::span<const RangeRead> ranges) {
  std::vector<Call> calls;
  while (!ranges.empty()) {
    const ScatteredMemory memory = first_together(ranges);
    const i64 piece = memory.bytes > kMaxRequestBytes ? kPieceBytes : memory.bytes;
    for (i64 at = 0; at < memory.bytes; at += piece) {
      Call call{"GET", url};
      call.offset = ranges.front().offset + at;
      call.into = {memory.ranges, at, std::min(piece, memory.bytes - at)};
      call.pinned = &info;
      calls.push_back(std::move(call));
    }
    ranges = ranges.subspan(memory.ranges.size());
  }
  send(calls);
}

Client& shared_client() {
  static Client client(read_settings());
  return client;
}

}  // namespace shardtool::store::s3
