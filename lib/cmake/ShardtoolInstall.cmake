# Install rules: the presets and the schema of mapping files; the headers under their public names, every module's
# archive, and one umbrella target shardtool::shardtool for find_package(shardtool).
include(CMakePackageConfigHelpers)

install(DIRECTORY lib/family DESTINATION ${CMAKE_INSTALL_DATADIR}/shardtool COMPONENT cli
        FILES_MATCHING PATTERN "*.json")
install(FILES lib/mapping/schema/mapping-v1.json
        DESTINATION ${CMAKE_INSTALL_DATADIR}/shardtool/schemas COMPONENT cli)

# The library's own archives are of no use to others without those that it was linked with.
if(SHARDTOOL_STATIC)
  return()
endif()

get_property(modules GLOBAL PROPERTY SHARDTOOL_MODULES)
add_library(shardtool_library INTERFACE)
add_library(shardtool::shardtool ALIAS shardtool_library)
set_target_properties(shardtool_library PROPERTIES EXPORT_NAME shardtool)
target_link_libraries(shardtool_library INTERFACE ${modules})

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/shardtool)
install(TARGETS ${modules} shardtool_library EXPORT shardtool-targets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT dev)
install(EXPORT shardtool-targets NAMESPACE shardtool:: DESTINATION ${package_dir} COMPONENT dev)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/shardtool-config.cmake.in
  ${PROJECT_BINARY_DIR}/shardtool-config.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/shardtool-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/shardtool-config.cmake
              ${PROJECT_BINARY_DIR}/shardtool-config-version.cmake DESTINATION ${package_dir} COMPONENT dev)

# Headers are installed as shardtool/<module>/<file>.h, and include each other by these names.
set(public_headers ${PROJECT_BINARY_DIR}/public_headers)
file(REMOVE_RECURSE ${public_headers})
file(GLOB_RECURSE headers RELATIVE ${PROJECT_SOURCE_DIR} lib/*.h kernels/*.h)
list(FILTER headers EXCLUDE REGEX "^lib/python/")
foreach(header IN LISTS headers)
  file(READ ${header} text)
  string(REPLACE "#include \"lib/" "#include \"shardtool/" text "${text}")
  string(REPLACE "#include \"kernels/" "#include \"shardtool/kernels/" text "${text}")
  string(REGEX REPLACE "^lib/" "" name ${header})
  file(WRITE ${public_headers}/shardtool/${name} "${text}")
endforeach()
install(DIRECTORY ${public_headers}/shardtool DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT dev)
