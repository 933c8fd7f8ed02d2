#pragma once

#include <chrono>
#include <exception>
#include <string_view>

#include "lib/store/s3/curl_library.h"
#include "lib/store/s3/http.h"

namespace shardtool::store::s3 {

/// One request under way: what curl sends of it, and what comes in.
class Transfer {
 public:
  using Clock = std::chrono::steady_clock;

  CURL* easy = nullptr;  ///< null while curl does not have it
  curl_slist* headers = nullptr;
  Exchange* exchange = nullptr;
  Clock::time_point begun = {};
  Clock::time_point last_progress = {};
  bool is_done = false;
  std::exception_ptr thrown = nullptr;  ///< while bytes came in; it ends the transfer

  /// Notes that time and bytes of a body have passed.
  void progress(size_t bytes);
  /// True once all bytes came that an answer with a range is to have.
  bool is_whole() const;

  /// Functions for curl, each with a Transfer as its last argument.
  static size_t on_body(char* data, size_t one, size_t count, void* transfer);
  static size_t on_header(char* data, size_t one, size_t count, void* transfer);
  static size_t on_upload(char* into, size_t one, size_t count, void* transfer);

 private:
  size_t take(std::string_view bytes);
  void take_header(std::string_view line);
  size_t give(char* into, size_t room);
  void scatter(std::string_view bytes);

  size_t sent_ = 0;
  bool has_bytes_ = false;
  size_t range_ = 0;     ///< of the memory, where the next bytes go
  size_t in_range_ = 0;  ///< bytes of it that have come
};

}  // namespace shardtool::store::s3
