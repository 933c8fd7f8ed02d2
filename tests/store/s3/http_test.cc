#include "lib/store/s3/http.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "lib/store/s3/curl_library.h"
#include "tests/support/served_bucket.h"
#include "tests/support/throws.h"

using namespace shardtool;
using namespace shardtool::store::s3;

namespace {

/// Functions of libcurl of which the n-th call finds no memory, and the handles that curl has.
struct ShortMemory {
  enum class Call { kHandle, kHeader, kRequest };
  static inline Call failing;
  static inline int calls;  ///< until the failing one
  static inline std::set<CURL*> open;

  static bool fails(Call call) { return call == failing && --calls == 0; }

  static CurlLibrary curl() {
    CurlLibrary curl = curl_library();
    curl.easy_init = [] { return fails(Call::kHandle) ? nullptr : curl_library().easy_init(); };
    curl.slist_append = [](curl_slist* list, const char* line) {
      return fails(Call::kHeader) ? nullptr : curl_library().slist_append(list, line);
    };
    curl.multi_add_handle = [](CURLM* multi, CURL* easy) {
      if (fails(Call::kRequest)) return CURLM_OUT_OF_MEMORY;
      open.insert(easy);
      return curl_library().multi_add_handle(multi, easy);
    };
    curl.multi_remove_handle = [](CURLM* multi, CURL* easy) {
      open.erase(easy);
      return curl_library().multi_remove_handle(multi, easy);
    };
    return curl;
  }
};

}  // namespace

TEST_CASE(
    "a lack of memory is an error after which curl has no request and the next ones succeed") {
  using Call = ShortMemory::Call;
  test::ServedBucket served;
  served.bucket.objects["a"] = "bytes";
  Settings settings;
  const CurlLibrary curl = ShortMemory::curl();
  constexpr int kRequests = 3;
  for (const Call call : {Call::kHandle, Call::kHeader, Call::kRequest}) {
    for (int at = 1; at <= kRequests; ++at) {
      std::vector<Exchange> exchanges(kRequests);
      std::vector<Exchange*> pointers;
      for (Exchange& exchange : exchanges) {
        exchange.request.url = served.server.address() + "/bucket/a";
        exchange.request.deadline = Deadline(std::chrono::seconds(10));
        pointers.push_back(&exchange);
      }
      Connections connections(settings, curl);
      ShortMemory::failing = call;
      ShortMemory::calls = at;
      CHECK_ERROR(kLimit, (connections.perform(pointers), 0));
      CHECK(ShortMemory::open.empty());
      ShortMemory::calls = 0;
      connections.perform(pointers);
      CHECK(std::ranges::all_of(exchanges, [](const Exchange& exchange) {
        return exchange.answer.failure == HttpFailure::kNone && exchange.answer.text == "bytes";
      }));
    }
  }
}
