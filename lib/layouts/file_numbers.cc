#include "lib/layouts/file_numbers.h"

#include <re2/re2.h>

#include <algorithm>
#include <utility>

namespace shardtool::layouts {
namespace {

constexpr std::string_view kPart = "part";

/// Names of the fields of a pattern, in order.
std::vector<std::string> fields_of(const std::string& pattern) {
  std::vector<std::string> fields;
  for (size_t begin = pattern.find('{'); begin != pattern.npos; begin = pattern.find('{', begin)) {
    const size_t end = pattern.find('}', begin);
    fields.push_back(pattern.substr(begin + 1, end - begin - 1));
    begin = end;
  }
  return fields;
}

/// Numbers of a name, in the order of the fields; nullopt if it has another form.
std::optional<std::vector<i64>> numbers_in(const RE2& pattern, const std::string& name) {
  const auto count = static_cast<size_t>(pattern.NumberOfCapturingGroups());
  std::vector<std::string> texts(count);
  std::vector<RE2::Arg> args;
  std::vector<RE2::Arg*> pointers;
  for (std::string& text : texts) args.emplace_back(&text);
  for (RE2::Arg& arg : args) pointers.push_back(&arg);
  if (!RE2::FullMatchN(name, pattern, pointers.data(), static_cast<int>(count))) return {};
  constexpr size_t kMostDigits = 6;
  std::vector<i64> numbers;
  for (const std::string& text : texts) {
    if (text.size() > kMostDigits) return std::nullopt;
    numbers.push_back(std::stoll(text));
  }
  return numbers;
}

bool counts_ranks(const FileNames& names, const std::vector<std::string>& fields) {
  return std::ranges::all_of(fields, [&](const std::string& field) {
    return field == kPart || std::ranges::find(names.axes, field) != names.axes.end();
  });
}

}  // namespace

std::string regex_of(std::string_view pattern) {
  std::string regex = RE2::QuoteMeta(re2::StringPiece(pattern.data(), pattern.size()));
  RE2::GlobalReplace(&regex, R"(\\\{.*?\\\})", "([0-9]+)");
  return regex;
}

std::optional<NumberedFiles> numbered_files(const EngineLayout& layout,
                                            std::span<const std::string> files) {
  if (files.empty()) return std::nullopt;
  for (const FileNames& names : layout.files) {
    const std::vector<std::string> fields = fields_of(names.pattern);
    if (!counts_ranks(names, fields)) continue;
    const RE2 pattern(regex_of(names.pattern));
    NumberedFiles found{&names, {}};
    for (const std::string& file : files) {
      const auto numbers = numbers_in(pattern, file);
      if (!numbers) break;
      FileNumbers& of_file = found.files.emplace_back();
      for (size_t f = 0; f < fields.size(); ++f) {
        if (fields[f] == kPart) {
          of_file.part = (*numbers)[f];
        } else {
          of_file.on[fields[f]] = (*numbers)[f];
        }
      }
    }
    if (found.files.size() == files.size()) return found;
  }
  return std::nullopt;
}

}  // namespace shardtool::layouts
