# libddp_test(NAME SOURCES ... [RANKS n...] [LABELS ...] [LIBRARIES ...]
#             [ARGUMENTS ...] [TIMEOUT s] [NO_MAIN])
#
# A GoogleTest program, one ctest entry for each rank count: alone without
# RANKS, else under mpirun with n ranks. It has GoogleTest's main() unless
# NO_MAIN. A program with the label `gpu` needs a GPU: it is built by the
# target libddp_gpu_tests and left out of the CPU's test presets.

set(LIBDDP_TEST_SUPPORT ${CMAKE_CURRENT_LIST_DIR})
# libgomp does not tell the thread sanitizer what it does, so tests run one
# OpenMP thread a rank; it also keeps ranks from fighting over the cores.
set(LIBDDP_TEST_ENVIRONMENT
  OMP_NUM_THREADS=1
  OPENBLAS_NUM_THREADS=1
  OMPI_ALLOW_RUN_AS_ROOT=1
  OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  OMPI_MCA_rmaps_base_oversubscribe=1
  OMPI_MCA_hwloc_base_binding_policy=none
  # Waiting ranks give the core to those that work.
  OMPI_MCA_mpi_yield_when_idle=1)
if(LIBDDP_SANITIZE MATCHES "address")
  list(APPEND LIBDDP_TEST_ENVIRONMENT
    LSAN_OPTIONS=suppressions=${LIBDDP_TEST_SUPPORT}/lsan.supp:print_suppressions=0
    ASAN_OPTIONS=strict_string_checks=1:detect_stack_use_after_return=1:check_initialization_order=1
    UBSAN_OPTIONS=print_stacktrace=1)
elseif(LIBDDP_SANITIZE MATCHES "thread")
  list(APPEND LIBDDP_TEST_ENVIRONMENT
    "TSAN_OPTIONS=suppressions=${LIBDDP_TEST_SUPPORT}/tsan.supp halt_on_error=0 exitcode=66 second_deadlock_stack=1")
endif()

add_custom_target(libddp_gpu_tests)

# libddp_add_test(NAME RANKS TIMEOUT LABELS COMMAND...): one ctest entry with
# the environment that all tests run in.
function(libddp_add_test name ranks timeout labels)
  if(LIBDDP_SANITIZE)
    math(EXPR timeout "${timeout} * 4")
  endif()
  add_test(NAME ${name} COMMAND ${ARGN})
  set_tests_properties(${name} PROPERTIES
    TIMEOUT ${timeout} PROCESSORS ${ranks} LABELS "${labels}"
    ENVIRONMENT "${LIBDDP_TEST_ENVIRONMENT}")
endfunction()

function(libddp_test name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "NO_MAIN" "TIMEOUT"
                        "SOURCES;RANKS;LABELS;LIBRARIES;ARGUMENTS")
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  if(ARG_RANKS AND NOT LIBDDP_MPI)
    message(STATUS "  test ${name} needs -DLIBDDP_MPI=ON")
    return()
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE libddp::libddp GTest::gmock
                                        ${ARG_LIBRARIES})
  if(NOT ARG_NO_MAIN)
    target_link_libraries(${name} PRIVATE GTest::gtest_main)
  endif()
  if(LIBDDP_SANITIZE MATCHES "address" AND LIBDDP_MPI)
    target_sources(${name} PRIVATE ${LIBDDP_TEST_SUPPORT}/keep_plugins.cpp)
    target_link_options(${name} PRIVATE
                        LINKER:--export-dynamic-symbol=dlclose)
  endif()
  libddp_warnings(${name})
  if("gpu" IN_LIST ARG_LABELS)
    add_dependencies(libddp_gpu_tests ${name})
  endif()

  if(NOT ARG_RANKS)
    libddp_add_test(${name} 1 ${ARG_TIMEOUT} "${ARG_LABELS}"
                    $<TARGET_FILE:${name}> ${ARG_ARGUMENTS})
  endif()
  foreach(ranks IN LISTS ARG_RANKS)
    libddp_add_test(${name}.ranks${ranks} ${ranks} ${ARG_TIMEOUT}
                    "${ARG_LABELS}"
                    ${MPIEXEC_EXECUTABLE} -n ${ranks} $<TARGET_FILE:${name}>
                    ${ARG_ARGUMENTS})
  endforeach()
endfunction()
