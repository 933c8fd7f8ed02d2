#include "lib/api/planning/cache_dtype.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/text.h"

namespace shardtool::api {
namespace {

struct NamedBits {
  const char* name;
  int bits;
};
/// Names of cache types in config.json and on the command line.
constexpr auto kNamedBits = std::to_array<NamedBits>({
    {"bf16", 16},
    {"fp16", 16},
    {"fp8", 8},
    {"int8", 8},
    {"fp4", 4},
    {"int4", 4},
    {"fp32", 32},
    {"f16", 16},
    {"f32", 32},
    {"bfloat16", 16},
    {"float16", 16},
    {"float32", 32},
    {"half", 16},
    {"float8_e4m3fn", 8},
    {"float8_e5m2", 8},
});

}  // namespace

int dtype_bits(const std::string& name) {
  const auto found = std::find_if(kNamedBits.begin(), kNamedBits.end(),
                                  [&](const NamedBits& known) { return name == known.name; });
  if (found != kNamedBits.end()) return found->bits;
  std::vector<std::string> names;
  for (const NamedBits& known : kNamedBits) names.emplace_back(known.name);
  Error error(ErrorCode::kUsage,
              fmt::format("'{}' is not a dtype for a KV cache", quote_for_message(name)));
  if (const auto hint = did_you_mean(name, names); !hint.empty()) error.help(hint);
  throw std::move(error).help("known are: bf16, fp16, fp8, int8, fp4, int4, fp32");
}

std::optional<int> quantised_cache_bits(const mapping::ModelConfig& config) {
  constexpr i64 kMostBits = 16;
  const std::string root = "quantization_config.";
  const auto bits = config.size(root + "kv_cache_scheme.num_bits");
  if (bits && *bits <= kMostBits) return static_cast<int>(*bits);
  const auto algorithm = config.text(root + "kv_cache_quant_algo");
  if (!bits && (!algorithm || *algorithm == "none")) return std::nullopt;
  constexpr auto kAlgorithms =
      std::to_array<NamedBits>({{"FP8", 8}, {"INT8", 8}, {"NVFP4", 4}, {"NVFP4_AFFINE", 4}});
  for (const NamedBits& known : kAlgorithms) {
    if (algorithm == known.name) return known.bits;
  }
  throw Error(ErrorCode::kConfig,
              fmt::format("{} quantises its cache as '{}', which is not known", config.file(),
                          bits ? fmt::format("{} bits", *bits) : quote_for_message(*algorithm)))
      .help("say the cache's type by --kv-dtype");
}

}  // namespace shardtool::api
