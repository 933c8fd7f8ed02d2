#include "lib/exec/journal.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

namespace shardtool::exec {
namespace {

using test::TempFolder;

constexpr JournalLimits kAtOnce{.bytes = 1};
constexpr JournalLimits kNever{.bytes = i64{1} << 60, .time = std::chrono::hours(1)};

CopiedTensor copied(std::uint64_t digest) {
  CopiedTensor tensor{digest, digest % 2 == 0, {{1, 2}, {~0ull, 5}}};
  if (digest % 3 == 0) tensor.cast = {{100, 7, 1, 2, 3}, ~digest};
  if (digest % 3 == 1) tensor.computed = {{100, 7, 1, 2, 3}, {digest, ~digest}};
  return tensor;
}

bool same(const CopiedTensor& a, const CopiedTensor& b) {
  return a.digest == b.digest && a.is_whole == b.is_whole && a.xxh3 == b.xxh3 && a.cast == b.cast &&
         a.computed == b.computed;
}

struct Fixture {
  TempFolder folder;
  std::string path = folder / "journal";
  int syncs = 0;

  Journal journal(JournalLimits limits, const std::string& run = "run") {
    return {path, {run, "about it"}, limits, [this] { ++syncs; }};
  }
  void write(size_t tensors) {
    Journal written = journal(kAtOnce);
    for (size_t i = 0; i < tensors; ++i) written.finished(i, copied(i), 10);
  }
  std::map<size_t, CopiedTensor> taken_up(const std::string& run = "run") {
    return journal(kAtOnce, run).take_up();
  }
};

TEST_CASE("what was finished is read again, tensor by tensor") {
  Fixture fixture;
  fixture.write(3);
  const auto found = fixture.taken_up();
  REQUIRE(found.size() == 3);
  for (const auto& [tensor, entry] : found) CHECK(same(entry, copied(tensor)));
  const auto title = journal_title(fixture.path);
  REQUIRE(title.has_value());
  CHECK(title->run == "run");
  CHECK(title->about == "about it");
}

TEST_CASE("a journal that another user could have made is refused") {
  Fixture fixture;
  fixture.write(1);
  SUBCASE("a link") {
    std::filesystem::rename(fixture.path, fixture.path + ".real");
    std::filesystem::create_symlink(fixture.path + ".real", fixture.path);
  }
  SUBCASE("a file that has another name, too") {
    std::filesystem::create_hard_link(fixture.path, fixture.path + ".other");
  }
  CHECK_ERROR(kOtherRun, fixture.taken_up());
  CHECK_ERROR(kOtherRun, journal_title(fixture.path));
}

TEST_CASE("the files are synced before each commit, and nothing is committed before its time") {
  Fixture fixture;
  {
    Journal journal = fixture.journal(kNever);
    for (size_t i = 0; i < 5; ++i) journal.finished(i, copied(i), 10);
    CHECK(fixture.syncs == 0);
    CHECK_FALSE(std::filesystem::exists(fixture.path));
    journal.commit();
    CHECK(fixture.syncs == 1);
    journal.commit();  // no new records
    CHECK(fixture.syncs == 1);
  }
  CHECK(fixture.taken_up().size() == 5);
}

TEST_CASE("bytes and time are limits of what a power cut costs") {
  Fixture fixture;
  Journal by_bytes = fixture.journal({.bytes = 25, .time = std::chrono::hours(1)});
  for (size_t i = 0; i < 6; ++i) by_bytes.finished(i, copied(i), 10);
  CHECK(fixture.syncs == 2);
  Fixture other;
  Journal by_time = other.journal({.bytes = i64{1} << 60, .time = std::chrono::milliseconds(0)});
  for (size_t i = 0; i < 3; ++i) by_time.finished(i, copied(i), 10);
  CHECK(other.syncs == 3);
}

TEST_CASE("when the files cannot be synced nothing is committed") {
  TempFolder folder;
  Journal journal(folder / "journal", {"run", ""}, kAtOnce,
                  [] { throw Error(ErrorCode::kWriteFailed, "no sync"); });
  CHECK_ERROR(kWriteFailed, (journal.finished(0, copied(0), 10), 0));
  CHECK_FALSE(std::filesystem::exists(folder / "journal"));
}

TEST_CASE(
    "wherever a crash cuts the file off, the whole lines before count, and one goes on there") {
  Fixture fixture;
  fixture.write(3);
  const std::string text = store::read_text(fixture.path, 10'000);
  for (size_t length = 0; length <= text.size(); ++length) {
    CAPTURE(length);
    const auto lines = static_cast<size_t>(
        std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(length), '\n'));
    fixture.folder.write("journal", text.substr(0, length));
    {
      Journal journal = fixture.journal(kAtOnce);
      CHECK(journal.take_up().size() == (lines == 0 ? 0 : lines - 1));
      journal.finished(7, copied(7), 10);
    }
    const auto found = fixture.taken_up();
    CHECK(found.size() == std::max<size_t>(lines, 1));
    CHECK(found.contains(7));
  }
}

TEST_CASE("a changed byte ends what is believed") {
  Fixture fixture;
  fixture.write(3);
  const std::string text = store::read_text(fixture.path, 10'000);
  for (size_t at = 0; at < text.size(); ++at) {
    CAPTURE(at);
    std::string changed = text;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    fixture.folder.write("journal", changed);
    const auto line = static_cast<size_t>(
        std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
    CHECK(fixture.taken_up().size() == (line == 0 ? 0 : line - 1));
  }
}

TEST_CASE("the journal of another run is not taken up") {
  Fixture fixture;
  fixture.write(3);
  CHECK(fixture.taken_up("other").empty());
  CHECK(fixture.taken_up().size() == 3);
  CHECK_FALSE(journal_title(fixture.folder / "absent").has_value());
}

}  // namespace
}  // namespace shardtool::exec
