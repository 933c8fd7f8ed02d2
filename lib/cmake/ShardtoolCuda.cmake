# Kernels for GPUs are built where an nvcc that works is found; the program needs neither a GPU nor a library of CUDA to
# start: the runtime is linked in, and asks for the driver only when it is called.
set(SHARDTOOL_CUDA_ARCH "80-real;90-real;100-real;120" CACHE STRING
    "What nvcc compiles for, as in CMAKE_CUDA_ARCHITECTURES; one of them builds quickest")

# nvcc is often not in the PATH; whoever names a compiler has the last word.
if(NOT DEFINED CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
  find_program(SHARDTOOL_NVCC nvcc HINTS ENV CUDA_HOME /usr/local/cuda PATH_SUFFIXES bin)
  if(SHARDTOOL_NVCC)
    set(ENV{CUDACXX} ${SHARDTOOL_NVCC})
  endif()
endif()

# Sets OUT to what nvcc says of C++20 and the architectures, or to nothing. A dry run compiles nothing.
function(shardtool_nvcc_refusal OUT)
  set(source ${CMAKE_BINARY_DIR}/CMakeFiles/shardtool_nvcc.cu)
  file(WRITE ${source} "")
  set(codes)
  foreach(arch IN LISTS SHARDTOOL_CUDA_ARCH)
    if(arch MATCHES "^([0-9]+[a-z]?)(-real|-virtual)?$")
      list(APPEND codes "-gencode=arch=compute_${CMAKE_MATCH_1},code=sm_${CMAKE_MATCH_1}")
    endif()
  endforeach()
  execute_process(COMMAND ${CMAKE_CUDA_COMPILER} --dryrun -std=c++20 ${codes} -c ${source} -o ${source}.o
    RESULT_VARIABLE status ERROR_VARIABLE said OUTPUT_QUIET)
  string(REGEX REPLACE "\n.*" "" said "${said}")
  if(status EQUAL 0)
    set(said "")
  elseif(NOT said)
    set(said "nvcc ends with ${status}")
  endif()
  set(${OUT} "${said}" PARENT_SCOPE)
endfunction()

set(why "SHARDTOOL_CUDA")
if(NOT DEFINED SHARDTOOL_CUDA)
  include(CheckLanguage)
  check_language(CUDA)
  set(why "no nvcc that works")
  if(CMAKE_CUDA_COMPILER)
    shardtool_nvcc_refusal(why)
  endif()
  set(found ON)
  if(why)
    set(found OFF)
  endif()
  option(SHARDTOOL_CUDA "Build the kernels for GPUs" ${found})
endif()
if(NOT SHARDTOOL_CUDA)
  message(STATUS "Without kernels for GPUs: ${why}")
  return()
endif()

set(CMAKE_CUDA_ARCHITECTURES ${SHARDTOOL_CUDA_ARCH})
set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
if(CMAKE_CXX_COMPILER_LAUNCHER AND NOT DEFINED CMAKE_CUDA_COMPILER_LAUNCHER)
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()
enable_language(CUDA)
# CMake 3.25 knows no CUDA C++20, and refuses CUDA wherever C++20 is the standard.
if(CMAKE_VERSION VERSION_LESS 3.26)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
endif()
find_package(CUDAToolkit REQUIRED)
message(STATUS "Kernels for GPUs: nvcc ${CMAKE_CUDA_COMPILER_VERSION} for ${SHARDTOOL_CUDA_ARCH}")

# Products are rounded before they are added, as on CPUs; constexpr functions of the library run on both sides.
function(shardtool_cuda_options target)
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr -fmad=false
    -Xcompiler=-Wall,-Wextra,-Wshadow,-ffp-contract=off
    $<$<BOOL:${SHARDTOOL_WARNINGS_AS_ERRORS}>:-Werror=all-warnings -Xcompiler=-Werror>>)
endfunction()
