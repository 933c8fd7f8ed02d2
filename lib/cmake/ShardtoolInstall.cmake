# Install rules: the headers under their public names, every module's archive, one umbrella target
# shardtool::shardtool for find_package(shardtool), the program and what belongs beside it.
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

# The man pages and the completions are written by the program that they describe.
find_program(SCDOC scdoc)
if(TARGET shardtool AND SCDOC)
  set(share ${PROJECT_BINARY_DIR}/share)
  add_custom_command(OUTPUT ${share}/made
    COMMAND bash ${PROJECT_SOURCE_DIR}/cli/man/make_pages.sh $<TARGET_FILE:shardtool> ${share}
    COMMAND ${CMAKE_COMMAND} -E touch ${share}/made
    DEPENDS shardtool cli/man/make_pages.sh cli/man/shardtool-mapping.5.scd VERBATIM)
  add_custom_target(shardtool_pages ALL DEPENDS ${share}/made)
  install(DIRECTORY ${share}/ DESTINATION ${CMAKE_INSTALL_DATADIR} COMPONENT cli
          PATTERN made EXCLUDE)
endif()
