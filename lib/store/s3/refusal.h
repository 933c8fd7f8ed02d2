#pragma once

#include "lib/base/error.h"
#include "lib/store/s3/http.h"
#include "lib/store/s3/settings.h"
#include "lib/store/s3/url.h"

namespace shardtool::store::s3 {

/// True for an answer after which the same request may succeed.
bool is_passing(const HttpAnswer& answer);

/// Error for a failed request, by the code of the service's answer: wrong keys, an ended token, a
/// clock that is off, another region, a redirect, no such bucket, no answer
/// (docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html).
Error refusal(const HttpAnswer& answer, const Url& url, const Settings& settings);

}  // namespace shardtool::store::s3
