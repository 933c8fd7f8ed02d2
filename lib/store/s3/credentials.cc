#include "lib/store/s3/credentials.h"

#include <fmt/format.h>
#include <time.h>

#include <optional>

#include "lib/base/error.h"
#include "lib/base/strict_json.h"
#include "lib/base/text.h"
#include "lib/store/local/file.h"
#include "lib/store/s3/xml.h"

namespace shardtool::store::s3 {
namespace {

constexpr i64 kMaxTokenBytes = 64 << 10;
constexpr int kOk = 200;
constexpr int kJsonDepth = 8;

Error no_keys(std::string message, const HttpAnswer& answer) {
  Error error(ErrorCode::kStoreRefused, std::move(message));
  error.note("found", answer.status == 0 ? answer.reason
                                         : fmt::format("status {}: {}", answer.status,
                                                       quote_for_message(answer.text)));
  return error;
}

/// Reads {"AccessKeyId", "SecretAccessKey", "Token", "Expiration"}, which containers and instances
/// answer.
Credentials from_json(const HttpAnswer& answer, std::string source) {
  if (answer.status != kOk) throw no_keys(source + " gave no keys", answer);
  const auto document =
      parse_strict_json(answer.text, source, ErrorCode::kStoreRefused, kJsonDepth);
  const auto text = [&document](const char* name) {
    const auto found = document.value.find(name);
    const bool is_text = found != document.value.end() && found->is_string();
    return is_text ? found->get<std::string>() : std::string();
  };
  Credentials found{{text("AccessKeyId"), text("SecretAccessKey"), text("Token")},
                    std::move(source),
                    unix_time(text("Expiration"))};
  if (found.keys.id.empty() || found.keys.secret.empty())
    throw no_keys(found.source + " gave no keys", {});
  return found;
}

std::optional<Credentials> from_environment(const Environment& environment) {
  Keys keys{environment("AWS_ACCESS_KEY_ID"), environment("AWS_SECRET_ACCESS_KEY"),
            environment("AWS_SESSION_TOKEN")};
  if (keys.id.empty() && keys.secret.empty()) return std::nullopt;
  if (!keys.id.empty() && !keys.secret.empty())
    return Credentials{std::move(keys), "AWS_ACCESS_KEY_ID", 0};
  throw Error(ErrorCode::kStoreRefused, "only one of a key and its secret is set")
      .help("set both AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY");
}

std::optional<Credentials> from_profile(const Settings& settings) {
  Keys keys{settings.in_profile("aws_access_key_id"), settings.in_profile("aws_secret_access_key"),
            settings.in_profile("aws_session_token")};
  if (keys.id.empty() || keys.secret.empty()) return std::nullopt;
  return Credentials{std::move(keys), fmt::format("the profile '{}'", settings.profile_name), 0};
}

/// Calls AssumeRoleWithWebIdentity of the Security Token Service
/// (docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRoleWithWebIdentity.html).
std::optional<Credentials> from_web_identity(const Settings& settings,
                                             const Environment& environment, const Send& send) {
  const std::string file = environment("AWS_WEB_IDENTITY_TOKEN_FILE");
  const std::string role = environment("AWS_ROLE_ARN");
  if (file.empty() || role.empty()) return std::nullopt;
  const std::string session = environment("AWS_ROLE_SESSION_NAME");
  const std::string endpoint = environment("AWS_ENDPOINT_URL_STS");
  const std::string body =
      encoded_query({{"Action", "AssumeRoleWithWebIdentity"},
                     {"Version", "2011-06-15"},
                     {"RoleArn", role},
                     {"RoleSessionName", session.empty() ? "shardtool" : session},
                     {"WebIdentityToken", read_text(file, kMaxTokenBytes)}});
  HttpRequest request;
  request.method = "POST";
  request.url = endpoint.empty() ? fmt::format("https://sts.{}.amazonaws.com/", settings.region)
                                 : endpoint + "/";
  request.headers = {{"content-type", "application/x-www-form-urlencoded"}};
  request.body = body;
  const HttpAnswer answer = send(std::move(request));
  if (answer.status != kOk) throw no_keys("the web identity got no keys", answer);
  const XmlElement root = parse_xml(answer.text);
  const XmlElement* const result = root.find("AssumeRoleWithWebIdentityResult");
  const XmlElement* const keys = result == nullptr ? nullptr : result->find("Credentials");
  if (keys == nullptr) throw no_keys("the web identity got no keys", answer);
  return Credentials{
      {keys->value("AccessKeyId"), keys->value("SecretAccessKey"), keys->value("SessionToken")},
      "the web identity",
      unix_time(keys->value("Expiration"))};
}

std::optional<Credentials> from_container(const Environment& environment, const Send& send) {
  const std::string relative = environment("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
  const std::string full = environment("AWS_CONTAINER_CREDENTIALS_FULL_URI");
  if (relative.empty() && full.empty()) return std::nullopt;
  HttpRequest request;
  request.url = relative.empty() ? full : "http://169.254.170.2" + relative;
  const std::string file = environment("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
  const std::string token = file.empty() ? environment("AWS_CONTAINER_AUTHORIZATION_TOKEN")
                                         : read_text(file, kMaxTokenBytes);
  if (!token.empty()) request.headers = {{"authorization", token}};
  return from_json(send(std::move(request)), "the container's address for keys");
}

/// Version 2 of the instance's metadata: a token first, then the role, then its keys
/// (docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-data-retrieval.html).
std::optional<Credentials> from_instance(const Environment& environment, const Send& send) {
  const std::string disabled = environment("AWS_EC2_METADATA_DISABLED");
  if (disabled == "true" || disabled == "TRUE") return std::nullopt;
  const std::string named = environment("AWS_EC2_METADATA_SERVICE_ENDPOINT");
  const std::string base = named.empty() ? "http://169.254.169.254" : named;
  HttpRequest ask_token;
  ask_token.method = "PUT";
  ask_token.url = base + "/latest/api/token";
  ask_token.headers = {{"x-aws-ec2-metadata-token-ttl-seconds", "21600"}};
  const HttpAnswer token = send(std::move(ask_token));
  if (token.status != kOk) return std::nullopt;  // no instance of EC2
  const auto get = [&](const std::string& path) {
    HttpRequest request;
    request.url = base + "/latest/meta-data/iam/security-credentials/" + path;
    request.headers = {{"x-aws-ec2-metadata-token", token.text}};
    return send(std::move(request));
  };
  const HttpAnswer roles = get("");
  if (roles.status != kOk) return std::nullopt;  // an instance without a role
  return from_json(get(roles.text.substr(0, roles.text.find('\n'))), "the instance's role");
}

}  // namespace

i64 unix_time(const std::string& iso) {
  struct tm time {};
  const char* const end = strptime(iso.c_str(), "%Y-%m-%dT%H:%M:%S", &time);
  return end == nullptr ? 0 : static_cast<i64>(timegm(&time));
}

Credentials find_credentials(const Settings& settings, const Environment& environment,
                             const Send& send) {
  if (environment("AWS_SKIP_SIGNATURE") == "true") return {{}, "AWS_SKIP_SIGNATURE", 0};
  const bool names_profile = !environment("AWS_PROFILE").empty();
  std::optional<Credentials> found;
  if (names_profile) found = from_profile(settings);
  if (!found) found = from_environment(environment);
  if (!found) found = from_profile(settings);
  if (!found) found = from_web_identity(settings, environment, send);
  if (!found) found = from_container(environment, send);
  if (!found) found = from_instance(environment, send);
  if (found) return *found;
  throw Error(ErrorCode::kStoreRefused, "there are no keys for the object store")
      .note("looked at",
            "AWS_ACCESS_KEY_ID, the profile's files, a web identity, the container, the instance")
      .help("set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE")
      .help("for a public bucket set AWS_SKIP_SIGNATURE=true");
}

}  // namespace shardtool::store::s3
