#include "lib/store/local/tree.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>

#include "tests/support/faulty_syscalls.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

namespace shardtool::store {
namespace {

namespace fs = std::filesystem;
using test::TempFolder;
using testing::Call;
using testing::FaultySyscalls;

TEST_CASE("a tree is deleted with everything in it") {
  const TempFolder folder;
  folder.write("tree/a/b/c/file", "x");
  folder.write("tree/a/file", "x");
  fs::create_directories(folder / "tree/empty");
  REQUIRE(mkfifo((folder / "tree/pipe").c_str(), 0600) == 0);
  CHECK(remove_tree(folder / "tree"));
  CHECK(names_in(folder.path()).empty());
}

TEST_CASE("links in a tree are deleted and what they name stays") {
  const TempFolder folder;
  folder.write("outside/file", "kept");
  fs::create_directories(folder / "tree");
  fs::create_directory_symlink(folder / "outside", folder / "tree/folder_link");
  fs::create_symlink(folder / "outside/file", folder / "tree/file_link");
  fs::create_directory_symlink("..", folder / "tree/up");
  CHECK(remove_tree(folder / "tree"));
  CHECK(names_in(folder.path()) == std::vector<std::string>{"outside"});
  CHECK(fs::exists(folder / "outside/file"));
}

TEST_CASE("a link in the place of the tree is deleted itself") {
  const TempFolder folder;
  folder.write("outside/file", "kept");
  fs::create_directory_symlink(folder / "outside", folder / "tree");
  CHECK(remove_tree(folder / "tree"));
  CHECK(fs::exists(folder / "outside/file"));
  CHECK(!fs::exists(folder / "tree"));
}

TEST_CASE("a folder that a process may not change is told apart, with the reason") {
  const TempFolder folder;
  FaultySyscalls faults;
  CHECK(refusal_to_change(folder.path()) == 0);
  CHECK(refusal_to_change(folder / "gone") == ENOENT);
  faults.fail(Call::kFaccessat, 1, EACCES);
  CHECK(refusal_to_change(folder.path()) == EACCES);
}

TEST_CASE("what cannot be deleted is told, and the rest is deleted all the same") {
  const TempFolder folder;
  folder.write("tree/1", "x");
  folder.write("tree/2", "x");
  FaultySyscalls faults;
  faults.fail(Call::kUnlinkat, 2, EACCES);  // the first call finds that the tree is a folder
  CHECK(!remove_tree(folder / "tree"));
  CHECK(names_in(folder / "tree") == std::vector<std::string>{"1"});
}

TEST_CASE("names are listed in order, and a missing folder is an error") {
  const TempFolder folder;
  folder.write("b", "");
  folder.write(".hidden", "");
  folder.write("a/x", "");
  CHECK(names_in(folder.path()) == std::vector<std::string>{".hidden", "a", "b"});
  CHECK_ERROR(kWriteFailed, names_in(folder / "absent"));
}

}  // namespace
}  // namespace shardtool::store
