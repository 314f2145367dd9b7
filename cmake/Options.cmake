# Language level, floating point and warnings, as one interface target that every module links.
add_library(nvlsim_options INTERFACE)
target_compile_features(nvlsim_options INTERFACE cxx_std_20)
# No contracted multiply-add: results must agree between machines to the printed digits.
target_compile_options(nvlsim_options INTERFACE -ffp-contract=off)
target_compile_options(nvlsim_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor
                       -Wold-style-cast -Woverloaded-virtual)
# Once it has inlined strings and vectors, GCC 12 warns of paths that cannot be taken (its bug 105651 and relatives).
target_compile_options(nvlsim_options INTERFACE
                       $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict -Wno-stringop-overflow -Wno-free-nonheap-object>)
if(NVLSIM_WARNINGS_AS_ERRORS)
  target_compile_options(nvlsim_options INTERFACE -Werror)
endif()
if(NVLSIM_SANITIZE)
  target_compile_options(nvlsim_options INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=undefined
                         -fno-omit-frame-pointer)
  target_link_options(nvlsim_options INTERFACE -fsanitize=address,undefined)
endif()
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_CXX_EXTENSIONS OFF)
