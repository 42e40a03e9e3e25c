# All options of the build.

include(LibddpCudaToolkit)
set(MPI_CXX_SKIP_MPICXX ON)
find_package(MPI QUIET COMPONENTS CXX)

option(LIBDDP_MPI "The mpi backend and meeting over MPI" ${MPI_CXX_FOUND})
option(LIBDDP_CUDA "CUDA kernels and the nccl backend"
       ${LIBDDP_CUDA_COMPLETE})
option(BUILD_SHARED_LIBS "Shared libraries instead of static ones" OFF)
option(LIBDDP_TESTS "Tests" ${PROJECT_IS_TOP_LEVEL})
option(LIBDDP_EXAMPLES "Example programs" ${PROJECT_IS_TOP_LEVEL})
option(LIBDDP_BENCHMARKS "Benchmarks" ${PROJECT_IS_TOP_LEVEL})
option(LIBDDP_INSTALL "Rules for install and export" ${PROJECT_IS_TOP_LEVEL})
option(LIBDDP_WERROR "Warnings are errors" OFF)
set(LIBDDP_SANITIZE "" CACHE STRING
    "Sanitizers for all of our code: address,undefined or thread")
set(LIBDDP_TEST_PYTHON "" CACHE FILEPATH
    "Python with torch for the tests that compare with it")

if(LIBDDP_SANITIZE)
  add_compile_options(
    $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${LIBDDP_SANITIZE}>
    $<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize-recover=all>
    $<$<COMPILE_LANGUAGE:CXX>:-fno-omit-frame-pointer>)
  add_link_options(-fsanitize=${LIBDDP_SANITIZE})
endif()
