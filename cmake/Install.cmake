# nvlsim::core, and what `cmake --install` and `cpack -G DEB` put in place: the program, its data, the library.

# Every module but the command line in one archive, so that a foreign project links one library.
add_library(nvlsim_core STATIC)
foreach(module IN LISTS NVLSIM_MODULES)
  target_sources(nvlsim_core PRIVATE $<TARGET_OBJECTS:nvlsim_${module}>)
endforeach()
set_target_properties(nvlsim_core PROPERTIES LINKER_LANGUAGE CXX OUTPUT_NAME nvlsim EXPORT_NAME core)
target_compile_features(nvlsim_core PUBLIC cxx_std_20)
target_include_directories(nvlsim_core PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                              $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_libraries(nvlsim_core PRIVATE fmt::fmt PkgConfig::SIMGRID ZLIB::ZLIB)
add_library(nvlsim::core ALIAS nvlsim_core)
if(NOT PROJECT_IS_TOP_LEVEL)
  return()
endif()

include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/nvlsim)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/nvlsim-config.cmake.in nvlsim-config.cmake
                              INSTALL_DESTINATION ${package_dir} PATH_VARS CMAKE_INSTALL_DATADIR)
# Before 1.0 a minor version may change the API.
write_basic_package_version_file(nvlsim-config-version.cmake COMPATIBILITY SameMinorVersion)
install(TARGETS nvlsim RUNTIME)
install(TARGETS nvlsim_simulator_library LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/nvlsim)
install(TARGETS nvlsim_core EXPORT nvlsim-targets ARCHIVE)
install(EXPORT nvlsim-targets NAMESPACE nvlsim:: DESTINATION ${package_dir})
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/nvlsim-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/nvlsim-config-version.cmake
        DESTINATION ${package_dir})
install(DIRECTORY include/nvlsim DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
# The program looks for ../share/nvlsim beside its own folder.
install(DIRECTORY platforms scenarios DESTINATION ${CMAKE_INSTALL_DATADIR}/nvlsim)

# Manual pages and completions come from the program's own description of its commands.
set(shell_files ${CMAKE_CURRENT_BINARY_DIR}/shell)
add_custom_command(OUTPUT ${shell_files}/stamp
  COMMAND ${CMAKE_COMMAND} -E rm -rf ${shell_files}
  COMMAND ${CMAKE_COMMAND} -E make_directory ${shell_files}
  COMMAND nvlsim man ${shell_files}/man1
  COMMAND nvlsim completion bash > ${shell_files}/nvlsim
  COMMAND nvlsim completion zsh > ${shell_files}/_nvlsim
  COMMAND nvlsim completion fish > ${shell_files}/nvlsim.fish
  COMMAND ${CMAKE_COMMAND} -E touch ${shell_files}/stamp
  DEPENDS nvlsim VERBATIM COMMENT "Manual pages and completions")
add_custom_target(nvlsim_shell_files ALL DEPENDS ${shell_files}/stamp)
install(DIRECTORY ${shell_files}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR})
install(FILES ${shell_files}/nvlsim DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${shell_files}/_nvlsim DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
install(FILES ${shell_files}/nvlsim.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
install(DIRECTORY docs/schemas DESTINATION ${CMAKE_INSTALL_DATADIR}/nvlsim FILES_MATCHING PATTERN "*.json")
install(DIRECTORY docs/ci DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES NOTICE README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_VENDOR "the nvlsim authors")
set(CPACK_PACKAGE_CONTACT "the nvlsim authors <nvlsim@users.noreply.github.com>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# Only who compiles against nvlsim::core needs these.
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "cmake, g++, pkg-config, libfmt-dev, libsimgrid-dev, zlib1g-dev")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION "How long a training step takes, how many tokens a second a model serves, whether it
fits in memory, what limits it, and what it costs in joules and dollars, on racks of
GPUs that need not exist.")
include(CPack)
