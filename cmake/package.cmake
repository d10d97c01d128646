# `cmake --build build --target package` makes a .deb on Debian and Ubuntu, an archive on other systems.
set(CPACK_PACKAGE_CONTACT "the authors of roofsweep, see CITATION.cff")
set(CPACK_STRIP_FILES ON)
set(CPACK_GENERATOR TGZ)
find_program(DPKG_SHLIBDEPS dpkg-shlibdeps)
find_program(FILE_PROGRAM file) # CPack recognises programs with it
if(DPKG_SHLIBDEPS AND FILE_PROGRAM)
  set(CPACK_GENERATOR DEB)
  # The .deb depends on the libraries of one release, so its version names the release: 0.1.0-1~debian12.
  cmake_host_system_information(RESULT system QUERY DISTRIB_ID DISTRIB_VERSION_ID)
  string(REPLACE ";" "" CPACK_DEBIAN_PACKAGE_RELEASE "1~${system}")
  set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
  set(CPACK_DEBIAN_PACKAGE_SECTION science)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
  # Packages of the post-processor are only recommended, because compute nodes need none of them.
  set(CPACK_DEBIAN_PACKAGE_DEPENDS "openmpi-bin, python3 (>= 3.11)")
  set(CPACK_DEBIAN_PACKAGE_RECOMMENDS
    "python3-matplotlib, python3-netcdf4 | python3-h5netcdf, python3-pandas, python3-xarray")
  set(CPACK_DEBIAN_PACKAGE_SUGGESTS python3-plotly)
  # Python writes caches beside the post-processor if root runs it.
  file(WRITE ${PROJECT_BINARY_DIR}/prerm
    "#!/bin/sh\n[ ! -d /usr/share/roofsweep ] || find /usr/share/roofsweep -name __pycache__ -prune -exec rm -r {} +\n")
  file(CHMOD ${PROJECT_BINARY_DIR}/prerm PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
  set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/prerm)
  install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/roofsweep RENAME copyright)
  # zsh of Debian does not search site-functions.
  install(DIRECTORY ${PROJECT_BINARY_DIR}/share/zsh/site-functions/ OPTIONAL
    DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
  if(build_cuda)
    # dpkg-shlibdeps needs every linked library; the stub of the driver has another name.
    file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/driver)
    file(CREATE_LINK ${CUDA_cuda_driver_LIBRARY} ${PROJECT_BINARY_DIR}/driver/libcuda.so.1 SYMBOLIC)
    set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/driver)
  endif()
elseif(EXISTS /etc/debian_version)
  message(STATUS "The package is an archive: a .deb needs dpkg-dev and file")
endif()
include(CPack)
