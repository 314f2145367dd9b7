// The one source for which CMake compiles the headers that all tests share (tests/CMakeLists.txt).
