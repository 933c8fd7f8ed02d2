#include "lib/format/shard_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "kernels/xxh3/xxh3.h"
#include "lib/base/error.h"
#include "lib/base/json_text.h"

namespace shardtool::format {

i64 data_bytes(const TensorTable::Tensor& tensor) {
  const auto bytes = byte_size(tensor.dtype, tensor.shape);
  if (!bytes) {
    throw Error(
        ErrorCode::kSubByteCut,
        fmt::format("a shard of shape {} has no whole number of bytes", to_string(tensor.shape)))
        .tensor(tensor.name);
  }
  return *bytes;
}

namespace {

/// Per tensor, the number of tensors of its name before it.
std::vector<size_t> name_counts(const TensorTable& tensors) {
  std::vector<size_t> counts(tensors.size, 0);
  for (size_t t = 1; t < tensors.size; ++t) {
    if (tensors.at(t).name == tensors.at(t - 1).name) counts[t] = counts[t - 1] + 1;
  }
  return counts;
}

}  // namespace

std::vector<std::vector<size_t>> deal_out(const TensorTable& tensors, i64 max_file_size,
                                          SameName same_name) {
  std::vector<size_t> order(tensors.size);
  std::iota(order.begin(), order.end(), size_t{0});
  std::vector<size_t> counts(tensors.size, 0);
  if (same_name == SameName::kInOtherFiles) {
    counts = name_counts(tensors);
    std::ranges::stable_sort(order, {}, [&](size_t t) { return counts[t]; });
  }
  std::vector<std::vector<size_t>> files(1);
  i64 filled = 0;
  for (const size_t t : order) {
    const i64 bytes = data_bytes(tensors.at(t));
    std::vector<size_t>& file = files.back();
    const bool is_full =
        !file.empty() && (bytes > max_file_size - filled || counts[t] != counts[file.back()]);
    if (is_full) {
      files.emplace_back();
      filled = 0;
    }
    files.back().push_back(t);
    filled += bytes;
  }
  return files;
}

namespace {

/// Entry of the metadata with which torch.distributed.checkpoint's HuggingFaceStorageReader places
/// every tensor of a file (torch/distributed/checkpoint/_hf_utils.py).
safetensors::LongValue sharding_info(const std::vector<size_t>& members,
                                     const TensorTable& tensors) {
  return {"DCP_SHARDING_INFO", [&](const safetensors::Sink& write) {
            std::string quoted, begin, text = "{";
            std::optional<Shape> last;  // adjacent tensors often begin alike
            for (const size_t t : members) {
              if (Shape next = tensors.begin_of(t); next != last) {
                begin.clear();
                append_json_integers(begin, next);
                last = std::move(next);
              }
              quoted.clear();
              append_json_quoted(quoted, tensors.at(t).name);
              append_json_escaped(text, quoted);
              text += R"(:{\"saved_offsets\":)";
              text += begin;
              text += '}';
              write(text);
              text = ',';
            }
            write(members.empty() ? "{}" : "}");
          }};
}

safetensors::HeaderJson begin_json(const PlannedFile& file, const TensorTable& tensors,
                                   const safetensors::Sink& write) {
  if (!tensors.begin_of) return {write, file.metadata};
  safetensors::Metadata metadata = file.metadata;
  metadata.emplace_back("DCP_VERSION", "1.0");
  const safetensors::LongValue info = sharding_info(file.members, tensors);
  return {write, metadata, &info};
}

/// Writes the JSON of a header and returns its bytes.
i64 write_json(const PlannedFile& file, const TensorTable& tensors,
               const safetensors::Sink& write) {
  safetensors::HeaderJson json = begin_json(file, tensors, write);
  i64 next = 0;
  for (const size_t t : file.members) {
    const TensorTable::Tensor tensor = tensors.at(t);
    const i64 end = next + data_bytes(tensor);
    json.add(tensor.name, tensor.dtype, tensor.shape, next, end);
    next = end;
  }
  return std::move(json).finish();
}

/// Plans the layout of the files' data.
class Planner {
 public:
  Planner(const TensorTable& tensors, i64 max_file_size, std::span<const i64> origins)
      : tensors_(tensors), origins_(origins) {
    bytes_.reserve(tensors.size);
    for (size_t t = 0; t < tensors.size; ++t) bytes_.push_back(data_bytes(tensors.at(t)));
    members_ = deal_out(tensors, max_file_size, SameName::kInOtherFiles);
    for (auto& file : members_) {
      std::ranges::stable_partition(file,
                                    [&](size_t t) { return bytes_[t] % kDataAlignment == 0; });
      if (!is_aligned(file))
        std::ranges::stable_sort(file, std::greater(), [&](size_t t) { return order_of(t); });
    }
    plan_.places.resize(tensors.size);
  }

  template <class NameOf>
  FilePlan plan(const safetensors::Metadata& metadata, NameOf name_of) {
    for (size_t f = 0; f < members_.size(); ++f) {
      add_file(name_of(f, members_.size()), metadata, std::move(members_[f]));
    }
    return std::move(plan_);
  }

 private:
  /// Bytes of an element; 1 for those of less.
  i64 element_bytes(size_t t) const { return std::max(bits(tensors_.at(t).dtype) / 8, 1); }

  /// True if every tensor in this order begins at a multiple of its element's bytes.
  bool is_aligned(const std::vector<size_t>& file) const {
    i64 next = 0;
    for (const size_t t : file) {
      if (next % element_bytes(t) != 0) return false;
      next += bytes_[t];
    }
    return true;
  }

  /// Order in which all tensors are aligned: whole pages, then larger elements, each in turn.
  i64 order_of(size_t t) const {
    return bytes_[t] % kDataAlignment == 0 ? kDataAlignment : element_bytes(t);
  }

  void add_file(std::string name, const safetensors::Metadata& metadata,
                std::vector<size_t> members) {
    const int number = static_cast<int>(plan_.files.size());
    i64 next = 0;
    for (const size_t t : members) {
      plan_.places[t] = {number, next};
      next += bytes_[t];
    }
    PlannedFile file{std::move(name), metadata, std::move(members), 0, 0, {}};
    const i64 json_bytes = write_json(file, tensors_, [](std::string_view) {});
    file.data_begin =
        safetensors::data_begin(json_bytes, kDataAlignment, best_residue(file.members));
    file.size = file.data_begin + next;
    kernels::Xxh3 hash;
    write_header(file, tensors_,
                 [&](std::string_view text) { hash.update(std::as_bytes(std::span(text))); });
    file.header_xxh3 = hash.hex();
    for (const size_t t : file.members) plan_.places[t].offset += file.data_begin;
    plan_.files.push_back(std::move(file));
  }

  /// Page offset of the data's begin at which most bytes keep the page offset of their source. Only
  /// multiples of 8, which every reader accepts. Requires places relative to the data.
  i64 best_residue(const std::vector<size_t>& members) const {
    constexpr i64 kHeaderUnit = 8;
    std::map<i64, i64> bytes_at;
    for (const size_t t : members) {
      if (origins_.empty() || origins_[t] == kNoOrigin) continue;
      const i64 page_offset = (origins_[t] - plan_.places[t].offset) % kDataAlignment;
      const i64 residue = page_offset < 0 ? page_offset + kDataAlignment : page_offset;
      if (residue % kHeaderUnit == 0) bytes_at[residue] += bytes_[t];
    }
    const auto most = std::max_element(bytes_at.begin(), bytes_at.end(),
                                       [](auto& a, auto& b) { return a.second < b.second; });
    return most == bytes_at.end() ? 0 : most->first;
  }

  const TensorTable& tensors_;
  std::span<const i64> origins_;
  std::vector<i64> bytes_;
  std::vector<std::vector<size_t>> members_;
  FilePlan plan_;
};

}  // namespace

TensorTable::TensorTable(std::span<const TensorSpec> tensors)
    : TensorTable(tensors.size(), [tensors](size_t t) {
        return Tensor{tensors[t].name, tensors[t].dtype, tensors[t].shape};
      }) {}

void write_header(const PlannedFile& file, const TensorTable& tensors,
                  const safetensors::Sink& write) {
  write(safetensors::length_bytes(file.data_begin));
  const i64 json_bytes = write_json(file, tensors, write);
  write(std::string(static_cast<size_t>(file.data_begin - safetensors::kLengthBytes - json_bytes),
                    ' '));
}

std::string header_text(const PlannedFile& file, const TensorTable& tensors) {
  std::string text;
  write_header(file, tensors, [&](std::string_view piece) { text += piece; });
  return text;
}

FilePlan plan_rank_files(i64 rank, const TensorTable& shards, i64 max_file_size,
                         std::span<const i64> origins, std::string_view framework,
                         const NameOfPart& name_of) {
  return Planner(shards, max_file_size, origins)
      .plan({{"format", std::string(framework)}, {"shardtool.rank", std::to_string(rank)}},
            [rank, &name_of](size_t part, size_t parts) {
              if (name_of) return name_of(part, parts);
              return fmt::format("model-rank-{}-part-{}.safetensors", rank, part);
            });
}

FilePlan plan_whole_files(const TensorTable& tensors, i64 max_file_size,
                          std::span<const i64> origins, std::string_view framework,
                          const NameOfPart& name_of) {
  return Planner(tensors, max_file_size, origins)
      .plan({{"format", std::string(framework)}}, [&name_of](size_t file, size_t count) {
        if (name_of) return name_of(file, count);
        return count == 1 ? std::string("model.safetensors")
                          : fmt::format("model-{:05}-of-{:05}.safetensors", file + 1, count);
      });
}

}  // namespace shardtool::format
