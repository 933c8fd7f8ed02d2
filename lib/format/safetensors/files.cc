#include "lib/format/safetensors/files.h"

#include <map>

#include "lib/base/json_writer.h"

namespace shardtool::format::safetensors {

FilePlan plan_files(const FileRequest& request) {
  if (!request.rank) {
    return plan_whole_files(request.tensors, request.max_file_size, request.origins,
                            request.framework, request.name_of);
  }
  return plan_rank_files(*request.rank, request.tensors, request.max_file_size, request.origins,
                         request.framework, request.name_of);
}

void frame_file(const PlannedFile& file, const TensorTable& tensors, const FrameSink& write) {
  i64 offset = 0;
  write_header(file, tensors, [&](std::string_view text) {
    write(offset, text);
    offset += std::ssize(text);
  });
}

std::string index_name(bool is_whole, size_t files) {
  return is_whole && files > 1 ? "model.safetensors.index.json" : "";
}

void write_index(const PlacedTensors& tensors, const Sink& write) {
  std::map<std::string_view, std::string_view> file_of;
  i64 total = 0;
  for (size_t t = 0; t < tensors.size; ++t) {
    const PlacedTensor tensor = tensors.at(t);
    file_of[tensor.name] = tensors.files[static_cast<size_t>(tensor.parts.front().file)].name;
    total += byte_size(tensor.dtype, tensor.shape).value_or(0);
  }
  constexpr JsonLines kMembers{"\n    ", ",\n    ", "\n  "};
  std::string text;
  JsonWriter json(text, kJsonSpaced);
  json.begin_object({"\n  ", ",\n  ", "\n"});
  json.key("metadata").begin_object(kMembers).field("total_size", total).end_object();
  json.key("weight_map").begin_object(kMembers);
  for (const auto& [tensor, file] : file_of) {
    json.field(tensor, file);
    write(text);
    text.clear();
  }
  json.end_object().end_object();
  write(text);
}

}  // namespace shardtool::format::safetensors
