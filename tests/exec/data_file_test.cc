#include "lib/exec/files/data_file.h"

#include <doctest/doctest.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

namespace shardtool::exec {
namespace {

namespace fs = std::filesystem;
using test::TempFolder;

struct Surveyed {
  TempFolder folder;
  std::string path = folder.write("weights", "old bytes");
  SurveyedFile file{path, store::identity(store::open_read(path))};
};

TEST_CASE("a file that did not change since its header was read is opened") {
  const Surveyed surveyed;
  CHECK(SourceFile(surveyed.file).size() == 9);
}

TEST_CASE("another file under the name is refused, whatever its size and its time") {
  const Surveyed surveyed;
  const auto time = fs::last_write_time(surveyed.path);
  const std::string other = surveyed.folder.write("other", "new bytes");
  fs::last_write_time(other, time);
  fs::rename(other, surveyed.path);
  CHECK_ERROR(kInputChanged, SourceFile(surveyed.file));
}

TEST_CASE("an edited file is refused, also when its time of modification was put back") {
  const Surveyed surveyed;
  const auto time = fs::last_write_time(surveyed.path);
  std::fstream(surveyed.path, std::ios::in | std::ios::out) << "new";
  fs::last_write_time(surveyed.path, time);
  CHECK_ERROR(kInputChanged, SourceFile(surveyed.file));
}

TEST_CASE("new links and another mode are no change of the content, an edit beside them is") {
  const Surveyed surveyed;
  const SourceFile opened(surveyed.file);
  fs::create_hard_link(surveyed.path, surveyed.folder / "link");
  CHECK_NOTHROW(opened.check_unchanged());
  CHECK_NOTHROW(SourceFile(surveyed.file).check_unchanged());
  fs::permissions(surveyed.path, fs::perms::owner_read, fs::perm_options::replace);
  CHECK_NOTHROW(opened.check_unchanged());
  CHECK_NOTHROW(SourceFile(surveyed.file).check_unchanged());
  fs::permissions(surveyed.path, fs::perms::owner_all, fs::perm_options::replace);
  std::ofstream(surveyed.path, std::ios::app) << "more";
  CHECK_ERROR(kInputChanged, (opened.check_unchanged(), 0));
  CHECK_ERROR(kInputChanged, SourceFile(surveyed.file));
}

TEST_CASE("more files than the soft limit allows are opened, up to the hard one") {
  const Surveyed surveyed;
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  const rlimit small{64, before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_NOFILE, &small) == 0);
  CHECK(open_sources(std::vector(65, surveyed.file)).size() == 65);
  setrlimit(RLIMIT_NOFILE, &before);
}

}  // namespace
}  // namespace shardtool::exec
