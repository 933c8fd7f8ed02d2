#include "tests/arch/advice.h"

#include <re2/re2.h>

#include <algorithm>
#include <map>

namespace shardtool::arch {
namespace {

/// Advice that no command here can follow.
const std::set<std::string> kElsewhere = {
    "E0303", "E0304",  // PyTorch must save the file again
    "E0314",           // an object store must let the user in (tests/stores)
    "E0403",           // a file system must be full
    "E0503", "E0504",  // the machine must have a GPU, or none
    "E0901",           // people must read a report
};

std::map<std::string, std::string> numbers_of_errors() {
  static const RE2 kRow(R"re(\{(k\w+), "(E\d{4})")re");
  const Source table = load_source("lib/base/error.cc");
  std::map<std::string, std::string> numbers;
  re2::StringPiece input(table.text);
  std::string name;
  std::string number;
  while (RE2::FindAndConsume(&input, kRow, &name, &number)) numbers[name] = number;
  return numbers;
}

}  // namespace

std::set<std::string> codes_with_advice(const Source& source) {
  static const RE2 kCode(R"(ErrorCode::(k\w+))");
  std::set<std::string> codes;
  std::string_view rest = source.text;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(";\n"), rest.size());
    const std::string_view statement = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 2, rest.size()));
    if (statement.find(".help(") == std::string_view::npos) continue;
    re2::StringPiece input(statement.data(), statement.size());
    std::string code;
    while (RE2::FindAndConsume(&input, kCode, &code)) codes.insert(code);
  }
  return codes;
}

Findings advice_not_followed(const std::vector<Source>& sources) {
  const auto numbers = numbers_of_errors();
  std::set<std::string> codes;
  for (const Source& source : sources) codes.merge(codes_with_advice(source));
  const Source golden = load_source("tests/cli/cases/help_followed.stdout");
  const auto printed = lines_of(golden.text);
  Findings findings;
  for (const std::string& code : codes) {
    const std::string& number = numbers.at(code);
    if (number.starts_with("E02") || kElsewhere.contains(number)) continue;
    if (std::ranges::find(printed, number) == printed.end())
      findings.push_back(number + " " + code);
  }
  return findings;
}

}  // namespace shardtool::arch
