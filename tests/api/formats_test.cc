// Folders with files of several formats: which one is opened, and how a user insists on another.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <ranges>

#include "lib/api/diff.h"
#include "lib/api/inspect.h"
#include "lib/api/transform.h"
#include "tests/api/model_files.h"
#include "tests/support/checkpoint_files.h"
#include "tests/support/gguf_bytes.h"
#include "tests/support/throws.h"
#include "tests/support/torch_files.h"

namespace shardtool::api {
namespace {

namespace fs = std::filesystem;
using test::same_tensors;
using test::TempFolder;
using test::Tensors;
using testing::error_of;

constexpr const char* kRows = R"({"version": 1, "mesh": [{"axis": "tp", "size": 2}],
  "rules": [{"match": "**", "strategy": {"type": "axiswise", "axis": 0}}]})";

/// Two tensors whose names and bytes are those of one form.
Tensors tensors_of(const std::string& form) {
  Tensors tensors;
  for (const char* name : {"a", "b"}) {
    const std::string full = form + "." + name;
    tensors[full] = test::distinct_tensor({full, Dtype::kF32, {4, 3}});
  }
  return tensors;
}

void write_output(const std::string& form, const std::string& folder, const std::string& layout) {
  const TempFolder source;
  test::write_checkpoint(source / "whole", tensors_of(form));
  SplitOptions options;
  options.source = source / "whole";
  options.mapping.path = source.write("mapping.json", kRows);
  options.write.output = folder;
  options.write.layout = layout;
  split(options);
}

/// A way to write a checkpoint into a folder of its own.
struct Form {
  std::string name;
  std::string format;
  std::function<void(const std::string&)> write;
};

const std::vector<Form>& forms() {
  static const std::vector<Form> all = {
      {"output", "manifest",
       [](const std::string& folder) { write_output("output", folder, "plain"); }},
      {"chunks", "dcp",
       [](const std::string& folder) {
         write_output("chunks", folder, "dcp");
         fs::remove(folder + "/manifest.json");
       }},
      {"indexed", "safetensors",
       [](const std::string& folder) { test::write_checkpoint(folder, tensors_of("indexed"), 2); }},
      {"torch_index", "torch",
       [](const std::string& folder) {
         test::write_torch_checkpoint(folder, tensors_of("torch_index"), 2);
       }},
      {"torch_file", "torch",
       [](const std::string& folder) {
         test::write_torch_checkpoint(folder, tensors_of("torch_file"));
       }},
      {"quantised", "gguf",
       [](const std::string& folder) {
         fs::create_directories(folder);
         test::GgufBytes gguf;
         gguf.text("general.architecture", "llama").tensor("quantised.a", {4}, 0, 16);
         std::ofstream(folder + "/m.gguf", std::ios::binary) << gguf.bytes();
       }},
  };
  return all;
}

InspectReport inspected(const std::string& location) {
  InspectOptions options;
  options.source = location;
  return inspect(options);
}

std::vector<std::string> names_at(const std::string& location) {
  std::vector<std::string> names;
  const InspectReport report = inspected(location);
  for (const InspectTensor& tensor : report.list) {
    names.push_back(tensor.name);
  }
  return names;
}

/// Warnings of files that another format would open.
std::vector<std::string> left_out(const std::string& location) {
  std::vector<std::string> found;
  const InspectReport report = inspected(location);
  for (const std::string& warning : report.warnings) {
    if (warning.find("files in another format") != std::string::npos) found.push_back(warning);
  }
  return found;
}

void check_insisting(const Form& form, const TempFolder& folder) {
  const std::string location = form.format + ":" + (folder / "both");
  CHECK(names_at(location) == names_at(folder / form.name));
  CHECK(left_out(location).empty());
}

void check_pair(const Form& first, const Form& second) {
  CAPTURE(first.name);
  CAPTURE(second.name);
  const TempFolder folder;
  for (const Form* form : {&first, &second}) {
    form->write(folder / form->name);
    fs::copy(folder / form->name, folder / "both", fs::copy_options::recursive);
  }
  CHECK(names_at(folder / "both") == names_at(folder / first.name));
  const auto warnings = left_out(folder / "both");
  if (first.format == "manifest") {
    CHECK(warnings.empty());
  } else {
    REQUIRE(warnings.size() == 1);
    CHECK(warnings[0].find(second.format + ":" + (folder / "both")) != std::string::npos);
  }
  check_insisting(first, folder);
  check_insisting(second, folder);
}

}  // namespace

TEST_CASE(
    "a folder of two formats opens as the first of them, and as the one that is insisted on") {
  for (size_t i = 0; i < forms().size(); ++i) {
    for (size_t j = i + 1; j < forms().size(); ++j) {
      if (forms()[i].format != forms()[j].format) check_pair(forms()[i], forms()[j]);
    }
  }
}

TEST_CASE("a format that a folder does not have is missing, with those that it has") {
  for (const Form& form : forms()) {
    const TempFolder folder;
    form.write(folder / "only");
    for (const Form& other : forms()) {
      const bool has_both = form.format == "manifest" && other.format == "safetensors";
      if (other.format == form.format || has_both) continue;
      CAPTURE(form.name);
      CAPTURE(other.name);
      const auto error = error_of([&] { names_at(other.format + ":" + (folder / "only")); });
      REQUIRE(error);
      CHECK(error->code() == ErrorCode::kFileMissing);
    }
  }
}

TEST_CASE("each location has a format of its own, in front of a prefix and of any file name") {
  const TempFolder folder;
  const Tensors tensors = tensors_of("model");
  test::write_torch_checkpoint(folder / "both", tensors);
  test::write_checkpoint(folder / "both", tensors);
  const std::string both = folder / "both";
  DiffOptions options;
  options.a = "torch:" + both;
  options.b = "safetensors:" + both;
  CHECK(diff(options).equal);
  CHECK(names_at("torch:" + both + "#model") == std::vector<std::string>{"a", "b"});
  fs::rename(both + "/pytorch_model.bin", folder / "weights");
  CHECK(names_at("torch:" + (folder / "weights")) == names_at("safetensors:" + both));
  CHECK(error_of([&] { names_at("safetensors:" + (folder / "weights")); }));
}

TEST_CASE("a merge that insists on a format takes its tensors only") {
  const TempFolder folder;
  for (const Form& form : forms()) {
    if (form.format == "manifest") continue;
    form.write(folder / form.name);
    fs::copy(folder / form.name, folder / "all",
             fs::copy_options::recursive | fs::copy_options::skip_existing);
  }
  for (const char* name : {"chunks", "indexed"}) {
    const auto form = std::ranges::find(forms(), name, &Form::name);
    MergeOptions options;
    options.sources = {form->format + ":" + (folder / "all")};
    options.write.output = folder / (form->name + " merged");
    merge(options);
    CHECK(same_tensors(test::read_tensors(options.write.output, ""), tensors_of(name)));
  }
  MergeOptions options;
  options.sources = {"gguf:" + (folder / "all")};
  options.write.output = folder / "never";
  CHECK(error_of([&] { merge(options); })->code() == ErrorCode::kUnsupported);
}

TEST_CASE("a word that is no format is refused in front of a folder, which may have any name") {
  const TempFolder folder;
  test::write_checkpoint(folder / "torch:x", tensors_of("model"));
  fs::current_path(folder.path());
  CHECK(names_at("torch:x") == std::vector<std::string>{"model.a", "model.b"});
  const auto error = error_of([] { names_at("troch:torch:x"); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kUsage);
  CHECK(error->help_lines().at(0) == "did you mean 'torch'?");
  CHECK(error_of([] { names_at("troch:y"); })->code() == ErrorCode::kFileMissing);
}

}  // namespace shardtool::api
