#pragma once

#include <doctest/doctest.h>

#include <string>
#include <string_view>

#include "lib/base/error.h"
#include "lib/format/checkpoint.h"
#include "tests/support/safetensors_text.h"
#include "tests/support/temp_folder.h"

namespace shardtool::test {

/// True if a survey, which continues after problems, reports at least one.
inline bool survey_objects(const std::string& location) {
  int problems = 0;
  try {
    format::survey_checkpoint(location, [&](format::Problem) { ++problems; });
  } catch (const Error&) {
    ++problems;
  }
  return problems > 0;
}

/// Error of opening this location. The test fails if it opens, or if the error names no file.
inline Error refusal_of_opening(const std::string& location) {
  try {
    format::open_checkpoint(location);
  } catch (const Error& error) {
    REQUIRE(error.place());
    CHECK_FALSE(error.place()->file.empty());
    CHECK_FALSE(error.message().empty());
    return error;
  }
  FAIL("opened " << location);
  return Error(ErrorCode::kInternal, "unreachable");
}

/// The same; the test also fails if a survey finds no problem.
inline Error refusal(const std::string& location) {
  CHECK(survey_objects(location));
  return refusal_of_opening(location);
}

/// The same for a file with these bytes.
inline Error refusal_of_bytes(std::string_view bytes) {
  const TempFolder folder;
  return refusal(folder.write("model.safetensors", bytes));
}

/// The same for a header and this many bytes of data.
inline Error refusal_of_header(std::string_view json, size_t data_bytes) {
  return refusal_of_bytes(safetensors_bytes(json, std::string(data_bytes, 'x')));
}

inline format::Checkpoint open_header(std::string_view json, size_t data_bytes) {
  const TempFolder folder;
  return format::open_checkpoint(
      folder.write("model.safetensors", safetensors_bytes(json, std::string(data_bytes, 'x'))));
}

/// Message, notes and help as one text.
inline std::string everything(const Error& error) {
  std::string text = error.message();
  for (const auto& [label, note] : error.notes()) text += "\n" + label + ": " + note;
  for (const std::string& help : error.help_lines()) text += "\n" + help;
  return text;
}

inline bool says(const Error& error, std::string_view words) {
  return everything(error).find(words) != std::string::npos;
}

}  // namespace shardtool::test
