// Packed weights: their scales, zeros and group numbers fit the codes and config.json.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "lib/api/transform.h"
#include "tests/check/broken_checkpoints.h"
#include "tests/golden/models.h"
#include "tests/support/checkpoint_files.h"
#include "tests/support/throws.h"

namespace shardtool::test {
namespace {

using check::CheckRule;

constexpr i64 kMost = std::numeric_limits<i64>::max();
constexpr i64 kPackedWeights = 7;  // of the one layer
const std::string kPackedDown = "model.layers.0.mlp.down_proj.";

/// A packed model of the golden ones, which a test may change.
struct PackedFiles {
  explicit PackedFiles(const std::string& format)
      : tensors(read_tensors(golden::packed_model(format), "")),
        config(
            nlohmann::json::parse(std::ifstream(golden::packed_model(format) + "/config.json"))) {}

  nlohmann::json& quantization() { return config.at("quantization_config"); }
  Tensor& part(const std::string& name) { return tensors.at(name); }
  void resize(const std::string& name, const Shape& shape) {
    Tensor& tensor = tensors.at(name);
    tensor.spec.shape = shape;
    tensor.bytes.resize(static_cast<size_t>(byte_size(tensor.spec.dtype, shape).value()));
  }

  std::string written(const TempFolder& folder) const {
    write_checkpoint(folder / "model", tensors);
    folder.write("model/config.json", config.dump());
    return folder / "model";
  }
  api::CheckReport checked() const {
    const TempFolder folder;
    return api::check(reading(options_for(written(folder))));
  }

  Tensors tensors;
  nlohmann::json config;
};

/// Returns "ST0413 NAME" of every finding that is no note.
std::vector<std::string> faults_of(const api::CheckReport& report) {
  std::vector<std::string> faults;
  for (const check::Finding& finding : report.findings) {
    if (finding.severity < check::Severity::kWarning) continue;
    faults.push_back(fmt::format("{} {}", check::rule_info(finding.rule).id, finding.tensor));
  }
  return faults;
}

using Faults = std::vector<std::string>;

void set_group(Bytes& groups, i64 input, std::int32_t group) {
  std::memcpy(groups.data() + input * i64{sizeof group}, &group, sizeof group);
}

TEST_CASE("packed models of every format fit their config.json") {
  for (const char* const format :
       {"gptq", "gptq_v2", "gptq_8bit", "gptq_act_order", "awq", "pack_quantized",
        "pack_quantized_symmetric", "nvfp4", "nvfp4_modelopt", "mxfp4"}) {
    CAPTURE(format);
    const api::CheckReport report = PackedFiles(format).checked();
    CHECK(faults_of(report) == Faults{});
    CHECK(count_of(report, CheckRule::kPackedForm) == 0);
  }
}

TEST_CASE("a group_size of another model is found at the scales of every weight") {
  for (const char* const format : {"gptq", "gptq_8bit", "gptq_act_order", "awq"}) {
    for (const int size : {8, 32, 64, -1}) {
      CAPTURE(format);
      CAPTURE(size);
      PackedFiles files(format);
      files.quantization()["group_size"] = size;
      CHECK(count_of(files.checked(), CheckRule::kScaleShape) == kPackedWeights);
    }
  }
  for (const int size : {8, 32, 64, -1}) {
    CAPTURE(size);
    PackedFiles files("pack_quantized");
    files.quantization()["config_groups"]["group_0"]["weights"]["group_size"] = size;
    CHECK(count_of(files.checked(), CheckRule::kScaleShape) == kPackedWeights);
  }
}

TEST_CASE("the sizes that fit groups are noted by the weight's inputs, unless the groups differ") {
  const auto notes_with = [](const std::string& format, int size) {
    PackedFiles files(format);
    files.quantization()["group_size"] = size;
    std::vector<std::string> notes;
    for (const check::Finding& finding : files.checked().findings) {
      if (finding.rule == CheckRule::kBlockSizes && finding.tensor == kPackedDown + "scales") {
        notes.push_back(finding.message.substr(0, finding.message.find(':')));
      }
    }
    return notes;
  };
  for (const char* const format : {"gptq", "gptq_act_order", "awq"}) {
    CAPTURE(format);
    CHECK(notes_with(format, 16) == std::vector<std::string>{"axis 0 of 64 in blocks of 16"});
    for (const int size : {0, 8, 32, 64, 1 << 30}) {
      CAPTURE(size);
      CHECK(notes_with(format, size).empty());
    }
  }
}

TEST_CASE("a group_size that config.json does not say for all weights is not compared") {
  PackedFiles own("gptq");
  own.quantization()["group_size"] = 32;
  own.quantization()["dynamic"] = {{"+:.*", {{"group_size", 16}}}};
  CHECK(count_of(own.checked(), CheckRule::kScaleShape) == 0);
  PackedFiles unsaid("awq");
  unsaid.quantization().erase("group_size");
  CHECK(count_of(unsaid.checked(), CheckRule::kScaleShape) == 0);
}

/// Gives weights the extents that GPTQ of 3 bits has: 32 codes in 3 words.
void pack_in_3_bits(PackedFiles& files) {
  constexpr i64 kWordBits = 32;
  constexpr i64 kBits = 3;
  files.quantization()["bits"] = kBits;
  std::vector<TensorSpec> specs;
  for (const auto& [name, tensor] : files.tensors) specs.push_back(tensor.spec);
  for (const TensorSpec& spec : specs) {
    if (!spec.name.ends_with(".qweight")) continue;
    const std::string base = spec.name.substr(0, spec.name.size() - 8);
    const i64 inputs = files.part(base + ".g_idx").spec.shape[0];
    const Shape scales = files.part(base + ".scales").spec.shape;
    files.resize(spec.name, {inputs * kBits / kWordBits, scales[1]});
    files.resize(base + ".qzeros", {scales[0], ceil_div(scales[1] * kBits, kWordBits)});
  }
}

TEST_CASE("weights that cannot be unpacked are noted once, and the other checks go on") {
  const std::vector<std::function<void(PackedFiles&)>> forms{
      pack_in_3_bits,
      [](PackedFiles& files) { files.quantization()["checkpoint_format"] = "marlin"; }};
  for (const auto& make : forms) {
    PackedFiles files("gptq");
    make(files);
    api::CheckReport report = files.checked();
    CHECK(faults_of(report) == Faults{});
    CHECK(count_of(report, CheckRule::kPackedForm) == 1);
    const auto note =
        std::ranges::find(report.findings, CheckRule::kPackedForm, &check::Finding::rule);
    REQUIRE(note != report.findings.end());
    CHECK(note->tensor == kPackedDown + "qweight");
    CHECK(note->message.starts_with("not checked, as 6 others, because GPTQ weights "));
    files.config["vocab_size"] = files.config.at("vocab_size").get<int>() + 1;
    files.tensors.erase(kPackedDown + "scales");
    report = files.checked();
    CHECK(count_of(report, CheckRule::kVocabSize) == 1);
    CHECK(count_of(report, CheckRule::kScaleMissing) == 1);
  }
}

TEST_CASE("a part that is missing or does not fit the codes is found, also of zeros and groups") {
  const auto faults_without = [](const std::string& format, const std::string& part) {
    PackedFiles files(format);
    files.tensors.erase(kPackedDown + part);
    return faults_of(files.checked());
  };
  CHECK(faults_without("gptq", "qzeros") == Faults{"ST0412 " + kPackedDown + "qweight"});
  CHECK(faults_without("gptq", "scales") == Faults{"ST0412 " + kPackedDown + "qweight"});
  CHECK(faults_without("nvfp4", "weight_global_scale") ==
        Faults{"ST0412 " + kPackedDown + "weight_packed"});
  CHECK(faults_without("nvfp4_modelopt", "weight_scale_2") ==
        Faults{"ST0412 " + kPackedDown + "weight"});
  const auto faults_with = [](const std::string& format, const std::string& part,
                              const Shape& shape) {
    PackedFiles files(format);
    files.resize(kPackedDown + part, shape);
    return faults_of(files.checked());
  };
  CHECK(faults_with("gptq", "scales", {4, 16}) == Faults{"ST0413 " + kPackedDown + "scales"});
  CHECK(faults_with("gptq", "scales", {2, 32}) == Faults{"ST0413 " + kPackedDown + "scales"});
  CHECK(faults_with("gptq", "qzeros", {3, 4}) == Faults{"ST0413 " + kPackedDown + "qzeros"});
  CHECK(faults_with("gptq", "g_idx", {63}) == Faults{"ST0413 " + kPackedDown + "g_idx"});
  CHECK(faults_with("pack_quantized", "weight_shape", {1}) ==
        Faults{"ST0413 " + kPackedDown + "weight_shape"});
}

/// Another kind of number with as many bits, so that the bytes fit.
Dtype other_kind(Dtype dtype) {
  const bool is_float = dtype_info(dtype).kind == DtypeKind::kFloat;
  switch (bits(dtype)) {
    case 8:
      return is_float ? Dtype::kI8 : Dtype::kF8E4M3;
    case 16:
      return is_float ? Dtype::kI16 : Dtype::kF16;
    case 64:
      return is_float ? Dtype::kI64 : Dtype::kF64;
    default:
      return is_float ? Dtype::kI32 : Dtype::kF32;
  }
}

TEST_CASE("a part of another type than that of its format is found, and is not unpacked") {
  using Parts = std::vector<std::string>;
  const std::vector<std::pair<std::string, Parts>> formats{
      {"gptq", {"qweight", "qzeros", "scales", "g_idx"}},
      {"awq", {"qweight", "qzeros", "scales"}},
      {"pack_quantized", {"weight_packed", "weight_scale", "weight_zero_point", "weight_shape"}},
      {"nvfp4", {"weight_packed", "weight_scale", "weight_global_scale"}},
      {"nvfp4_modelopt", {"weight_scale", "weight_scale_2"}}};
  for (const auto& [format, parts] : formats) {
    for (const std::string& part : parts) {
      CAPTURE(format);
      CAPTURE(part);
      PackedFiles files(format);
      Dtype& dtype = files.part(kPackedDown + part).spec.dtype;
      dtype = other_kind(dtype);
      CHECK(count_of(files.checked(), CheckRule::kScaleShape) == 1);
      const TempFolder folder;
      api::MergeOptions merge;
      merge.sources = {files.written(folder)};
      merge.write.output = folder / "floats";
      merge.write.dequantize = true;
      CHECK_ERROR(kShapeMismatch, api::merge(merge));
    }
  }
}

TEST_CASE("packed weights of another size than config.json says are found, a filled word is not") {
  for (const char* const format :
       {"gptq", "gptq_v2", "gptq_8bit", "gptq_act_order", "awq", "pack_quantized",
        "pack_quantized_symmetric", "nvfp4", "nvfp4_modelopt"}) {
    CAPTURE(format);
    const auto misfits_with = [&](int more) {
      PackedFiles files(format);
      nlohmann::json& size = files.config.at("intermediate_size");
      size = size.get<int>() + more;
      return count_of(files.checked(), CheckRule::kIntermediateSize);
    };
    CHECK(misfits_with(64) == 3);  // gate, up and down
    CHECK(misfits_with(-1) == 0);
  }
}

TEST_CASE("weights that config.json says are not symmetric have zero points") {
  for (const bool is_symmetric : {true, false}) {
    for (const char* const format : {"pack_quantized", "pack_quantized_symmetric"}) {
      CAPTURE(format);
      PackedFiles files(format);
      files.quantization()["config_groups"]["group_0"]["weights"]["symmetric"] = is_symmetric;
      const bool has_zeros = format == std::string("pack_quantized");
      CHECK(count_of(files.checked(), CheckRule::kScaleMissing) ==
            (is_symmetric || has_zeros ? 0 : kPackedWeights));
    }
  }
}

TEST_CASE("an input of GPTQ in a wrong group is found, in any order of the groups") {
  const std::string groups = kPackedDown + "g_idx";
  const auto faults_with = [&](const std::string& format, i64 input, std::int32_t group) {
    PackedFiles files(format);
    set_group(files.part(groups).bytes, input, group);
    return faults_of(files.checked());
  };
  // 64 inputs in groups of 16.
  for (const std::int32_t group : {-1, 1, 3, 4, 1 << 30}) {
    CAPTURE(group);
    CHECK(faults_with("gptq", 5, group) == Faults{"ST0711 " + groups});
  }
  for (const std::int32_t group : {-1, 4}) {
    CHECK(faults_with("gptq_act_order", 5, group) == Faults{"ST0711 " + groups});
  }
  for (const std::int32_t group : {0, 3}) CHECK(faults_with("gptq_act_order", 5, group).empty());
}

/// Gives the MLP of a packed model so many rows.
void cut_mlp(PackedFiles& files, i64 rows) {
  files.config["intermediate_size"] = rows;
  for (const std::string name : {"gate_proj.weight_", "up_proj.weight_"}) {
    const std::string weight = "model.layers.0.mlp." + name;
    files.resize(weight + "packed", {rows, 4});
    files.resize(weight + "scale", {rows, 2});
    std::memcpy(files.part(weight + "shape").bytes.data(), &rows, sizeof rows);
  }
}

TEST_CASE("a weight_shape that its codes cannot have, or its model does not read, is found") {
  const std::string shape = kPackedDown + "weight_shape";
  for (const char* const format : {"pack_quantized", "pack_quantized_symmetric"}) {
    const auto faults_with = [&](const std::array<i64, 2>& said, i64 rows = 64) {
      PackedFiles files(format);
      cut_mlp(files, rows);
      REQUIRE(files.part(shape).bytes.size() == sizeof said);
      std::memcpy(files.part(shape).bytes.data(), said.data(), sizeof said);
      return faults_of(files.checked());
    };
    // 32 outputs of 64 inputs; 8 codes in a word.
    for (const i64 inputs : {57, 60, 63, 64}) {
      for (const i64 rows : {57, 60, 63, 64}) {
        CAPTURE(inputs);
        CAPTURE(rows);
        const Faults found = faults_with({32, inputs}, rows);
        CHECK(found == (inputs == rows ? Faults{} : Faults{"ST0413 " + shape}));
      }
    }
    for (const auto& said : std::initializer_list<std::array<i64, 2>>{
             {32, 56}, {32, 65}, {31, 64}, {33, 64}, {64, 32}, {-32, 64}, {32, kMost}, {32, -1}}) {
      CAPTURE(said[0]);
      CAPTURE(said[1]);
      CHECK(faults_with(said) == Faults{"ST0413 " + shape});
    }
  }
}

TEST_CASE("a config.json without the activation order of its model is found") {
  PackedFiles files("gptq_act_order");
  files.quantization()["desc_act"] = false;
  CHECK(count_of(files.checked(), CheckRule::kGroupIndex) > 0);
}

/// A packed model that is split over tp=2, without a manifest.
class PackedShards {
 public:
  explicit PackedShards(const std::string& format) : whole_(format) {
    api::SplitOptions options;
    options.source = whole_.written(folder_);
    options.mapping.mesh = mesh::parse_mesh("tp=2");
    options.write.output = output();
    api::split(options);
    std::filesystem::remove(output() + "/manifest.json");
  }

  /// Applies a change to every tensor of a rank with this end of the name.
  void change(i64 rank, const std::string& end,
              const std::function<void(const Bytes& whole, Bytes& part)>& change) const {
    const TempFolder changed;
    const std::string name = fmt::format("model-rank-{}-part-0", rank);
    Tensors tensors = read_tensors(output(), name);
    for (auto& [tensor, part] : tensors) {
      if (tensor.ends_with(end)) change(whole_.tensors.at(tensor).bytes, part.bytes);
    }
    write_checkpoint(changed.path(), tensors);
    std::filesystem::copy_file(changed / "model.safetensors",
                               fmt::format("{}/{}.safetensors", output(), name),
                               std::filesystem::copy_options::overwrite_existing);
  }

  Faults faults() const {
    api::CheckOptions options = reading(options_for(output()));
    options.mapping.emplace().mesh = mesh::parse_mesh("tp=2");
    return faults_of(api::check(options));
  }

 private:
  std::string output() const { return folder_ / "parts"; }

  TempFolder folder_;
  PackedFiles whole_;
};

/// Writes the unsharded values of a vector in place of the rank's own.
auto unsharded_on(i64 rank) {
  return [rank](const Bytes& whole, Bytes& part) {
    const auto begin = whole.size() == part.size() ? 0 : rank * std::ssize(part);
    std::copy_n(whole.begin() + begin, part.size(), part.begin());
  };
}

TEST_CASE("packed shards without a manifest may have values of their own, or the unsharded ones") {
  for (const char* const format : {"gptq", "gptq_8bit", "gptq_act_order", "awq", "pack_quantized",
                                   "pack_quantized_symmetric", "nvfp4"}) {
    CAPTURE(format);
    const PackedShards shards(format);
    CHECK(shards.faults() == Faults{});
    for (const i64 rank : {0, 1}) {
      shards.change(rank, "g_idx", unsharded_on(rank));
      shards.change(rank, "weight_shape", unsharded_on(rank));
    }
    CHECK(shards.faults() == Faults{});
  }
}

TEST_CASE("packed shards without a manifest with other group numbers or shapes are found") {
  const PackedShards gptq("gptq");
  const std::string groups = kPackedDown + "g_idx";
  gptq.change(1, groups, [](const Bytes&, Bytes& part) { set_group(part, 20, 0); });
  CHECK(gptq.faults() == Faults{"ST0711 " + groups});
  gptq.change(1, groups, unsharded_on(1));
  CHECK(gptq.faults() == Faults{});
  gptq.change(1, groups, [](const Bytes&, Bytes& part) { set_group(part, 20, 0); });
  CHECK(gptq.faults() == Faults{"ST0711 " + groups});
  const PackedShards packed("pack_quantized");
  const std::string shape = kPackedDown + "weight_shape";
  packed.change(1, shape, [](const Bytes&, Bytes& part) { part[0] ^= 1; });
  CHECK(packed.faults() == Faults{"ST0707 " + shape});
}

}  // namespace
}  // namespace shardtool::test
