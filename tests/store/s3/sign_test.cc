#include "lib/store/s3/sign.h"

#include <doctest/doctest.h>

#include <string>

#include "lib/base/sha256.h"

using namespace shardtool;
using namespace shardtool::store::s3;

namespace {

const std::string kEmptyHash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

std::string signature(const std::string& authorization) {
  return authorization.substr(authorization.rfind('=') + 1);
}

/// Signs as the examples of "Authenticating Requests: Using the Authorization Header" do
/// (docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html).
std::string of_s3(SignedParts request) {
  request.headers.emplace_back("host", "examplebucket.s3.amazonaws.com");
  request.headers.emplace_back("x-amz-content-sha256", request.payload_hash);
  request.headers.emplace_back("x-amz-date", "20130524T000000Z");
  return signature(authorization(
      request, {"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", ""},
      {"us-east-1", "s3", "20130524T000000Z"}));
}

/// Signs as the AWS Signature Version 4 test suite does.
std::string of_suite(SignedParts request) {
  request.headers.emplace_back("host", "example.amazonaws.com");
  request.headers.emplace_back("x-amz-date", "20150830T123600Z");
  request.payload_hash = kEmptyHash;
  return signature(authorization(request,
                                 {"AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", ""},
                                 {"us-east-1", "service", "20150830T123600Z"}));
}

}  // namespace

TEST_CASE("the signer gives the signatures of the S3 manual") {
  CHECK(of_s3({"GET", "/test.txt", {}, {{"range", "bytes=0-9"}}, kEmptyHash}) ==
        "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
  CHECK(of_s3({"PUT",
               "/" + uri_encoded("test$file.text"),
               {},
               {{"date", "Fri, 24 May 2013 00:00:00 GMT"},
                {"x-amz-storage-class", "REDUCED_REDUNDANCY"}},
               sha256_hex("Welcome to Amazon S3.")}) ==
        "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
  CHECK(of_s3({"GET", "/", {{"lifecycle", ""}}, {}, kEmptyHash}) ==
        "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
  CHECK(of_s3({"GET", "/", {{"prefix", "J"}, {"max-keys", "2"}}, {}, kEmptyHash}) ==
        "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

TEST_CASE("the signer gives the signatures of the test suite of Signature Version 4") {
  CHECK(of_suite({"GET", "/", {}, {}, ""}) ==
        "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31");
  CHECK(of_suite({"POST", "/", {}, {}, ""}) ==
        "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b");
  CHECK(of_suite({"GET", "/", {{"Param2", "value2"}, {"Param1", "value1"}}, {}, ""}) ==
        "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500");
  CHECK(of_suite({"GET", "/", {{"\u1234", "bar"}}, {}, ""}) ==
        "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04");
  CHECK(of_suite({"GET",
                  "/-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
                  {},
                  {},
                  ""}) == "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f");
  CHECK(of_suite(
            {"GET", "/", {}, {{"my-header1", " value1"}, {"my-header2", " \"a   b   c\""}}, ""}) ==
        "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736");
}

TEST_CASE("every byte of a key but the unreserved ones and its slashes is encoded") {
  CHECK(uri_encoded("a b/c+d=e~f", false) == "a%20b/c%2Bd%3De~f");
  CHECK(uri_encoded("a/../\u00e9") == "a%2F..%2F%C3%A9");
}
