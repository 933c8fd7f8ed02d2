# Puts the bill of materials beside the program's archive, under the archive's name. (cpack runs this before it moves
# the archives from a folder of its own.)
if(CPACK_GENERATOR STREQUAL "DEB" OR NOT CPACK_PACKAGE_FILES MATCHES "/${CPACK_ARCHIVE_CLI_FILE_NAME}[.]")
  return()
endif()
file(COPY_FILE ${CPACK_SHARDTOOL_SBOM} ${CPACK_PACKAGE_DIRECTORY}/${CPACK_ARCHIVE_CLI_FILE_NAME}.cdx.json)
