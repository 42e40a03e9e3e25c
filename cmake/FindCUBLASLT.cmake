# cuBLASLt: of the CUDA toolkit, of the system, or of the Python wheel
# nvidia-cublas, which has no libcublasLt.so, only libcublasLt.so.<major>.
#
# Hints: CUBLASLT_ROOT, CUDAToolkit_ROOT, CMAKE_PREFIX_PATH, and
# LIBDDP_PYTHON_SITE, a list of site-packages folders. Makes the target
# CUBLASLT::cublasLt; sets CUBLASLT_FOUND, CUBLASLT_INCLUDE_DIR and
# CUBLASLT_LIBRARY. The library's folder goes into the RPATH of what links it.
include(LibddpPythonSite OPTIONAL)
set(_cublaslt_sites ${LIBDDP_PYTHON_SITE})
if(COMMAND libddp_python_sites)
  libddp_python_sites(_cublaslt_sites)
endif()
set(_cublaslt_major ${CUDAToolkit_VERSION_MAJOR})
set(_cublaslt_hints ${CUDAToolkit_LIBRARY_ROOT} ${CUDAToolkit_TARGET_DIR})
foreach(_site IN LISTS _cublaslt_sites)
  list(APPEND _cublaslt_hints ${_site}/nvidia/cu${_cublaslt_major}
                              ${_site}/nvidia/cublas)
endforeach()

find_path(CUBLASLT_INCLUDE_DIR cublasLt.h
          HINTS ${CUDAToolkit_INCLUDE_DIRS} ${_cublaslt_hints}
          PATH_SUFFIXES include)
find_library(CUBLASLT_LIBRARY
             NAMES libcublasLt.so.${_cublaslt_major} cublasLt
             HINTS ${CUDAToolkit_LIBRARY_DIR} ${_cublaslt_hints}
             PATH_SUFFIXES lib lib64)
mark_as_advanced(CUBLASLT_INCLUDE_DIR CUBLASLT_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  CUBLASLT REQUIRED_VARS CUBLASLT_LIBRARY CUBLASLT_INCLUDE_DIR
  REASON_FAILURE_MESSAGE
    "Install the toolkit's libcublas, or the wheel nvidia-cublas and set LIBDDP_PYTHON_SITE to its site-packages.")

if(CUBLASLT_FOUND AND NOT TARGET CUBLASLT::cublasLt)
  add_library(CUBLASLT::cublasLt SHARED IMPORTED GLOBAL)
  set_target_properties(CUBLASLT::cublasLt PROPERTIES
    IMPORTED_LOCATION ${CUBLASLT_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${CUBLASLT_INCLUDE_DIR})
endif()
