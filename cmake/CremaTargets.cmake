# Helpers that make targets: a library per folder of src, a test program per folder of tests, a program per tool.
add_library(crema_flags INTERFACE)
target_compile_options(crema_flags INTERFACE
  $<$<COMPILE_LANGUAGE:C,CXX>:-Wall;-Wextra;$<$<BOOL:${CREMA_WERROR}>:-Werror>>)
target_include_directories(crema_flags INTERFACE ${CMAKE_SOURCE_DIR}/src)
if(SANITIZE)
  target_compile_options(crema_flags INTERFACE -fsanitize=${SANITIZE} -fno-omit-frame-pointer -g
    -D_GLIBCXX_ASSERTIONS)
  target_link_options(crema_flags INTERFACE -fsanitize=${SANITIZE})
endif()

# crema_library(NAME [SHARED|STATIC|OBJECT] LINKS target... [PRECOMPILE header...]): all .cpp files of the calling
# folder. PRECOMPILE names headers that nearly every file reads.
function(crema_library name kind)
  cmake_parse_arguments(ARG "" "" "LINKS;PRECOMPILE" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  if(NOT sources)
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE crema_flags ${ARG_LINKS})
    return()
  endif()
  add_library(${name} ${kind} ${sources})
  target_link_libraries(${name} PUBLIC crema_flags ${ARG_LINKS})
  if(ARG_PRECOMPILE)
    target_precompile_headers(${name} PRIVATE ${ARG_PRECOMPILE})
    target_compile_options(${name} PRIVATE -fpch-preprocess)
  endif()
endfunction()

# crema_tests(NAME LINKS target... [LABELS label...]): one test program of the calling folder's .cpp files, each TEST a
# ctest of its own.
function(crema_tests name)
  cmake_parse_arguments(ARG "" "" "LINKS;PRECOMPILE;LABELS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  if(NOT sources)
    return()
  endif()
  add_executable(${name} ${sources})
  target_link_libraries(${name} PRIVATE crema_flags ${ARG_LINKS} GTest::gtest_main)
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  target_compile_options(${name} PRIVATE -O0)  # tests wait for the compiler, not for themselves
  if(ARG_PRECOMPILE)
    target_precompile_headers(${name} PRIVATE ${ARG_PRECOMPILE})
    target_compile_options(${name} PRIVATE -fpch-preprocess)
  endif()
  target_compile_definitions(${name} PRIVATE CREMA_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
    CREMA_BIN_DIR="${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  set(skipped)
  if(NOT CREMA_OPENCV)  # what needs pictures is skipped where the build has none
    set(skipped SKIP_REGULAR_EXPRESSION "[[]  SKIPPED []]|this build cannot read or write pictures")
  endif()
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}
    PROPERTIES ${skipped} TIMEOUT 300 LABELS "${ARG_LABELS}")
endfunction()
