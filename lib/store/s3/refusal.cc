#include "lib/store/s3/refusal.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "lib/base/text.h"
#include "lib/store/s3/xml.h"

namespace shardtool::store::s3 {
namespace {

struct KnownCode {
  std::string_view code;
  std::string_view message;
  std::string_view help;
};

constexpr std::string_view kDenied = "AccessDenied";

constexpr auto kKnownCodes = std::to_array<KnownCode>({
    {"SignatureDoesNotMatch", "the object store refuses the signature: the secret key is wrong",
     "check AWS_SECRET_ACCESS_KEY or the profile"},
    {"InvalidAccessKeyId", "the object store does not know the access key",
     "check AWS_ACCESS_KEY_ID, the profile and AWS_ENDPOINT_URL"},
    {"ExpiredToken", "the session token has ended", "get new temporary keys"},
    {"TokenRefreshRequired", "the session token has ended", "get new temporary keys"},
    {"InvalidToken", "the object store refuses the session token", "check AWS_SESSION_TOKEN"},
    {"RequestTimeTooSkewed", "the clock of this machine is off, so signatures do not hold",
     "set the clock"},
    {"AuthorizationHeaderMalformed", "the bucket is in another region", ""},
    {"PermanentRedirect", "the bucket is in another region, or at another endpoint", ""},
    {kDenied, "the object store denies access", ""},
    {"NoSuchBucket", "there is no such bucket", "check its name and AWS_ENDPOINT_URL"},
    {"InvalidObjectState", "the object is archived", "restore it first"},
});

const KnownCode* known(std::string_view code) {
  const auto* found = std::ranges::find(kKnownCodes, code, &KnownCode::code);
  return found == kKnownCodes.end() ? nullptr : found;
}

/// The service's error document; an empty one for other texts.
XmlElement error_document(const HttpAnswer& answer) {
  try {
    return parse_xml(answer.text);
  } catch (const Error&) {
    return {};
  }
}

std::string host_of(std::string_view location) {
  const size_t begin = location.find("://");
  if (begin == location.npos) return std::string(location);
  location.remove_prefix(begin + 3);
  return std::string(location.substr(0, location.find_first_of("/?")));
}

std::string endpoint_of(const Settings& settings) {
  return quote_for_message(settings.endpoint.empty() ? "AWS" : settings.endpoint);
}

Error no_answer(const HttpAnswer& answer, const Settings& settings) {
  Error error(ErrorCode::kStoreUnreachable, answer.failure == HttpFailure::kTls
                                                ? "the object store cannot prove who it is"
                                                : "the object store does not answer");
  error.note("found", answer.status > 0 && answer.failure == HttpFailure::kNone
                          ? fmt::format("status {}", answer.status)
                          : answer.reason);
  error.note("endpoint", endpoint_of(settings));
  error.help(answer.failure == HttpFailure::kTls
                 ? "AWS_CA_BUNDLE names the file of a certificate authority of your own"
                 : "check AWS_ENDPOINT_URL and the network, or try again later");
  return error;
}

Error no_redirect(const HttpAnswer& answer) {
  return Error(ErrorCode::kStoreRefused,
               "the object store sends the request to another address: keys are not sent there")
      .note("found", quote_for_message(host_of(answer.header("location"))))
      .help("set AWS_ENDPOINT_URL to the address that has the bucket");
}

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

/// Action that the policy of a bucket must allow for a request, such as s3:PutObject
/// (docs.aws.amazon.com/AmazonS3/latest/userguide/using-with-s3-policy-actions.html).
std::string_view needed_action(const RequestName& request) {
  const auto asks = [&](std::string_view key) {
    return std::ranges::find(request.query, key, &Query::value_type::first) != request.query.end();
  };
  const bool is_read = request.method == "GET" || request.method == "HEAD";
  const bool deletes = request.method == "DELETE";
  if (asks("uploads") && is_read) return "s3:ListBucketMultipartUploads";
  if (asks("uploadId") && is_read) return "s3:ListMultipartUploadParts";
  if (asks("uploadId") && deletes) return "s3:AbortMultipartUpload";
  if (is_read) return request.url.key.empty() ? "s3:ListBucket" : "s3:GetObject";
  return deletes ? "s3:DeleteObject" : "s3:PutObject";
}

Error by_code(const HttpAnswer& answer, const RequestName& request, const Settings& settings) {
  const XmlElement document = error_document(answer);
  std::string code = document.value("Code");
  std::string region = answer.header("x-amz-bucket-region");
  if (region.empty()) region = document.value("Region");
  const bool is_elsewhere = !region.empty() && region != settings.region;
  if (code.empty() && is_elsewhere) code = "PermanentRedirect";
  if (code.empty() && answer.status == 403) code = kDenied;  // an answer to HEAD has no text
  if (is_redirect(answer.status) && !is_elsewhere) return no_redirect(answer);
  const KnownCode* const row = known(code);
  Error error(code == "NoSuchBucket" ? ErrorCode::kFileMissing : ErrorCode::kStoreRefused,
              row == nullptr ? "the object store refuses the request" : std::string(row->message));
  if (row == nullptr || code == kDenied) {
    error.note("found", fmt::format("status {} {}", answer.status, quote_for_message(code)));
    error.note("request", std::string(request.method));
  }
  if (code == kDenied) {
    error.help(
        fmt::format("check the keys, and that the policy allows {}; shardtool(1) lists what "
                    "is needed",
                    needed_action(request)));
  }
  if (is_elsewhere) error.help("set AWS_REGION=" + quote_for_message(region));
  if (row != nullptr && !row->help.empty()) error.help(std::string(row->help));
  return error;
}

}  // namespace

bool is_passing(const HttpAnswer& answer) {
  if (answer.failure == HttpFailure::kTls) return false;
  if (answer.failure != HttpFailure::kNone) return !answer.overflows;
  return answer.status == 429 || answer.status == 500 || answer.status == 502 ||
         answer.status == 503 || answer.status == 504;
}

bool has_failed_late(const HttpAnswer& answer) {
  constexpr int kSuccess = 200;
  if (answer.failure != HttpFailure::kNone || answer.status != kSuccess) return false;
  const XmlElement document = error_document(answer);
  const std::string code = document.value("Code");
  return document.name == "Error" &&
         (code == "InternalError" || code == "SlowDown" || code == "ServiceUnavailable");
}

Error refusal(const HttpAnswer& answer, const RequestName& request, const Settings& settings) {
  const bool is_silent = answer.failure != HttpFailure::kNone || is_passing(answer);
  Error error = is_silent ? no_answer(answer, settings) : by_code(answer, request, settings);
  return std::move(error).at({request.url.text(), 0, 0, ""});
}

XmlElement document_of(const HttpAnswer& answer, const Url& url, const Settings& settings) {
  try {
    return parse_xml(answer.text);
  } catch (Error& error) {
    throw other_service(std::move(error.at({url.text(), 0, 0, ""})), settings);
  }
}

Error other_service(Error error, const Settings& settings) {
  error.note("endpoint", endpoint_of(settings));
  error.help("check AWS_ENDPOINT_URL: a proxy or the login page of a network may have answered");
  return error;
}

}  // namespace shardtool::store::s3
