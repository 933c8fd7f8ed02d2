#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <set>
#include <sstream>
#include <string>

#include "tests/arch/advice.h"
#include "tests/arch/forbidden_text.h"
#include "tests/arch/function_lengths.h"
#include "tests/arch/include_levels.h"
#include "tests/arch/old_words.h"
#include "tests/arch/page_paths.h"

namespace shardtool::arch {
namespace {

constexpr size_t kMaxFileLines = 500;
constexpr size_t kMaxFunctionLines = 60;
constexpr size_t kMaxFolderSources = 40;
constexpr size_t kMaxParagraphWords = 120;
constexpr size_t kMaxTestBytes = 8'000'000;

std::vector<Source> product_sources() {
  return load_sources({"lib", "kernels", "cli"}, {".h", ".cc", ".cu"});
}

std::vector<Source> all_texts() {
  return load_sources({"lib", "kernels", "cli", "tests", "samples", ".ci"},
                      {".h", ".cc", ".cu", ".txt", ".cmake", ".in", ".json", ".md", ".py", ".sh",
                       ".scd", ".stdout", ".stderr", "run"});
}

std::vector<Source> all_pages() {
  std::vector<Source> pages = load_sources({"lib", "kernels", "cli", "tests", "samples"}, {".md"});
  for (const char* page : {"README.md", "CONTRIBUTING.md"}) pages.push_back(load_source(page));
  return pages;
}

/// One finding per line, so that a failing check prints them all.
template <typename Check>
std::string findings_in(const std::vector<Source>& sources, Check check) {
  std::string report;
  for (const Source& source : sources) {
    for (const std::string& finding : check(source)) report += finding + "\n";
  }
  return report;
}

Findings long_functions(const Source& source) {
  Findings findings;
  for (const Function& function : functions_of(source.text)) {
    if (function.lines <= kMaxFunctionLines) continue;
    findings.push_back(at_line(source, function.first_line,
                               fmt::format("a function of {} lines", function.lines)));
  }
  return findings;
}

Findings long_file(const Source& source) {
  const size_t lines = lines_of(source.text).size();
  if (lines <= kMaxFileLines) return {};
  return {at_line(source, lines, "too long a file")};
}

size_t words_in(std::string_view text) {
  std::istringstream words{std::string(text)};
  return static_cast<size_t>(std::distance(std::istream_iterator<std::string>(words), {}));
}

/// Folders that hold more sources, headers counted, than a reader keeps in mind.
Findings crowded_folders(const std::vector<Source>& sources) {
  std::map<std::string, size_t> counts;
  for (const Source& source : sources) ++counts[source.path.substr(0, source.path.rfind('/'))];
  Findings findings;
  for (const auto& [folder, count] : counts) {
    if (count <= kMaxFolderSources) continue;
    findings.push_back(fmt::format("{}: {} sources", folder, count));
  }
  return findings;
}

/// Names of tests that CTest cannot register. Its lists are separated by semicolons and interpret
/// brackets, so such a case would become several that run no test.
Findings undiscoverable_names(const Source& source) {
  constexpr std::string_view kBegin = "TEST_CASE(\"";
  Findings findings;
  size_t number = 0;
  for (const std::string_view line : lines_of(source.text)) {
    ++number;
    if (!line.starts_with(kBegin)) continue;
    const std::string_view name = line.substr(kBegin.size(), line.rfind('"') - kBegin.size());
    if (name.find_first_of(";[]") == std::string_view::npos) continue;
    findings.push_back(at_line(source, number, "a test's name has one of ;[]"));
  }
  return findings;
}

/// Unkeyed hash tables of names. Names come from files and std::hash has a fixed key, so a file
/// could make all of them collide.
Findings unkeyed_hashes_of_names(const Source& source) {
  constexpr std::string_view kOwner = "lib/base/name_map.h";
  Findings findings;
  if (source.path == kOwner) return findings;
  size_t number = 0;
  for (const std::string_view line : lines_of(source.text)) {
    ++number;
    for (const std::string_view table : {"map<", "set<"}) {
      const std::string hashed = "unordered_" + std::string(table) + "std::string";
      const std::string several = "unordered_multi" + std::string(table) + "std::string";
      if (line.find(hashed) == line.npos && line.find(several) == line.npos) continue;
      findings.push_back(at_line(source, number, "names are hashed by NameMap, NameViewMap, ..."));
    }
  }
  return findings;
}

/// Paragraphs and items of lists with too many words. Tables, headings and code are neither.
Findings long_paragraphs(const Source& source) {
  Findings findings;
  size_t number = 0, words = 0, first = 0;
  bool is_code = false;
  const auto end = [&] {
    if (words > kMaxParagraphWords) {
      findings.push_back(at_line(source, first, fmt::format("a paragraph of {} words", words)));
    }
    words = 0;
  };
  for (const std::string_view line : lines_of(source.text)) {
    ++number;
    const size_t start = std::min(line.find_first_not_of(' '), line.size());
    const std::string_view text = line.substr(start);
    const bool is_fence = text.starts_with("```");
    if (is_fence) is_code = !is_code;
    const bool is_no_text = text.empty() || is_fence || text[0] == '|' || text[0] == '#';
    if (is_no_text || text.starts_with("- ")) end();
    if (is_no_text || is_code || (words == 0 && start >= 4)) continue;
    if (words == 0) first = number;
    words += words_in(text.substr(text.starts_with("- ") ? 2 : 0));
  }
  end();
  return findings;
}

std::set<std::string> header_paths() {
  std::set<std::string> paths;
  for (const Source& header : load_sources({"lib"}, {".h"})) paths.insert(header.path);
  return paths;
}

/// Requires a source to include its own header first, which proves that the header is
/// self-contained, and every header to begin with #pragma once.
Findings own_header_first(const Source& source) {
  const bool is_header = source.path.ends_with(".h");
  if (is_header) {
    return source.text.starts_with("#pragma once\n")
               ? Findings{}
               : Findings{at_line(source, 1, "a header begins with #pragma once")};
  }
  const std::string header = source.path.substr(0, source.path.rfind('.')) + ".h";
  static const std::set<std::string> headers = header_paths();
  if (headers.count(header) == 0) return {};
  const size_t first = source.text.find("#include");
  if (source.text.compare(first, header.size() + 11, "#include \"" + header + "\"") == 0) return {};
  return {at_line(source, 1, "the first include is not " + header)};
}

TEST_CASE("every source of the library begins with its own header") {
  CHECK(findings_in(load_sources({"lib"}, {".h", ".cc"}), own_header_first) == "");
  CHECK(own_header_first({"lib/index/join.cc", "#include <vector>\n"}).size() == 1);
  CHECK(own_header_first({"lib/index/join.h", "#include <vector>\n"}).size() == 1);
}

TEST_CASE("every include of the library and the program points down in the level diagram") {
  CHECK(findings_in(product_sources(), upward_includes) == "");
}

TEST_CASE("no file is longer than 500 lines") {
  CHECK(findings_in(product_sources(), long_file) == "");
}

TEST_CASE("no folder has more than 40 sources") {
  const auto all = load_sources({"lib", "kernels", "cli", "tests"}, {".h", ".cc", ".cu"});
  CHECK(fmt::format("{}", fmt::join(crowded_folders(all), ", ")) == "");
}

TEST_CASE("all files of the tests together have at most 8 MB") {
  size_t bytes = 0;
  for (const Source& file : load_sources({"tests"}, {""})) bytes += file.text.size();
  CHECK(bytes <= kMaxTestBytes);
  CHECK(bytes > 0);
}

TEST_CASE("no function is longer than 60 lines") {
  CHECK(findings_in(product_sources(), long_functions) == "");
}

TEST_CASE("no file names a folder of one machine or leaves a note to finish it") {
  CHECK(findings_in(all_texts(), forbidden_text) == "");
}

TEST_CASE("tables of names from files are hashed under a key of the process") {
  CHECK(findings_in(product_sources(), unkeyed_hashes_of_names) == "");
  const std::string table = std::string("std::unordered_map<") + "std::string_view, int> x;\n";
  CHECK(unkeyed_hashes_of_names({"lib/api/plan.cc", "\n" + table}).size() == 1);
  CHECK(unkeyed_hashes_of_names({"lib/base/name_map.h", "\n" + table}).empty());
}

TEST_CASE("no paragraph of a page has more than 120 words") {
  CHECK(findings_in(all_pages(), long_paragraphs) == "");
  std::string text = "# Title\n\n- an item\n- ";
  for (size_t word = 0; word < kMaxParagraphWords; ++word) text += "word\n";
  CHECK(long_paragraphs({"README.md", text}).empty());
  CHECK(long_paragraphs({"README.md", text + "more\n\nan end\n"}) ==
        Findings{"README.md:4: a paragraph of 121 words"});
  CHECK(long_paragraphs({"README.md", "```\n" + text + "more\n```\n"}).empty());
}

TEST_CASE("every file that a page names or links is there") {
  const std::vector<std::string> paths = repository_paths();
  const auto dead = [&](const Source& page) { return dead_paths(page, paths); };
  CHECK(findings_in(all_pages(), dead) == "");
  const auto found = [&](std::string text) { return dead({"lib/README.md", std::move(text)}); };
  CHECK(found("`index/join.{h,cc}`, [index](index/README.md), [root](../README.md)").empty());
  CHECK(found("`cli/commands/COMMAND.{h,cc}`, [site](https://example.org/a.md)").empty());
  CHECK(found("\n`index/gone.{h,cc}`") == Findings{"lib/README.md:2: no file 'index/gone.h'",
                                                   "lib/README.md:2: no file 'index/gone.cc'"});
  CHECK(found("[gone](index/GONE.md)") == Findings{"lib/README.md:1: no file 'index/GONE.md'"});
}

TEST_CASE("properties that join conditions have parentheses of their own") {
  CHECK(findings_in(all_texts(), eager_properties) == "");
}

TEST_CASE("the name of every test is one that CTest finds") {
  CHECK(findings_in(load_sources({"tests"}, {".cc"}), undiscoverable_names) == "");
  CHECK(undiscoverable_names({"a.cc", "\nTEST_CASE(\"one; two\") {\n"}).size() == 1);
}

TEST_CASE("no file is named after nothing in particular") {
  CHECK(findings_in(all_texts(), vague_name) == "");
}

TEST_CASE("help, messages and pages say each thing by its one word") {
  CHECK(findings_in(product_sources(), old_words) == "");
  CHECK(findings_in(load_sources({"cli/man", "cli/schemas"}, {".scd", ".json"}), old_words) == "");
  CHECK(old_words(load_source("README.md")).empty());
}

TEST_CASE("an old word is found in a literal or a page, and not in code") {
  const auto found = [](std::string path, std::string text) {
    return old_words({std::move(path), std::move(text)}).size();
  };
  CHECK(found("cli/a.cc", R"(f("on device {}");)") == 1);
  CHECK(found("cli/a.cc", "f(\"the part of \"\n  \"a tensor\");") == 1);
  CHECK(found("cli/a.cc", "f(\"the part of \", \"a tensor\");") == 0);
  CHECK(found("cli/a.cc", "int pieces;  // \"pieces\"\nchar c = '\"'; int clone;") == 0);
  CHECK(found("cli/a.cc", "f(R\"x(a \" b)x\", pieces, \"the whole model\");") == 1);
  CHECK(found("cli/a.cc", "f(\"on every device, 4 devices\");") == 0);
  CHECK(found("README.md", "one\nThe whole model is cut into equal parts.\n") == 2);
  CHECK(old_words({"README.md", "one\ntwo pieces\n"}).front().starts_with("README.md:2: say "));
}

TEST_CASE("a test follows the advice of every error that gives some") {
  const Findings missing = advice_not_followed(product_sources());
  CAPTURE(fmt::format("{}", fmt::join(missing, ", ")));
  CHECK(missing.empty());
  const auto thrown = [](const std::string& text) { return codes_with_advice({"a.cc", text}); };
  CHECK(thrown("throw Error(ErrorCode::kLimit, m)\n  .help(h);\n").contains("kLimit"));
  CHECK(thrown("throw Error(ErrorCode::kLimit, m);\nerror.help(h);\n").empty());
}

TEST_CASE("the level checker allows lower lines and one's own module, and nothing else") {
  const auto includes = [](std::string path, std::string included) {
    return upward_includes({std::move(path), "#pragma once\n\n#include \"" + included + "\"\n"});
  };
  CHECK(includes("lib/index/join.h", "lib/base/shape.h").empty());
  CHECK(includes("lib/index/join.h", "lib/index/region.h").empty());
  CHECK(includes("lib/format/manifest/manifest.cc", "kernels/xxh3/xxh3.h").empty());
  CHECK(includes("cli/main.cc", "cli/app.h").empty());

  CHECK(includes("lib/index/join.h", "lib/mesh/mesh.h") ==
        Findings{"lib/index/join.h:3: index may not include mesh: it is not on a lower level"});
  CHECK(includes("kernels/xxh3/xxh3.h", "lib/format/manifest/manifest.h").size() == 1);
  CHECK(includes("lib/plan/plan.cc", "lib/mapping/mapping.h").size() == 1);
  CHECK(includes("lib/api/split.cc", "cli/app.h").size() == 1);
  CHECK(includes("lib/store/local/file.cc", "file.h").size() == 1);
  CHECK(includes("lib/store/local/file.cc", "lib/novel/file.h").size() == 1);
  CHECK(includes("lib/novel/file.cc", "lib/base/shape.h").size() == 1);
}

TEST_CASE("the function scanner counts from the declaration to the closing brace") {
  const auto lengths = [](std::string_view text) {
    std::vector<size_t> found;
    for (const Function& function : functions_of(text)) found.push_back(function.lines);
    return found;
  };
  using Lengths = std::vector<size_t>;
  CHECK(lengths("int f() { return 1; }\n") == Lengths{1});
  CHECK(lengths("namespace a {\nint f(int a,\n      int b) {\n  return a;\n}\n}\n") == Lengths{4});
  CHECK(lengths("class A {\n  bool operator==(const A&) const {\n    return true;\n  }\n};\n") ==
        Lengths{3});
  CHECK(lengths("void f() {\n  if (a) {\n    g([&](int i) {\n    });\n  }\n}\nint g() {\n}\n") ==
        Lengths{6, 2});
  CHECK(lengths("const char* f(char c = '{') {\n  // }\n  /* } */\n  return \"}\\\"}\";\n}\n") ==
        Lengths{5});
  CHECK(lengths("auto f() {\n  return R\"x(\n}}\n)x\";\n}\n") == Lengths{5});
  CHECK(lengths("MACRO(A, b)\nnamespace {\nint f() {\n}\n}\n") == Lengths{2});
  CHECK(lengths("constexpr auto kTable = to_array<int>({\n 1'000,\n});\nstruct P {\n};\n").empty());
}

TEST_CASE("machine folders and unfinished notes are found with their line") {
  const std::string home = std::string("/home") + "/someone/x";
  CHECK(forbidden_text({"a.md", "one\n" + home + "\n"}).size() == 1);
  CHECK(forbidden_text({"a.md", "one\n" + home + "\n"}).front().starts_with("a.md:2: "));
  CHECK(forbidden_text({"a.md", std::string("TO") + "DO later\n"}).size() == 1);
  CHECK(forbidden_text({"a.md", "relative/home/page and /usr/share\n"}).empty());
  const std::string assertion = std::string("RC_") + "ASSERT(";
  CHECK(eager_properties({"a.cc", "\n" + assertion + "a && *a == f(b));\n"}).size() == 1);
  CHECK(eager_properties({"a.cc", assertion + "f(a || b) == 2);\n"}).empty());
  CHECK(eager_properties({"a.cc", assertion + "(a && *a == 2));\n"}).empty());
  CHECK(vague_name({"lib/base/string_utils.h", ""}).size() == 1);
  CHECK(vague_name({"lib/base/text.h", ""}).empty());
}

}  // namespace
}  // namespace shardtool::arch
