#include "lib/format/gguf/tiling.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/checked.h"
#include "lib/base/error.h"
#include "lib/base/text.h"

namespace shardtool::format::gguf {
namespace {

Problem problem(ProblemKind kind, ErrorCode code, const std::string& message, const Input& input) {
  return {kind, Error(code, message).at({input.path, 0, 0, ""}), ""};
}

void report_gap(const TensorInfo& tensor, i64 expected, const Input& input,
                const ProblemSink& report) {
  const bool is_overlap = tensor.offset < expected;
  Problem found = problem(
      is_overlap ? ProblemKind::kOverlap : ProblemKind::kHole, ErrorCode::kTensorInvalid,
      is_overlap ? "the tensor begins inside another one" : "there is a hole before the tensor",
      input);
  found.error.tensor(quote_for_message(tensor.name))
      .note("found", fmt::format("byte {}", tensor.offset))
      .note("expected", fmt::format("byte {}", expected));
  report(std::move(found));
}

}  // namespace

void place_tensors(Header& header, const Input& input, const ProblemSink& report) {
  for (TensorInfo& tensor : header.tensors) tensor.offset += header.data_begin;
  const auto leaves = std::stable_partition(
      header.tensors.begin(), header.tensors.end(), [&](const TensorInfo& tensor) {
        return tensor.offset <= input.size && tensor.bytes <= input.size - tensor.offset;
      });
  const i64 outside = header.tensors.end() - leaves;
  if (outside > 0) {
    Problem found = problem(ProblemKind::kTruncated, ErrorCode::kMalformed,
                            "the file is shorter than its tensors", input);
    found.error.tensor(quote_for_message(leaves->name))
        .note("outside", plural(outside, "tensor"))
        .help("fetch the file again");
    report(std::move(found));
  }
  header.tensors.erase(leaves, header.tensors.end());
  std::vector<const TensorInfo*> order;
  for (const TensorInfo& tensor : header.tensors) order.push_back(&tensor);
  std::stable_sort(order.begin(), order.end(),
                   [](const auto* a, const auto* b) { return a->offset < b->offset; });
  i64 expected = header.data_begin;
  for (const TensorInfo* tensor : order) {
    if (tensor->offset != expected) report_gap(*tensor, expected, input, report);
    expected = std::max(expected, round_up(tensor->offset + tensor->bytes, header.alignment));
  }
  if (outside > 0 || input.size <= expected) return;
  Problem rest = problem(ProblemKind::kTrailingBytes, ErrorCode::kMalformed,
                         "something follows the data of the last tensor", input);
  rest.error.note("found", plural(input.size - expected, "byte"));
  report(std::move(rest));
}

}  // namespace shardtool::format::gguf
