#include "lib/mapping/document/name_form.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>
#include <re2/re2.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/mapping/document/glob.h"

namespace shardtool::mapping {
namespace {

std::string digits(int most) {
  std::string text;
  for (int i = *rc::gen::inRange(1, most + 1); i > 0; --i) {
    text += static_cast<char>('0' + *rc::gen::inRange(0, 10));
  }
  return text;
}

/// A glob of random tokens with a matching name.
std::pair<std::string, std::string> random_glob() {
  std::string glob;
  std::string name;
  const auto add = [&](const std::string& pattern, const std::string& text) {
    glob += pattern;
    name += text;
  };
  const int tokens = *rc::gen::inRange(1, 8);
  for (int t = 0; t < tokens; ++t) {
    const std::string text = *rc::gen::element<std::string>(".", ".", ".", "a", "fc1.", "2", "x3y");
    switch (*rc::gen::inRange(0, 6)) {
      case 0:
        add("*", *rc::gen::element<std::string>("", "a", "7", "12", "a1", "1a"));
        break;
      case 1:
        add("**", *rc::gen::element<std::string>("", ".", "3.a", "a.45", "12", "6.7"));
        break;
      case 2:
        add("{w1,w2,}", *rc::gen::element<std::string>("w1", "w2", ""));
        break;
      case 3:
        add("<n" + std::to_string(t) + ">", digits(4));
        break;
      default:
        add(text, text);
    }
  }
  return {glob, name};
}

/// A name that differs from this one only in its numbers.
std::string other_numbers(const NumberedName& name) {
  std::string other;
  size_t next = 0;
  for (size_t at = 0; at < name.form().size();) {
    if (!name.number_at(at, 3)) {
      other += name.form()[at++];
      continue;
    }
    other += digits(18);
    ++next;
    at += 3;
  }
  RC_ASSERT(next == name.numbers().size());
  return other;
}

std::vector<std::string_view> groups_of(const Glob& glob, const std::string& name) {
  const RE2 pattern(glob.regex_of_groups(), RE2::Quiet);
  std::vector<re2::StringPiece> groups(static_cast<size_t>(pattern.NumberOfCapturingGroups()) + 1);
  RC_ASSERT(pattern.Match(name, 0, name.size(), RE2::ANCHOR_BOTH, groups.data(),
                          static_cast<int>(groups.size())));
  std::vector<std::string_view> texts;
  for (size_t g = 1; g < groups.size(); ++g) texts.emplace_back(groups[g].data(), groups[g].size());
  return texts;
}

}  // namespace

TEST_CASE("names of one form are those that differ in numbers only") {
  const NumberedName name("model.layers.12.fc1.0.1234567890123456789");
  CHECK(name.form() == NumberedName("model.layers.3.fc1.77.1234567890123456789").form());
  CHECK(name.numbers() == std::vector<std::string_view>{"12", "0"});
  CHECK(name.form() != NumberedName("model.layers.12.fc2.0.1234567890123456789").form());
  CHECK(name.form() != NumberedName("model.layers.12.fc1.0.1234567890123456780").form());
  CHECK(NumberedName(name.form()).form() == name.form());
}

TEST_CASE("a glob that takes any number matches all names of a form or none") {
  int meant = 0;
  CHECK(rc::check("alike", [&meant] {
    const auto [text, matched] = random_glob();
    const Glob glob(text);
    if (!glob.takes_any_number()) return;
    ++meant;
    const auto matches = glob_filter(text);
    RC_ASSERT(matches(matched));
    const NumberedName name(matched);
    RC_ASSERT(matches(name.form()));
    RC_ASSERT(matches(other_numbers(name)));
  }));
  CHECK(meant > 20);
  CHECK_FALSE(Glob("layers.0.w").takes_any_number());
  CHECK_FALSE(Glob("layers.*0.w").takes_any_number());
  CHECK_FALSE(Glob("layers.{0,x}.w").takes_any_number());
  CHECK_FALSE(Glob("layers.<a><b>.w").takes_any_number());
  CHECK_FALSE(Glob("layers.<a>**<b>.w").takes_any_number());
  CHECK(Glob("layers.<a>.fc1.{w1,w3}.**.<b>").takes_any_number());
}

TEST_CASE("what wildcards take of the form, they take of every name of the form") {
  int meant = 0;
  CHECK(rc::check("templates", [&meant] {
    const auto [text, matched] = random_glob();
    const Glob glob(text);
    if (!glob.takes_any_number()) return;
    const NumberedName name(matched);
    const std::string other = other_numbers(name);
    const auto of_form = groups_of(glob, name.form());
    const auto of_other = groups_of(glob, other);
    for (size_t g = 0; g < of_form.size(); ++g) {
      NameTemplate piece;
      const size_t begin = static_cast<size_t>(of_form[g].data() - name.form().data());
      if (!piece.append_piece(name, begin, of_form[g].size())) return;  // no such piece
      RC_ASSERT(piece.fill(NumberedName(other)) == of_other[g]);
      ++meant;
    }
  }));
  CHECK(meant > 20);
}

TEST_CASE("a table of forms keeps a model's, and no more for as many names as one likes") {
  ByForm<std::string> table;
  int found = 0;
  const auto of = [&](int number) {
    const std::string form = "t" + std::to_string(number);
    const std::string& answer = table.of(form, [&] {
      ++found;
      return form + "!";
    });
    CHECK(answer == form + "!");
  };
  for (int round = 0; round < 2; ++round) {
    for (int number = 0; number < 1000; ++number) of(number);
  }
  CHECK(found == 1000);
  for (int number = 0; number < 20'000; ++number) of(number);
  found = 0;
  for (int number = 10'000; number < 20'000; ++number) of(number);
  CHECK(found == 10'000);  // none of these was stored
}

}  // namespace shardtool::mapping
