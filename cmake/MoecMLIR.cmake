# LLVM and MLIR 22, always through the shared libraries: a second, static copy would register everything twice.

find_package(MLIR REQUIRED CONFIG PATHS /usr/lib/llvm-22/lib/cmake/mlir)
find_package(LLD REQUIRED CONFIG PATHS /usr/lib/llvm-22/lib/cmake/lld)
if(NOT LLVM_VERSION_MAJOR EQUAL 22)
  message(FATAL_ERROR "moec needs LLVM and MLIR 22, found ${LLVM_PACKAGE_VERSION} in ${LLVM_DIR}")
endif()
list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
include(TableGen)
include(AddLLVM)
include(AddMLIR)
# AddLLVM appends flags of its own; ours stay as MoecBuild.cmake set them.

add_library(moec_mlir INTERFACE)
target_include_directories(moec_mlir SYSTEM INTERFACE ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
target_include_directories(moec_mlir INTERFACE ${CMAKE_SOURCE_DIR}/include ${CMAKE_BINARY_DIR}/include)
target_link_libraries(moec_mlir INTERFACE MLIR LLVM)
target_compile_options(moec_mlir INTERFACE ${MOEC_NO_EXCEPTIONS})
if(MOEC_SANITIZE)
  # A test there spends its time in libMLIR, which is not instrumented: what counts is how long our code takes to build.
  target_compile_options(moec_mlir INTERFACE -O0 -gline-tables-only)
endif()

# One precompiled header for all compiler units.
file(WRITE ${CMAKE_BINARY_DIR}/pch.cpp.tmp "")
file(COPY_FILE ${CMAKE_BINARY_DIR}/pch.cpp.tmp ${CMAKE_BINARY_DIR}/pch.cpp ONLY_IF_DIFFERENT)
add_library(moec_pch STATIC ${CMAKE_BINARY_DIR}/pch.cpp)
target_link_libraries(moec_pch PUBLIC moec_mlir)
target_precompile_headers(moec_pch PRIVATE ${CMAKE_SOURCE_DIR}/cmake/pch.h)

# moec_add_library(NAME sources... LINK libraries...): a static library of compiler code.
function(moec_add_library name)
  cmake_parse_arguments(ARG "" "" "LINK;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PUBLIC moec_mlir ${ARG_LINK})
  target_precompile_headers(${name} REUSE_FROM moec_pch)
  # Generated headers first: every library may include the dialects.
  add_dependencies(${name} moec_tablegen ${ARG_DEPENDS})
endfunction()

# moec_tablegen(output.inc -flags...): one generated file, from LLVM_TARGET_DEFINITIONS, next to its .td in the build tree.
macro(moec_tablegen)
  mlir_tablegen(${ARGN} EXTRA_INCLUDES ${CMAKE_SOURCE_DIR}/include ${MLIR_INCLUDE_DIRS})
endmacro()
