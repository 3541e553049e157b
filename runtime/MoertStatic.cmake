# Third-party code is linked statically where a static archive is installed, so that a binary built here runs on other
# distributions. Each becomes one interface target.

function(moert_static_or_shared target archive fallback)
  add_library(${target} INTERFACE)
  find_library(${target}_ARCHIVE ${archive})
  if(${target}_ARCHIVE)
    target_link_libraries(${target} INTERFACE ${${target}_ARCHIVE})
  else()
    target_link_libraries(${target} INTERFACE ${fallback})
  endif()
endfunction()

moert_static_or_shared(moert_crypto libcrypto.a OpenSSL::Crypto)
target_include_directories(moert_crypto INTERFACE ${OPENSSL_INCLUDE_DIR})
# Debian's static protobuf is built for executables only (its thread-local variables do not fit a shared library), so shared
# libraries take the shared one.
add_library(moert_protobuf INTERFACE)
find_library(MOERT_PROTOBUF_ARCHIVE libprotobuf-lite.a)
find_library(MOERT_PROTOBUF_SHARED NAMES protobuf-lite)
if(MOERT_PROTOBUF_ARCHIVE AND MOERT_PROTOBUF_SHARED)
  set(moert_is_executable $<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>)
  target_link_libraries(moert_protobuf INTERFACE
      $<IF:${moert_is_executable},${MOERT_PROTOBUF_ARCHIVE},${MOERT_PROTOBUF_SHARED}>)
else()
  target_link_libraries(moert_protobuf INTERFACE protobuf::libprotobuf-lite)
endif()
target_include_directories(moert_protobuf INTERFACE ${Protobuf_INCLUDE_DIRS})
target_link_libraries(moert_protobuf INTERFACE Threads::Threads)
moert_static_or_shared(moert_pcre2 libpcre2-8.a PkgConfig::PCRE2)
target_include_directories(moert_pcre2 INTERFACE ${PCRE2_INCLUDE_DIRS})
moert_static_or_shared(moert_utf8proc libutf8proc.a PkgConfig::UTF8PROC)
target_include_directories(moert_utf8proc INTERFACE ${UTF8PROC_INCLUDE_DIRS})
target_compile_definitions(moert_utf8proc INTERFACE UTF8PROC_STATIC)
