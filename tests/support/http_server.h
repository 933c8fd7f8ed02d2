#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace shardtool::test {

struct ReceivedRequest {
  std::string method;
  std::string target;                          ///< path and query as sent
  std::map<std::string, std::string> headers;  ///< names in lower case
  std::string body = {};
};

struct PlayedAnswer {
  int status = 200;
  std::string headers;  ///< lines that end in "\r\n", without Content-Length
  std::string body;
  size_t cut_after = std::string::npos;  ///< bytes of the body after which the connection ends
  /// Nothing is sent until the client gives up; or nothing behind `cut_after` bytes.
  bool hangs = false;
  size_t drip = std::string::npos;  ///< bytes of the body that are sent at once, 50 times a second
};

/// An HTTP server on a free port of 127.0.0.1, one thread for each connection.
class HttpServer {
 public:
  using Handler = std::function<PlayedAnswer(const ReceivedRequest&)>;

  explicit HttpServer(Handler handler);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// "http://127.0.0.1:PORT"
  std::string address() const;
  /// Requests so far, without their bodies.
  std::vector<ReceivedRequest> requests() const;

 private:
  void accept_all();
  void serve(int connection);
  static bool receive_body(int connection, std::string& text, ReceivedRequest& request);
  bool answer(int connection, const ReceivedRequest& request);
  bool drip(int connection, std::string_view body, size_t bytes) const;

  Handler handler_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<bool> stops_ = false;
  mutable std::mutex mutex_;  ///< guards requests_, connections_ and workers_
  std::vector<ReceivedRequest> requests_;
  std::vector<int> connections_;
  std::vector<std::thread> workers_;
  std::thread acceptor_;
};

/// Serves objects as S3 does: HEAD, ranged GET with If-Match, ListObjectsV2 of `page` names a page;
/// PUT, also with If-None-Match; DELETE; uploads in parts, which must have the SHA-256 that the
/// request names, or are copied from an object, and all but the last of `least_part` bytes.
class PlayedBucket {
 public:
  std::map<std::string, std::string> objects;
  size_t page = 1000;
  size_t least_part = 5 << 20;
  struct OpenUpload {
    std::string key;
    std::map<int, std::string> parts;
  };
  std::map<std::string, OpenUpload> uploads;  ///< by id

  PlayedAnswer answer(const ReceivedRequest& request) const;
  /// Answers all requests, also those that write.
  PlayedAnswer take(const ReceivedRequest& request);
  /// Returns the tag of an object: its size and the bytes at its ends.
  static std::string etag_of(const std::string& bytes);

 private:
  PlayedAnswer list(const std::map<std::string, std::string>& query) const;
  PlayedAnswer list_parts(const OpenUpload& upload, int after) const;
  PlayedAnswer put(const std::string& key, const ReceivedRequest& request);
  PlayedAnswer copy_part(OpenUpload& upload, int number, const ReceivedRequest& request) const;
  PlayedAnswer complete(const std::string& key, const std::string& id, const std::string& body);
  int last_upload_ = 0;
};

}  // namespace shardtool::test
