#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>

#include "kernels/xxh3/xxh3.h"
#include "lib/api/transform.h"
#include "tests/check/broken_checkpoints.h"
#include "tests/support/safetensors_text.h"
#include "tests/support/torch_files.h"

namespace shardtool::test {
namespace {

using check::CheckRule;

/// Makes one F32 tensor [2, 2] with these bytes.
auto values(const std::string& data) {
  return [data](const TempFolder& folder) {
    return reading(options_for(folder.write(
        "m.safetensors",
        safetensors_bytes(R"({"a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}})", data))));
  };
}

/// Position of a rank's part of a tensor, by the manifest.
struct Part {
  std::string path;
  i64 offset;
  i64 bytes;
  std::string xxh3;
};

Part part_of(const std::string& output, const std::string& tensor, size_t rank) {
  const auto manifest = nlohmann::json::parse(read_file(output + "/manifest.json"));
  const auto& shard = manifest["tensors"][tensor]["shards"][rank];
  const std::string file = manifest["files"][shard["file"].get<size_t>()]["name"];
  return {output + "/" + file, shard["offset"], shard["bytes"], shard["xxh3"]};
}

void overwrite(const Part& part, const std::string& bytes) {
  std::fstream file(part.path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(part.offset);
  file << bytes;
}

std::string bytes_of(const Part& part) {
  return read_file(part.path).substr(static_cast<size_t>(part.offset),
                                     static_cast<size_t>(part.bytes));
}

/// Shards without a manifest, of which rank 1's file has the bytes of rank 0's.
api::CheckOptions copied_rank(const TempFolder& folder) {
  const std::string output = split_sample(folder);
  std::filesystem::remove(output + "/manifest.json");
  std::filesystem::copy_file(output + "/model-rank-0-part-0.safetensors",
                             output + "/model-rank-1-part-0.safetensors",
                             std::filesystem::copy_options::overwrite_existing);
  api::CheckOptions options = reading(options_for(output));
  options.mapping.emplace();
  options.mapping->preset = "llama";
  options.mapping->mesh = mesh::parse_mesh("tp=2");
  return options;
}

api::CheckOptions flipped_bit(const TempFolder& folder) {
  const std::string output = split_sample(folder);
  const Part part = part_of(output, "lm_head.weight", 1);
  std::string bytes = bytes_of(part);
  bytes[100] = static_cast<char>(bytes[100] ^ 1);
  overwrite(part, bytes);
  return reading(options_for(output));
}

api::CheckOptions zero_part(const TempFolder& folder) {
  const std::string output = split_sample(folder);
  const Part part = part_of(output, "lm_head.weight", 1);
  overwrite(part, std::string(static_cast<size_t>(part.bytes), '\0'));
  return reading(options_for(output));
}

/// Changes one replica, and its hash in the manifest.
api::CheckOptions other_replica(const TempFolder& folder) {
  const std::string output = split_sample(folder);
  const Part part = part_of(output, "model.norm.weight", 1);
  std::string bytes = bytes_of(part);
  bytes[0] = static_cast<char>(bytes[0] ^ 1);
  overwrite(part, bytes);
  const std::string manifest = read_file(output + "/manifest.json");
  const size_t tensor = manifest.find("\"model.norm.weight\"");
  const size_t second = manifest.find(part.xxh3, manifest.find(part.xxh3, tensor) + 1);
  std::string changed = manifest;
  changed.replace(second, part.xxh3.size(), kernels::xxh3_hex(std::as_bytes(std::span(bytes))));
  std::ofstream(output + "/manifest.json") << changed;
  return reading(options_for(output));
}

api::CheckOptions other_digest(const TempFolder& folder) {
  const std::string output = split_sample(folder);
  const auto manifest = nlohmann::json::parse(read_file(output + "/manifest.json"));
  const std::string digest = manifest["tensors"]["lm_head.weight"]["digest"];
  edit(output + "/manifest.json", digest, "0123456789abcdef");
  return reading(options_for(output));
}

/// Makes a split with the SHA-256 of its files and changes a byte of padding in one file.
api::CheckOptions other_file(const TempFolder& folder) {
  api::SplitOptions split;
  split.source = SHARDTOOL_SAMPLE;
  split.mapping.preset = "llama";
  split.mapping.mesh = mesh::parse_mesh("tp=2");
  split.write.output = folder / "tp2";
  split.write.sha256 = true;
  api::split(split);
  const Part part = part_of(split.write.output, "lm_head.weight", 1);
  std::string bytes = bytes_of(part);
  bytes[0] = static_cast<char>(bytes[0] ^ 1);
  overwrite(part, bytes);
  return reading(options_for(split.write.output));
}

/// Makes a cache snapshot of the sample with a config.json that is not its blob.
api::CheckOptions other_blob(const TempFolder& folder) {
  namespace fs = std::filesystem;
  const fs::path model = folder / "models--a--b";
  fs::create_directories(model / "snapshots");
  fs::copy(SHARDTOOL_SAMPLE, model / "snapshots/0", fs::copy_options::recursive);
  fs::create_directories(model / "blobs");
  const fs::path config = model / "snapshots/0/config.json";
  const std::string blob = "../../blobs/" + std::string(40, '0');
  fs::rename(config, model / "snapshots/0" / blob);
  fs::create_symlink(blob, config);
  return reading(options_for(model / "snapshots/0"));
}

/// Makes a file of torch.save of two tensors whose storages are `storages`, and changes a byte of
/// the tensor `changed` after the checksums were computed.
auto other_record(size_t changed, size_t storages) {
  return [changed, storages](const TempFolder& folder) {
    const TensorSpec spec{"", Dtype::kF32, {2, 2}};
    PickleWriter pickle;
    pickle.global("collections", "OrderedDict").raw(")R(");
    std::vector<std::pair<std::string, std::string>> contents(storages);
    for (size_t s = 0; s < storages; ++s) contents[s].first = std::to_string(s);
    for (size_t t = 0; t < 2; ++t) {
      const size_t s = t % storages;
      std::string& bytes = contents[s].second;
      const auto offset = static_cast<i64>(bytes.size() / 4);
      for (char i = 0; i < 16; ++i) bytes += static_cast<char>(16 * t + i + 1);
      pickle.text(t == 0 ? "a" : "b")
          .raw(torch_tensor(spec, {std::to_string(s), storages == 1 ? 8 : 4, offset, {2, 1}}));
    }
    ZipForm form;
    form.has_checksums = true;
    std::string file = torch_zip(pickle.raw("u").finished(), contents, form);
    const size_t at = file.find(contents[changed % storages].second);
    file[at + (storages == 1 ? 16 * changed : 0)] ^= 1;
    return reading(options_for(folder.write("pytorch_model.bin", file)));
  };
}

/// Makes a weight of GPTQ, of which bytes 1, 2, 3, ... are the groups of the inputs.
api::CheckOptions other_groups(const TempFolder& folder) {
  write_tensors(folder, "model.safetensors",
                {{"a.qweight", "I32", {1, 8}},
                 {"a.qzeros", "I32", {1, 1}},
                 {"a.scales", "F16", {1, 8}},
                 {"a.g_idx", "I32", {8}}});
  folder.write("config.json", R"({"quantization_config":
      {"quant_method": "gptq", "bits": 4, "group_size": 8, "desc_act": true}})");
  return reading(options_for(folder.path()));
}

/// Makes a folder of torch.distributed.checkpoint of which the first chunk has another checksum
/// than its data. Shards of ours have none.
api::CheckOptions other_chunk(const TempFolder& folder) {
  api::SplitOptions split;
  split.source = SHARDTOOL_SAMPLE;
  split.mapping.preset = "llama";
  split.mapping.mesh = mesh::parse_mesh("tp=2");
  split.write.output = folder / "dcp";
  split.write.layout = "dcp";
  api::split(split);
  std::filesystem::remove(split.write.output + "/manifest.json");
  const std::string path = split.write.output + "/__0_0.distcp";
  std::string file = read_file(path);
  // An entry of a zip directory: the checksum stands at byte 16, the name at byte 46.
  for (size_t at = 0; (at = file.find("PK\1\2", at)) != file.npos; ++at) {
    if (file.find("/data/0", at) > at + 100) continue;
    file.replace(at + 16, 4, "\1\2\3\4");
    break;
  }
  std::ofstream(path) << file;
  return reading(options_for(split.write.output));
}

}  // namespace

std::vector<Broken> broken_data() {
  const std::string one("\0\0\x80\x3f", 4);
  const std::string nan("\0\0\xc0\x7f", 4);
  const std::string infinite("\0\0\x80\x7f", 4);
  return {
      {CheckRule::kNan, values(one + one + nan + one)},
      {CheckRule::kInfinite, values(one + infinite + one + one)},
      {CheckRule::kZeroTensor, values(std::string(16, '\0'))},
      {CheckRule::kZeroShard, zero_part},
      {CheckRule::kDigest, other_digest},
      {CheckRule::kShardHash, flipped_bit},
      {CheckRule::kReplicasDiffer, other_replica},
      {CheckRule::kFileHash, other_file},
      {CheckRule::kBlobName, other_blob},
      {CheckRule::kRecordChecksum, other_record(0, 1)},
      {CheckRule::kRecordChecksum, other_record(1, 1)},
      {CheckRule::kRecordChecksum, other_record(1, 2)},
      {CheckRule::kRecordChecksum, other_chunk},
      {CheckRule::kGroupIndex, other_groups},
      {CheckRule::kCopiedFile, copied_rank},
  };
}

}  // namespace shardtool::test
