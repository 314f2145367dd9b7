# One static library a module, linked to the modules declared before it; the chain of libraries is the layering.
set(NVLSIM_MODULES "")

# Parsed once for all modules: a quarter of what a source takes to compile.
file(WRITE ${PROJECT_BINARY_DIR}/precompiled.cpp.new "")
file(COPY_FILE ${PROJECT_BINARY_DIR}/precompiled.cpp.new ${PROJECT_BINARY_DIR}/precompiled.cpp ONLY_IF_DIFFERENT)
add_library(nvlsim_precompiled STATIC ${PROJECT_BINARY_DIR}/precompiled.cpp)
target_link_libraries(nvlsim_precompiled PRIVATE nvlsim_options fmt::fmt)
target_precompile_headers(nvlsim_precompiled PRIVATE <fmt/format.h> <algorithm> <array> <cmath> <functional> <map>
                          <memory> <optional> <string> <variant> <vector>)

function(nvlsim_module name)
  cmake_parse_arguments(ARG "" "" "PRIVATE" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${name}/*.cpp)
  if(NOT sources)
    return()
  endif()
  add_library(nvlsim_${name} STATIC ${sources})
  target_include_directories(nvlsim_${name} PUBLIC ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(nvlsim_${name} PUBLIC nvlsim_options PRIVATE fmt::fmt ${ARG_PRIVATE})
  target_precompile_headers(nvlsim_${name} REUSE_FROM nvlsim_precompiled)
  foreach(lower IN LISTS NVLSIM_MODULES)
    target_link_libraries(nvlsim_${name} PUBLIC nvlsim_${lower})
  endforeach()
  set(NVLSIM_MODULES ${name} ${NVLSIM_MODULES} PARENT_SCOPE)
endfunction()

# The program: the `cli` module linked over all the others.
function(nvlsim_program name module)
  cmake_parse_arguments(ARG "" "" "PRIVATE" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${module}/*.cpp)
  if(NOT sources)
    return()
  endif()
  add_executable(${name} ${sources})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(${name} PRIVATE nvlsim_options fmt::fmt ${ARG_PRIVATE})
  # Run once; CLI11 takes half as long to compile.
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  foreach(lower IN LISTS NVLSIM_MODULES)
    target_link_libraries(${name} PRIVATE nvlsim_${lower})
  endforeach()
endfunction()
