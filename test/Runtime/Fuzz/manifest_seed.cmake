# Puts the test bundle's manifest alone into WORK/manifest_seed.
file(REMOVE_RECURSE ${WORK}/seed.moeb ${WORK}/manifest_seed)
execute_process(COMMAND ${WRITER} ${WORK}/seed.moeb RESULT_VARIABLE code)
if(NOT code EQUAL 0)
  message(FATAL_ERROR "${WRITER}: exit code ${code}")
endif()
file(COPY ${WORK}/seed.moeb/manifest.moeb DESTINATION ${WORK}/manifest_seed)
