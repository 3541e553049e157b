# Installs the runtime into a folder of its own, builds docs/examples/moert-example against it and runs that.
#   cmake -DBUILD=... -DSOURCE=... -DWORK=... -DWRITER=... -DCXX=... -P example_test.cmake
function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${ARGV}: exit code ${code}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --component runtime --prefix ${WORK}/prefix)
run(${CMAKE_COMMAND} -S ${SOURCE}/docs/examples/moert-example -B ${WORK}/build -G Ninja
    -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_PREFIX_PATH=${WORK}/prefix
    "-DCMAKE_CXX_FLAGS=${FLAGS}" -DCMAKE_BUILD_TYPE=Release)
run(${CMAKE_COMMAND} --build ${WORK}/build)
run(${WRITER} ${WORK}/test.moeb)
run(${WORK}/build/moert-example ${WORK}/test.moeb 0,4 7)
if(NOT output STREQUAL "6\n14\n15\n21\n27\n28\n10\n7 tokens\n")
  message(FATAL_ERROR "expected other tokens than:\n${output}")
endif()
execute_process(COMMAND ${WORK}/build/moert-example ${WORK}/none.moeb 0
                RESULT_VARIABLE code ERROR_VARIABLE error)
if(NOT code EQUAL 1 OR NOT error MATCHES "none.moeb: cannot open the folder")
  message(FATAL_ERROR "expected exit code 1 and an error, found ${code}: ${error}")
endif()
