# Settings shared by every target: the linker, the compiler cache, assertions, sanitizers, warnings.

find_program(MOEC_CCACHE ccache)
if(MOEC_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # The two sloppiness flags are what ccache needs to cache units that use a precompiled header.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${MOEC_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${MOEC_CCACHE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    add_compile_options("SHELL:-Xclang -fno-pch-timestamp")
  endif()
endif()

if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  add_link_options(-fuse-ld=lld)
endif()

add_compile_options(-Wall -Wextra -Wno-unused-parameter -Wno-comment)
add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-deprecated-declarations>)
if(MOEC_ASSERTIONS)
  add_compile_options(-UNDEBUG)
endif()
if(MOEC_SANITIZE)
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
endif()

# Exceptions are off everywhere except in the units that call a library which throws.
set(MOEC_NO_EXCEPTIONS $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions>)
