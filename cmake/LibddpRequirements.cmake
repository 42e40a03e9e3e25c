# The parts that others wrote, all looked for before one is complained about.

set(_missing_apt "")
set(_missing_dnf "")
set(_missing_what "")

# libddp_need(FOUND WHAT APT DNF): notes a missing part and the packages that
# bring it.
macro(libddp_need found what apt dnf)
  if(NOT ${found})
    list(APPEND _missing_what "${what}")
    list(APPEND _missing_apt ${apt})
    list(APPEND _missing_dnf ${dnf})
  endif()
endmacro()

find_package(Threads REQUIRED)
find_package(OpenMP QUIET COMPONENTS CXX)
libddp_need(OpenMP_CXX_FOUND "OpenMP for C++" libomp-dev libomp-devel)
find_package(spdlog QUIET)
libddp_need(spdlog_FOUND "spdlog" libspdlog-dev spdlog-devel)
find_package(nlohmann_json QUIET)
libddp_need(nlohmann_json_FOUND "nlohmann-json" nlohmann-json3-dev json-devel)
find_path(LIBDDP_ASIO_INCLUDE asio.hpp DOC "Standalone Asio")
libddp_need(LIBDDP_ASIO_INCLUDE "Asio" libasio-dev asio-devel)
find_path(LIBDDP_XXHASH_INCLUDE xxhash.h DOC "xxHash")
libddp_need(LIBDDP_XXHASH_INCLUDE "xxHash" libxxhash-dev xxhash-devel)
mark_as_advanced(LIBDDP_ASIO_INCLUDE LIBDDP_XXHASH_INCLUDE)

if(LIBDDP_MPI)
  libddp_need(MPI_CXX_FOUND "MPI (or -DLIBDDP_MPI=OFF)"
              "libopenmpi-dev;openmpi-bin" openmpi-devel)
endif()
if(LIBDDP_EXAMPLES)
  find_package(CLI11 QUIET)
  libddp_need(CLI11_FOUND "CLI11 (or -DLIBDDP_EXAMPLES=OFF)"
              libcli11-dev cli11-devel)
  find_path(LIBDDP_CBLAS_INCLUDE cblas.h PATH_SUFFIXES openblas
            DOC "Headers of OpenBLAS")
  mark_as_advanced(LIBDDP_CBLAS_INCLUDE)
  libddp_need(LIBDDP_CBLAS_INCLUDE "OpenBLAS (or -DLIBDDP_EXAMPLES=OFF)"
              libopenblas-dev openblas-devel)
endif()
if(LIBDDP_TESTS)
  find_package(GTest QUIET)
  libddp_need(GTest_FOUND "GoogleTest (or -DLIBDDP_TESTS=OFF)"
              "libgtest-dev;libgmock-dev" "gtest-devel;gmock-devel")
endif()
if(LIBDDP_BENCHMARKS)
  find_package(benchmark QUIET)
  libddp_need(benchmark_FOUND
              "Google Benchmark (or -DLIBDDP_BENCHMARKS=OFF)"
              libbenchmark-dev google-benchmark-devel)
endif()

if(_missing_what)
  list(JOIN _missing_what ", " _what)
  list(JOIN _missing_apt " " _apt)
  list(JOIN _missing_dnf " " _dnf)
  message(FATAL_ERROR
    "Not found: ${_what}.\nInstall what is missing with\n"
    "  sudo apt-get install ${_apt}\nor\n  sudo dnf install ${_dnf}\n"
    "or name other places with -DCMAKE_PREFIX_PATH=...")
endif()

if(LIBDDP_CUDA)
  libddp_enable_cuda()
endif()
