# Installation: libraries, headers, program, man pages, pkg-config files and the CMake package.
include(CMakePackageConfigHelpers)

set(bw_installed bellwire-core)
if(TARGET bellwire)
  list(APPEND bw_installed bellwire)
endif()
install(TARGETS ${bw_installed} EXPORT bellwireTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/bellwire DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
if(TARGET bellwire-cli)
  install(TARGETS bellwire-cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
file(GLOB bw_man_pages CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/docs/man/*.1)
install(FILES ${bw_man_pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)

install(EXPORT bellwireTargets NAMESPACE bellwire:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/bellwire)
configure_package_config_file(cmake/bellwireConfig.cmake.in bellwireConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/bellwire)
write_basic_package_version_file(bellwireConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/bellwireConfig.cmake ${PROJECT_BINARY_DIR}/bellwireConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/bellwire)

set(BW_PC_NAME bellwire-core)
set(BW_PC_DESCRIPTION "userspace GPU driver stack: devices, queues, mocks")
set(BW_PC_REQUIRES "")
set(BW_PC_LIBS "-lbellwire-core")
configure_file(cmake/bellwire.pc.in bellwire-core.pc @ONLY)
set(BW_PC_NAME bellwire)
set(BW_PC_DESCRIPTION "userspace GPU driver stack with a tensor graph compiler")
set(BW_PC_REQUIRES " libpng")
set(BW_PC_LIBS "-lbellwire -lbellwire-core")
if(BW_HAVE_LLVM)
  string(APPEND BW_PC_LIBS " -L${LLVM_LIBDIR} -lLLVM-19")
endif()
configure_file(cmake/bellwire.pc.in bellwire.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/bellwire.pc ${PROJECT_BINARY_DIR}/bellwire-core.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
