# Installs a build, and builds and runs examples/consumer against what was
# installed: by find_package or by pkg-config.
#
#   cmake -DHOW=cmake|pkg-config -DBUILD=... -DSOURCE=... -DWORK=...
#         -DCXX=g++ -DGENERATOR=Ninja -P consumer_test.cmake
# With -DROOT=... and -DOPTIONS=..., libddp is first built in WORK with these
# options, instead of taken from BUILD.
# ENV{LIBDDP_CONSUMER_LAUNCH} is put before the program, such as mpirun -n 2.

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result
                  OUTPUT_VARIABLE output ERROR_VARIABLE output)
  message("${output}")
  if(NOT result EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "failed (${result}): ${command}")
  endif()
  set(OUTPUT "${output}" PARENT_SCOPE)
endfunction()

set(prefix ${WORK}/prefix)
set(build ${WORK}/${HOW})
file(REMOVE_RECURSE ${prefix} ${build})
if(OPTIONS)
  set(BUILD ${WORK}/libddp)
  separate_arguments(OPTIONS UNIX_COMMAND "${OPTIONS}")
  run(${CMAKE_COMMAND} -S ${ROOT} -B ${BUILD} -G ${GENERATOR}
      -DCMAKE_CXX_COMPILER=${CXX} ${OPTIONS})
  run(${CMAKE_COMMAND} --build ${BUILD} --parallel 2 --target libddp)
endif()
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix})
file(MAKE_DIRECTORY ${build})

if(HOW STREQUAL "cmake")
  run(${CMAKE_COMMAND} -S ${SOURCE} -B ${build} -G ${GENERATOR}
      -DCMAKE_PREFIX_PATH=${prefix} -DCMAKE_CXX_COMPILER=${CXX}
      -DCMAKE_BUILD_TYPE=Release)
  run(${CMAKE_COMMAND} --build ${build})
else()
  file(GLOB_RECURSE pc ${prefix}/libddp.pc)
  cmake_path(GET pc PARENT_PATH folder)
  set(ENV{PKG_CONFIG_PATH} "${folder}:$ENV{PKG_CONFIG_PATH}")
  file(COPY ${SOURCE}/consumer.cpp ${SOURCE}/Makefile DESTINATION ${build})
  run(make -C ${build} CXX=${CXX})
endif()

foreach(launch "" "$ENV{LIBDDP_CONSUMER_LAUNCH}")
  separate_arguments(launch UNIX_COMMAND "${launch}")
  run(${launch} ${build}/consumer)
  if(NOT OUTPUT MATCHES "weights 2\\.000 -3\\.000 1\\.000")
    message(FATAL_ERROR "the weights were not found: ${OUTPUT}")
  endif()
endforeach()
