#pragma once

#include <string_view>

/// Fuzz targets: one function per format, which reads any bytes and throws std::logic_error if a
/// property is violated (property.h). TARGETS is the list for the corpus test; CMakeLists.txt has
/// it for the fuzzers.
namespace shardtool::fuzz {

void header(std::string_view input);
void container(std::string_view input);
void index(std::string_view input);
void config(std::string_view input);
void mapping(std::string_view input);
void manifest(std::string_view input);
void glob(std::string_view input);
void size(std::string_view input);
void json(std::string_view input);
void plan(std::string_view input);
void pickle(std::string_view input);
void zip_archive(std::string_view input);
void torch_file(std::string_view input);
void gguf(std::string_view input);
void dcp(std::string_view input);

}  // namespace shardtool::fuzz
