#include "lib/mapping/document/size_expression.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "tests/mapping/fixtures.h"

namespace shardtool::mapping {
namespace {

const ModelConfig& config() {
  static const ModelConfig config = config_of(R"({
    "hidden": 4096, "heads": 32, "zero": 0, "text": "8", "real": 8.0, "part": 1.3, "none": null, "huge": 9223372036854775807,
    "nested": {"list": [7, {"deep": 5}]}, "negative": -4})");
  return config;
}

i64 value_of(const std::string& text) {
  return evaluate(parse_size(text),
                  {&config(), [](const std::string& axis) -> i64 { return axis == "a" ? 6 : 10; }});
}

TEST_CASE("sizes follow the usual precedence, from left to right") {
  CHECK(rc::check("a * b + c * d / d", [] {
    const auto n = [] { return *rc::gen::inRange<i64>(1, 1000); };
    const i64 a = n(), b = n(), c = n(), d = n();
    const auto text = std::to_string(a) + " * " + std::to_string(b) + "+" + std::to_string(c) +
                      "*" + std::to_string(d) + "/" + std::to_string(d);
    RC_ASSERT(value_of(text) == a * b + c);
  }));
}

TEST_CASE("sizes read the config, arrays in it, and other axes") {
  CHECK(value_of("config.hidden / config.heads") == 128);
  CHECK(value_of("config.nested.list[0]") == 7);
  CHECK(value_of("config.nested.list[1].deep * axes.a + axes.b") == 40);
}

TEST_CASE("an absent value and one that is not a positive integer are told apart") {
  const auto absent = error_of([] { return value_of("config.head"); });
  REQUIRE(absent);
  CHECK(absent->code() == ErrorCode::kSizeExpression);
  CHECK(absent->message() ==
        "the size 'config.head' reads 'head', which config.json does not have");
  CHECK(absent->help_lines().front() == "did you mean 'heads'?");
  for (const std::string path : {"zero", "text", "real", "negative", "nested"}) {
    const auto wrong = error_of([&] { return value_of("config." + path); });
    REQUIRE(wrong);
    CHECK(wrong->code() == ErrorCode::kSizeExpression);
    CHECK(wrong->message() == "'" + path + "' in config.json is not a positive integer");
  }
}

TEST_CASE("a term of a sum may be 0, a factor and the whole may not") {
  CHECK(value_of("config.heads + config.zero") == value_of("config.heads"));
  CHECK(value_of("config.zero + 3") == 3);
  for (const std::string size : {"config.zero + config.zero", "config.heads + config.zero * 2",
                                 "config.heads + config.negative"}) {
    CAPTURE(size);
    const auto wrong = error_of([&] { return value_of(size); });
    REQUIRE(wrong);
    CHECK(wrong->code() == ErrorCode::kSizeExpression);
  }
}

TEST_CASE("a default counts where the value is absent or null, and nowhere else") {
  const auto with_default = [](const std::string& path) {
    SizeExpression size = parse_size("config." + path);
    size.fallback = std::make_shared<const SizeExpression>(integer_size(3));
    return evaluate(size, {&config(), {}});
  };
  CHECK(with_default("absent") == 3);
  CHECK(with_default("none") == 3);
  CHECK(with_default("heads") == 32);
  CHECK_ERROR(kSizeExpression, with_default("zero"));
}

TEST_CASE("a division with a remainder and an overflow are errors") {
  CHECK_ERROR(kSizeExpression, value_of("config.hidden / 3"));
  CHECK_ERROR(kSizeExpression, value_of("config.huge * 2"));
  CHECK_ERROR(kSizeExpression, value_of("config.huge + 1"));
}

TEST_CASE("quotients are rounded where the operator says so") {
  CHECK(value_of("config.hidden // 3") == 1365);
  CHECK(value_of("config.hidden /^ 3") == 1366);
  CHECK(value_of("config.hidden // config.heads") == value_of("config.hidden /^ config.heads"));
  CHECK(value_of("12288 * 2 // 3 /^ 256 * 256") == 8192);
  CHECK(value_of("12289 * 2 // 3 /^ 256*256 + 1") == 8193);
  CHECK(rc::check("up is down of what is one less and one more", [] {
    const i64 n = *rc::gen::inRange<i64>(1, 100000), by = *rc::gen::inRange<i64>(1, 1000);
    const auto of = [&](const std::string& op, i64 m) {
      return value_of(std::to_string(m) + op + std::to_string(by));
    };
    RC_ASSERT(of("/^", n) == (n == 1 ? 1 : (n - 1) / by + 1));
    RC_ASSERT(of("//", n + by) == n / by + 1);
  }));
  CHECK_ERROR(kSizeExpression, value_of("3 // 4"));
  CHECK_ERROR(kMappingSchema, parse_size("4 /// 2"));
  CHECK_ERROR(kMappingSchema, parse_size("4 ^ 2"));
}

TEST_CASE("a number that is no integer multiplies where the operator rounds down") {
  CHECK(value_of("5 *_ config.real") == 40);
  CHECK(value_of("5 *_ config.part") == 6);
  CHECK(value_of("5 *_ 3") == 15);
  CHECK_ERROR(kSizeExpression, value_of("5 * config.real"));
  for (const char* path : {"zero", "text", "negative", "huge"}) {
    CHECK_ERROR(kSizeExpression, value_of(std::string("5 *_ config.") + path));
  }
  CHECK_ERROR(kSizeExpression, value_of("5 *_ config.absent"));
}

TEST_CASE("without a config the error asks for one") {
  CHECK_ERROR(kConfig, evaluate(parse_size("config.hidden"), {nullptr, {}}));
  CHECK(evaluate(parse_size("4 * 5"), {nullptr, {}}) == 20);
}

TEST_CASE("the values that were read can be shown") {
  CHECK(config_values(parse_size("config.hidden / config.heads"), &config()) ==
        "hidden = 4096, heads = 32 (from config.json)");
  CHECK(config_values(parse_size("4"), &config()) == "");
}

}  // namespace
}  // namespace shardtool::mapping
