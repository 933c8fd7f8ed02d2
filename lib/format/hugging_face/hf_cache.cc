#include "lib/format/hugging_face/hf_cache.h"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/format/names.h"
#include "lib/store/local/failure.h"
#include "lib/store/reader.h"

namespace shardtool::format {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kScheme = "hf://";

struct HfName {
  std::string repository;  ///< "org/name", or "name"
  std::string revision;
};

HfName parse_location(std::string_view location) {
  const std::string_view rest = location.substr(kScheme.size());
  const size_t at = rest.find('@');
  const HfName name{std::string(rest.substr(0, at)),
                    at == std::string_view::npos ? "main" : std::string(rest.substr(at + 1))};
  const auto slashes = std::count(name.repository.begin(), name.repository.end(), '/');
  if (slashes <= 1 && is_inside_path(name.repository) && is_inside_path(name.revision)) return name;
  throw Error(ErrorCode::kUsage, "not a location in the Hugging Face cache")
      .note("found", quote_for_message(location))
      .note("expected", "hf://org/name or hf://org/name@revision");
}

/// Value of an environment variable, or empty.
std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// Type of what is at a path, not_found if nothing is. Throws kUnreadable if the system does not
/// say.
fs::file_type type_of(const fs::path& path) {
  std::error_code error;
  const fs::file_type type = fs::status(path, error).type();
  if (type != fs::file_type::none) return type;
  throw store::read_failure("look into the Hugging Face cache", path.string(), error.value())
      .help("HF_HUB_CACHE or HF_HOME name another cache folder");
}

/// Names in a folder and below it, sorted; empty if the folder does not exist.
std::vector<std::string> files_below(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    if (!at->is_directory(error)) names.push_back(at->path().lexically_relative(folder).string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> entries(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    names.push_back(at->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

Error missing(const HfName& name, const std::string& message, const fs::path& looked_in) {
  const std::string revision = name.revision == "main" ? "" : " --revision " + name.revision;
  return Error(ErrorCode::kFileMissing, message)
      .note("looked in", looked_in.string())
      .help(fmt::format("shardtool never downloads: run `hf download {}{}` first", name.repository,
                        revision))
      .help("HF_HUB_CACHE or HF_HOME name another cache folder");
}

/// Home folder of the user: $HOME, or that of the password database, as Python's expanduser("~").
fs::path home_folder() {
  if (const std::string home = environment("HOME"); !home.empty()) return home;
  constexpr size_t kBuffer = 1 << 14;
  std::vector<char> buffer(kBuffer);
  passwd entry{};
  passwd* found = nullptr;
  ::getpwuid_r(::getuid(), &entry, buffer.data(), buffer.size(), &found);
  if (found != nullptr && found->pw_dir != nullptr && *found->pw_dir == '/') return found->pw_dir;
  throw Error(ErrorCode::kUsage, "HOME is not set, and the user has no home folder")
      .help("set HF_HUB_CACHE to the folder of the cache");
}

/// Commit that a branch or tag points to, or the revision itself.
std::string commit_of(const fs::path& repository, const std::string& revision) {
  const fs::path ref = repository / "refs" / revision;
  if (type_of(ref) != fs::file_type::regular) return revision;
  constexpr i64 kMaxRefBytes = 4096;
  std::string commit = store::read_text(ref.string(), kMaxRefBytes);
  commit.erase(
      std::find_if(commit.begin(), commit.end(), [](char c) { return c == '\n' || c == '\r'; }),
      commit.end());
  if (is_plain_file_name(commit)) return commit;
  throw Error(ErrorCode::kMalformed, "the reference does not hold a commit")
      .at({ref.string(), 0, 0, ""})
      .note("found", quote_for_message(commit));
}

}  // namespace

std::string hf_cache_folder() {
  for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"}) {
    if (const std::string folder = environment(name); !folder.empty()) return folder;
  }
  if (const std::string home = environment("HF_HOME"); !home.empty())
    return (fs::path(home) / "hub").string();
  const std::string cache = environment("XDG_CACHE_HOME");
  const fs::path base = cache.empty() ? home_folder() / ".cache" : fs::path(cache);
  return (base / "huggingface" / "hub").string();
}

bool is_hf_location(std::string_view location) {
  return location.starts_with(kScheme);
}

std::string resolve_hf_location(std::string_view location) {
  const HfName name = parse_location(location);
  std::string folder = "models--" + name.repository;
  if (const size_t slash = folder.find('/'); slash != std::string::npos)
    folder.replace(slash, 1, "--");
  const fs::path repository = fs::path(hf_cache_folder()) / folder;
  if (type_of(repository) != fs::file_type::directory) {
    throw missing(name, fmt::format("'{}' is not in the Hugging Face cache", name.repository),
                  repository);
  }
  const fs::path snapshot = repository / "snapshots" / commit_of(repository, name.revision);
  if (type_of(snapshot) == fs::file_type::directory) return snapshot.string();
  throw missing(name,
                fmt::format("revision '{}' of '{}' is not in the Hugging Face cache", name.revision,
                            name.repository),
                snapshot)
      .note("revisions there", list_for_message(files_below(repository / "refs")))
      .note("snapshots there", list_for_message(entries(repository / "snapshots")));
}

bool is_hf_snapshot(const std::string& folder) {
  if (store::is_remote(folder)) return false;
  const fs::path snapshots = fs::weakly_canonical(folder).parent_path();
  return snapshots.filename() == "snapshots" &&
         snapshots.parent_path().filename().string().starts_with("models--");
}

std::optional<std::string> blob_name(const std::string& path) {
  const fs::path blobs = fs::path(path).parent_path();
  if (blobs.filename() != "blobs") return std::nullopt;
  std::string name = fs::path(path).filename().string();
  const bool is_hex = name.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (!is_hex || (name.size() != 64 && name.size() != 40)) return std::nullopt;
  return name;
}

}  // namespace shardtool::format
