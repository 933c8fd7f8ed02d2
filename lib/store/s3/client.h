#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/base/error.h"
#include "lib/store/s3/credentials.h"
#include "lib/store/s3/http.h"
#include "lib/store/s3/listing.h"
#include "lib/store/s3/object_info.h"
#include "lib/store/s3/settings.h"
#include "lib/store/s3/url.h"

namespace shardtool::store::s3 {

/// A request for no bytes of an object.
struct PlainRequest {
  std::string method;
  Url url;
  Query query = {};
  std::string_view body = {};   ///< its bytes outlive the request; their SHA-256 is signed
  bool may_be_absent = false;   ///< 404 is an answer and no error
  Headers headers = {};         ///< further ones; names in lower case
  bool may_conflict = false;    ///< 409 and 412 are answers: a condition in the headers fails
  bool may_be_refused = false;  ///< so is every refusal that another try would not change
  bool may_fail_late = false;   ///< an error may follow the status 200, which then counts as 500
  i64 patience_ms = 0;          ///< HttpRequest::patience_ms
  i64 deadline_ms = 0;          ///< whole of its deadline; 0: Limits::give_up_ms
};

/// Requests to one S3 service, signed and tried again. Threads may share it.
///
/// A request that the service answers with 429, 500, 502, 503 or 504, whose connection fails or
/// whose answer ends early, is sent again after a pause of random length, which doubles. It then
/// asks only for the bytes that have not come. It fails after Limits::attempts tries without a
/// byte, or once it has been slow for a minute (Deadline and Limits::give_up_ms; pauses count, the
/// time of other requests does not). Slow requests for ranges are sent a second time (Hedging).
/// Every error names the object. Requests end with kInterrupted soon after their thread is
/// interrupted (lib/base/interruption.h).
class Client {
 public:
  explicit Client(Settings settings, Environment environment = process_environment);
  ~Client();

  /// Nullopt if there is no such object.
  std::optional<ObjectInfo> head(const Url& url);
  /// Lists what is directly below; `url.key` is empty or ends in '/'. Throws kMalformed for an
  /// answer that contradicts itself: keys outside the prefix, or a list that never ends.
  Listed list(const Url& url);
  /// Reads all ranges, several at once: those that follow each other with one request, above 32 MiB
  /// in pieces. Throws kInputChanged if the object is no longer the one of `info`.
  void read(const Url& url, const ObjectInfo& info, std::span<const RangeRead> ranges);

  /// Sends up to 16 at once, and returns the answers in the order of the requests. Throws for an
  /// answer that is no success; later requests are not sent then.
  std::vector<HttpAnswer> ask(std::span<const PlainRequest> requests);
  HttpAnswer ask(const PlainRequest& request);

  const Settings& settings() const { return settings_; }
  /// Number of requests so far, tries included.
  i64 requests() const;
  /// Number of those that were sent a second time because they were slow (Hedging).
  i64 hedged() const;

 private:
  struct Call;
  class Lease;

  void send(std::span<Call> calls);
  void send_together(std::span<Call> calls);
  void send_once(std::span<Call*> open);
  HttpAnswer send_unsigned(HttpRequest request);
  HttpRequest signed_request(const Call& call, const Keys& keys) const;
  Keys keys();
  void settle(Call& call);
  void ask_why(const Url& url, const Error& known);

  Settings settings_;
  Environment environment_;
  struct State;
  std::unique_ptr<State> state_;
};

/// The client of this process; its settings are read once.
Client& shared_client();

}  // namespace shardtool::store::s3
