# Install rules: the headers under their public names, every module's archive, one umbrella target
# shardtool::shardtool for find_package(shardtool), the presets and the schema of mapping files.
include(CMakePackageConfigHelpers)

get_property(modules GLOBAL PROPERTY SHARDTOOL_MODULES)
add_library(shardtool_library INTERFACE)
add_library(shardtool::shardtool ALIAS shardtool_library)
set_target_properties(shardtool_library PROPERTIES EXPORT_NAME shardtool)
target_link_libraries(shardtool_library INTERFACE ${modules})

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/shardtool)
install(TARGETS ${modules} shardtool_library EXPORT shardtool-targets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT shardtool-targets NAMESPACE shardtool:: DESTINATION ${package_dir})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/shardtool-config.cmake.in
  ${PROJECT_BINARY_DIR}/shardtool-config.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/shardtool-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/shardtool-config.cmake
              ${PROJECT_BINARY_DIR}/shardtool-config-version.cmake DESTINATION ${package_dir})

foreach(folder IN LISTS SHARDTOOL_LIB_FOLDERS)
  install(DIRECTORY lib/${folder} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/shardtool
          FILES_MATCHING PATTERN "*.h")
endforeach()
install(DIRECTORY kernels DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/shardtool
        FILES_MATCHING PATTERN "*.h")
install(DIRECTORY lib/mapping/presets DESTINATION ${CMAKE_INSTALL_DATADIR}/shardtool
        FILES_MATCHING PATTERN "*.json")
install(FILES lib/mapping/schema/mapping-v1.json
        DESTINATION ${CMAKE_INSTALL_DATADIR}/shardtool/schemas)
