# A bill of materials (CycloneDX 1.6) of the libraries that this build links: in the packages below share/doc, and in the
# wheel beside its metadata (PEP 770). It has no time and no serial number: the same build has the same bytes.
set(sbom_version_fmt ${fmt_VERSION})
if(NOT sbom_version_fmt)
  file(STRINGS ${SHARDTOOL_FMT_INCLUDE}/fmt/core.h line REGEX "^#define FMT_VERSION ")
  string(REGEX REPLACE "^#define FMT_VERSION ([0-9]+)([0-9][0-9])([0-9][0-9])$" "\\1.\\2.\\3" sbom_version_fmt "${line}")
  string(REGEX REPLACE "\\.0([0-9])" ".\\1" sbom_version_fmt "${sbom_version_fmt}")
endif()
# RE2's own file for pkg-config has no version; Debian's package has.
set(sbom_version_re2 ${re2_VERSION})
if(sbom_version_re2 STREQUAL "0.0.0")
  execute_process(COMMAND dpkg-query -W -f "\${source:Upstream-Version}" libre2-dev
    OUTPUT_VARIABLE sbom_version_re2 ERROR_QUIET RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    set(sbom_version_re2 "unknown")
  endif()
endif()
# LICENSE is an SPDX expression, or {"license": {"name": ...}} where SPDX has none.
macro(sbom_add name version license)
  if("${license}" MATCHES "^{")
    set(sbom_license "${license}")
  else()
    set(sbom_license "{\"expression\": \"${license}\"}")
  endif()
  list(APPEND sbom_components "    {\"type\": \"library\", \"bom-ref\": \"${name}\", \"name\": \"${name}\", \"version\": \"${version}\",
     \"licenses\": [${sbom_license}]}")
  list(APPEND sbom_refs "\"${name}\"")
endmacro()
set(sbom_components "")
set(sbom_refs "")
sbom_add(fmt "${sbom_version_fmt}" MIT)
sbom_add(nlohmann_json "${nlohmann_json_VERSION}" MIT)
sbom_add(re2 "${sbom_version_re2}" BSD-3-Clause)
sbom_add(xxhash "${xxhash_VERSION}" BSD-2-Clause)
sbom_add(openssl "${OPENSSL_VERSION}" Apache-2.0)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  sbom_add(libstdc++ "${CMAKE_CXX_COMPILER_VERSION}" "GPL-3.0-or-later WITH GCC-exception-3.1")
endif()
# The Python module has a copy of nanobind and of robin-map, which nanobind brings or finds.
if(SHARDTOOL_PYTHON)
  sbom_add(nanobind "${nanobind_VERSION}" BSD-3-Clause)
  set(robin_header ${NB_DIR}/ext/robin_map/include/tsl/robin_growth_policy.h)
  if(EXISTS ${robin_header})
    set(robin_version "")
    foreach(part MAJOR MINOR PATCH)
      file(STRINGS ${robin_header} line REGEX "^#define TSL_RH_VERSION_${part} ")
      string(REGEX REPLACE ".* ([0-9]+)$" "\\1" line "${line}")
      list(APPEND robin_version ${line})
    endforeach()
    list(JOIN robin_version "." robin_version)
  else()
    find_package(tsl-robin-map CONFIG REQUIRED)
    set(robin_version ${tsl-robin-map_VERSION})
  endif()
  sbom_add(robin-map "${robin_version}" MIT)
endif()
if(SHARDTOOL_CUDA)
  sbom_add(cuda-cudart "${CUDAToolkit_VERSION}" "{\"license\": {\"name\": \"NVIDIA CUDA Toolkit EULA\"}}")
endif()
list(JOIN sbom_components ",\n" sbom_components)
list(JOIN sbom_refs ", " sbom_refs)
set(SHARDTOOL_SBOM ${PROJECT_BINARY_DIR}/shardtool.cdx.json)
file(CONFIGURE OUTPUT ${SHARDTOOL_SBOM} @ONLY CONTENT "{
  \"bomFormat\": \"CycloneDX\",
  \"specVersion\": \"1.6\",
  \"version\": 1,
  \"metadata\": {\"component\": {\"type\": \"application\", \"bom-ref\": \"shardtool\", \"name\": \"shardtool\",
    \"version\": \"@PROJECT_VERSION@\", \"licenses\": [{\"license\": {\"id\": \"Apache-2.0\"}}]}},
  \"components\": [
@sbom_components@
  ],
  \"dependencies\": [{\"ref\": \"shardtool\", \"dependsOn\": [@sbom_refs@]}]
}
")
