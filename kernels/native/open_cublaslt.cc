#include "kernels/native/cublaslt.h"

namespace shardtool::kernels {
namespace {

std::string in_words(const Error& error) {
  std::string text = error.message();
  for (const auto& [label, note] : error.notes()) text += " (" + note + ")";
  return text;
}

}  // namespace

ProductLibrary open_cublaslt(Accelerator& accelerator, const std::string& file,
                             std::unique_ptr<CublasLt>& library) {
  ProductLibrary found;
  try {
    found.name = found_cublaslt(file);
  } catch (const Error& error) {
    found.missing = in_words(error);
    return found;
  }
  if (library == nullptr) library = std::make_unique<CublasLt>(accelerator, file);
  return found;
}

}  // namespace shardtool::kernels
