// A mapping file, resolved for a tiny checkpoint.
#include <span>
#include <vector>

#include "lib/mapping/resolve/resolve.h"
#include "tests/fuzz/property.h"
#include "tests/fuzz/targets.h"

namespace shardtool::fuzz {
namespace {

const std::vector<TensorSpec>& tensors() {
  static const std::vector<TensorSpec> all = {
      {"embed.weight", Dtype::kBF16, {10, 8}},
      {"l.0.q.weight", Dtype::kBF16, {16, 8}},
      {"l.0.q.weight_scale", Dtype::kF32, {4, 2}},
      {"l.0.q.bias", Dtype::kBF16, {16}},
      {"l.0.qkv.weight", Dtype::kBF16, {24, 8}},
      {"l.0.up.weight", Dtype::kF8E4M3, {12, 8}},
      {"l.0.e.0.down.weight", Dtype::kF4, {8, 16}},
      {"l.0.e.1.down.weight", Dtype::kF4, {8, 16}},
      {"l.1.q.weight", Dtype::kBF16, {16, 8}},
      {"norm.weight", Dtype::kF32, {8}},
      {"step", Dtype::kI64, {}},
  };
  return all;
}

const mapping::ModelConfig& model() {
  static const auto config = mapping::parse_config(
      R"({"hidden": 8, "heads": 4, "kv_heads": 2, "head_dim": 4, "layers": 2, "experts": 2,
          "vocab": 10, "kinds": ["near", "far"], "quantization_config": {"block": [4, 4]}})",
      "config.json");
  return config;
}

/// Marks the elements in a region's image, row-major, from axis `axis` on.
void mark(const index::Region& region, const Shape& shape, size_t axis, i64 at,
          std::vector<bool>& seen) {
  if (axis == shape.size()) {
    seen[static_cast<size_t>(at)] = true;
    return;
  }
  for (const auto& piece : region[axis].pieces()) {
    for (i64 i = 0; i < piece.size; ++i) {
      mark(region, shape, axis + 1, at * shape[axis] + piece.global + i, seen);
    }
  }
}

/// L2: checks that the devices together hold every element.
void check_covers(const layout::Layout& layout) {
  const Shape& shape = layout.shape();
  std::vector<bool> seen(static_cast<size_t>(element_count(shape).value()));
  for (const i64 rank : layout.ranks()) mark(layout.region(rank).value(), shape, 0, 0, seen);
  holds(std::find(seen.begin(), seen.end(), false) == seen.end(), "an element is on no device");
}

void check_resolved(const mapping::Mapping& mapping, const mapping::ResolveOptions& options) {
  const auto resolved =
      accepted([&] { return mapping::resolve(mapping, tensors(), &model(), options); });
  if (!resolved) return;
  holds(resolved->tensors.size() + resolved->dropped.size() == tensors().size(),
        "a tensor was neither placed nor dropped");
  if (resolved->mesh.size() > 64) return;
  for (const auto& tensor : resolved->tensors) {
    holds(!why(tensor).empty(), "a decision without a reason");
    check_covers(*tensor.layout);
  }
}

}  // namespace

void mapping(std::string_view input) {
  const auto document = accepted([&] { return mapping::decode_document(input, "mapping.json"); });
  if (!document) return;
  const auto head = mapping::decode_head(input, "mapping.json");
  holds(head.description == document->description && head.quantization == document->quantization,
        "the head is that of another document");
  const mapping::Mapping mapping({{"mapping.json", std::string(input)}});
  mapping::ResolveOptions own;
  own.allow_empty_shards = true;
  check_resolved(mapping, own);
  mapping::ResolveOptions four = own;
  four.mesh = mesh::Mesh({{"tp", 2}, {"ep", 2}});
  four.report = [](Error error) { holds(error.code() != ErrorCode::kInternal, error.what()); };
  check_resolved(mapping, {});
  static_cast<void>(accepted([&] { return resolve(mapping, tensors(), &model(), four); }));
}

}  // namespace shardtool::fuzz
