#include "tests/support/http_server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <functional>
#include <set>
#include <stdexcept>

#include "lib/base/sha256.h"

namespace shardtool::test {
namespace {

bool send_bytes(int connection, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(connection, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

ReceivedRequest parsed(std::string_view head) {
  ReceivedRequest request;
  const size_t end = head.find("\r\n");
  const std::string_view first = head.substr(0, end);
  const size_t space = first.find(' ');
  request.method = first.substr(0, space);
  request.target = first.substr(space + 1, first.rfind(' ') - space - 1);
  head.remove_prefix(end + 2);
  while (!head.empty()) {
    const std::string_view line = head.substr(0, head.find("\r\n"));
    head.remove_prefix(std::min(line.size() + 2, head.size()));
    const size_t colon = line.find(": ");
    if (colon == line.npos) continue;
    std::string name(line.substr(0, colon));
    std::ranges::transform(name, name.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    request.headers[name] = line.substr(colon + 2);
  }
  return request;
}

std::string percent_decoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    out += static_cast<char>(std::stoi(std::string(text.substr(i + 1, 2)), nullptr, 16));
    i += 2;
  }
  return out;
}

std::map<std::string, std::string> query_of(std::string_view target) {
  std::map<std::string, std::string> query;
  size_t at = target.find('?');
  while (at != target.npos) {
    target.remove_prefix(at + 1);
    at = target.find('&');
    const std::string_view pair = target.substr(0, at);
    const size_t equals = pair.find('=');
    query[percent_decoded(pair.substr(0, equals))] = percent_decoded(pair.substr(equals + 1));
  }
  return query;
}

}  // namespace

HttpServer::HttpServer(Handler handler) : handler_(std::move(handler)) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::listen(listener_, 64) != 0 ||
      ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw std::runtime_error("no port for a server");
  }
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { accept_all(); });
}

HttpServer::~HttpServer() {
  stops_ = true;
  ::shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  {
    const std::lock_guard lock(mutex_);
    for (const int connection : connections_) ::shutdown(connection, SHUT_RDWR);
  }
  for (std::thread& worker : workers_) worker.join();
  for (const int connection : connections_) ::close(connection);
  ::close(listener_);
}

std::string HttpServer::address() const {
  return fmt::format("http://127.0.0.1:{}", port_);
}

std::vector<ReceivedRequest> HttpServer::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

void HttpServer::accept_all() {
  while (!stops_) {
    const int connection = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) continue;
    const int now = 1;  // head and body are two packets
    ::setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &now, sizeof now);
    const std::lock_guard lock(mutex_);
    connections_.push_back(connection);
    workers_.emplace_back([this, connection] { serve(connection); });
  }
}

bool HttpServer::receive_body(int connection, std::string& text, ReceivedRequest& request) {
  const auto length = request.headers.find("content-length");
  const size_t bytes = length == request.headers.end() ? 0 : std::stoul(length->second);
  std::string buffer(1 << 16, '\0');
  while (text.size() < bytes) {
    const ssize_t got = ::recv(connection, buffer.data(), buffer.size(), 0);
    if (got <= 0) return false;
    text.append(buffer, 0, static_cast<size_t>(got));
  }
  request.body = text.substr(0, bytes);
  text.erase(0, bytes);
  return true;
}

void HttpServer::serve(int connection) {
  std::string text;
  char buffer[4096];
  while (true) {
    const size_t end = text.find("\r\n\r\n");
    if (end != text.npos) {
      ReceivedRequest request = parsed(text.substr(0, end + 2));
      text.erase(0, end + 4);
      if (!receive_body(connection, text, request)) return;
      if (!answer(connection, request)) break;
      continue;
    }
    const ssize_t got = ::recv(connection, buffer, sizeof buffer, 0);
    if (got <= 0) return;
    text.append(buffer, static_cast<size_t>(got));
  }
  ::shutdown(connection, SHUT_RDWR);
}

bool HttpServer::answer(int connection, const ReceivedRequest& request) {
  {
    const std::lock_guard lock(mutex_);
    requests_.push_back({request.method, request.target, request.headers});
  }
  const PlayedAnswer played = handler_(request);
  const auto wait_for_end = [connection] {
    char byte = 0;
    while (::recv(connection, &byte, 1, 0) > 0) {
    }
    return false;
  };
  if (played.hangs && played.cut_after == std::string::npos) return wait_for_end();
  if (played.status == 0) return false;
  const std::string head = fmt::format("HTTP/1.1 {} x\r\nContent-Length: {}\r\n{}\r\n",
                                       played.status, played.body.size(), played.headers);
  if (!send_bytes(connection, head)) return false;
  if (request.method == "HEAD") return true;
  const bool is_sent =
      drip(connection, std::string_view(played.body).substr(0, played.cut_after), played.drip);
  if (is_sent && played.hangs) return wait_for_end();
  return is_sent && played.cut_after >= played.body.size();
}

bool HttpServer::drip(int connection, std::string_view body, size_t bytes) const {
  constexpr std::chrono::milliseconds kPause(20);
  while (body.size() > bytes) {
    if (stops_ || !send_bytes(connection, body.substr(0, bytes))) return false;
    body.remove_prefix(bytes);
    std::this_thread::sleep_for(kPause);
  }
  return send_bytes(connection, body);
}

std::string PlayedBucket::etag_of(const std::string& bytes) {
  constexpr size_t kHashed = 4096;  // at both ends, of any length in little time
  std::string ends = bytes.substr(0, kHashed);
  if (bytes.size() > kHashed) ends += bytes.substr(bytes.size() - kHashed);
  return fmt::format("\"{:016x}-{}\"", std::hash<std::string>()(ends), bytes.size());
}

PlayedAnswer PlayedBucket::answer(const ReceivedRequest& request) const {
  const std::string path = request.target.substr(0, request.target.find('?'));
  constexpr std::string_view kBucket = "/bucket";
  if (path == kBucket) return list(query_of(request.target));
  const auto found = objects.find(percent_decoded(path.substr(kBucket.size() + 1)));
  if (found == objects.end()) return {404, "", "<Error><Code>NoSuchKey</Code></Error>"};
  const std::string& bytes = found->second;
  const std::string tag = etag_of(bytes);
  PlayedAnswer played{200, "ETag: " + tag + "\r\n", ""};
  const auto wanted = request.headers.find("if-match");
  if (wanted != request.headers.end() && wanted->second != tag) return {412, "", ""};
  const auto range = request.headers.find("range");
  if (range == request.headers.end()) {
    played.body = bytes;
    return played;
  }
  size_t begin = 0;
  size_t last = 0;
  if (std::sscanf(range->second.c_str(), "bytes=%zu-%zu", &begin, &last) != 2) return {400, "", ""};
  if (begin >= bytes.size()) return {416, "", ""};
  last = std::min(last, bytes.size() - 1);
  played.status = 206;
  played.headers += fmt::format("Content-Range: bytes {}-{}/{}\r\n", begin, last, bytes.size());
  played.body = bytes.substr(begin, last - begin + 1);
  return played;
}

PlayedAnswer PlayedBucket::take(const ReceivedRequest& request) {
  const std::string path = request.target.substr(0, request.target.find('?'));
  constexpr std::string_view kBucket = "/bucket";
  const std::string key = path == kBucket ? "" : percent_decoded(path.substr(kBucket.size() + 1));
  const auto query = query_of(request.target);
  if (request.method == "GET" && query.contains("uploads")) {
    std::string text;
    for (const auto& [id, upload] : uploads) {
      if (!upload.key.starts_with(query.at("prefix"))) continue;
      text += "<Upload><Key>" + upload.key + "</Key><UploadId>" + id +
              "</UploadId><Initiated>2026-01-02T03:04:05.000Z</Initiated></Upload>";
    }
    return {200, "", "<ListMultipartUploadsResult>" + text + "</ListMultipartUploadsResult>"};
  }
  if (request.method == "GET" && query.contains("uploadId")) {
    const auto upload = uploads.find(query.at("uploadId"));
    if (upload == uploads.end()) return {404, "", "<Error><Code>NoSuchUpload</Code></Error>"};
    return list_parts(upload->second, std::stoi(query.at("part-number-marker")));
  }
  if (request.method == "PUT") return put(key, request);
  if (request.method == "POST" && query.contains("uploads")) {
    const std::string id = fmt::format("upload-{}", ++last_upload_);
    uploads[id].key = key;
    return {200, "",
            "<InitiateMultipartUploadResult><UploadId>" + id +
                "</UploadId></InitiateMultipartUploadResult>"};
  }
  if (request.method == "POST") return complete(key, query.at("uploadId"), request.body);
  if (request.method != "DELETE") return answer(request);
  const auto condition = request.headers.find("if-match");
  const bool conflicts = condition != request.headers.end() && objects.contains(key) &&
                         condition->second != etag_of(objects.at(key));
  if (conflicts) return {412, "", "<Error><Code>PreconditionFailed</Code></Error>"};
  const bool was_there =
      query.contains("uploadId") ? uploads.erase(query.at("uploadId")) > 0 : objects.erase(key) > 0;
  return {was_there ? 204 : 404, "", ""};
}

PlayedAnswer PlayedBucket::put(const std::string& key, const ReceivedRequest& request) {
  if (request.headers.at("x-amz-content-sha256") != sha256_hex(request.body)) {
    return {400, "", "<Error><Code>XAmzContentSHA256Mismatch</Code></Error>"};
  }
  const auto query = query_of(request.target);
  const std::string tag = "ETag: " + etag_of(request.body) + "\r\n";
  if (!query.contains("uploadId")) {
    const auto condition = request.headers.find("if-match");
    const bool is_another = condition != request.headers.end() &&
                            (!objects.contains(key) || condition->second != etag_of(objects[key]));
    const bool conflicts = request.headers.contains("if-none-match") && objects.contains(key);
    if (conflicts || is_another) return {412, "", "<Error><Code>PreconditionFailed</Code></Error>"};
    objects[key] = request.body;
    return {200, tag, ""};
  }
  const auto upload = uploads.find(query.at("uploadId"));
  if (upload == uploads.end()) return {404, "", "<Error><Code>NoSuchUpload</Code></Error>"};
  const int number = std::stoi(query.at("partNumber"));
  if (request.headers.contains("x-amz-copy-source")) {
    return copy_part(upload->second, number, request);
  }
  upload->second.parts[number] = request.body;
  return {200, tag, ""};
}

PlayedAnswer PlayedBucket::copy_part(OpenUpload& upload, int number,
                                     const ReceivedRequest& request) const {
  ReceivedRequest read{"GET", request.headers.at("x-amz-copy-source"), {}};
  const auto pass_on = [&](const char* from, const char* to) {
    const auto found = request.headers.find(from);
    if (found != request.headers.end()) read.headers[to] = found->second;
  };
  pass_on("x-amz-copy-source-range", "range");
  pass_on("x-amz-copy-source-if-match", "if-match");
  const PlayedAnswer source = answer(read);
  if (source.status / 100 != 2) return source;
  upload.parts[number] = source.body;
  return {200, "", "<CopyPartResult><ETag>" + etag_of(source.body) + "</ETag></CopyPartResult>"};
}

PlayedAnswer PlayedBucket::list_parts(const OpenUpload& upload, int after) const {
  std::string text;
  size_t count = 0;
  for (auto part = upload.parts.upper_bound(after); part != upload.parts.end(); ++part) {
    if (count++ == page) {
      text += "<IsTruncated>true</IsTruncated>";
      break;
    }
    text += fmt::format("<Part><PartNumber>{}</PartNumber><Size>{}</Size><ETag>{}</ETag></Part>",
                        part->first, part->second.size(), etag_of(part->second));
  }
  return {200, "", "<ListPartsResult>" + text + "</ListPartsResult>"};
}

PlayedAnswer PlayedBucket::complete(const std::string& key, const std::string& id,
                                    const std::string& body) {
  const auto upload = uploads.find(id);
  if (upload == uploads.end()) return {404, "", "<Error><Code>NoSuchUpload</Code></Error>"};
  std::string bytes;
  const auto& parts = upload->second.parts;
  for (const auto& [number, part] : parts) {
    const std::string named =
        fmt::format("<PartNumber>{}</PartNumber><ETag>{}</ETag>", number, etag_of(part));
    if (body.find(named) == body.npos) {
      return {400, "", "<Error><Code>InvalidPart</Code></Error>"};
    }
    if (part.size() < least_part && number != parts.rbegin()->first) {
      return {400, "", "<Error><Code>EntityTooSmall</Code></Error>"};
    }
    bytes += part;
  }
  objects[key] = std::move(bytes);
  uploads.erase(upload);
  return {200, "", "<CompleteMultipartUploadResult></CompleteMultipartUploadResult>"};
}

PlayedAnswer PlayedBucket::list(const std::map<std::string, std::string>& query) const {
  const std::string prefix = query.contains("prefix") ? query.at("prefix") : "";
  const std::string after =
      query.contains("continuation-token") ? query.at("continuation-token") : "";
  std::string text;
  std::set<std::string> folders;
  size_t count = 0;
  std::string last;
  bool is_cut = false;
  for (const auto& [key, bytes] : objects) {
    if (!key.starts_with(prefix) || (!after.empty() && key <= after)) continue;
    if (count == page) {
      is_cut = true;
      break;
    }
    ++count;
    last = key;
    const size_t slash = key.find('/', prefix.size());
    if (slash != key.npos) {
      folders.insert(key.substr(0, slash + 1));
      continue;
    }
    text += fmt::format("<Contents><Key>{}</Key><Size>{}</Size><ETag>{}</ETag></Contents>", key,
                        bytes.size(), etag_of(bytes));
  }
  for (const std::string& folder : folders) {
    text += "<CommonPrefixes><Prefix>" + folder + "</Prefix></CommonPrefixes>";
  }
  text += is_cut ? "<IsTruncated>true</IsTruncated><NextContinuationToken>" + last +
                       "</NextContinuationToken>"
                 : "<IsTruncated>false</IsTruncated>";
  return {200, "", "<ListBucketResult>" + text + "</ListBucketResult>"};
}

}  // namespace shardtool::test
