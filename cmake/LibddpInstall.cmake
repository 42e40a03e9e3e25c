# Install and export: find_package(libddp) and libddp.pc.
#
# Headers go to include/libddp/{libddp,kernels}, so that nothing named
# "kernels" lands among the headers of other projects.

set_target_properties(libddp PROPERTIES OUTPUT_NAME ddp)
set_target_properties(libddp_kernels PROPERTIES OUTPUT_NAME ddp_kernels
                                                EXPORT_NAME kernels)
foreach(target libddp libddp_kernels)
  set_target_properties(${target} PROPERTIES
    VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
    INSTALL_RPATH "$ORIGIN"
    VERIFY_INTERFACE_HEADER_SETS ON
    # Shared and static objects are then the same, and a compiler cache
    # serves both.
    DEFINE_SYMBOL "")
endforeach()

if(NOT LIBDDP_INSTALL)
  return()
endif()
include(CMakePackageConfigHelpers)

set(_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/libddp)
install(TARGETS libddp libddp_kernels
  EXPORT libddpTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/libddp)
install(EXPORT libddpTargets NAMESPACE libddp::
        DESTINATION ${_package_dir})
configure_package_config_file(
  ${CMAKE_CURRENT_LIST_DIR}/libddpConfig.cmake.in
  ${PROJECT_BINARY_DIR}/libddpConfig.cmake
  INSTALL_DESTINATION ${_package_dir})
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/libddpConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/libddpConfig.cmake
  ${PROJECT_BINARY_DIR}/libddpConfigVersion.cmake
  ${CMAKE_CURRENT_LIST_DIR}/FindNCCL.cmake
  ${CMAKE_CURRENT_LIST_DIR}/LibddpPythonSite.cmake
  DESTINATION ${_package_dir})
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE
        DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/libddp)

# pkg-config has no imported targets: spell out what a static link needs.
function(libddp_pkg_config)
  set(PC_REQUIRES spdlog)
  set(PC_LIBS ${OpenMP_CXX_FLAGS} -pthread)
  if(LIBDDP_MPI)
    list(APPEND PC_LIBS ${MPI_CXX_LIBRARIES} ${MPI_CXX_LINK_FLAGS})
  endif()
  if(LIBDDP_CUDA)
    list(APPEND PC_LIBS ${CUDA_cudart_LIBRARY} ${NCCL_LIBRARY}
                        ${CMAKE_DL_LIBS})
  endif()
  list(TRANSFORM PC_LIBS STRIP)
  list(JOIN PC_LIBS " " PC_LIBS)
  # An absolute libdir (Nix, some distributions) is taken as it is.
  foreach(kind LIBDIR INCLUDEDIR)
    set(PC_${kind} "\${prefix}/${CMAKE_INSTALL_${kind}}")
    if(IS_ABSOLUTE "${CMAKE_INSTALL_${kind}}")
      set(PC_${kind} "${CMAKE_INSTALL_${kind}}")
    endif()
  endforeach()
  configure_file(${PROJECT_SOURCE_DIR}/cmake/libddp.pc.in
                 ${PROJECT_BINARY_DIR}/libddp.pc @ONLY)
endfunction()
libddp_pkg_config()
install(FILES ${PROJECT_BINARY_DIR}/libddp.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
