#include "lib/format/safetensors/foreign_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lib/format/names.h"

namespace shardtool::format::safetensors {
namespace {

using namespace std::string_view_literals;

struct Signature {
  std::string_view bytes;
  std::string_view what;
  std::string_view hint;
  size_t at = 0;  ///< place in the file
};

constexpr std::string_view kPickleHint =
    "files of torch.save are read by their names: rename it so that the name ends in .pt";
constexpr std::string_view kDcpHint =
    "a file of a distributed checkpoint (DCP) is read with the others: name its folder, which has "
    ".metadata";
constexpr std::string_view kPageHint = "the download failed or needs a login: fetch the file again";

constexpr auto kSignatures = std::to_array<Signature>({
    {"PK\x03\x04"sv, "a zip archive, probably a torch checkpoint (pickle)", kPickleHint},
    {"\x80\x02"sv, "a pickle", kPickleHint},
    {"\x80\x03"sv, "a pickle", kPickleHint},
    {"\x80\x04"sv, "a pickle", kPickleHint},
    {"\x80\x05"sv, "a pickle", kPickleHint},
    {"GGUF"sv, "a GGUF file",
     "GGUF is read by `shardtool inspect` and `shardtool check` only, under a name that ends in "
     ".gguf: take the safetensors checkpoint that it was made from"},
    {"version https://git-lfs"sv, "a git-LFS pointer, not the file itself",
     "run `git lfs pull` in the repository to fetch the file"},
    {"<!DOCTYPE"sv, "a web page", kPageHint},
    {"<!doctype"sv, "a web page", kPageHint},
    {"<html"sv, "a web page", kPageHint},
    {"\x93NUMPY"sv, "a NumPy array", "convert it to safetensors first"},
    {"\x89HDF"sv, "an HDF5 file", "convert it to safetensors first"},
    {"\x1f\x8b"sv, "a gzip archive", "unpack it first"},
    {"ustar"sv, "a tar archive, as NeMo's .nemo files are", "unpack it first, with tar xf", 257},
});

}  // namespace

void refuse_foreign_format(std::string_view head, const std::string& path) {
  for (const Signature& signature : kSignatures) {
    const std::string_view there = head.substr(std::min(signature.at, head.size()));
    if (!there.starts_with(signature.bytes)) continue;
    throw Error(ErrorCode::kUnsupported, fmt::format("the file is {}", signature.what))
        .at({path, 0, 0, ""})
        .note("expected", "a safetensors file")
        .help(std::string(is_dcp_data_name(path) ? kDcpHint : signature.hint));
  }
}

}  // namespace shardtool::format::safetensors
