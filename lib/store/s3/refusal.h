#pragma once

#include <string_view>

#include "lib/base/error.h"
#include "lib/store/s3/http.h"
#include "lib/store/s3/settings.h"
#include "lib/store/s3/sign.h"
#include "lib/store/s3/url.h"
#include "lib/store/s3/xml.h"

namespace shardtool::store::s3 {

/// True for an answer after which the same request may succeed.
bool is_passing(const HttpAnswer& answer);

/// True for an answer 200 that says in its text that the service has failed, as with status 500 or
/// 503: a service that needs long for an answer begins it before it knows.
bool has_failed_late(const HttpAnswer& answer);

/// A request, as errors name it.
struct RequestName {
  std::string_view method;
  const Query& query;
  const Url& url;
};

/// Error for a failed request, by the code of the service's answer: wrong keys, an ended token, a
/// clock that is off, another region, a redirect, no such bucket, no answer
/// (docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html).
Error refusal(const HttpAnswer& answer, const RequestName& request, const Settings& settings);

/// Parses the document of an answer. Throws kMalformed, with the object and the endpoint, for other
/// texts.
XmlElement document_of(const HttpAnswer& answer, const Url& url, const Settings& settings);
/// Adds the endpoint to an error about a document that no such service writes, and help.
Error other_service(Error error, const Settings& settings);

}  // namespace shardtool::store::s3
