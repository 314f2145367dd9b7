# One static library a module, linked to the modules declared before it; the chain of libraries is the layering.
set(NVLSIM_MODULES "")
# Parsing headers is most of what a source costs. No two sources of a module share a name outside functions.
set(NVLSIM_UNITY_SOURCES 40)
# Sources whose steps tests count (tests/support/steps.hpp), by module: tests link them without the rest of the module.
set(NVLSIM_COUNTED_diagnostics diagnostics.cpp)
set(NVLSIM_COUNTED_config document.cpp parse.cpp reader.cpp syntax.cpp value.cpp)
set(NVLSIM_COUNTED_serving batch_scheduler.cpp server.cpp)
set(NVLSIM_COUNTED_output json.cpp number.cpp)
set(NVLSIM_COUNTED_search ../serving/batch_scheduler.cpp ../serving/server.cpp)  # what runs of layouts cost

function(nvlsim_unity target module)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${NVLSIM_UNITY} UNITY_BUILD_BATCH_SIZE ${NVLSIM_UNITY_SOURCES})
  list(TRANSFORM NVLSIM_COUNTED_${module} PREPEND ${PROJECT_SOURCE_DIR}/src/${module}/ OUTPUT_VARIABLE counted)
  set_source_files_properties(${counted} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# Optimised less: what runs once a command takes longer to compile than it ever runs.
function(nvlsim_cold target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

function(nvlsim_module name)
  cmake_parse_arguments(ARG "COLD" "" "PRIVATE" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${name}/*.cpp)
  if(NOT sources)
    return()
  endif()
  add_library(nvlsim_${name} STATIC ${sources})
  nvlsim_unity(nvlsim_${name} ${name})
  target_include_directories(nvlsim_${name} PUBLIC ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(nvlsim_${name} PUBLIC nvlsim_options PRIVATE fmt::fmt ${ARG_PRIVATE})
  foreach(lower IN LISTS NVLSIM_MODULES)
    target_link_libraries(nvlsim_${name} PUBLIC nvlsim_${lower})
  endforeach()
  if(ARG_COLD)
    nvlsim_cold(nvlsim_${name})
  endif()
  set(NVLSIM_MODULES ${name} ${NVLSIM_MODULES} PARENT_SCOPE)
endfunction()

# The program: the `cli` module over all the others. It loads the module `simulator` when it simulates, from a library of
# its own that uses the program's symbols, because loading SimGrid takes longer than most commands.
function(nvlsim_program name module simulator)
  cmake_parse_arguments(ARG "" "" "PRIVATE" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${module}/*.cpp)
  if(NOT sources)
    return()
  endif()
  add_executable(${name} ${sources})
  nvlsim_unity(${name} ${module})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(${name} PRIVATE nvlsim_options fmt::fmt ${CMAKE_DL_LIBS} ${ARG_PRIVATE})
  nvlsim_cold(${name})
  foreach(lower IN LISTS NVLSIM_MODULES)
    if(NOT lower STREQUAL simulator)
      target_sources(${name} PRIVATE $<TARGET_OBJECTS:nvlsim_${lower}>)
    endif()
  endforeach()
  set_target_properties(${name} PROPERTIES ENABLE_EXPORTS ON BUILD_RPATH "$ORIGIN"
                        INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}/${name}")
  if(NVLSIM_SANITIZE)  # whose dlopen does not look where the program's own would
    target_link_options(${name} PRIVATE -Wl,--disable-new-dtags)
  endif()

  set_target_properties(nvlsim_${simulator} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  add_library(${name}_${simulator}_library MODULE $<TARGET_OBJECTS:nvlsim_${simulator}>)
  set_target_properties(${name}_${simulator}_library PROPERTIES PREFIX "" OUTPUT_NAME ${name}-${simulator} LINKER_LANGUAGE CXX)
  target_link_libraries(${name}_${simulator}_library PRIVATE nvlsim_options PkgConfig::SIMGRID fmt::fmt)
  # Its calls of its own functions are not those of the program that load it.
  target_link_options(${name}_${simulator}_library PRIVATE -Wl,-Bsymbolic-functions)
  add_dependencies(${name} ${name}_${simulator}_library)
endfunction()
