#include "lib/store/s3/settings.h"

#include <doctest/doctest.h>

#include <map>

#include "lib/base/error.h"
#include "lib/store/s3/credentials.h"
#include "lib/store/s3/url.h"
#include "lib/store/s3/xml.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

using namespace shardtool;
using namespace shardtool::store::s3;

namespace {

Environment environment(std::map<std::string, std::string> values) {
  return [values = std::move(values)](const char* name) {
    const auto found = values.find(name);
    return found == values.end() ? std::string() : found->second;
  };
}

HttpAnswer answered(int status, std::string text) {
  HttpAnswer answer;
  answer.status = status;
  answer.text = std::move(text);
  return answer;
}

HttpAnswer unreachable(const HttpRequest&) {
  HttpAnswer answer;
  answer.failure = HttpFailure::kConnect;
  answer.reason = "no route";
  return answer;
}

Credentials found_in(const Environment& values, const Send& send = unreachable) {
  return find_credentials(read_settings(values), values, send);
}

}  // namespace

TEST_CASE("a place on a store keeps any text as its key") {
  for (const std::string key : {"a/../b", "x=1/y+z", "with space", "\u00e9\u6f22", "a//b", "."}) {
    const Url url = parse_url("s3://bucket/" + key);
    CHECK(url == Url{"bucket", key});
    CHECK(url.text() == "s3://bucket/" + key);
  }
  CHECK(parse_url("s3://bucket") == Url{"bucket", ""});
  for (const std::string bad : {"s3://", "s3:///key", "s3://a..b/k", "s3://b\xff/k",
                                "s3://bucket/\n", "s3://bucket/\xff"}) {
    CHECK_ERROR(kUsage, parse_url(bad));
  }
}

TEST_CASE("the address has the bucket in the host unless the endpoint is one's own") {
  const Settings aws = read_settings(environment({{"AWS_REGION", "eu-west-1"}}));
  CHECK(address_of(aws, {"bucket", "a b"}).origin == "https://bucket.s3.eu-west-1.amazonaws.com");
  CHECK(address_of(aws, {"bucket", "a b"}).path == "/a%20b");
  CHECK(address_of(aws, {"dotted.bucket", "k"}).path == "/dotted.bucket/k");
  const Settings own = read_settings(environment(
      {{"AWS_ENDPOINT_URL", "http://other"}, {"AWS_ENDPOINT_URL_S3", "http://h:9/x/"}}));
  CHECK(address_of(own, {"bucket", ""}).host == "h:9");
  CHECK(address_of(own, {"bucket", ""}).path == "/x/bucket");
  const Settings named = read_settings(
      environment({{"AWS_ENDPOINT_URL", "http://h:9"}, {"AWS_S3_ADDRESSING_STYLE", "virtual"}}));
  CHECK(address_of(named, {"bucket", "k"}).origin == "http://bucket.h:9");
}

TEST_CASE("the null device is a profile file without content") {
  const Environment none =
      environment({{"AWS_CONFIG_FILE", "/dev/null"}, {"AWS_SHARED_CREDENTIALS_FILE", "/dev/null"}});
  CHECK(read_settings(none).region == "us-east-1");
}

TEST_CASE("settings that are not understood are refused") {
  for (const auto& [name, value] :
       std::map<std::string, std::string>{{"AWS_ENDPOINT_URL", "ftp://h"},
                                          {"AWS_ENDPOINT_URL_S3", "http://user@h"},
                                          {"AWS_MAX_ATTEMPTS", "0"},
                                          {"SHARDTOOL_S3_TIMEOUT", "1s"},
                                          {"AWS_S3_ADDRESSING_STYLE", "paths"},
                                          {"AWS_PROFILE", "absent"}}) {
    CHECK_ERROR(kUsage, read_settings(environment({{name, value}})));
  }
}

TEST_CASE("keys come from the environment, then from the profile, and a named profile goes first") {
  const test::TempFolder folder;
  const std::string config =
      folder.write("config",
                   "# text\n[default]\nregion = eu-north-1\n[profile dev]\nca_bundle=/ca\ns3 =\n"
                   "  addressing_style = path\n");
  const std::string keys = folder.write(
      "credentials",
      "[dev]\naws_access_key_id = dev id\naws_secret_access_key=s=s\naws_session_token = t\n");
  std::map<std::string, std::string> values{{"AWS_CONFIG_FILE", config},
                                            {"AWS_SHARED_CREDENTIALS_FILE", keys},
                                            {"AWS_ACCESS_KEY_ID", "env"},
                                            {"AWS_SECRET_ACCESS_KEY", "secret"}};
  CHECK(read_settings(environment(values)).region == "eu-north-1");
  CHECK(found_in(environment(values)).keys.id == "env");
  values["AWS_PROFILE"] = "dev";
  const Settings dev = read_settings(environment(values));
  CHECK(dev.region == "us-east-1");
  CHECK(dev.is_path_style);
  CHECK(dev.ca_bundle == "/ca");
  const Keys found = found_in(environment(values)).keys;
  CHECK(found.id == "dev id");
  CHECK(found.secret == "s=s");
  CHECK(found.session_token == "t");
}

TEST_CASE("a web identity token is exchanged for keys") {
  const test::TempFolder folder;
  const Environment values =
      environment({{"AWS_WEB_IDENTITY_TOKEN_FILE", folder.write("token", "a+b")},
                   {"AWS_ROLE_ARN", "arn:aws:iam::1:role/r"},
                   {"AWS_ENDPOINT_URL_STS", "http://sts"}});
  const Credentials found = found_in(values, [](const HttpRequest& request) {
    CHECK(request.url == "http://sts/");
    CHECK(request.body.find("WebIdentityToken=a%2Bb") != std::string::npos);
    return answered(
        200,
        "<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials>"
        "<AccessKeyId>i</AccessKeyId><SecretAccessKey>s</SecretAccessKey>"
        "<SessionToken>t</SessionToken><Expiration>2030-01-02T03:04:05Z</Expiration>"
        "</Credentials></AssumeRoleWithWebIdentityResult>"
        "</AssumeRoleWithWebIdentityResponse>");
  });
  CHECK(found.keys.session_token == "t");
  CHECK(found.expires_unix_s == 1893553445);
  CHECK_ERROR(kStoreRefused,
              found_in(values, [](const HttpRequest&) { return answered(403, "<Error/>"); }));
}

TEST_CASE("a container and an instance give keys by their addresses") {
  const std::string text = R"({"AccessKeyId":"i","SecretAccessKey":"s","Token":"t"})";
  const Environment container = environment({{"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2/x"},
                                             {"AWS_CONTAINER_AUTHORIZATION_TOKEN", "a"}});
  const auto of_container = [&](const HttpRequest& request) {
    CHECK(request.url == "http://169.254.170.2/v2/x");
    CHECK(request.headers == Headers{{"authorization", "a"}});
    return answered(200, text);
  };
  CHECK(found_in(container, of_container).keys.session_token == "t");
  const auto of_instance = [&](const HttpRequest& request) {
    if (request.method == "PUT") return answered(200, "session");
    CHECK(request.headers == Headers{{"x-aws-ec2-metadata-token", "session"}});
    return answered(200, request.url.ends_with("/role") ? text : "role\n");
  };
  CHECK(found_in(environment({}), of_instance).source == "the instance's role");
}

TEST_CASE("requests are anonymous on demand only") {
  CHECK(found_in(environment({{"AWS_SKIP_SIGNATURE", "true"}})).keys.is_anonymous());
  CHECK_ERROR(kStoreRefused, found_in(environment({})));
  CHECK_ERROR(kStoreRefused, found_in(environment({{"AWS_ACCESS_KEY_ID", "x"}})));
}

TEST_CASE("answers in XML are read with their references") {
  const XmlElement root = parse_xml(
      "<?xml version=\"1.0\"?>\n<R a=\"1\"><!-- x "
      "--><K>a&amp;b&#233;&#x6f22;</K><E/><K><![CDATA[<]]></K></R >");
  CHECK(root.value("K") == "a&b\u00e9\u6f22");
  CHECK(root.children.size() == 3);
  CHECK(root.children[2].text == "<");
  for (const std::string bad : {"", "<a>", "<a></b>", "<a>&x;</a>", "<a>&#0;</a>", "<a/><b/>",
                                "<!DOCTYPE a><a/>", "text", "<a>&#xd800;</a>"}) {
    CHECK_ERROR(kMalformed, parse_xml(bad));
  }
  std::string deep;
  for (int i = 0; i < 100; ++i) deep += "<a>";
  CHECK_ERROR(kMalformed, parse_xml(deep));
}
