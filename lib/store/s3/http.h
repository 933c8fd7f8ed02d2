#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/checked.h"
#include "lib/store/s3/deadline.h"
#include "lib/store/s3/hedging.h"
#include "lib/store/s3/settings.h"
#include "lib/store/s3/sign.h"

namespace shardtool::store::s3 {

/// Bytes of an object and where they go.
struct RangeRead {
  i64 offset = 0;
  std::span<std::byte> into;
};

/// Memory for consecutive bytes of an object: that of ranges which follow each other, without the
/// first `skip` bytes. The ranges outlive it.
struct ScatteredMemory {
  std::span<const RangeRead> ranges = {};
  i64 skip = 0;
  i64 bytes = 0;

  /// The same memory without its first bytes.
  ScatteredMemory behind(i64 count) const { return {ranges, skip + count, bytes - count}; }
};

struct HttpRequest {
  std::string method = "GET";
  std::string url;
  Headers headers;
  std::string_view body = {};  ///< its bytes outlive the exchange
  /// Memory for the bytes of an answer 206 that has the range and the ETag of the headers.
  ScatteredMemory into = {};
  i64 patience_ms = 0;     ///< without a byte; 0: Limits::stall_ms
  Deadline deadline = {};  ///< of this try and later ones; the exchange takes its time from it

  /// Value of a header; empty without it.
  std::string_view header(std::string_view name) const;
};

enum class HttpFailure {
  kNone,     ///< an answer came, of any status
  kConnect,  ///< no connection, or no such host
  kTls,      ///< the certificate or the handshake failed
  kStalled,  ///< no byte came for too long, or they came too slowly
  kCut,      ///< the connection ended inside the answer
};

struct HttpAnswer {
  HttpFailure failure = HttpFailure::kNone;
  std::string reason;                                       ///< libcurl's words for a failure
  int status = 0;                                           ///< 0: no answer came
  std::map<std::string, std::string, std::less<>> headers;  ///< names in lower case
  std::string text;        ///< the body, unless it went to `into`; at most 64 MiB
  i64 received = 0;        ///< bytes in `into`
  bool overflows = false;  ///< the body was longer than `into`, or than the limit of the text

  /// Returns true for a status of 200 to 299.
  bool succeeded() const { return status / 100 == 2; }
  /// Value of a header; empty without it.
  std::string header(std::string_view name) const;
};

struct Exchange {
  HttpRequest request;
  HttpAnswer answer;
};

struct CurlLibrary;

/// Connections of one thread, kept open from one call to the next (curl's multi interface).
class Connections {
 public:
  explicit Connections(const Settings& settings);
  /// `curl` outlives it.
  Connections(const Settings& settings, const CurlLibrary& curl);
  ~Connections();
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;

  /// Sends all requests at once and waits for their answers. Redirects are not followed. Failures
  /// are answers, too, but for a lack of memory: then it throws kLimit or std::bad_alloc, and
  /// all requests of this call are cut off. So they are when this thread is interrupted, within
  /// 100 ms, or a second after a write began: then it throws kInterrupted.
  ///
  /// With `hedging`, a slow request for a range of one version (If-Match) is sent a second time.
  /// The first answer with all bytes counts, and the other request is cut off. Both write to
  /// `into`, which is safe: it is this thread alone that writes, and the bytes of one version are
  /// equal. A failure counts once neither can succeed.
  void perform(std::span<Exchange* const> exchanges, Hedging* hedging = nullptr);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace shardtool::store::s3
