# NCCL: header and library, from a distribution, a toolkit, conda or a wheel.
#
#   find_package(NCCL 2.18)
#
# Looks where NCCL_ROOT, CUDAToolkit_ROOT, CUDA_HOME and CMAKE_PREFIX_PATH say,
# then in Python's packages (wheel nvidia-nccl-cu12 or -cu13, which has only
# libnccl.so.2: no unversioned name), then in the system's folders.
# Makes NCCL::NCCL and sets NCCL_FOUND, NCCL_VERSION, NCCL_INCLUDE_DIR,
# NCCL_LIBRARY.
include(${CMAKE_CURRENT_LIST_DIR}/LibddpPythonSite.cmake OPTIONAL
        RESULT_VARIABLE _nccl_knows_sites)
set(_nccl_hints ${NCCL_ROOT} $ENV{NCCL_ROOT} ${CUDAToolkit_ROOT}
    $ENV{CUDAToolkit_ROOT} $ENV{CUDA_HOME})
if(_nccl_knows_sites)
  libddp_python_sites(_nccl_sites)
  list(TRANSFORM _nccl_sites APPEND "/nvidia/nccl")
  list(APPEND _nccl_hints ${_nccl_sites})
endif()

find_path(NCCL_INCLUDE_DIR nccl.h
  HINTS ${_nccl_hints} PATHS /usr/local/cuda PATH_SUFFIXES include)
# The library that lies beside the header, before any other.
get_filename_component(_nccl_prefix "${NCCL_INCLUDE_DIR}/.." ABSOLUTE)
find_library(NCCL_LIBRARY NAMES nccl libnccl.so.2
  HINTS ${_nccl_prefix} ${_nccl_hints} PATHS /usr/local/cuda
  PATH_SUFFIXES lib lib64)
mark_as_advanced(NCCL_INCLUDE_DIR NCCL_LIBRARY)

if(NCCL_INCLUDE_DIR)
  set(NCCL_VERSION "")
  foreach(_nccl_part MAJOR MINOR PATCH)
    file(STRINGS ${NCCL_INCLUDE_DIR}/nccl.h _nccl_line
         REGEX "^#define NCCL_${_nccl_part} [0-9]+" LIMIT_COUNT 1)
    string(REGEX MATCH "[0-9]+" _nccl_number "${_nccl_line}")
    list(APPEND NCCL_VERSION ${_nccl_number})
  endforeach()
  list(JOIN NCCL_VERSION "." NCCL_VERSION)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(NCCL
  REQUIRED_VARS NCCL_LIBRARY NCCL_INCLUDE_DIR VERSION_VAR NCCL_VERSION
  REASON_FAILURE_MESSAGE
    "apt-get install libnccl-dev, or pip install nvidia-nccl-cu13, or give NCCL_ROOT")

if(NCCL_FOUND AND NOT TARGET NCCL::NCCL)
  add_library(NCCL::NCCL UNKNOWN IMPORTED)
  set_target_properties(NCCL::NCCL PROPERTIES
    IMPORTED_LOCATION ${NCCL_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${NCCL_INCLUDE_DIR})
endif()
