# Before cpack closes a Debian package, compresses manual pages and changelogs and strips archives, as Debian's policy
# asks. Tarballs have the files as they are: cpack has listed them by then.
if(NOT CPACK_GENERATOR STREQUAL "DEB")
  return()
endif()
file(GLOB_RECURSE texts ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/*.1 ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/*.5
     ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/*/changelog)
if(texts)
  execute_process(COMMAND gzip -9n ${texts} COMMAND_ERROR_IS_FATAL ANY)
endif()
file(GLOB_RECURSE archives ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/*.a)
if(archives)
  execute_process(COMMAND strip --strip-debug --remove-section=.comment --enable-deterministic-archives ${archives}
                  COMMAND_ERROR_IS_FATAL ANY)
endif()
