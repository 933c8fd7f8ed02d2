// Random damage: every changed byte of a shard is found, and no damage stops a check except with an
// error that names the input.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <fstream>

#include "lib/base/error.h"
#include "tests/check/broken_checkpoints.h"

namespace shardtool::test {
namespace {

constexpr int kInputExit = 4;

void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

/// Random damage: a changed byte, or a removed, repeated or random range.
std::string damaged(std::string bytes) {
  const auto at = *rc::gen::inRange<size_t>(0, bytes.size());
  const auto length = *rc::gen::inRange<size_t>(1, 40);
  switch (*rc::gen::inRange(0, 4)) {
    case 0:
      bytes[at] = static_cast<char>(bytes[at] ^ *rc::gen::inRange(1, 256));
      break;
    case 1:
      bytes.erase(at, length);
      break;
    case 2:
      bytes.insert(at, bytes.substr(at, length));
      break;
    default:
      bytes.replace(at, length,
                    *rc::gen::container<std::string>(length, rc::gen::arbitrary<char>()));
  }
  return bytes;
}

TEST_CASE("one changed byte anywhere in a shard's file is found when data is read") {
  const TempFolder folder;
  const std::string output = split_sample(folder);
  const std::string file = output + "/model-rank-1-part-0.safetensors";
  const std::string good = read_file(file);
  CHECK(rc::check("changed byte = finding", [&] {
    std::string bytes = good;
    // Half of the changes hit the header.
    const bool in_header = *rc::gen::arbitrary<bool>();
    const auto at = *rc::gen::inRange<size_t>(0, in_header ? 4096 : bytes.size());
    bytes[at] = static_cast<char>(bytes[at] ^ *rc::gen::inRange(1, 256));
    write_file(file, bytes);
    RC_ASSERT(api::check(reading(options_for(output))).errors > 0);
  }));
}

TEST_CASE("damaged files of an output and of a checkpoint never end a check otherwise") {
  const TempFolder folder;
  const std::string output = split_sample(folder);
  const std::string model = copy_sample(folder);
  const std::vector<std::pair<std::string, std::string>> targets{
      {output, "/manifest.json"},
      {output, "/model-rank-0-part-0.safetensors"},
      {output, "/config.json"},
      {model, "/model.safetensors.index.json"},
      {model, "/model-00001-of-00002.safetensors"},
      {model, "/config.json"}};
  CHECK(rc::check("check returns", [&] {
    const auto& [location, name] = targets[*rc::gen::inRange<size_t>(0, targets.size())];
    const std::string good = read_file(location + name);
    write_file(location + name, damaged(good));
    api::CheckOptions options = reading(options_for(location));
    options.mapping.emplace();
    options.mapping->mesh = mesh::parse_mesh("tp=2");
    std::optional<Error> error;
    try {
      api::check(options);
    } catch (const Error& thrown) {
      error = thrown;
    }
    write_file(location + name, good);
    if (error) RC_LOG() << name << ": " << error->id() << " " << error->message();
    // RC_ASSERT itself evaluates both sides of ||.
    const bool is_fine = !error || error->exit_status() == kInputExit;
    RC_ASSERT(is_fine);
  }));
}

}  // namespace
}  // namespace shardtool::test
