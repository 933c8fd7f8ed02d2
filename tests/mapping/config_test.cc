#include "lib/mapping/document/config.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "lib/mapping/quantization.h"
#include "tests/mapping/fixtures.h"
#include "tests/support/temp_folder.h"

namespace shardtool::mapping {
namespace {

TEST_CASE("a path finds keys and elements, and nothing where one is missing") {
  const ModelConfig config = config_of(R"({"a": {"b": [1, {"c": 2}]}, "n": null})");
  CHECK(*config.find("a.b[1].c") == 2);
  CHECK(config.find("a.b[2]") == nullptr);
  CHECK(config.find("a.b[x]") == nullptr);
  CHECK(config.find("a.b[0") == nullptr);
  CHECK(config.find("a.c.d") == nullptr);
  for (const char* typo : {".a", "a.", "a..b", "a.b.[1]", "a.b[1]..c", "a.b[1].", "."}) {
    CAPTURE(typo);
    CHECK(config.find(typo) == nullptr);
  }
  CHECK(config.find("a.b.c") == nullptr);
  CHECK(config.size("n") == std::nullopt);
  CHECK(config.size("a.b[0]") == 1);
}

TEST_CASE("a config without quantization_config has that of ModelOpt's file beside it") {
  const test::TempFolder folder;
  const std::string config = folder.write("config.json", R"({"hidden_size": 64})");
  folder.write("hf_quant_config.json", R"({"producer": {"name": "modelopt", "version": "0.19.0"},
      "quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "INT8", "exclude_modules": []}})");
  const ModelConfig quantised = load_config(config);
  CHECK(quantization_tag(quantised) == "modelopt/FP8");
  CHECK(quantised.text("quantization_config.kv_cache_quant_algo") == "INT8");
  CHECK(quantised.size("hidden_size") == 64);
  CHECK(quantised.file() == "config.json and hf_quant_config.json");
  folder.write("hf_quant_config.json",
               R"({"quantization": {"quant_algo": null, "kv_cache_quant_algo": "FP8"}})");
  CHECK(quantization_tag(load_config(config)) == std::nullopt);
  CHECK(load_config(config).text("quantization_config.kv_cache_quant_algo") == "FP8");
  folder.write("config.json", R"({"quantization_config": {"quant_method": "gptq"}})");
  CHECK(quantization_tag(load_config(config)) == "gptq");
  CHECK(load_config(config).file() == "config.json");
  folder.write("config.json", "{}");
  folder.write("hf_quant_config.json", "[");
  const auto broken = error_of([&] { load_config(config); });
  REQUIRE(broken);
  CHECK(broken->code() == ErrorCode::kConfig);
  CHECK(broken->place()->file == folder / "hf_quant_config.json");
}

TEST_CASE("a config without quantization_config has that of its language model") {
  const test::TempFolder folder;
  const std::string config = folder.write(
      "config.json", R"({"text_config": {"quantization_config": {"quant_method": "gptq"}}})");
  CHECK(quantization_tag(load_config(config)) == "gptq");
  folder.write("config.json", R"({"quantization_config": {"quant_method": "fp8"},
      "text_config": {"quantization_config": {"quant_method": "gptq"}}})");
  CHECK(quantization_tag(load_config(config)) == "fp8/tensor");
  for (const char* other : {R"({"text_config": null})", R"({"text_config": [1]})",
                            R"({"text_config": {"quantization_config": null}})"}) {
    folder.write("config.json", other);
    CHECK(quantization_tag(load_config(config)) == std::nullopt);
  }
}

TEST_CASE("an integer beyond 64 bits is an error only where it is read as a size") {
  const std::string digits = "12345678901234567890123";
  for (const std::string& number : {digits, "-" + digits, std::string(400, '9')}) {
    CAPTURE(number);
    const ModelConfig config = config_of(R"({"big": )" + number + R"(, "hidden_size": 64})");
    CHECK(config.size("hidden_size") == 64);
    CHECK_ERROR(kSizeExpression, static_cast<void>(config.size("big")));
  }
  CHECK(config_of(R"({"n": 9223372036854775807})").size("n") == 9223372036854775807);
}

TEST_CASE("a path through every member finds what those that have it agree about") {
  const ModelConfig config = config_of(
      R"({"of": {"1": {"a": 3, "b": 4}, "5": {"a": 3, "b": 5}, "7": {}}, "list": [{"a": 1}, {"a": 1}]})");
  CHECK(config.size("of[].a") == 3);
  CHECK(config.size("list[].a") == 1);
  CHECK(config.find("of[].c") == nullptr);
  CHECK(config.find("of.1.a[]") == nullptr);
  CHECK(config.find("none[].a") == nullptr);
  const auto differ = error_of([&] { static_cast<void>(config.size("of[].b")); });
  REQUIRE(differ);
  CHECK(differ->code() == ErrorCode::kConfig);
  CHECK(differ->notes()[0].second == "4 and 5");
}

TEST_CASE("a path through the members of one kind finds what they agree about") {
  const ModelConfig config = config_of(R"({"kinds": ["a", "b", "a"], "heads": [4, 6, 4, 5],
      "part": {"kinds": ["b", "b"], "heads": [4, 6]}, "of": {"1": 2}, "more": [{"n": 1}, {"n": 2}]})");
  CHECK(config.size("heads[kinds=a]") == 4);
  CHECK(config.size("heads[kinds=b]") == 6);
  CHECK(config.size("more[kinds=b].n") == 2);
  CHECK(config.find("heads[kinds=c]") == nullptr);
  CHECK(config.find("part.heads[kinds=a]") == nullptr);
  for (const char* none : {"heads[others=a]", "heads[=a]", "heads[heads=4]", "of[kinds=a]"}) {
    CAPTURE(none);
    CHECK(config.find(none) == nullptr);
  }
  CHECK_ERROR(kConfig, static_cast<void>(config.size("part.heads[kinds=b]")));
}

TEST_CASE("a list of words has the size of its words, and no other list has one") {
  const ModelConfig config = config_of(R"({"kinds": ["a", "b", "a"], "n": [1, 2], "none": []})");
  CHECK(config.size("kinds") == 3);
  CHECK_ERROR(kSizeExpression, static_cast<void>(config.size("n")));
  CHECK_ERROR(kSizeExpression, static_cast<void>(config.size("none")));
}

TEST_CASE("an infinity that Python wrote is what the library writes since") {
  const ModelConfig config = config_of(R"({"limit": [0.0, Infinity], "a": "Infinity\"Infinity"})");
  CHECK(*config.find("limit[1]") == nlohmann::json{{"__float__", "Infinity"}});
  CHECK(config.text("a") == "Infinity\"Infinity");
  const ModelConfig others = config_of(R"({"a": -Infinity, "b": [NaN]})");
  CHECK(*others.find("a") == nlohmann::json{{"__float__", "-Infinity"}});
  CHECK(*others.find("b[0]") == nlohmann::json{{"__float__", "NaN"}});
  CHECK_ERROR(kConfig, config_of(R"({"limit": Infinit})"));
  CHECK_ERROR(kConfig, config_of(R"({"limit": Infinityx})"));
  CHECK_ERROR(kConfig, config_of(R"({"limit": -nan})"));
}

TEST_CASE("an error behind an infinity is told where it is") {
  const auto error = testing::error_of([] { config_of(R"({"a": Infinity, "b": })"); });
  REQUIRE(error);
  REQUIRE(error->place());
  CHECK(error->place()->column == 22);
}

TEST_CASE("the model says what it is") {
  const ModelConfig config = config_of(R"({"architectures": ["A", 3, "B"], "model_type": "a"})");
  CHECK(config.architectures() == std::vector<std::string>{"A", "B"});
  CHECK(config.model_type() == "a");
  CHECK(config_of("{}").architectures().empty());
  CHECK(config_of(R"({"architectures": "A", "model_type": 3})").model_type() == "");
}

TEST_CASE("a config that is not a strict JSON object is refused") {
  CHECK_ERROR(kConfig, config_of(""));
  CHECK_ERROR(kConfig, config_of("[]"));
  CHECK_ERROR(kConfig, config_of(R"({"a": 1, "a": 2})"));
}

TEST_CASE("a config is read from a file and named without its folder") {
  const test::TempFolder folder;
  CHECK(load_config(folder.write("model/config.json", R"({"a": 3})")).file() == "config.json");
  CHECK_ERROR(kFileMissing, load_config(folder / "none.json"));
  const std::string broken = folder.write("broken/config.json", "{oops}");
  const auto error = testing::error_of([&] { return load_config(broken); });
  REQUIRE(error);
  CHECK(error->place() == Place{broken, 1, 2, ""});
}

}  // namespace
}  // namespace shardtool::mapping
