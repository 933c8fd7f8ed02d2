#include "tests/support/served_bucket.h"

namespace shardtool::test {

store::s3::Client client_of(const std::string& endpoint, std::map<std::string, std::string> more,
                            i64 hedge_ms) {
  more.insert({{"AWS_ENDPOINT_URL", endpoint},
               {"AWS_ACCESS_KEY_ID", "id"},
               {"AWS_SECRET_ACCESS_KEY", "secret"},
               {"SHARDTOOL_S3_TIMEOUT", "2"}});
  const store::s3::Environment environment = [more](const char* name) {
    const auto found = more.find(name);
    return found == more.end() ? std::string() : found->second;
  };
  store::s3::Settings settings = store::s3::read_settings(environment);
  settings.limits.hedge_ms = hedge_ms;
  return store::s3::Client(std::move(settings), environment);
}

std::string some_bytes(size_t size) {
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 2654435761u >> 13);
  return bytes;
}

}  // namespace shardtool::test
