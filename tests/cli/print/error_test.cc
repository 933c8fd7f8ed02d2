#include "cli/print/error.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <nlohmann/json.hpp>

#include "tests/cli/print/printed.h"

namespace shardtool::cli {
namespace {

const Style kPlain(false);

TEST_CASE("nothing from a file reaches the terminal as a control character") {
  CHECK(rc::check("any bytes", [] {
    const auto bytes = *rc::gen::string<std::string>();
    const auto error = Error(ErrorCode::kMalformed, bytes)
                           .at({bytes, 1, 1, bytes})
                           .tensor(bytes)
                           .note("found", bytes)
                           .help(bytes);
    for (const char c : error_text(error, kPlain, true)) {
      const auto byte = static_cast<unsigned char>(c);
      RC_ASSERT(((byte >= 0x20 && byte != 0x7f) || c == '\n'));
    }
  }));
}

TEST_CASE("an error shows its place, the line, a caret under the token, facts and help") {
  const TextFile file("{\n  \"heads\": 3,\n}\n");
  const auto error = Error(ErrorCode::kNotDivisible, "30 heads")
                         .at({file.path(), 2, 3, "/heads"})
                         .tensor("q.weight")
                         .note("config", "heads = 30")
                         .help("use 3\nor 5");
  CHECK(error_text(error, kPlain, false) == "error[E0203]: 30 heads\n  --> " + file.path() +
                                                ":2:3  /heads\n"
                                                "     |\n"
                                                "   2 |   \"heads\": 3,\n"
                                                "     |   ^^^^^^^\n"
                                                "   = tensor: q.weight\n"
                                                "   = config: heads = 30\n"
                                                "   help: use 3\n"
                                                "         or 5\n");
}

TEST_CASE("a place in the header of a safetensors file is shown in its JSON, without the frame") {
  const std::string header = R"({"a":{"dtype":"F32","shape":[1.5]}})";
  const std::string length{
      static_cast<char>(header.size()), '\0', '\0', '\0', '\0', '\0', '\0', '\0'};
  const TextFile file(length + header + std::string(20, '\0') + "]\n", ".safetensors");
  const auto column = static_cast<int>(header.find("1.5")) + 1;
  const auto error = Error(ErrorCode::kHeaderJson, "x").at({file.path(), 1, column, ""});
  CHECK(error_text(error, kPlain, false)
            .find("   1 | " + header + "\n     | " + std::string(header.find("1.5"), ' ') +
                  "^^^\n") != std::string::npos);
}

TEST_CASE("the caret stands under its column on any line, however long") {
  CHECK(rc::check("column", [] {
    const auto length = *rc::gen::inRange<size_t>(1, 500);
    const auto column = *rc::gen::inRange<size_t>(1, length + 1);
    std::string line(length, '.');
    line[column - 1] = '7';
    const TextFile file(line + "\n");
    const auto error =
        Error(ErrorCode::kMappingSchema, "x").at({file.path(), 1, static_cast<int>(column), ""});
    const auto text = error_text(error, kPlain, false);
    const auto shown = text.substr(text.find("   1 |"));
    const auto caret_line = shown.substr(shown.find('\n') + 1);
    RC_ASSERT(shown.substr(0, shown.find('\n')).size() < 140);
    RC_ASSERT(shown.find('7') == caret_line.find('^'));
  }));
}

TEST_CASE("a place in a built-in preset shows its line") {
  const auto error = Error(ErrorCode::kGroups, "x").at({"preset:llama", 1, 1, ""});
  CHECK(error_text(error, kPlain, false).find("   1 | {") != std::string::npos);
}

TEST_CASE("a note about the tensor stands for its bare name") {
  const auto error = Error(ErrorCode::kGroups, "x").tensor("q").note("tensor", "q [2, 3]");
  CHECK(error_text(error, kPlain, false) == "error[E0214]: x\n   = tensor: q [2, 3]\n");
}

TEST_CASE("a place whose file or line cannot be read is still named") {
  const auto error = Error(ErrorCode::kMappingSchema, "x").at({"gone.json", 7, 2, ""});
  CHECK(error_text(error, kPlain, false) == "error[E0202]: x\n  --> gone.json:7:2\n");
}

TEST_CASE("verbose adds what the id means") {
  const auto text = error_text(Error(ErrorCode::kNoRule, "x"), kPlain, true);
  CHECK(text.find(error_info(ErrorCode::kNoRule).explanation) != std::string::npos);
}

TEST_CASE("the error object has code, exit and only the places that are known") {
  const auto written = [](const Error& error) {
    std::string text;
    JsonWriter json([&text](std::string_view piece) { text += piece; });
    json.begin_object();
    write_error(json, error);
    json.end_object();
    return nlohmann::json::parse(text).at("error");
  };
  const auto bare = written(Error(ErrorCode::kMalformed, "bad"));
  CHECK(bare.dump() == R"({"code":"E0302","exit":4,"help":[],"message":"bad","notes":[]})");
  const auto full = written(
      Error(ErrorCode::kMappingSchema, "bad").at({"m.json", 3, 0, "/a"}).tensor("t").help("h"));
  CHECK(full.at("line") == 3);
  CHECK_FALSE(full.contains("column"));
  CHECK(full.at("pointer") == "/a");
  CHECK(full.at("tensor") == "t");
  CHECK(full.at("help").at(0) == "h");
}

}  // namespace
}  // namespace shardtool::cli
