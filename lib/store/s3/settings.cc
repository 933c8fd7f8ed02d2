#include "lib/store/s3/settings.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <filesystem>

#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/store/local/file.h"

namespace shardtool::store::s3 {
namespace {

constexpr i64 kMaxProfileBytes = 1 << 20;

/// First value that is not empty.
std::string first_of(std::initializer_list<std::string> values) {
  for (const std::string& value : values) {
    if (!value.empty()) return value;
  }
  return "";
}

std::string file_of(const Environment& environment, const char* variable, const char* name) {
  const std::string named = environment(variable);
  if (!named.empty()) return named;
  const std::string home = environment("HOME");
  return home.empty() ? "" : home + "/.aws/" + name;
}

/// Adds a file's section; later calls win. /dev/null is an empty file.
void add_section(const std::string& path, const std::string& name, Section& into) {
  std::error_code error;
  const bool is_there = !path.empty() && std::filesystem::exists(path, error);
  if (!is_there || std::filesystem::is_character_file(path, error)) return;
  const auto sections = parse_profiles(read_text(path, kMaxProfileBytes));
  const auto found = sections.find(name);
  if (found == sections.end()) return;
  for (const auto& [key, value] : found->second) into[key] = value;
}

void read_profile(const Environment& environment, Settings& settings) {
  const std::string named = environment("AWS_PROFILE");
  settings.profile_name = named.empty() ? "default" : named;
  add_section(file_of(environment, "AWS_CONFIG_FILE", "config"), settings.profile_name,
              settings.profile);
  add_section(file_of(environment, "AWS_SHARED_CREDENTIALS_FILE", "credentials"),
              settings.profile_name, settings.profile);
  if (named.empty() || !settings.profile.empty()) return;
  throw Error(ErrorCode::kUsage, "AWS_PROFILE names a profile that no file has")
      .note("found", quote_for_message(named))
      .help("add it to ~/.aws/credentials or ~/.aws/config, or unset AWS_PROFILE");
}

i64 number_in(const char* name, const std::string& text, i64 most) {
  i64 value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= 1 && value <= most)
    return value;
  throw Error(ErrorCode::kUsage, fmt::format("{} is not understood", name))
      .note("found", quote_for_message(text))
      .note("expected", fmt::format("a number from 1 to {}", most));
}

bool is_path_style(const std::string& style, bool has_endpoint) {
  if (style.empty() || style == "auto") return has_endpoint;
  if (style == "path" || style == "virtual") return style == "path";
  throw Error(ErrorCode::kUsage, "AWS_S3_ADDRESSING_STYLE is not understood")
      .note("found", quote_for_message(style))
      .note("expected", "path, virtual or auto");
}

void check_endpoint(const std::string& endpoint) {
  const bool has_scheme = endpoint.starts_with("https://") || endpoint.starts_with("http://");
  if (endpoint.empty() || (has_scheme && endpoint.find_first_of(" @?#") == std::string::npos))
    return;
  throw Error(ErrorCode::kUsage, "the endpoint of the object store is no address")
      .note("found", quote_for_message(endpoint))
      .note("expected", "https://host or http://host:port");
}

void read_limits(const Environment& environment, Limits& limits) {
  const std::string seconds = environment("SHARDTOOL_S3_TIMEOUT");
  const std::string attempts = environment("AWS_MAX_ATTEMPTS");
  if (!attempts.empty()) {
    limits.attempts = static_cast<int>(number_in("AWS_MAX_ATTEMPTS", attempts, 100));
  }
  if (seconds.empty()) return;
  limits.give_up_ms = 1000 * number_in("SHARDTOOL_S3_TIMEOUT", seconds, 3600);
  limits.stall_ms = std::min(limits.stall_ms, limits.give_up_ms / 2);
  limits.connect_ms = std::min(limits.connect_ms, limits.stall_ms);
}

/// Host of an endpoint with its port, and the path after it.
std::pair<std::string, std::string> host_and_path(const std::string& endpoint) {
  const size_t begin = endpoint.find("://") + 3;
  const size_t slash = std::min(endpoint.find('/', begin), endpoint.size());
  std::string path = endpoint.substr(slash);
  while (path.ends_with('/')) path.pop_back();
  return {endpoint.substr(begin, slash - begin), path};
}

}  // namespace

std::string process_environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string Settings::in_profile(std::string_view key) const {
  const auto found = profile.find(key);
  return found == profile.end() ? "" : found->second;
}

Settings read_settings(const Environment& environment) {
  Settings settings;
  read_profile(environment, settings);
  settings.endpoint =
      first_of({environment("AWS_ENDPOINT_URL_S3"), environment("AWS_ENDPOINT_URL"),
                settings.in_profile("s3.endpoint_url"), settings.in_profile("endpoint_url")});
  check_endpoint(settings.endpoint);
  settings.region = first_of({environment("AWS_REGION"), environment("AWS_DEFAULT_REGION"),
                              settings.in_profile("region"), "us-east-1"});
  settings.is_path_style = is_path_style(first_of({environment("AWS_S3_ADDRESSING_STYLE"),
                                                   settings.in_profile("s3.addressing_style")}),
                                         !settings.endpoint.empty());
  settings.ca_bundle = first_of({environment("AWS_CA_BUNDLE"), settings.in_profile("ca_bundle")});
  read_limits(environment, settings.limits);
  return settings;
}

Address address_of(const Settings& settings, const Url& url) {
  const std::string endpoint = settings.endpoint.empty()
                                   ? fmt::format("https://s3.{}.amazonaws.com", settings.region)
                                   : settings.endpoint;
  const std::string scheme = endpoint.substr(0, endpoint.find("://"));
  auto [host, path] = host_and_path(endpoint);
  // A certificate for *.s3.REGION.amazonaws.com holds for no bucket with dots in its name.
  const bool in_path = settings.is_path_style || url.bucket.find('.') != std::string::npos;
  if (in_path) path += "/" + url.bucket;
  if (!in_path) host = url.bucket + "." + host;
  path += (url.key.empty() && in_path ? "" : "/") + uri_encoded(url.key, false);
  return {scheme + "://" + host, host, path};
}

}  // namespace shardtool::store::s3
