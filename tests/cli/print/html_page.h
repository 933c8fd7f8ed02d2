#pragma once

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <string_view>
#include <utility>

#include "cli/print/json.h"
#include "cli/session.h"

/// Pages of --html, read back.
namespace shardtool::cli {

inline const std::string kTinyLlama = std::string(SHARDTOOL_SAMPLES) + "/tiny-llama";

template <class Report>
std::string document_of(const char* command, const Report& report, const char* status = "ok") {
  std::string text;
  auto out = open_document([&text](std::string_view part) { text += part; }, command, status);
  write_fields(out, report);
  out.end_object();
  return text;
}

inline nlohmann::json island_of(const std::string& page) {
  constexpr std::string_view kBegin = R"(<script type="application/json" id="document">)";
  const auto begin = page.find(kBegin) + kBegin.size();
  return nlohmann::json::parse(page.substr(begin, page.find("</script>", begin) - begin));
}

inline std::string unescaped(std::string text) {
  for (const auto& [entity, character] :
       {std::pair("&quot;", "\""), std::pair("&#39;", "'"), std::pair("&lt;", "<"),
        std::pair("&gt;", ">"), std::pair("&amp;", "&")}) {
    text = std::regex_replace(text, std::regex(entity), character);
  }
  return text;
}

/// Checks P1 for every number of a page, and that it loads nothing; returns how many there are.
inline int check_numbers(const std::string& page) {
  const nlohmann::json island = island_of(page);
  const std::regex shown("data-at=\"([^\"]*)\" data-value=\"([^\"]*)\"");
  int count = 0;
  for (std::sregex_iterator it(page.begin(), page.end(), shown), end; it != end; ++it, ++count) {
    const std::string pointer = unescaped((*it)[1]);
    CAPTURE(pointer);
    CHECK(island.at(nlohmann::json::json_pointer(pointer)).dump() == unescaped((*it)[2]));
  }
  for (const char* loader : {" src=", " href=", "@import", "http:", "https:"})
    CHECK(page.find(loader) == std::string::npos);
  return count;
}

}  // namespace shardtool::cli
