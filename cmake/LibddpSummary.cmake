# What this build has, and how to get what it has not.

function(libddp_summary)
  message(STATUS "libddp ${PROJECT_VERSION}: ${CMAKE_BUILD_TYPE}, "
                 "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}")
  if(LIBDDP_MPI)
    message(STATUS "  mpi  : ${MPI_CXX_LIBRARIES} (MPI ${MPI_CXX_VERSION})")
  elseif(MPI_CXX_FOUND)
    message(STATUS "  mpi  : left out; -DLIBDDP_MPI=ON switches it on")
  else()
    message(STATUS "  mpi  : absent, install libopenmpi-dev and openmpi-bin "
                   "(dnf: openmpi-devel), then -DLIBDDP_MPI=ON")
  endif()
  if(LIBDDP_CUDA)
    message(STATUS "  cuda : ${CMAKE_CUDA_COMPILER_VERSION} for "
                   "${CMAKE_CUDA_ARCHITECTURES}, NCCL ${NCCL_VERSION}")
  elseif(LIBDDP_CUDA_COMPLETE)
    message(STATUS "  cuda : left out; -DLIBDDP_CUDA=ON switches it on")
  else()
    list(JOIN LIBDDP_CUDA_LACKS ", and " lacks)
    message(STATUS "  cuda : absent, needs ${lacks}, then -DLIBDDP_CUDA=ON")
  endif()
  if(LIBDDP_SANITIZE)
    message(STATUS "  sanitizers: ${LIBDDP_SANITIZE}")
  endif()
endfunction()
libddp_summary()
