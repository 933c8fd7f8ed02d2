# shardtool_module(<name> SOURCES ... [USES <modules or libraries it may include>] [PRIVATE_USES ...])
#
# One target per folder, linked only to what it may include: an upward include does not compile its
# dependencies and tests/arch names it. Targets are object-free static libraries; shardtool::shardtool
# joins them for consumers.
function(shardtool_module name)
  cmake_parse_arguments(ARG "" "" "SOURCES;USES;PRIVATE_USES" ${ARGN})
  set(target shardtool_${name})
  add_library(${target} STATIC ${ARG_SOURCES})
  add_library(shardtool::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name} POSITION_INDEPENDENT_CODE ON)
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_include_directories(${target} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(${target} PUBLIC ${ARG_USES} PRIVATE ${ARG_PRIVATE_USES})
  shardtool_warnings(${target})
  set_property(GLOBAL APPEND PROPERTY SHARDTOOL_MODULES ${target})
endfunction()

# Gives a program or a shared library its own libstdc++, so that it runs where an older one is installed. libgcc stays
# shared: the archive of a compiler for glibc 2.35 calls _dl_find_object, which older systems lack.
function(shardtool_own_libstdcxx target)
  target_link_options(${target} PRIVATE -static-libstdc++)
  target_sources(${target} PRIVATE ${PROJECT_SOURCE_DIR}/lib/base/arc4random.cc)
endfunction()

# -Wrestrict: g++ 12 reports "literal" + std::string at -O2 by mistake (GCC bug 105651).
# -Wdeprecated-declarations: clang reports what libstdc++'s own std::stable_sort calls.
function(shardtool_warnings target)
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wconversion
    -Wno-sign-conversion $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
    $<$<CXX_COMPILER_ID:Clang>:-Wno-deprecated-declarations>
    $<$<BOOL:${SHARDTOOL_WARNINGS_AS_ERRORS}>:-Werror>>)
endfunction()

# shardtool_json_rows(<variable> <glob>...): the JSON files, sorted, as rows {"name", R"json(text)json"sv} of a C++
# table. sv says their length: clang gives up where it has to count the characters of all of them.
function(shardtool_json_rows variable)
  file(GLOB files CONFIGURE_DEPENDS ${ARGN})
  set(rows "")
  foreach(file IN LISTS files)
    get_filename_component(name ${file} NAME_WLE)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    file(READ ${file} text)
    string(APPEND rows "    {\"${name}\", R\"json(${text})json\"sv},\n")
  endforeach()
  set(${variable} "${rows}" PARENT_SCOPE)
endfunction()
