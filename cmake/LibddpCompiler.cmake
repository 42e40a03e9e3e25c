# The language, and which compilers speak enough of it.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Kind of build" FORCE)
endif()

# A compiler that is too old fails far inside a standard header, so say it
# here: g++ 10 lacks parts of <ranges>, clang 14 cannot read those of
# libstdc++ 12.
function(libddp_check_compiler)
  set(least_GNU 11)
  set(least_Clang 16)
  set(least ${least_${CMAKE_CXX_COMPILER_ID}})
  if(least AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS least)
    message(FATAL_ERROR
      "libddp needs g++ >= ${least_GNU} or clang >= ${least_Clang}; this is "
      "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION} "
      "(${CMAKE_CXX_COMPILER}). Choose another with "
      "-DCMAKE_CXX_COMPILER=g++ in a new build directory.")
  endif()
endfunction()
libddp_check_compiler()

# ccache where it is installed, unless the caller has chosen a launcher.
find_program(LIBDDP_CCACHE ccache DOC "Compiler cache, used if found")
if(LIBDDP_CCACHE AND PROJECT_IS_TOP_LEVEL)
  foreach(language CXX CUDA)
    if(NOT DEFINED CMAKE_${language}_COMPILER_LAUNCHER)
      set(CMAKE_${language}_COMPILER_LAUNCHER ${LIBDDP_CCACHE})
    endif()
  endforeach()
endif()
