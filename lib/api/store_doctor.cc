#include "lib/api/store_doctor.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/format/names.h"
#include "lib/store/reader.h"
#include "lib/store/s3/upload.h"

namespace shardtool::api {
namespace {

DoctorCheck failed(const char* name, const Error& error) {
  const auto& help = error.help_lines();
  return {name, error.message(), false, help.empty() ? "" : help.front()};
}

DoctorCheck place_check(const std::string& place) {
  const auto names = store::names_below(place);
  const auto folders = store::folders_in(place);
  DoctorCheck check{
      "object store",
      fmt::format("{} objects and {} folders in {}", names.size(), folders.size(), place), true,
      ""};
  if (std::ranges::find(names, store::kUnfinishedName) == names.end()) return check;
  check.ok = false;
  check.advice = "an output there was not finished: run the command that writes it again";
  return check;
}

DoctorCheck uploads_check(const std::string& place) {
  store::s3::Url url = store::s3::parse_url(place);
  const auto open = store::s3::list_uploads(store::s3::shared_client(), url);
  DoctorCheck check{"open uploads", open.empty() ? "none" : std::to_string(open.size()),
                    open.empty(), ""};
  std::vector<std::string> shown;
  for (const auto& upload : open) {
    shown.push_back(fmt::format("{} (begun {}, id {})", quote_for_message(upload.key),
                                quote_for_message(upload.begun), quote_for_message(upload.id)));
  }
  if (open.empty()) return check;
  check.value += ": " + format::list_for_message(shown);
  check.advice =
      "if no run writes there, abort them: aws s3api abort-multipart-upload --bucket B --key K "
      "--upload-id ID; or have a lifecycle rule of the bucket do it";
  return check;
}

}  // namespace

std::vector<DoctorCheck> store_checks(const std::string& place) {
  try {
    store::forget_listing(place);
    std::vector<DoctorCheck> checks{place_check(place)};
    try {
      checks.push_back(uploads_check(place));
    } catch (const Error& error) {
      checks.push_back(failed("open uploads", error));
    }
    return checks;
  } catch (const Error& error) {
    return {failed("object store", error)};
  }
}

}  // namespace shardtool::api
