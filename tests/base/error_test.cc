#include "lib/base/error.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>

using namespace shardtool;

TEST_CASE("every code has one row, in order, with an id of its own") {
  std::set<std::string_view> ids;
  int code = 0;
  for (const ErrorInfo& row : error_table()) {
    CHECK(static_cast<int>(row.code) == code++);
    CHECK(error_info(row.code).id == row.id);
    CHECK(ids.insert(row.id).second);
    CHECK_FALSE(row.title.empty());
    CHECK(row.explanation.back() == '.');
  }
  CHECK(code == static_cast<int>(ErrorCode::kInternal) + 1);
  CHECK(std::is_sorted(error_table().begin(), error_table().end(),
                       [](const ErrorInfo& a, const ErrorInfo& b) { return a.id < b.id; }));
}

TEST_CASE("the first digits of an id are its exit status") {
  const std::map<std::string_view, int> status_of{{"E01", 2}, {"E02", 3},   {"E03", 4}, {"E04", 5},
                                                  {"E05", 6}, {"E06", 130}, {"E09", 70}};
  for (const ErrorInfo& row : error_table()) {
    CAPTURE(row.id);
    CHECK(row.exit_status == status_of.at(row.id.substr(0, 3)));
  }
}

TEST_CASE("rows are found by id in either case") {
  CHECK(find_error("E0203")->code == ErrorCode::kNotDivisible);
  CHECK(find_error("e0203")->code == ErrorCode::kNotDivisible);
  for (const char* id : {"", "E", "E020", "E02030", "E9999"}) CHECK(find_error(id) == nullptr);
}

TEST_CASE("an error carries its place, its facts and the fix") {
  const Error error = Error(ErrorCode::kShapeMismatch, "does not fit")
                          .at({"rules.json", 3, 7, "/rules/0"})
                          .tensor("w")
                          .note("found", "[4]")
                          .note("expected", "[8]")
                          .help("transpose it");
  CHECK(error.id() == "E0208");
  CHECK(error.exit_status() == 3);
  CHECK(error.message() == "does not fit");
  CHECK(std::string_view(error.what()) == "does not fit");
  CHECK(error.place() == Place{"rules.json", 3, 7, "/rules/0"});
  CHECK(error.notes().size() == 2);
  CHECK(error.notes()[1] == std::pair<std::string, std::string>{"expected", "[8]"});
  CHECK(error.help_lines() == std::vector<std::string>{"transpose it"});
}

TEST_CASE("the innermost tensor name wins") {
  CHECK(Error(ErrorCode::kNoRule, "m").tensor("inner").tensor("outer").tensor_name() == "inner");
}
