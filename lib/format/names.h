#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shardtool::format {

/// True if a name from a file can only refer to a file in the same folder: no separator, no control
/// character, not empty, "." or "..", not hidden.
bool is_plain_file_name(std::string_view name);

/// True if a path from a file can only refer to a file in the same folder or in a folder inside:
/// plain names, joined by slashes.
bool is_inside_path(std::string_view path);

bool is_safetensors_name(std::string_view name);
/// True if the name ends in ".safetensors.index.json".
bool is_index_name(std::string_view name);
/// True for files of torch.save (.bin, .pt, .pth, .ckpt), by the end of the name.
bool is_torch_name(std::string_view name);
/// True if the name ends in ".bin.index.json".
bool is_torch_index_name(std::string_view name);
/// True if the name ends in ".distcp".
bool is_dcp_data_name(std::string_view name);
/// True for weights in formats that are not read (GGUF, ONNX, ...), by the end of the name.
bool is_foreign_weights_name(std::string_view name);

/// True for files that stand beside weights and hold none, by the end of the name: configs,
/// indices, tokenizers, texts and code.
bool is_other_file_name(std::string_view name);

/// A name that appears more than once, or null. O(n log n) for any names.
const std::string* find_duplicate(std::vector<const std::string*> names);

/// Every name that appears more than once, each once.
std::vector<const std::string*> find_duplicates(std::vector<const std::string*> names);

/// Formats "a, b, c and 17 more", each escaped for a message.
std::string list_for_message(std::span<const std::string> names);

}  // namespace shardtool::format
