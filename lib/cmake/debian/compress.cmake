# Compresses manual pages and changelogs, as Debian's policy asks, before cpack closes a package.
file(GLOB_RECURSE texts ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/*.1 ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/*.5
     ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/*/changelog)
if(texts)
  execute_process(COMMAND gzip -9n ${texts} COMMAND_ERROR_IS_FATAL ANY)
endif()
