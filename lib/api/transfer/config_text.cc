#include "lib/api/transfer/config_text.h"

#include <vector>

#include "lib/base/json_reader.h"

namespace shardtool::api {
namespace {

constexpr int kMaxDepth = 64;

/// A stretch of the text to be replaced.
struct Edit {
  size_t begin = 0;
  size_t bytes = 0;
  std::string text;
};

std::string edited(const std::string& text, const std::vector<Edit>& edits) {
  std::string result;
  size_t next = 0;
  for (const Edit& edit : edits) {
    result.append(text, next, edit.begin - next);
    result += edit.text;
    next = edit.begin + edit.bytes;
  }
  return result.append(text, next);
}

/// Name of a float type in a config.json: "bfloat16", "float16" or "float32".
std::string config_name(Dtype dtype) {
  if (dtype == Dtype::kBF16) return "bfloat16";
  return dtype == Dtype::kF16 ? "float16" : "float32";
}

/// Collects the edits that name a type, in the order of the text.
class DtypeEdits {
 public:
  DtypeEdits(const std::string& text, Dtype dtype, const std::string& file)
      : in_(text, {file, ErrorCode::kConfig}, kMaxDepth, JsonNumbers::kPython),
        value_('"' + config_name(dtype) + '"') {}

  std::vector<Edit> collect() {
    const size_t begin = in_.offset();
    const bool has_it = visit_object(true);
    in_.finish();
    if (!has_it) {
      edits_.insert(edits_.begin(), {begin + 1, 0, "\n  \"torch_dtype\": " + value_ + separator_});
    }
    return std::move(edits_);
  }

 private:
  /// Returns true if the object itself names a type.
  bool visit_object(bool is_config) {
    bool has_it = false;
    bool is_empty = true;
    in_.begin_object();
    for (std::string key; in_.next_key(key); is_empty = false) {
      const bool is_object = in_.kind() == JsonKind::kObject;
      const bool is_name = in_.kind() == JsonKind::kString || in_.kind() == JsonKind::kNull;
      if (is_object && key.ends_with("_config") && key != "quantization_config") {
        visit_object(false);
      } else if (is_name && (key == "torch_dtype" || key == "dtype")) {
        const size_t begin = in_.offset();
        const size_t bytes = in_.raw().size();
        edits_.push_back({begin, bytes, value_});
        has_it = true;
      } else {
        in_.skip();
      }
    }
    if (is_config) separator_ = is_empty ? "\n" : ",";
    return has_it;
  }

  JsonReader in_;
  std::string value_;
  std::string separator_;
  std::vector<Edit> edits_;
};

/// Members of the config whose key is `name`, with one of the commas beside them.
std::vector<Edit> removals(const std::string& text, std::string_view name,
                           const std::string& file) {
  JsonReader in(text, {file, ErrorCode::kConfig}, kMaxDepth, JsonNumbers::kPython);
  std::vector<Edit> edits;
  in.begin_object();
  size_t end_before = 0;          // of the value before
  bool is_after_removed = false;  // the first member was removed, and its comma is still there
  for (std::string key; in.next_key(key);) {
    const size_t begin = in.last_offset();
    if (is_after_removed) edits.back().bytes = begin - edits.back().begin;
    is_after_removed = false;
    const size_t value = in.offset();
    const size_t end = value + in.raw().size();
    if (key == name) {
      const bool is_first = end_before == 0;
      edits.push_back({is_first ? begin : end_before, end - (is_first ? begin : end_before), {}});
      is_after_removed = is_first;
    }
    if (key != name || end_before != 0) end_before = end;
  }
  in.finish();
  return edits;
}

}  // namespace

std::string with_dtype(const std::string& text, Dtype dtype, const std::string& file) {
  return edited(text, DtypeEdits(text, dtype, file).collect());
}

std::string without_quantization(const std::string& text, const std::string& file) {
  return edited(text, removals(text, "quantization_config", file));
}

}  // namespace shardtool::api
