#include <nlohmann/json.hpp>

#include "tests/validate/mutations/mutations.h"

/// Rows of the matrix that are found in headers, manifests and configs, before any weight is read.
namespace shardtool::test {
namespace {

using nlohmann::json;

const std::string kSecondNorm = "model.layers.1.input_layernorm.weight";

/// Compares the shards with another model than the one that was split.
std::function<void(api::ValidateOptions&)> against(const std::string& model) {
  return [model](api::ValidateOptions& options) { options.reference = model_folder(model); };
}

}  // namespace

std::vector<Mutation> header_mutations() {
  return {
      {"43",
       "tensor missing on one rank",
       "prototype",
       "tp=4",
       kHeaders,
       {kUp, "the model could not be run"},
       [](const ShardSet& shards) {
         shards.edit_header(1, [](json& header) { header.erase(kUp); });
       }},
      {"43'",
       "extra tensor on one rank",
       "prototype",
       "tp=4",
       kHeaders,
       {"extra"},
       [](const ShardSet& shards) {
         shards.edit_header(1, [](json& header) {
           const auto end = header.at(kSecondNorm).at("data_offsets").at(1);
           header["extra"] = {{"dtype", "BF16"}, {"shape", {0}}, {"data_offsets", {end, end}}};
         });
       }},
      {"44",
       "shape transposed in the header, same byte count",
       "prototype",
       "tp=4",
       kHeaders,
       {kUp},
       [](const ShardSet& shards) {
         shards.edit_header(1, [](json& header) {
           auto& shape = header.at(kUp).at("shape");
           std::swap(shape.at(0), shape.at(1));
         });
       }},
      {"45",
       "dtype label F16 instead of BF16, bytes equal",
       "mislabelled prototype",
       "tp=4",
       kHeadersAndFunction,
       {"another dtype than the reference's",
        "is F16 instead of BF16, so that bytes cannot be compared"},
       [](const ShardSet&) {},
       against("prototype")},
      {"46",
       "overlapping ranges: rank 1 starts one row early, as its manifest says",
       "prototype",
       "tp=4",
       kHeaders,
       {"ST0301", "the manifest's mapping gives rank 1 another shard than the files have"},
       [](const ShardSet& shards) {
         shards.edit_manifest([](json& manifest) {
           manifest["tensors"][kUp]["shards"][1]["slices"][0] = {{31, 63}};
         });
       }},
      {"49",
       "tied head written once, the other ranks expect their own copy",
       "tied prototype",
       "tp=4",
       kHeaders,
       {"lm_head.weight"},
       [](const ShardSet& shards) {
         for (const i64 rank : {1, 2, 3}) {
           shards.edit_header(rank, [](json& header) { header.erase("lm_head.weight"); });
         }
       }},
      {"52",
       "per-tensor scale recomputed per shard and dropped",
       "fp8",
       "tp=2",
       kHeaders,
       {"model.layers.0.mlp.down_proj.weight_scale_inv"},
       [](const ShardSet& shards) {
         for (const i64 rank : {0, 1}) {
           shards.edit_header(rank, [](json& header) {
             header.erase("model.layers.0.mlp.down_proj.weight_scale_inv");
           });
         }
       }},
      {"64",
       "pipeline stage boundary off by one layer",
       "prototype",
       "pp=3",
       kHeaders,
       {"model.layers.1."},
       [](const ShardSet& shards) {
         shards.edit_header(1, [](json& header) {
           json moved = json::object();
           for (const auto& [name, entry] : header.items()) {
             std::string other = name;
             const size_t at = other.find("layers.1.");
             if (at != std::string::npos) other.replace(at, 9, "layers.2.");
             moved[other] = entry;
           }
           header = moved;
         });
       }},
      {"64'",
       "two stages of a pipeline hold each other's layers",
       "prototype",
       "pp=3,tp=2",
       kFunction,
       {"rank 0 holds layer 2 where layer 0 is to be",
        "rank 4 holds layer 0 where layer 2 is to be"},
       [](const ShardSet& shards) {
         for (const std::string& first : shards.tensors()) {
           if (first.find("layers.0.") == std::string::npos) continue;
           std::string last = first;
           last.replace(last.find("layers.0."), 9, "layers.2.");
           for (const i64 rank : {0, 1}) {
             const ShardRows of_first = shards.read(first, rank);
             shards.write(first, rank, shards.read(last, rank + 4));
             shards.write(last, rank + 4, of_first);
           }
         }
       }},
      {"70",
       "world size in the manifest 8, shards 4",
       "prototype",
       "tp=4",
       kHeaders,
       {},
       [](const ShardSet& shards) {
         shards.edit_manifest([](json& manifest) { manifest["mesh"][0]["size"] = 8; });
       }},
  };
}

}  // namespace shardtool::test
