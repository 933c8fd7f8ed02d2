#include "lib/format/torch/unpickle.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <ctime>
#include <set>
#include <string>
#include <vector>

#include "lib/format/torch/opcodes.h"
#include "tests/support/generators.h"
#include "tests/support/throws.h"
#include "tests/support/torch_files.h"

namespace shardtool::format::torch {
namespace {

using namespace std::string_literals;
using test::PickleWriter;

PickleTree read(const std::string& pickle) {
  return unpickle(pickle, {"file.pt", "data.pkl", 0});
}

/// Opcodes of the body between PROTO and STOP.
PickleTree read_body(const std::string& opcodes) {
  return read(PickleWriter().raw(opcodes).finished());
}

/// A random value: its opcodes, and what it looks like.
struct Sample {
  std::string opcodes;
  std::string shown;
};

Sample random_value(int depth) {
  const i64 kind = *gen::between(0, depth == 0 ? 4 : 7);
  const auto several = [depth](Sample sample, std::string_view end, bool has_keys) {
    for (i64 i = *gen::between(0, 3); i > 0; --i) {
      for (int part = has_keys ? 0 : 1; part < 2; ++part) {
        const Sample item = random_value(depth - 1);
        sample.opcodes += item.opcodes;
        sample.shown += item.shown + (part == 0 ? ":" : ",");
      }
    }
    return Sample{sample.opcodes + std::string(end), sample.shown + ")"};
  };
  const i64 number = *rc::gen::arbitrary<i64>();
  switch (kind) {
    case 0:
      return {"N", "None"};
    case 1:
      return {number % 2 == 0 ? "\x88" : "\x89", number % 2 == 0 ? "True" : "False"};
    case 2:
      return {PickleWriter().integer(number).opcodes(), std::to_string(number)};
    case 3:
      return {PickleWriter().text(std::to_string(number)).opcodes(),
              "'" + std::to_string(number) + "'"};
    case 4:
      return {PickleWriter().global("m", "f").opcodes(), "m.f"};
    case 5:
      return several({"(", "tuple("}, "t", false);
    case 6:
      return several({"](", "list("}, "e", false);
    default:
      return several({"}(", "dict("}, "u", true);
  }
}

std::string show(PickleValue value) {
  std::string text;
  switch (value.kind()) {
    case ValueKind::kNone:
      return "None";
    case ValueKind::kBool:
      return value.boolean() ? "True" : "False";
    case ValueKind::kInteger:
      return std::to_string(value.integer());
    case ValueKind::kText:
      return "'" + std::string(value.text()) + "'";
    case ValueKind::kGlobal:
      return std::string(value.module()) + "." + std::string(value.name());
    case ValueKind::kDict:
      for (size_t i = 0; i < value.entries(); ++i) {
        text += show(value.key(i)) + ":" + show(value.value(i)) + ",";
      }
      return "dict(" + text + ")";
    default:
      for (size_t i = 0; i < value.size(); ++i) text += show(value[i]) + ",";
      return (value.is(ValueKind::kTuple) ? "tuple(" : "list(") + text + ")";
  }
}

TEST_CASE("values come out of a pickle as they went in") {
  CHECK(rc::check([] {
    const Sample sample = random_value(3);
    RC_ASSERT(show(read_body(sample.opcodes).root()) == sample.shown);
  }));
}

TEST_CASE("every proper beginning of a pickle is refused, and its length is found") {
  CHECK(rc::check([] {
    const std::string pickle = PickleWriter().raw(random_value(3).opcodes).finished();
    for (size_t bytes = 0; bytes < pickle.size(); ++bytes) {
      RC_ASSERT(testing::error_of([&] { return read(pickle.substr(0, bytes)); }).has_value());
      size_t scanned = 0;
      RC_ASSERT(!pickle_length(std::string_view(pickle).substr(0, bytes), scanned, {}));
      RC_ASSERT(pickle_length(pickle + "rest", scanned, {}) == pickle.size());
    }
  }));
}

TEST_CASE("an object is a callable with its arguments, state and items") {
  const auto tree = read_body(PickleWriter()
                                  .global("collections", "OrderedDict")
                                  .raw(")Rq\x01(K\x01K\x02K\x03K\x04u}X\x01\0\0\0aNsbh\x01\x86"s)
                                  .opcodes());
  // TUPLE2 needs two values: the object and, from the memo, the object again.
  const PickleValue pair = tree.root();
  REQUIRE(pair.is(ValueKind::kTuple));
  CHECK(pair[0].id() == pair[1].id());
  const PickleValue object = pair[0];
  CHECK(object.callable().is_global("collections", "OrderedDict"));
  CHECK(object.arguments().size() == 0);
  REQUIRE(object.entries() == 2);
  CHECK(object.key(1).integer() == 3);
  CHECK(object.value(1).integer() == 4);
  REQUIRE(object.state().has_value());
  CHECK(object.state()->find("a")->is(ValueKind::kNone));
  CHECK(!object.state()->find("b"));
}

TEST_CASE("the opcodes of protocol 4 are read") {
  const auto tree = read(
      "\x80\x04\x95\x1b\0\0\0\0\0\0\0(\x8c\x01m\x8c\x01n\x93\x94\x8f(K\x01\x90"
      "\x8a\x09\0\0\0\0\0\0\0\0\x80G?\xf8\0\0\0\0\0\0t."s);
  const PickleValue tuple = tree.root();
  REQUIRE(tuple.size() == 4);
  CHECK(tuple[0].is_global("m", "n"));
  CHECK(tuple[1].is(ValueKind::kSet));
  CHECK(tuple[1][0].integer() == 1);
  CHECK(tuple[2].is(ValueKind::kBigInteger));
  CHECK(tuple[3].number() == 1.5);
}

TEST_CASE("integers of every width keep their sign") {
  for (const i64 number : {i64{0}, i64{255}, i64{256}, i64{-1}, i64{-2147483648}, i64{1} << 62,
                           std::numeric_limits<i64>::min(), std::numeric_limits<i64>::max()}) {
    CHECK(read_body(PickleWriter().integer(number).opcodes()).root().integer() == number);
  }
  CHECK(read_body("\x8a\x01\xff").root().integer() == -1);
  CHECK(read_body("\x8a\0"s).root().integer() == 0);
  CHECK(read_body("M\xff\xff").root().integer() == 65535);
}

TEST_CASE("opcodes that could load code, or that no torch file has, are refused by name") {
  const std::set<std::string> refused = {
      "POP",       "POP_MARK",   "DUP",         "FLOAT",          "INT",  "LONG",
      "PERSID",    "STRING",     "UNICODE",     "DICT",           "GET",  "INST",
      "LIST",      "OBJ",        "PUT",         "EXT1",           "EXT2", "EXT4",
      "NEWOBJ_EX", "BYTEARRAY8", "NEXT_BUFFER", "READONLY_BUFFER"};
  std::set<std::string> found;
  for (int byte = 0; byte < 256; ++byte) {
    const auto error = testing::error_of(
        [&] { return read_body(std::string(1, static_cast<char>(byte)) + "\n\n\n\n\n\n\n\n\n"); });
    REQUIRE(error.has_value());
    const auto* opcode = find_opcode(static_cast<std::uint8_t>(byte));
    if (opcode == nullptr) {
      CHECK(error->code() == ErrorCode::kMalformed);
    } else if (error->message() == "the pickle has an opcode that is not accepted") {
      CHECK(error->code() == ErrorCode::kUnsupported);
      CHECK(error->notes()[1] == std::pair("byte offset"s, "2"s));
      CHECK(error->notes()[2] == std::pair("opcode"s, std::string(opcode->name)));
      found.emplace(opcode->name);
    }
  }
  CHECK(found == refused);
}

TEST_CASE("pickles that break the rules are malformed") {
  const std::vector<std::string> bodies = {
      "",                    // no value
      "NN",                  // two values
      "(N",                  // an open mark
      "t",                   // no mark
      "\x86",                // no values
      "(\x85",               // values below the mark
      "N(Nsu",               // an odd number of items
      "N(NNu",               // None takes no items
      "N(Ne",                // neither
      "](NNu",               // a list takes no entries
      "}(Ne",                // a dict takes no elements
      "(e",                  // nothing to append to
      "(Ne",                 // the same
      "Na",                  // the same
      "NNs",                 // nothing to set in
      "h\x01",               // an empty memo
      "Nr\xff\xff\xff\x7f",  // a memo number above the pickle's size
      "NNb",                 // None has no state
      "NN\x93",              // a global whose name is None
      "R",
      "NR",
      "Q",
      "q\x01",
      "\x80\x02N",                 // the protocol twice
      "\x95\xff\0\0\0\0\0\0\0N"s,  // a frame beyond the end
  };
  for (const std::string& body : bodies) {
    CAPTURE(body);
    CHECK_ERROR(kMalformed, read_body(body));
  }
  CHECK_ERROR(kMalformed, read("\x80\x02N.N"));
  CHECK_ERROR(kUnsupported, read("\x80\x01N."));
  CHECK_ERROR(kUnsupported, read("\x80\x06N."));
}

TEST_CASE("values that take much more memory than the pickle end it") {
  std::string lists(4'000'000, ']');
  CHECK_ERROR(kLimit, read_body(lists));
  CHECK_ERROR(kLimit, read_body(std::string(40'000'000, '(')));
}

TEST_CASE("a large dict is searched once for a key, however many values share it") {
  constexpr int kEntries = 200'000;
  PickleWriter entries;
  for (int i = 0; i < kEntries; ++i) entries.text("key " + std::to_string(i)).raw("N");
  entries.text("key 7").raw("\x88");
  const PickleTree tree = read_body("}(" + entries.opcodes() + "u");
  const std::clock_t begin = std::clock();
  int found = 0;
  for (int i = 0; i < kEntries; ++i) found += tree.root().find("absent") ? 1 : 0;
  CHECK(found == 0);
  CHECK(std::clock() - begin < 5 * CLOCKS_PER_SEC);
  for (int i = 0; i < 2; ++i) {
    const auto last = tree.root().find("key 7");
    REQUIRE(last);
    CHECK(last->is(ValueKind::kBool));
  }
}

}  // namespace
}  // namespace shardtool::format::torch
