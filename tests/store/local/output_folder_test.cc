#include "lib/store/local/output_folder.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <optional>

#include "lib/store/local/tree.h"
#include "tests/store/local/written_output.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

namespace shardtool::store {
namespace {

namespace fs = std::filesystem;
using test::TempFolder;
using Names = std::vector<std::string>;

class InFolder {
 public:
  explicit InFolder(const std::string& path) : before_(fs::current_path()) {
    fs::current_path(path);
  }
  ~InFolder() { fs::current_path(before_); }

 private:
  fs::path before_;
};

TEST_CASE("nothing is at the final path until everything is, and nothing hidden remains") {
  const TempFolder folder;
  {
    OutputFolder output(OutputClaim(folder / "out", Existing::kRefuse), kId, Leftover::kDiscard);
    fill(output);
    CHECK(output.final_path() == folder / "out");
    CHECK(!fs::exists(folder / "out"));
    CHECK(names_in(output.working_path()) == Names{"a", "b"});
    CHECK(bytes_free(output.working_path()) > 0);
    CHECK(output.publish(kFilled).empty());
    CHECK(names_in(folder / "out") == Names{"a", "b"});
  }
  CHECK(names_in(folder.path()) == Names{"out"});
  CHECK(read_text(folder / "out/b", 10) == "b");
}

TEST_CASE("an output that is given up leaves the folder as it was") {
  const TempFolder folder;
  {
    OutputFolder output(OutputClaim(folder / "out", Existing::kRefuse), kId, Leftover::kDiscard);
    fill(output);
    fs::create_directories(output.working_path() + "/below");
  }
  CHECK(names_in(folder.path()).empty());
}

TEST_CASE("content is refused, and stays byte for byte") {
  const TempFolder folder;
  folder.write("out/old", "content");
  CHECK_ERROR(kOutputExists, (OutputClaim(folder / "out", Existing::kRefuse), 0));
  CHECK(names_in(folder.path()) == Names{"out"});
  CHECK(read_text(folder / "out/old", 10) == "content");
}

TEST_CASE("a file that another program touched is not published") {
  const auto damage = [](const std::string& how, const std::string& path) {
    if (how == "deleted") fs::remove(path);
    if (how == "emptied") fs::resize_file(path, 0);
    if (how == "extended") fs::resize_file(path, 2);
    if (how == "replaced") {
      fs::rename(path, path + ".old");
      fs::copy_file(path + ".old", path);
    }
    if (how == "replaced by a link") {
      fs::rename(path, path + ".old");
      fs::create_symlink(path + ".old", path);
    }
  };
  for (const std::string how :
       {"deleted", "emptied", "extended", "replaced", "replaced by a link"}) {
    CAPTURE(how);
    const TempFolder folder;
    {
      OutputFolder output(OutputClaim(folder / "out", Existing::kRefuse), kId, Leftover::kDiscard);
      fill(output);
      damage(how, output.working_path() + "/b");
      CHECK_ERROR(kWriteFailed, (output.publish(kFilled), 0));
    }
    CHECK(names_in(folder.path()).empty());
  }
}

TEST_CASE("a file that nobody asked for is not published") {
  const TempFolder folder;
  OutputFolder output(OutputClaim(folder / "out", Existing::kRefuse), kId, Leftover::kDiscard);
  fill(output);
  folder.write(".out.shardtool-" + kId + ".tmp/other/deep", "content");
  output.publish(kFilled);
  CHECK(names_in(folder / "out") == Names{"a", "b"});
}

TEST_CASE("an empty folder is a fine output") {
  const TempFolder folder;
  fs::create_directories(folder / "out");
  write_output(folder / "out");
  CHECK(names_in(folder / "out") == Names{"a", "b"});
  fs::create_directories(folder / "forced");
  write_output(folder / "forced", Existing::kReplace);
  CHECK(names_in(folder.path()) == Names{"forced", "out"});
}

TEST_CASE("content that appears during the run is not replaced") {
  const TempFolder folder;
  for (const Existing existing : {Existing::kRefuse, Existing::kReplace}) {
    {
      OutputFolder output(OutputClaim(folder / "out", existing), kId, Leftover::kDiscard);
      fill(output);
      folder.write("out/other", "content");
      CHECK_ERROR(kOutputExists, (output.publish(kFilled), 0));
    }
    CHECK(names_in(folder.path()) == Names{"out"});
    CHECK(names_in(folder / "out") == Names{"other"});
    fs::remove_all(folder / "out");
  }
}

TEST_CASE("a file that appears during the run is not replaced") {
  const TempFolder folder;
  OutputFolder output(OutputClaim(folder / "out", Existing::kRefuse), kId, Leftover::kDiscard);
  folder.write("out", "content");
  CHECK_ERROR(kOutputExists, (output.publish({}), 0));
  CHECK(read_text(folder / "out", 10) == "content");
}

TEST_CASE("replacing leaves only the new content, and what old links named stays") {
  const TempFolder folder;
  folder.write("outside/file", "kept");
  folder.write("out/old/deep", "content");
  fs::create_directory_symlink(folder / "outside", folder / "out/link");
  {
    OutputFolder output(OutputClaim(folder / "out", Existing::kReplace), kId, Leftover::kDiscard);
    fill(output);
    CHECK(names_in(folder / "out") == Names{"link", "old"});
    output.publish(kFilled);
  }
  CHECK(names_in(folder.path()) == Names{"out", "outside"});
  CHECK(names_in(folder / "out") == Names{"a", "b"});
  CHECK(read_text(folder / "outside/file", 10) == "kept");
}

TEST_CASE("a file or a link at the final path is refused, with --force too") {
  const TempFolder folder;
  folder.write("file", "content");
  fs::create_directories(folder / "real");
  fs::create_directory_symlink("real", folder / "link");
  fs::create_symlink("nowhere", folder / "dangling");
  for (const Existing existing : {Existing::kRefuse, Existing::kReplace}) {
    CHECK_ERROR(kOutputExists, (OutputClaim(folder / "file", existing), 0));
    CHECK_ERROR(kOutputAliasesInput, (OutputClaim(folder / "link", existing), 0));
    CHECK_ERROR(kOutputAliasesInput, (OutputClaim(folder / "link/", existing), 0));
    CHECK_ERROR(kOutputAliasesInput, (OutputClaim(folder / "dangling", existing), 0));
  }
  CHECK(names_in(folder.path()) == Names{"dangling", "file", "link", "real"});
}

TEST_CASE("links above the output are resolved once, when it is opened") {
  const TempFolder folder;
  fs::create_directories(folder / "real");
  fs::create_directories(folder / "other");
  fs::create_directory_symlink("real", folder / "link");
  OutputFolder output(OutputClaim(folder / "link/out", Existing::kRefuse), kId, Leftover::kDiscard);
  CHECK(output.final_path() == folder / "real/out");
  fs::remove(folder / "link");
  fs::create_directory_symlink("other", folder / "link");
  output.publish({});
  CHECK(names_in(folder / "real") == Names{".out.shardtool.lock", "out"});
  CHECK(names_in(folder / "other").empty());
}

TEST_CASE("a path may be relative, end in slashes, or be a dot") {
  const TempFolder folder;
  const InFolder here(folder.path());
  write_output("plain");
  write_output("slashes///");
  fs::create_directories("inner/dot");
  write_output("./inner/../dots");
  {
    const InFolder below(folder / "inner");
    write_output("dot/.");
  }
  fs::create_directories("outer/down/deep");
  CHECK_ERROR(kOutputExists, (OutputClaim("outer/down/deep/..", Existing::kRefuse), 0));
  write_output("outer/down/deep/.");
  CHECK(names_in(folder / "outer/down/deep") == Names{"a", "b"});
  for (const char* name : {"plain", "slashes", "dots", "inner/dot"})
    CHECK(names_in(name) == Names{"a", "b"});
}

TEST_CASE(
    "the working folder is refused under every name, since a shell would stay in the old one") {
  const TempFolder folder;
  fs::create_directories(folder / "here/below");
  for (const Existing existing : {Existing::kRefuse, Existing::kReplace}) {
    const InFolder here(folder / "here/below");
    CHECK_ERROR(kWriteFailed, (OutputClaim(".", existing), 0));
    CHECK_ERROR(kWriteFailed, (OutputClaim("../below", existing), 0));
    CHECK_ERROR(kWriteFailed, (OutputClaim(folder / "here/below", existing), 0));
  }
  CHECK(names_in(folder / "here") == Names{"below"});
}

TEST_CASE("the root, an empty path and a missing parent are no outputs") {
  const TempFolder folder;
  CHECK_ERROR(kWriteFailed, (OutputClaim("/", Existing::kReplace), 0));
  CHECK_ERROR(kWriteFailed, (OutputClaim("/..", Existing::kReplace), 0));
  CHECK_ERROR(kWriteFailed, (OutputClaim("", Existing::kRefuse), 0));
  const auto error =
      testing::error_of([&] { return OutputClaim(folder / "absent/out", Existing::kRefuse), 0; });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kWriteFailed);
  CHECK(error->help_lines().front().find("mkdir -p") != std::string::npos);
}

TEST_CASE("a mount point is refused before anything is written") {
  CHECK_ERROR(kWriteFailed, (OutputClaim("/proc", Existing::kReplace), 0));
}

TEST_CASE("names of up to 255 bytes work, longer ones fail before anything is written") {
  const TempFolder folder;
  for (const size_t length : {199, 200, 201, 255}) {
    write_output(folder / std::string(length, 'n'));
    CHECK(names_in(folder / std::string(length, 'n')) == Names{"a", "b"});
  }
  CHECK(names_in(folder.path()).size() == 4);
  CHECK_ERROR(kWriteFailed, (OutputClaim(folder / std::string(256, 'n'), Existing::kRefuse), 0));
  CHECK_ERROR(kWriteFailed, (OutputClaim(folder / std::string(5000, 'n'), Existing::kRefuse), 0));
  CHECK(names_in(folder.path()).size() == 4);
}

TEST_CASE("only plain names are created inside, each once, and the files stay where they are") {
  const TempFolder folder;
  OutputFolder output(OutputClaim(folder / "out", Existing::kRefuse), kId, Leftover::kDiscard);
  for (const char* name : {"", ".", "..", "a/b", "/a"}) {
    CHECK_ERROR(kWriteFailed, (output.create(name), 0));
  }
  File& first = output.create("0");
  for (int i = 1; i < 100; ++i) output.create(std::to_string(i));
  CHECK(first.path() == output.working_path() + "/0");
  CHECK_ERROR(kOutputExists, (output.create("0"), 0));
}

TEST_CASE("the modes of the folder and its files follow the umask") {
  for (const mode_t mask : {0077U, 0027U, 0000U}) {
    const TempFolder folder;
    const mode_t before = umask(mask);
    write_output(folder / "out");
    umask(before);
    struct stat status {};
    REQUIRE(stat((folder / "out").c_str(), &status) == 0);
    CHECK((status.st_mode & 0777U) == (0777U & ~mask));
    REQUIRE(stat((folder / "out/a").c_str(), &status) == 0);
    CHECK((status.st_mode & 0777U) == (0666U & ~mask));
  }
}

TEST_CASE("two runs of one output exclude each other, two outputs do not") {
  const TempFolder folder;
  OutputFolder first(OutputClaim(folder / "out", Existing::kRefuse), kId, Leftover::kDiscard);
  CHECK_ERROR(kOutputLocked, (OutputClaim(folder / "out", Existing::kReplace), 0));
  CHECK(fs::exists(first.working_path()));
  write_output(folder / "other");
  first.publish({});
}

TEST_CASE("a folder is kept when that is asked for") {
  const TempFolder folder;
  {
    OutputFolder output(OutputClaim(folder / "out", Existing::kRefuse), kId, Leftover::kDiscard);
    fill(output);
    output.sync();
    output.keep();
  }
  CHECK(names_in(folder.path()) == Names{".out.shardtool-" + kId + ".tmp"});
}

}  // namespace
}  // namespace shardtool::store
