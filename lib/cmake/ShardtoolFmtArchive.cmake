# fmt::fmt as an archive made of fmt's installed sources (9.1): Debian's libfmt-dev has none.
find_path(SHARDTOOL_FMT_INCLUDE fmt/format-inl.h REQUIRED)
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/fmt_archive.cc CONTENT
"#include <fmt/format-inl.h>

FMT_BEGIN_NAMESPACE
namespace detail {

template dragonbox::decimal_fp<float> dragonbox::to_decimal(float) noexcept;
template dragonbox::decimal_fp<double> dragonbox::to_decimal(double) noexcept;
template locale_ref::locale_ref(const std::locale&);
template std::locale locale_ref::get<std::locale>() const;
template thousands_sep_result<char> thousands_sep_impl(locale_ref);
template char decimal_point_impl(locale_ref);
template void buffer<char>::append(const char*, const char*);
template void vformat_to(buffer<char>&, string_view, basic_format_args<FMT_BUFFER_CONTEXT(char)>, locale_ref);

}  // namespace detail
FMT_END_NAMESPACE
")
add_library(shardtool_fmt STATIC ${PROJECT_BINARY_DIR}/fmt_archive.cc)
add_library(fmt::fmt ALIAS shardtool_fmt)
set_target_properties(shardtool_fmt PROPERTIES POSITION_INDEPENDENT_CODE ON)
target_compile_features(shardtool_fmt PUBLIC cxx_std_20)
target_include_directories(shardtool_fmt SYSTEM PUBLIC ${SHARDTOOL_FMT_INCLUDE})
