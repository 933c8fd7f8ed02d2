#include "lib/mapping/mapping.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tests/mapping/fixtures.h"
#include "tests/support/temp_folder.h"

namespace shardtool::mapping {
namespace {

using test::TempFolder;

std::string extends(const std::string& list) {
  return R"({"version": 1, "extends": [)" + list + "]}";
}

std::vector<std::string> names(const Mapping& mapping) {
  std::vector<std::string> found;
  for (const DocumentText& document : documents(mapping)) found.push_back(document.name);
  return found;
}

TEST_CASE(
    "documents stand nearest first: later entries of extends before earlier ones, depth first, "
    "once") {
  const TempFolder folder;
  folder.write("base/deep.json", extends("\"preset:llama\""));
  folder.write("base/one.json", extends("\"deep.json\""));
  folder.write("two.json", extends(""));
  const auto path =
      folder.write("m.json", extends(R"("two.json", "preset:llama", "base/one.json")"));
  CHECK(names(load_mapping(path)) == std::vector<std::string>{"m.json", "base/one.json",
                                                              "base/deep.json", "preset:llama",
                                                              "two.json"});
}

TEST_CASE("a bare axis mapping is the nearest document, and not the user's own") {
  const TempFolder folder;
  const Mapping mapping = with_axis_mapping(
      load_preset("llama"), folder.write("axes.json", R"({"mlp": ["data", "model"]})"));
  CHECK(names(mapping) == std::vector<std::string>{"--axis-mapping axes.json", "preset:llama"});
  CHECK(mapping.own().name == "preset:llama");
  CHECK(to_string(mapping.documents()[0].axes.at("mlp").mesh->over) == "data*model");
}

TEST_CASE(
    "a bare axis mapping of an older manifest, which has no file's name, is not the own one") {
  const std::vector<DocumentText> texts{
      {"--axis-mapping", R"({"version": 1, "axes": {"mlp": "data"}})"},
      {"mine.json", R"({"version": 1})"}};
  CHECK(Mapping(texts).own().name == "mine.json");
}

TEST_CASE("a file that is no bare axis mapping is refused") {
  const TempFolder folder;
  const Mapping llama = load_preset("llama");
  const auto fault = [&](const std::string& text) {
    return error_of([&] { with_axis_mapping(llama, folder.write("axes.json", text)); });
  };
  CHECK(fault(R"({"version": 1, "axes": {}})")->code() == ErrorCode::kMappingSchema);
  CHECK(fault("[]")->code() == ErrorCode::kMappingSchema);
  CHECK(fault(R"({"mlp": "data"}, "rules": [])")->code() == ErrorCode::kMappingSyntax);
  CHECK(fault(R"({"mlp": 3})")->code() == ErrorCode::kMappingSchema);
}

TEST_CASE("a preset is also found under the name that documents give it") {
  CHECK(names(load_preset("preset:mixtral")) == names(load_preset("mixtral")));
  CHECK_ERROR(kUsage, load_preset("preset:preset:llama"));
}

TEST_CASE("a manifest's documents give back the same mapping without any file") {
  const Mapping loaded = load_preset("mixtral");
  const Mapping again = mapping_from_documents(documents(loaded));
  CHECK(names(again) == std::vector<std::string>{"preset:mixtral", "preset:llama"});
  CHECK(again.texts()[1].text == loaded.texts()[1].text);
}

TEST_CASE("paths that leave the folder, are absolute, or are odd are refused where they stand") {
  for (const std::string path :
       {"../a.json", "b/../../a.json", "/etc/a.json", "./a.json", "a//b.json", "b/"}) {
    CAPTURE(path);
    const TempFolder folder;
    const auto e =
        error_of([&] { return load_mapping(folder.write("m.json", extends("\"" + path + "\""))); });
    REQUIRE(e);
    CHECK(e->code() == ErrorCode::kExtends);
    CHECK(e->place() == Place{"m.json", 1, 28, "/extends/0"});
  }
}

TEST_CASE("a cycle and more than eight levels are refused") {
  const TempFolder folder;
  folder.write("a.json", extends("\"b.json\""));
  folder.write("b.json", extends("\"a.json\""));
  CHECK_ERROR(kExtends, load_mapping(folder / "a.json"));
  for (int level = 0; level < 10; ++level) {
    const auto next = std::to_string(level + 1);
    folder.write("l" + std::to_string(level) + ".json",
                 level == 9 ? extends("") : extends("\"l" + next + ".json\""));
  }
  CHECK_ERROR(kExtends, load_mapping(folder / "l0.json"));
  CHECK(load_mapping(folder / "l1.json").documents().size() == 9);
}

TEST_CASE(
    "an unknown preset is bad usage where it was typed, and a bad mapping where a file has it") {
  const auto e = error_of([] { return load_preset("lama"); });
  REQUIRE(e);
  CHECK(e->code() == ErrorCode::kUsage);
  CHECK(e->help_lines().front().starts_with("did you mean 'llama'"));
  const TempFolder folder;
  CHECK_ERROR(kUnknownName, load_mapping(folder.write("m.json", extends("\"preset:gpt5\""))));
}

TEST_CASE("a missing file that a mapping extends is named") {
  const TempFolder folder;
  CHECK_ERROR(kFileMissing, load_mapping(folder.write("n.json", extends("\"none.json\""))));
}

TEST_CASE("settings become the nearest document") {
  const Mapping mapping =
      with_settings(load_preset("llama"), {{"axes.embed", "fsdp"},
                                           {"axes.heads.uneven", "chunk"},
                                           {"axes.vocab", R"({"uneven": "pad", "pad_to": 64})"},
                                           {"unknown", "warn"}});
  CHECK(names(mapping) == std::vector<std::string>{"--set", "preset:llama"});
  const Document& set = mapping.documents()[0];
  CHECK(set.axes.at("embed").mesh->over == mesh::Over{{"fsdp"}});
  CHECK(set.axes.at("heads").uneven == Uneven::kChunk);
  CHECK_FALSE(set.axes.at("heads").mesh);
  CHECK(set.axes.at("vocab").pad_to == 64);
  CHECK(set.unknown == UnknownPolicy::kWarn);
  CHECK_ERROR(kUsage, with_settings(mapping, {{"rules", "[]"}}));
  CHECK_ERROR(kMappingSchema, with_settings(mapping, {{"axes.heads.unven", "chunk"}}));
}

TEST_CASE("the schema is JSON and describes version 1") {
  const auto schema = nlohmann::json::parse(schema_json());
  CHECK(schema["properties"]["version"]["const"] == 1);
}

}  // namespace
}  // namespace shardtool::mapping
