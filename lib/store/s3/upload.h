#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/store/s3/client.h"

namespace shardtool::store::s3 {

/// An object that is written in parts, and not there before finish()
/// (docs.aws.amazon.com/AmazonS3/latest/userguide/mpuoverview.html).
class Upload {
 public:
  /// Begins an object of this many bytes. Throws kLimit above 10,000 parts of 5 GiB.
  Upload(Client& client, Url url, i64 bytes);
  /// Aborts the upload unless it was finished; what cannot be aborted, list_uploads finds.
  ~Upload();
  Upload(const Upload&) = delete;
  Upload& operator=(const Upload&) = delete;

  /// Size of every part but the last.
  i64 part_bytes() const { return part_bytes_; }
  /// Sends the next parts, all at once. The service compares each with its SHA-256.
  void send(std::span<const std::string_view> parts);
  /// Makes the object of its parts. Throws kWriteFailed if it is not there afterwards.
  void finish();

 private:
  Client& client_;
  Url url_;
  i64 bytes_;
  i64 part_bytes_;
  std::string id_;
  std::vector<std::string> tags_;  ///< ETag of each part
  bool is_finished_ = false;
};

/// Writes a small object in one request, up to 5 GiB.
void put_object(Client& client, const Url& url, std::string_view bytes);
/// Writes a local file, in parts of 16 MiB or more, as many at once as `memory` bytes hold; calls
/// `between` before each batch. Throws the errors of reading and of the client.
void put_file(Client& client, const std::string& path, const Url& url, i64 memory,
              const std::function<void()>& between);
/// Writes a file of at most 16 MiB unless the object exists; returns false if the service refuses
/// it. A hint only: services that do not know If-None-Match write it all the same. Larger files are
/// not written: false.
bool put_new_file(Client& client, const std::string& path, const Url& url);
/// Deletes an object; it may be absent.
void remove_object(Client& client, const Url& url);

/// An upload that was begun and neither finished nor aborted.
struct OpenUpload {
  std::string key;
  std::string id;
  std::string begun;  ///< UTC, as the service writes it
};
/// Lists open uploads of keys that begin with `url.key`.
std::vector<OpenUpload> list_uploads(Client& client, const Url& url);

/// A part that the service has of an open upload.
struct SentPart {
  int number = 0;  ///< from 1
  i64 bytes = 0;
  std::string etag;
};
/// Begins an upload of each object, all at once; returns their ids.
std::vector<std::string> begin_uploads(Client& client, std::span<const Url> urls);
/// Lists the parts of an upload, by number; nullopt if there is no such upload.
std::optional<std::vector<SentPart>> list_parts(Client& client, const Url& url,
                                                const std::string& id);
/// Makes an object of this many bytes of the parts with these ETags. Throws kWriteFailed if it is
/// not there afterwards.
void complete_upload(Client& client, const Url& url, const std::string& id,
                     std::span<const std::string> etags, i64 bytes);
/// Ends an upload without an object; it may be absent.
void abort_upload(Client& client, const Url& url, const std::string& id);

}  // namespace shardtool::store::s3
