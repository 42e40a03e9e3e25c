# cuDNN 9 or newer with the header-only cudnn-frontend: of the system (package
# libcudnn9-dev-cuda-<major>) or of the Python wheels nvidia-cudnn-cu<major>
# and nvidia-cudnn-frontend.
#
# Hints: CUDNN_ROOT, CUDNN_FRONTEND_ROOT, CMAKE_PREFIX_PATH, and
# LIBDDP_PYTHON_SITE, a list of site-packages folders. Makes the target
# CUDNN::headers; sets CUDNN_FOUND, CUDNN_VERSION, CUDNN_INCLUDE_DIR,
# CUDNN_FRONTEND_INCLUDE_DIR and CUDNN_LIBRARY. The library is not linked:
# the frontend loads it at run time.
include(LibddpPythonSite OPTIONAL)
set(_cudnn_sites ${LIBDDP_PYTHON_SITE})
if(COMMAND libddp_python_sites)
  libddp_python_sites(_cudnn_sites)
endif()
set(_cudnn_hints ${CUDAToolkit_LIBRARY_ROOT})
set(_cudnn_frontend_hints ${CUDNN_FRONTEND_ROOT} $ENV{CUDNN_FRONTEND_ROOT})
foreach(_site IN LISTS _cudnn_sites)
  list(APPEND _cudnn_hints ${_site}/nvidia/cudnn)
  list(APPEND _cudnn_frontend_hints ${_site})
endforeach()

find_path(CUDNN_INCLUDE_DIR cudnn_version.h HINTS ${_cudnn_hints}
          PATH_SUFFIXES include)
find_library(CUDNN_LIBRARY NAMES libcudnn.so.9 cudnn HINTS ${_cudnn_hints}
             PATH_SUFFIXES lib lib64)
find_path(CUDNN_FRONTEND_INCLUDE_DIR cudnn_frontend.h
          HINTS ${_cudnn_frontend_hints} ${CUDNN_INCLUDE_DIR}
          PATH_SUFFIXES include)
mark_as_advanced(CUDNN_INCLUDE_DIR CUDNN_LIBRARY CUDNN_FRONTEND_INCLUDE_DIR)

if(CUDNN_INCLUDE_DIR)
  set(_cudnn_numbers)
  foreach(_part MAJOR MINOR PATCHLEVEL)
    set(_number)
    foreach(_header cudnn_version.h cudnn_version_v9.h)
      if(NOT _number AND EXISTS ${CUDNN_INCLUDE_DIR}/${_header})
        file(STRINGS ${CUDNN_INCLUDE_DIR}/${_header} _line
             REGEX "^#define CUDNN_${_part} [0-9]+")
        string(REGEX MATCH "[0-9]+" _number "${_line}")
      endif()
    endforeach()
    list(APPEND _cudnn_numbers ${_number})
  endforeach()
  list(JOIN _cudnn_numbers . CUDNN_VERSION)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  CUDNN
  REQUIRED_VARS CUDNN_LIBRARY CUDNN_INCLUDE_DIR CUDNN_FRONTEND_INCLUDE_DIR
  VERSION_VAR CUDNN_VERSION)

if(CUDNN_FOUND AND NOT TARGET CUDNN::headers)
  add_library(CUDNN::headers INTERFACE IMPORTED GLOBAL)
  set_target_properties(CUDNN::headers PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES
      "${CUDNN_INCLUDE_DIR};${CUDNN_FRONTEND_INCLUDE_DIR}")
endif()
