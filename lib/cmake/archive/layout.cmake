# Read by cpack before each generator: archives hold one folder, with bin, lib and share in it, that works anywhere.
if(CPACK_GENERATOR STREQUAL "DEB")
  return()
endif()
set(CPACK_PACKAGING_INSTALL_PREFIX "")
set(CPACK_COMPONENT_INCLUDE_TOPLEVEL_DIRECTORY ON)
if(NOT CPACK_SHARDTOOL_STATIC)
  message(WARNING "The program in this archive needs shared libraries of this system, such as libfmt; that of a build "
                  "with -DSHARDTOOL_STATIC=ON needs glibc and libgcc alone.")
endif()
