#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "tests/support/http_server.h"

namespace shardtool::test {

/// The object store of this process: its shared client finds the server in the environment, which
/// it reads once. The bucket is named "bucket".
class ServedStore {
 public:
  /// Sets AWS_ENDPOINT_URL and keys. Call it before the first use of s3:// in the process.
  static ServedStore& instance();

  /// Begins a case: no objects, no faults.
  void clear();
  /// Begins a case that has the same objects, but none below a prefix, no uploads and no faults.
  void clear_below(const std::string& prefix);
  /// Ends all uploads, as the rule of a bucket does with those of some age.
  void end_uploads();
  void put(const std::string& key, std::string bytes);
  void put_folder(const std::string& prefix, const std::string& folder);
  /// Changes answers; called for each request with its number since `clear`, from 1.
  void disturb(std::function<void(int number, PlayedAnswer& answer)> disturbance);
  /// Answers requests so that the store does not act; called with their number since then, from 1.
  /// Nullopt leaves the request to the store.
  void refuse(std::function<std::optional<PlayedAnswer>(int number)> refusal);
  /// Changes answers, or only looks at them, by their requests; until `clear`.
  void change(std::function<void(const ReceivedRequest& request, PlayedAnswer& answer)> change);
  /// Called before a request is taken, with its number since then, from 1; it may wait, or send
  /// requests itself. Null: no more.
  void delay(std::function<void(int number)> before);
  int requests() const;
  /// Objects below a prefix, by their names, and the number of open uploads.
  std::map<std::string, std::string> below(const std::string& prefix) const;
  size_t open_uploads() const;
  /// True if a hidden folder below the prefix has an object of this name; also during `disturb`.
  bool has_hidden(const std::string& prefix, const std::string& name) const;

 private:
  ServedStore();
  PlayedAnswer answer(const ReceivedRequest& request);

  mutable std::mutex mutex_;  ///< guards the members up to server_
  PlayedBucket bucket_;
  std::function<void(int, PlayedAnswer&)> disturbance_;
  std::function<std::optional<PlayedAnswer>(int)> refusal_;
  std::function<void(const ReceivedRequest&, PlayedAnswer&)> change_;
  int requests_ = 0;
  std::function<void(int)> before_;
  int delayed_ = 0;  ///< requests since before_ was set
  HttpServer server_;
};

}  // namespace shardtool::test
