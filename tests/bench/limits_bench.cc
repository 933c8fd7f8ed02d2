// limits_bench SHARDTOOL FOLDER [LAYERS] [ROUNDS]
//
// Times split with little memory: 16 MiB of buffers and 256 MiB, with and without a control group
// of 64 MiB, in interleaved rounds, with the source in the page cache and without. Then the
// publication of 64 small files and writing and syncing them one by one.

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "lib/store/local/output_folder.h"
#include "tests/bench/llama_checkpoint.h"
#include "tests/bench/rounds.h"

namespace {

namespace fs = std::filesystem;
using namespace shardtool::bench;
namespace store = shardtool::store;

/// A control group whose processes have 64 MiB, their page cache included.
class MemoryGroup {
 public:
  MemoryGroup() {
    const bool is_unified = fs::exists("/sys/fs/cgroup/cgroup.controllers");
    path_ =
        fmt::format("/sys/fs/cgroup{}/shardtool-bench-{}", is_unified ? "" : "/memory", getpid());
    std::error_code error;
    if (!fs::create_directory(path_, error)) return;
    std::ofstream limit(path_ + (is_unified ? "/memory.max" : "/memory.limit_in_bytes"));
    exists_ = static_cast<bool>(limit << (64 << 20) << std::flush);
  }
  ~MemoryGroup() { rmdir(path_.c_str()); }
  MemoryGroup(const MemoryGroup&) = delete;
  MemoryGroup& operator=(const MemoryGroup&) = delete;

  bool exists() const { return exists_; }
  std::string within(const std::string& command) const {
    return fmt::format("echo $$ > {}/cgroup.procs && {}", path_, command);
  }

 private:
  std::string path_;
  bool exists_ = false;
};

void compare_memory(const std::string& tool, const std::string& folder, int layers, int rounds) {
  const double gigabytes = write_parted_llama(tool, folder, {layers, false}, false) / 1e9;
  fmt::print("{:.2f} GB, {} layers of Llama-3.1-8B, BF16, split to tp=4, {} rounds\n", gigabytes,
             layers, rounds);
  const std::string output = folder + "/output";
  const auto split = [&](const char* memory) {
    return fmt::format("{} split {}/whole -o {} --preset llama --mesh tp=4 {} -q > /dev/null", tool,
                       folder, output, memory);
  };
  std::vector<std::vector<Method>> tables{{{"256 MiB of buffers", split("--max-memory 256MiB")},
                                           {"16 MiB of buffers", split("--max-memory 16MiB")}}};
  const MemoryGroup group;
  if (group.exists()) {
    tables.push_back(
        {{"no control group", split("")}, {"control group of 64 MiB", group.within(split(""))}});
  } else {
    fmt::print("not measured: a control group of 64 MiB cannot be made here\n");
  }
  for (const auto& methods : tables) {
    for (const bool cold : {false, true}) {
      std::vector<Method> measured = methods;
      const Preparation cache = cold ? uncached(folder + "/whole") : cached(folder + "/whole");
      measure(measured, anew(output, cache), rounds);
      print_table(cold ? "source not in the page cache" : "source in the page cache", measured,
                  gigabytes);
    }
  }
  fs::remove_all(folder);
}

constexpr int kFiles = 64;
const std::string kContent(4096, 'x');

std::string file_name(int number) {
  return fmt::format("model-{:05}.safetensors", number);
}

void publish(const std::string& output) {
  store::OutputFolder folder(store::OutputClaim(output, store::Existing::kRefuse),
                             std::string(32, 'a'), store::Leftover::kDiscard);
  std::vector<store::WrittenFile> written;
  for (int i = 0; i < kFiles; ++i) {
    written.push_back({file_name(i), std::ssize(kContent)});
    store::write_exact(folder.create(file_name(i)), std::as_bytes(std::span(kContent)), 0);
  }
  folder.publish(written);
}

void write_one_by_one(const std::string& output) {
  fs::create_directory(output);
  for (int i = 0; i < kFiles; ++i) store::write_new_file(output + "/" + file_name(i), kContent);
}

double milliseconds(void (*work)(const std::string&), const std::string& output) {
  fs::remove_all(output);
  sync();
  const auto start = std::chrono::steady_clock::now();
  work(output);
  return 1e3 * std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void measure_publication(const std::string& folder) {
  constexpr int kRounds = 21;
  fs::create_directories(folder);
  std::vector<double> published;
  std::vector<double> plain;
  for (int round = 0; round < kRounds; ++round) {
    plain.push_back(milliseconds(write_one_by_one, folder + "/plain"));
    published.push_back(milliseconds(publish, folder + "/output"));
  }
  fs::remove_all(folder);
  fmt::print(
      "\n{} files of 4 KiB, {} rounds: published {:.1f} ms, written and synced one by one {:.1f} "
      "ms\n",
      kFiles, kRounds, median(published), median(plain));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "usage: limits_bench SHARDTOOL FOLDER [LAYERS] [ROUNDS]\n");
    return 2;
  }
  const int layers = argc > 3 ? std::atoi(argv[3]) : 7;
  const int rounds = argc > 4 ? std::atoi(argv[4]) : 5;
  measure_publication(argv[2]);
  compare_memory(argv[1], argv[2], layers, rounds);
  return 0;
}
