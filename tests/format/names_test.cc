#include "lib/format/names.h"

#include <doctest/doctest.h>

#include <fstream>
#include <set>
#include <string>
#include <vector>

namespace shardtool::format {

TEST_CASE("a plain file name cannot leave its folder") {
  for (const std::string name : {"model.safetensors", "a b", "é", "-x", "x..y"}) {
    CAPTURE(name);
    CHECK(is_plain_file_name(name));
  }
  for (const std::string& name :
       {std::string(), std::string("."), std::string(".."), std::string("../x"), std::string("/x"),
        std::string("a/b"), std::string("a\\b"), std::string(".hidden"), std::string("a\nb"),
        std::string("a\0b", 3), std::string(256, 'x')}) {
    CAPTURE(name);
    CHECK_FALSE(is_plain_file_name(name));
  }
}

TEST_CASE("a path inside of a folder has plain names only") {
  for (const std::string path : {"a", "a/b", "mp_rank_00/model.pt"}) CHECK(is_inside_path(path));
  for (const std::string path : {"", "/a", "a/", "a//b", "../a", "a/../b", "a/.b", "./a"}) {
    CAPTURE(path);
    CHECK_FALSE(is_inside_path(path));
  }
}

TEST_CASE("the manual lists the ends by which files of torch are known, and no others") {
  std::ifstream page(SHARDTOOL_SOURCE_DIR "/cli/man/shardtool-formats.5.scd");
  std::string line;
  while (std::getline(page, line) && line != "|  *torch.save*") {
  }
  REQUIRE(static_cast<bool>(std::getline(page, line)));
  for (const std::string end : {".bin", ".pt", ".pth", ".ckpt", ".pkl", ".tar", ".safetensors"}) {
    CAPTURE(end);
    CHECK((line.find("*" + end + "*") != line.npos) == is_torch_name("model" + end));
  }
}

TEST_CASE("every name that stands twice among many is found once") {
  std::vector<std::string> names;
  for (int n = 0; n < 5000; ++n) names.push_back("layers." + std::to_string(n % 4990) + ".weight");
  std::vector<const std::string*> all;
  for (const std::string& name : names) all.push_back(&name);
  std::set<std::string> found;
  for (const std::string* twice : find_duplicates(all)) CHECK(found.insert(*twice).second);
  CHECK(found == std::set<std::string>(names.begin(), names.begin() + 10));
  CHECK(find_duplicates({}).empty());
  CHECK(find_duplicates({all.begin(), all.begin() + 4990}).empty());
}

TEST_CASE("a name that stands twice is found, and only then") {
  const std::vector<std::string> names = {"b", "a", "c", "a"};
  CHECK(find_duplicate({&names[0], &names[1], &names[2]}) == nullptr);
  const std::string* twice = find_duplicate({&names[0], &names[1], &names[2], &names[3]});
  REQUIRE(twice != nullptr);
  CHECK(*twice == "a");
}

TEST_CASE("a long list is cut in messages") {
  const std::vector<std::string> names(10, "x");
  CHECK(list_for_message(std::span(names).first(2)) == "x, x");
  CHECK(list_for_message(names) == "x, x, x, x, x, x, x, x and 2 more");
}

}  // namespace shardtool::format
