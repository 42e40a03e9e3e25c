# Which parts of CUDA are here: nvcc, the toolkit, NCCL.
#
# Sets LIBDDP_CUDA_COMPLETE when nothing is missing, else
# LIBDDP_CUDA_LACKS says in words what is. CUDAToolkit_ROOT, NCCL_ROOT and
# CMAKE_PREFIX_PATH say where to look; wheels are found by
# LibddpPythonSite.cmake.
include(LibddpPythonSite)
libddp_python_sites(LIBDDP_PYTHON_SITES)

# CMake looks for nvcc on PATH alone; a toolkit that was named, or one in its
# usual place, is meant as well.
if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
  find_program(LIBDDP_NVCC nvcc
    HINTS ${CUDAToolkit_ROOT} ENV CUDAToolkit_ROOT ENV CUDA_HOME
          ENV CUDA_PATH ENV CONDA_PREFIX /usr/local/cuda
    PATH_SUFFIXES bin DOC "CUDA compiler")
  if(LIBDDP_NVCC)
    set(CMAKE_CUDA_COMPILER ${LIBDDP_NVCC})
  endif()
elseif(NOT CMAKE_CUDA_COMPILER)
  set(CMAKE_CUDA_COMPILER $ENV{CUDACXX})
endif()

set(LIBDDP_CUDA_LACKS "")
if(NOT CMAKE_CUDA_COMPILER)
  list(APPEND LIBDDP_CUDA_LACKS
       "nvcc (a CUDA toolkit >= 12.1, where CUDAToolkit_ROOT says)")
endif()
find_package(NCCL 2.18 QUIET)
if(NOT NCCL_FOUND)
  list(APPEND LIBDDP_CUDA_LACKS
    "NCCL >= 2.18 (package libnccl-dev, or pip install nvidia-nccl-cu13==2.28.9, where NCCL_ROOT or LIBDDP_PYTHON_SITE says)")
endif()
if(LIBDDP_CUDA_LACKS)
  set(LIBDDP_CUDA_COMPLETE OFF)
else()
  set(LIBDDP_CUDA_COMPLETE ON)
endif()

# Switches the language on, for archs 80 and 90 unless told otherwise.
macro(libddp_enable_cuda)
  if(LIBDDP_CUDA_LACKS)
    list(JOIN LIBDDP_CUDA_LACKS ", and " _lacks)
    message(FATAL_ERROR
      "LIBDDP_CUDA is ON, but this is missing: ${_lacks}. "
      "Or build without CUDA: -DLIBDDP_CUDA=OFF.")
  endif()
  if(NOT CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 80 90)
  endif()
  enable_language(CUDA)
  # CMake before 3.25.2 does not know how nvcc spells C++20, and asks for it
  # already while it tries the compiler: so say it after that.
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 12.1)
    message(FATAL_ERROR
      "libddp needs CUDA >= 12.1; ${CMAKE_CUDA_COMPILER} is "
      "${CMAKE_CUDA_COMPILER_VERSION}. Name another toolkit with "
      "-DCUDAToolkit_ROOT=..., or build with -DLIBDDP_CUDA=OFF.")
  endif()
  find_package(CUDAToolkit 12.1 REQUIRED)
endmacro()
