# libddp_test(NAME SOURCES... [RANKS n...] [LABELS ...] [TIMEOUT s])
#
# A GoogleTest program with its own main() from GTest, one ctest entry for
# each rank count: alone without RANKS, else under mpirun with n ranks.
function(libddp_test name)
  cmake_parse_arguments(ARG "NO_MAIN" "TIMEOUT" "SOURCES;RANKS;LABELS;LIBRARIES"
                        ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE libddp::libddp GTest::gmock
                                        ${ARG_LIBRARIES})
  if(NOT ARG_NO_MAIN)
    target_link_libraries(${name} PRIVATE GTest::gtest_main)
  endif()
  libddp_warnings(${name})
  if(ARG_RANKS)
    foreach(ranks IN LISTS ARG_RANKS)
      add_test(NAME ${name}.ranks${ranks}
               COMMAND ${MPIEXEC_EXECUTABLE} -n ${ranks} --oversubscribe
                       --bind-to none $<TARGET_FILE:${name}>)
      set_tests_properties(${name}.ranks${ranks} PROPERTIES
        TIMEOUT ${ARG_TIMEOUT} LABELS "${ARG_LABELS}"
        ENVIRONMENT "OMPI_ALLOW_RUN_AS_ROOT=1;OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1;OMP_NUM_THREADS=1")
    endforeach()
  else()
    add_test(NAME ${name} COMMAND ${name})
    set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT}
                                            LABELS "${ARG_LABELS}")
  endif()
endfunction()
