// The patterns of a mapping are compiled once, however often it resolves.
#include "lib/mapping/match/compiled_patterns.h"

#include <doctest/doctest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "lib/mapping/document/glob_matcher.h"
#include "tests/mapping/fixtures.h"
#include "tests/mapping/models.h"

namespace shardtool::mapping {
namespace {

const std::string kEveryKind = R"({"version": 1,
  "rules": [{"id": "w", "match": "l.<n>.w", "strategy": {"type": "column_parallel", "over": "tp"}}],
  "companions": [{"of": "l.<n>.w", "is": "l.<n>.s", "kind": "per_tensor"}],
  "drop": ["**.inv_freq"],
  "store": [{"name": "x.<n>", "of": "l.<n>.w"}]})";

std::vector<TensorSpec> modules(i64 n) {
  std::vector<TensorSpec> tensors;
  for (i64 layer = 0; layer < n; ++layer) {
    const std::string prefix = "l." + std::to_string(layer);
    tensors.push_back(spec(prefix + ".w", {8, 8}));
    tensors.push_back(spec(prefix + ".s", {1}));
    tensors.push_back(spec(prefix + ".inv_freq", {4}));
  }
  return tensors;
}

/// Returns the number of kinds of patterns that this mapping has not compiled, and puts empty sets
/// in their place.
int not_compiled(const Mapping& mapping) {
  int made = 0;
  const auto no_patterns = [&] {
    ++made;
    return PatternSet({});
  };
  const auto no_globs = [&] {
    ++made;
    return GlobSet({});
  };
  const CompiledPatterns& patterns = mapping.patterns();
  patterns.rules.of(no_patterns);
  patterns.companions.of(no_globs);
  patterns.dropped.of(no_globs);
  patterns.entries.of(no_patterns);
  return made;
}

TEST_CASE("a mapping compiles its patterns at its first resolution, for all its copies") {
  CHECK(not_compiled(mapping_of(kEveryKind)) == 4);
  const Mapping mapping = mapping_of(kEveryKind);
  const Mapping copy = mapping;  // NOLINT(performance-unnecessary-copy-initialization)
  const std::vector<TensorSpec> tensors = modules(2);
  CHECK(resolve(mapping, tensors, nullptr, over("tp=2")).tensors.size() == 4);
  CHECK(not_compiled(copy) == 0);
  CHECK(not_compiled(mapping_of(kEveryKind)) == 4);
}

TEST_CASE("settings share the patterns of the mapping that they change") {
  const Mapping mapping = mapping_of(kEveryKind);
  const std::vector<TensorSpec> tensors = modules(2);
  ResolveOptions options = over("tp=2");
  options.settings = {{"unknown", "replicate"}};
  CHECK(resolve(mapping, tensors, nullptr, options).tensors.size() == 4);
  CHECK(not_compiled(mapping) == 0);
  const Mapping changed = with_settings(mapping, {{"unknown", "replicate"}});
  CHECK(not_compiled(changed) == 0);
  CHECK(changed.texts().front().name == kSettingsName);
  CHECK(changed.documents().size() == 2);
  CHECK(&changed.own() == &changed.documents()[1]);
}

TEST_CASE("a document with patterns cannot share those of another mapping") {
  const Mapping mapping = mapping_of(kEveryKind);
  for (const std::string member :
       {R"("rules": [{"match": "a", "strategy": "replicate"}])",
        R"("overrides": [{"match": "a", "strategy": "replicate"}])",
        R"("companions": [{"of": "a", "is": "b", "kind": "per_tensor"}])", R"("drop": ["a"])",
        R"("store": [{"name": "a", "of": "b"}])"}) {
    CAPTURE(member);
    CHECK_ERROR(kInternal, mapping.under({"near.json", "{\"version\": 1, " + member + "}"}));
  }
}

TEST_CASE("resolutions with shared patterns are those of a mapping of their own") {
  const TinyModel model = tiny_llama();
  const ModelConfig config = config_of(model.config);
  const Mapping shared = load_preset("llama");
  for (const char* mesh : {"tp=1", "tp=2", "tp=4", "pp=2,tp=2"}) {
    CAPTURE(mesh);
    const Resolution ours = resolve(shared, model.tensors, &config, over(mesh));
    const Resolution theirs = resolve(load_preset("llama"), model.tensors, &config, over(mesh));
    REQUIRE(ours.tensors.size() == theirs.tensors.size());
    for (size_t t = 0; t < ours.tensors.size(); ++t) {
      CHECK(ours.tensors[t].by->rule == theirs.tensors[t].by->rule);
      CHECK(ours.tensors[t].layout->ranks() == theirs.tensors[t].layout->ranks());
    }
  }
}

TEST_CASE("threads that resolve one mapping agree") {
  const Mapping mapping = mapping_of(kEveryKind);
  const std::vector<TensorSpec> tensors = modules(3);
  std::atomic<int> resolved = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      const Resolution found = resolve(mapping, tensors, nullptr, over("tp=2"));
      if (found.tensors.size() == 6 && found.dropped.size() == 3) ++resolved;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(resolved == 8);
  CHECK(not_compiled(mapping) == 0);
}

TEST_CASE("a lazy value is made by the first call that succeeds") {
  const Lazy<int> lazy;
  CHECK_THROWS_AS(lazy.of([]() -> int { throw std::runtime_error("not yet"); }),
                  std::runtime_error);
  const int& value = lazy.of([] { return 1; });
  CHECK(value == 1);
  CHECK(&lazy.of([] { return 2; }) == &value);
  CHECK(value == 1);
}

TEST_CASE("a glob that needs too much memory is refused, instead of matching nothing") {
  CHECK_ERROR(kLimit, GlobMatcher(Glob(std::string(4 << 20, 'a'))));
}

}  // namespace
}  // namespace shardtool::mapping
