// Forms of checkpoints on a store: what a command reads and writes there, it reads and writes here.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "lib/api/catalogue/presets.h"
#include "lib/api/catalogue/profiles.h"
#include "lib/api/plan_search.h"
#include "tests/api/store/stored_model.h"
#include "tests/support/torch_files.h"

namespace shardtool::api {
namespace {

const std::string kModelOfForms = SHARDTOOL_SOURCE_DIR "/samples/tiny-llama";

/// Checkpoints in folders of this machine, each also below s3://bucket/NAME.
class StoredForms {
 public:
  StoredForms() {
    store_.clear();
    test::Tensors tensors;
    for (const std::string name : {"rows.a", "columns.a", "same.a"}) {
      tensors[name] = test::numbered_tensor(name, Dtype::kF32, {33, 41});
    }
    test::write_torch_checkpoint(local("bin"), tensors, 1);
    test::write_torch_checkpoint(local("indexed-bin"), tensors, 2);
    test::write_torch_checkpoint(local("old-bin"), tensors, 1, true);
    test::write_checkpoint(local("safetensors"), tensors, 1);
    for (const std::string form : {"dcp", "dcp-hf"}) {
      split_safetensors(form);
      std::filesystem::remove(local(form) + "/manifest.json");
    }
    std::filesystem::copy(SHARDTOOL_SOURCE_DIR "/tests/format/torch/fixtures/fsdp", local("fsdp"));
    std::filesystem::copy(kModelOfForms, local("llama"));
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
      const std::string name = entry.path().filename().string();
      names_.push_back(name);
      store_.put_folder(name, local(name));
    }
  }

  ServedStore& store() { return store_; }
  const std::vector<std::string>& names() const { return names_; }
  std::string local(const std::string& name) const { return folder_ / name; }
  static std::string remote(const std::string& name) { return "s3://bucket/" + name; }

  /// Splits a checkpoint and returns the output's files.
  std::map<std::string, std::string> split(SplitOptions options) {
    const TempFolder outputs;
    if (options.write.output.empty()) options.write.output = outputs / "out";
    api::split(options);
    if (options.write.output == kOutput) return store_.below("out");
    return folder_content(options.write.output);
  }

 private:
  void split_safetensors(const std::string& layout) const {
    const TempFolder mapping;
    SplitOptions options;
    options.source = local("safetensors");
    options.mapping.path = mapping.write("mapping.json", kThreeRanks);
    options.write.output = local(layout);
    options.write.layout = layout;
    api::split(options);
  }

  ServedStore& store_ = ServedStore::instance();
  TempFolder folder_;
  std::vector<std::string> names_;
};

SplitOptions by_rows(const std::string& source, const TempFolder& folder) {
  SplitOptions options;
  options.source = source;
  options.mapping.path =
      folder.write("rows.json", R"({"version": 1, "mesh": [{"axis": "tp", "size": 2}], "rules": [
                       {"match": "**", "strategy": "replicate"}]})");
  return options;
}

}  // namespace

TEST_CASE("a checkpoint of any format on a store is split as its local copy") {
  StoredForms forms;
  const TempFolder folder;
  REQUIRE(forms.names().size() == 8);
  for (const std::string& name : forms.names()) {
    CAPTURE(name);
    const auto expected = forms.split(by_rows(forms.local(name), folder));
    CHECK(expected.size() > 1);
    CHECK((forms.split(by_rows(forms.remote(name), folder)) == expected));
  }
}

TEST_CASE("an output of any layout or type on a store has the bytes of a local one") {
  StoredForms forms;
  struct Form {
    std::string layout;
    std::optional<Dtype> dtype;
  };
  for (const Form& form : {Form{"vllm", {}}, Form{"dcp", {}}, Form{"dcp-hf", {}},
                           Form{"plain", Dtype::kF16}, Form{"dcp", Dtype::kF16}}) {
    CAPTURE(form.layout);
    SplitOptions options;
    options.mapping.mesh = mesh::parse_mesh("tp=2");
    options.write.layout = form.layout;
    options.write.dtype = form.dtype;
    options.source = forms.local("llama");
    const auto expected = forms.split(options);
    options.write.output = kOutput;
    options.write.force = true;
    CHECK((forms.split(options) == expected));
    options.source = forms.remote("llama");
    CHECK((forms.split(options) == expected));
    CHECK(forms.store().open_uploads() == 0);
  }
}

TEST_CASE("a mapping to start from and a search from today's layout read a store") {
  StoredForms forms;
  const auto mapping_of = [](const std::string& source) {
    InitOptions options;
    options.source = source;
    return init_mapping(options).mapping;
  };
  CHECK(mapping_of(forms.remote("llama")) == mapping_of(forms.local("llama")));
  SplitOptions today;
  today.source = forms.local("llama");
  today.mapping.mesh = mesh::parse_mesh("tp=2");
  today.write.output = kOutput;
  const TempFolder parts;
  split(today);
  today.write.output = parts / "out";
  split(today);
  const auto move_bytes = [&](const std::string& source, const std::string& from) {
    SearchOptions options;
    options.plan.sources = {source};
    options.plan.hardware = load_profile("h100-sxm");
    options.plan.device.bytes = options.plan.hardware->usable_bytes;
    options.devices = {1, 2};
    options.concurrency = {8};
    options.from = from;
    std::vector<i64> bytes;
    for (const ServingRow& row : search_layouts(options).rows) {
      bytes.push_back(row.move ? row.move->bytes_moved : -1);
    }
    return bytes;
  };
  const auto expected = move_bytes(forms.local("llama"), today.write.output);
  CHECK(std::ranges::any_of(expected, [](i64 bytes) { return bytes > 0; }));
  CHECK(move_bytes(forms.remote("llama"), kOutput) == expected);
}

}  // namespace shardtool::api
