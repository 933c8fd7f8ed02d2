#include "tests/support/served_store.h"

#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace shardtool::test {

ServedStore& ServedStore::instance() {
  static ServedStore store;
  return store;
}

ServedStore::ServedStore()
    : server_([this](const ReceivedRequest& request) { return answer(request); }) {
  setenv("AWS_ENDPOINT_URL", server_.address().c_str(), 1);
  setenv("AWS_ACCESS_KEY_ID", "id", 1);
  setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
  setenv("AWS_CONFIG_FILE", "/dev/null", 1);
  setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null", 1);
  setenv("SHARDTOOL_S3_TIMEOUT", "5", 1);
}

void ServedStore::clear() {
  clear_below("");
}

void ServedStore::clear_below(const std::string& prefix) {
  const std::lock_guard lock(mutex_);
  std::erase_if(bucket_.objects, [&](const auto& object) {
    return prefix.empty() || object.first.starts_with(prefix + "/");
  });
  bucket_.uploads.clear();
  disturbance_ = nullptr;
  refusal_ = nullptr;
  change_ = nullptr;
  before_ = nullptr;
  requests_ = 0;
}

void ServedStore::end_uploads() {
  const std::lock_guard lock(mutex_);
  bucket_.uploads.clear();
}

void ServedStore::put(const std::string& key, std::string bytes) {
  const std::lock_guard lock(mutex_);
  bucket_.objects[key] = std::move(bytes);
}

void ServedStore::put_folder(const std::string& prefix, const std::string& folder) {
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream in(entry.path(), std::ios::binary);
    put(prefix + "/" + entry.path().filename().string(), {std::istreambuf_iterator<char>(in), {}});
  }
}

void ServedStore::disturb(std::function<void(int number, PlayedAnswer& answer)> disturbance) {
  const std::lock_guard lock(mutex_);
  disturbance_ = std::move(disturbance);
  requests_ = 0;
}

void ServedStore::refuse(std::function<std::optional<PlayedAnswer>(int number)> refusal) {
  const std::lock_guard lock(mutex_);
  refusal_ = std::move(refusal);
  requests_ = 0;
}

void ServedStore::delay(std::function<void(int number)> before) {
  const std::lock_guard lock(mutex_);
  before_ = std::move(before);
  delayed_ = 0;
}

void ServedStore::change(std::function<void(const ReceivedRequest&, PlayedAnswer&)> change) {
  const std::lock_guard lock(mutex_);
  change_ = std::move(change);
}

int ServedStore::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

std::map<std::string, std::string> ServedStore::below(const std::string& prefix) const {
  const std::lock_guard lock(mutex_);
  std::map<std::string, std::string> found;
  for (const auto& [key, bytes] : bucket_.objects) {
    if (key.starts_with(prefix + "/")) found[key.substr(prefix.size() + 1)] = bytes;
  }
  return found;
}

size_t ServedStore::open_uploads() const {
  const std::lock_guard lock(mutex_);
  return bucket_.uploads.size();
}

bool ServedStore::has_hidden(const std::string& prefix, const std::string& name) const {
  const std::string front = prefix + "/.shardtool-";
  return std::ranges::any_of(bucket_.objects, [&](const auto& object) {
    return object.first.starts_with(front) && object.first.ends_with("/" + name);
  });
}

PlayedAnswer ServedStore::answer(const ReceivedRequest& request) {
  std::function<void(int)> before;
  int number = 0;
  {
    const std::lock_guard lock(mutex_);
    before = before_;
    number = ++delayed_;
  }
  if (before) before(number);
  const std::lock_guard lock(mutex_);
  ++requests_;
  if (refusal_) {
    if (auto refused = refusal_(requests_)) return *std::move(refused);
  }
  PlayedAnswer answer = bucket_.take(request);
  if (disturbance_) disturbance_(requests_, answer);
  if (change_) change_(request, answer);
  return answer;
}

}  // namespace shardtool::test
