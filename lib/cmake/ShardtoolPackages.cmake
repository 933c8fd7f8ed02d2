# Packages and archives, in the build folder:
#
#   cmake --build build/release && (cd build/release && cpack)            Debian packages
#   cmake --build build/static && (cd build/static && cpack -G TGZ)       archives, after
#   cmake --preset release -B build/static -DSHARDTOOL_STATIC=ON -DBUILD_TESTING=OFF -DSHARDTOOL_BENCHMARKS=OFF
#
#   shardtool_VERSION_ARCH.deb       the program, its manual and completions, schemas
#   shardtool-mpi_VERSION_ARCH.deb   the plugin for launches with mpirun, where an MPI was found
#   shardtool-dev_VERSION_ARCH.deb   headers, archives and find_package(shardtool)
#
# There is no shardtool-gpu: where the build has nvcc, the program itself has the kernels and the CUDA runtime.
#
# Archives have the same parts, and the names shardtool-VERSION-linux-ARCH.tar.gz and so on. With -DSHARDTOOL_STATIC=ON
# the program in them needs glibc and libgcc alone; such a build has no -dev. Each file has its SHA-256 beside it, and the
# program's holds a bill of materials (ShardtoolSbom.cmake), which lies beside an archive, too.
#
# SHARDTOOL_MAINTAINER is the packages' Maintainer field.
set(SHARDTOOL_MAINTAINER "shardtool maintainers <maintainers@shardtool.invalid>" CACHE STRING
    "Maintainer of the Debian packages")

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME shardtool)
set(CPACK_PACKAGE_CONTACT ${SHARDTOOL_MAINTAINER})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "cut model checkpoints into per-device shards")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL cli)
if(TARGET shardtool_library)
  list(APPEND CPACK_COMPONENTS_ALL dev)
endif()
if(TARGET shardtool_mpi)
  list(APPEND CPACK_COMPONENTS_ALL mpi)
endif()

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_COMPONENT_CLI_DESCRIPTION
    "Splits, merges and reshards model checkpoints for tensor, expert and pipeline
parallelism and FSDP, plans memory and time, and proves that the shards are
right.")
set(CPACK_DEBIAN_CLI_PACKAGE_NAME shardtool)
set(CPACK_DEBIAN_CLI_PACKAGE_SECTION utils)
# Opened with the first request to an object store, so that dpkg-shlibdeps does not see it.
set(CPACK_DEBIAN_CLI_PACKAGE_DEPENDS "libcurl4 | libcurl4t64")
# NCCL and cuBLASLt are opened, too. Debian has neither; these are NVIDIA's names, and cuBLASLt is in libcublas.
set(suggested shardtool-mpi libnccl2)
if(SHARDTOOL_CUDA)
  list(APPEND suggested libcublas-${CUDAToolkit_VERSION_MAJOR}-${CUDAToolkit_VERSION_MINOR})
endif()
list(JOIN suggested ", " CPACK_DEBIAN_CLI_PACKAGE_SUGGESTS)
set(CPACK_COMPONENT_MPI_DESCRIPTION
    "The plugin with which several processes of shardtool speak MPI. Launches over
TCP do not need it.")
set(CPACK_DEBIAN_MPI_PACKAGE_NAME shardtool-mpi)
set(CPACK_DEBIAN_MPI_PACKAGE_DEPENDS "shardtool (= ${PROJECT_VERSION})")
set(CPACK_COMPONENT_DEV_DESCRIPTION
    "Headers and archives of the library behind the program shardtool, for
find_package(shardtool).")
set(CPACK_DEBIAN_DEV_PACKAGE_NAME shardtool-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS
    "libcurl4-openssl-dev | libcurl-dev, libfmt-dev, nlohmann-json3-dev, libre2-dev, libssl-dev, libxxhash-dev, pkg-config")

# Debian's policy asks for these in every package.
foreach(component IN LISTS CPACK_COMPONENTS_ALL)
  string(TOUPPER ${component} upper)
  install(FILES ${CMAKE_CURRENT_LIST_DIR}/debian/copyright ${CMAKE_CURRENT_LIST_DIR}/debian/changelog
          DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${CPACK_DEBIAN_${upper}_PACKAGE_NAME} COMPONENT ${component})
endforeach()
install(FILES ${SHARDTOOL_SBOM} DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/shardtool COMPONENT cli)
set(CPACK_PACKAGE_CHECKSUM SHA256)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/debian/policy.cmake)

# Without this an archive has every component, whichever was named.
set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
string(TOLOWER "${PROJECT_VERSION}-${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR}" suffix)
set(CPACK_PACKAGE_FILE_NAME shardtool-${suffix})
foreach(component IN LISTS CPACK_COMPONENTS_ALL)
  string(TOUPPER ${component} upper)
  set(CPACK_ARCHIVE_${upper}_FILE_NAME ${CPACK_DEBIAN_${upper}_PACKAGE_NAME}-${suffix})
endforeach()
set(CPACK_SHARDTOOL_STATIC ${SHARDTOOL_STATIC})
set(CPACK_SHARDTOOL_SBOM ${SHARDTOOL_SBOM})
set(CPACK_PROJECT_CONFIG_FILE ${CMAKE_CURRENT_LIST_DIR}/archive/layout.cmake)
set(CPACK_POST_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/archive/sbom_beside.cmake)
include(CPack)
