#include "lib/format/hugging_face/hf_cache.h"

#include <doctest/doctest.h>
#include <pwd.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "lib/base/error.h"
#include "lib/format/checkpoint.h"
#include "tests/support/safetensors_text.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

namespace shardtool::format {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCommit = "0123456789abcdef0123456789abcdef01234567";
constexpr const char* kHeader = R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})";

/// Sets an environment variable for one test.
class ScopedEnvironment {
 public:
  ScopedEnvironment(const char* name, const std::string& value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    setenv(name, value.c_str(), 1);
  }
  ~ScopedEnvironment() { setenv(name_, old_.c_str(), 1); }

 private:
  const char* name_;
  std::string old_;
};

/// Writes models--org--tiny with main -> kCommit; weights are behind two links, like shared blobs.
void write_cache(const test::TempFolder& hub) {
  const std::string repository = "models--org--tiny/";
  hub.write(repository + "refs/main", kCommit);
  hub.write(repository + "refs/pr/1", std::string(kCommit) + "\n");
  hub.write("shared/blob", test::safetensors_bytes(kHeader, "x"));
  hub.write(repository + "blobs/config", "{}");
  fs::create_symlink(hub / "shared/blob", hub / (repository + "blobs/weights"));
  const std::string snapshot = repository + "snapshots/" + kCommit + "/";
  fs::create_directories(hub / snapshot);
  fs::create_symlink("../../blobs/weights", hub / (snapshot + "model.safetensors"));
  fs::create_symlink("../../blobs/config", hub / (snapshot + "config.json"));
}

Error resolving_error(const std::string& location) {
  return testing::error_of([&] { return resolve_hf_location(location); }).value();
}

std::string note(const Error& error, std::string_view label) {
  for (const auto& [name, text] : error.notes()) {
    if (name == label) return text;
  }
  return "";
}

}  // namespace

TEST_CASE("branch, pull request and commit lead to the snapshot") {
  const test::TempFolder hub;
  write_cache(hub);
  const ScopedEnvironment environment("HF_HUB_CACHE", hub.path());
  const std::string snapshot = hub / "models--org--tiny/snapshots/" + kCommit;
  CHECK(resolve_hf_location("hf://org/tiny") == snapshot);
  CHECK(resolve_hf_location("hf://org/tiny@main") == snapshot);
  CHECK(resolve_hf_location("hf://org/tiny@pr/1") == snapshot);
  CHECK(resolve_hf_location(std::string("hf://org/tiny@") + kCommit) == snapshot);
}

TEST_CASE("HF_HUB_CACHE goes before HF_HOME, which goes before the home folder") {
  const test::TempFolder home;
  write_cache(home);
  fs::create_directories(home / "hf");
  fs::rename(home / "models--org--tiny", home / "hf/models--org--tiny");
  fs::rename(home / "hf", home / "hub");
  const ScopedEnvironment no_cache("HF_HUB_CACHE", "");
  const ScopedEnvironment no_old_cache("HUGGINGFACE_HUB_CACHE", "");
  {
    const ScopedEnvironment environment("HF_HOME", home.path());
    CHECK_NOTHROW(resolve_hf_location("hf://org/tiny"));
    const ScopedEnvironment elsewhere("HF_HUB_CACHE", home / "nothing");
    CHECK(note(resolving_error("hf://org/tiny"), "looked in") ==
          home / "nothing/models--org--tiny");
  }
  fs::create_directories(home / ".cache/huggingface");
  fs::rename(home / "hub", home / ".cache/huggingface/hub");
  const ScopedEnvironment no_home("HF_HOME", "");
  const ScopedEnvironment no_xdg("XDG_CACHE_HOME", "");
  const ScopedEnvironment environment("HOME", home.path());
  CHECK_NOTHROW(resolve_hf_location("hf://org/tiny"));
}

TEST_CASE("without HOME the cache is in the user's home folder, not in the working folder") {
  const ScopedEnvironment no_cache("HF_HUB_CACHE", "");
  const ScopedEnvironment no_old_cache("HUGGINGFACE_HUB_CACHE", "");
  const ScopedEnvironment no_hf_home("HF_HOME", "");
  const ScopedEnvironment no_xdg("XDG_CACHE_HOME", "");
  const ScopedEnvironment no_home("HOME", "");
  const passwd* const user = getpwuid(getuid());
  if (user == nullptr) {
    CHECK_ERROR(kUsage, hf_cache_folder());
  } else {
    CHECK(hf_cache_folder() == std::string(user->pw_dir) + "/.cache/huggingface/hub");
  }
}

TEST_CASE("a cache that the system refuses to look into is unreadable, not missing") {
  constexpr size_t kLongerThanNames = 300;
  const ScopedEnvironment environment("HF_HUB_CACHE", "/" + std::string(kLongerThanNames, 'x'));
  CHECK_ERROR(kUnreadable, resolve_hf_location("hf://org/tiny"));
}

TEST_CASE("a snapshot opens through two levels of links, config and tokenizer files included") {
  const test::TempFolder hub;
  write_cache(hub);
  const ScopedEnvironment environment("HF_HUB_CACHE", hub.path());
  const Checkpoint checkpoint = open_checkpoint("hf://org/tiny");
  REQUIRE(checkpoint.tensors.size() == 1);
  CHECK(checkpoint.files[0].path == fs::canonical(hub / "shared/blob").string());
  CHECK(checkpoint.other_files == std::vector<std::string>{"config.json"});
  CHECK(checkpoint.warnings.empty());
  CHECK_FALSE(checkpoint.config_path.empty());
}

TEST_CASE("what is missing is said, with what is there and how to download") {
  const test::TempFolder hub;
  write_cache(hub);
  const ScopedEnvironment environment("HF_HUB_CACHE", hub.path());
  const Error no_model = resolving_error("hf://org/other");
  CHECK(no_model.code() == ErrorCode::kFileMissing);
  CHECK(note(no_model, "looked in") == hub / "models--org--other");
  CHECK(no_model.help_lines()[0] == "shardtool never downloads: run `hf download org/other` first");
  const Error no_revision = resolving_error("hf://org/tiny@v2");
  CHECK(note(no_revision, "revisions there") == "main, pr/1");
  CHECK(note(no_revision, "snapshots there") == kCommit);
}

TEST_CASE("a config or tokenizer file whose blob is not there is a warning") {
  const test::TempFolder hub;
  write_cache(hub);
  const ScopedEnvironment environment("HF_HUB_CACHE", hub.path());
  const std::string config = hub / "models--org--tiny/snapshots/" + kCommit + "/config.json";
  fs::remove(config);
  fs::create_symlink("../../blobs/nothing", config);
  const Checkpoint checkpoint = open_checkpoint("hf://org/tiny");
  REQUIRE(checkpoint.warnings.size() == 1);
  CHECK(checkpoint.warnings[0].file == "config.json");
  CHECK(checkpoint.warnings[0].message.find("target is missing") != std::string::npos);
}

TEST_CASE("a blob that is not there makes the snapshot incomplete") {
  const test::TempFolder hub;
  write_cache(hub);
  fs::remove(hub / "shared/blob");
  const ScopedEnvironment environment("HF_HUB_CACHE", hub.path());
  try {
    open_checkpoint("hf://org/tiny");
    FAIL("opened");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kFileMissing);
    CHECK(note(error, "missing") == "model.safetensors");
    CHECK(error.help_lines()[0] == "the snapshot is incomplete: download it again");
  }
}

TEST_CASE("a location cannot lead out of the cache") {
  for (const std::string location :
       {"hf://", "hf://a/b/c", "hf://../x", "hf:///etc", "hf://a/..", "hf://a/b@../../x",
        "hf://a/b@", "hf://a/b@/etc", "hf://a//b"}) {
    CAPTURE(location);
    CHECK(resolving_error(location).code() == ErrorCode::kUsage);
  }
}

TEST_CASE("a reference that holds a path is refused") {
  const test::TempFolder hub;
  write_cache(hub);
  hub.write("models--org--tiny/refs/evil", "../../..");
  const ScopedEnvironment environment("HF_HUB_CACHE", hub.path());
  CHECK(resolving_error("hf://org/tiny@evil").code() == ErrorCode::kMalformed);
}

}  // namespace shardtool::format
