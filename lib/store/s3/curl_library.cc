#include "lib/store/s3/curl_library.h"

#include "lib/base/dynamic_library.h"

namespace shardtool::store::s3 {
namespace {

CurlLibrary opened_library() {
  const DynamicLibrary library("libcurl, which object stores need (package libcurl4),",
                               {"libcurl.so.4", "libcurl-gnutls.so.4"});
  library.function<decltype(&curl_global_init)>("curl_global_init")(CURL_GLOBAL_DEFAULT);
  CurlLibrary curl{};
  const auto find = [&library](auto& function, const char* name) {
    function = library.function<std::remove_reference_t<decltype(function)>>(name);
  };
  find(curl.easy_init, "curl_easy_init");
  find(curl.easy_cleanup, "curl_easy_cleanup");
  find(curl.easy_reset, "curl_easy_reset");
  find(curl.easy_setopt, "curl_easy_setopt");
  find(curl.easy_getinfo, "curl_easy_getinfo");
  find(curl.easy_strerror, "curl_easy_strerror");
  find(curl.getdate, "curl_getdate");
  find(curl.slist_append, "curl_slist_append");
  find(curl.slist_free_all, "curl_slist_free_all");
  find(curl.multi_init, "curl_multi_init");
  find(curl.multi_cleanup, "curl_multi_cleanup");
  find(curl.multi_add_handle, "curl_multi_add_handle");
  find(curl.multi_remove_handle, "curl_multi_remove_handle");
  find(curl.multi_perform, "curl_multi_perform");
  find(curl.multi_poll, "curl_multi_poll");
  find(curl.multi_info_read, "curl_multi_info_read");
  return curl;
}

}  // namespace

const CurlLibrary& curl_library() {
  static const CurlLibrary library = opened_library();
  return library;
}

}  // namespace shardtool::store::s3
