# Tests that are not one CUnit program: house rules, fuzz targets.
add_test(NAME house.rules COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/house/rules.sh ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
set_tests_properties(house.rules PROPERTIES LABELS house)

if(BW_SANITIZE AND CMAKE_C_COMPILER_ID MATCHES Clang)
  add_custom_target(fuzz_targets)
  file(GLOB fuzzers CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/fuzz/*_fuzz.c)
  foreach(path IN LISTS fuzzers)
    get_filename_component(name ${path} NAME_WE)
    string(REGEX REPLACE "_fuzz$" "" name ${name})
    add_executable(fuzz_${name} EXCLUDE_FROM_ALL ${path})
    set_target_properties(fuzz_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
    target_link_libraries(fuzz_${name} PRIVATE bw_flags ${bw_test_library} -fsanitize=fuzzer)
    add_dependencies(fuzz_targets fuzz_${name})
  endforeach()
endif()

# Kernels for the host device, as objects in the code models that compilers emit.
function(bw_host_kernels variant)
  add_library(host_kernels_${variant} OBJECT ${CMAKE_CURRENT_SOURCE_DIR}/unit/drivers/host/kernels.c)
  target_include_directories(host_kernels_${variant} PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include)
  set_target_properties(host_kernels_${variant} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(host_kernels_${variant} PRIVATE -ffp-contract=off ${ARGN})
  string(TOUPPER ${variant} upper)
  foreach(path IN LISTS tests)
    if(path MATCHES "unit/(hcq|drivers/host|drivers/null)/|scenario/hcq_")
      string(REGEX REPLACE "_test\\.c$" "" name ${path})
      string(REPLACE "/" "." name ${name})
      target_compile_definitions(${name} PRIVATE BW_HOST_KERNELS_${upper}="$<TARGET_OBJECTS:host_kernels_${variant}>")
      add_dependencies(${name} host_kernels_${variant})
    endif()
  endforeach()
endfunction()
bw_host_kernels(pic -O2 -fPIC)
bw_host_kernels(large -O2 -fno-pic -mcmodel=large)
bw_host_kernels(plain -O0 -fPIC -mcmodel=large)
if(TARGET unit.iface.kfd_uapi)
  target_include_directories(unit.iface.kfd_uapi PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/compat)
endif()

# 72 compilations.
if(TARGET unit.mock.isa.disasm_corpus)
  set_tests_properties(unit.mock.isa.disasm_corpus PROPERTIES LABELS "unit;slow")
endif()

# Kernels compiled in several variants.
foreach(name exec_corpus exec_opencl)
  if(TARGET unit.mock.isa.${name})
    set_tests_properties(unit.mock.isa.${name} PROPERTIES LABELS "unit;slow")
  endif()
endforeach()

# The labels of the emulator's operations: what unit.mock.isa.exec_ops_* establish (unit/mock/isa/exec_proof.h).
set(programs)
foreach(path IN LISTS tests)
  if(path MATCHES "unit/mock/isa/(exec_ops_.*)_test\\.c$")
    list(APPEND programs unit.mock.isa.${CMAKE_MATCH_1})
  endif()
endforeach()
set_tests_properties(${programs} PROPERTIES FIXTURES_SETUP isa_fidelity)
set_tests_properties(unit.mock.isa.fidelity PROPERTIES FIXTURES_REQUIRED isa_fidelity)
string(REPLACE ";" "," programs "${programs}")
target_compile_definitions(unit.mock.isa.fidelity PRIVATE BW_FIDELITY_PROGRAMS="${programs}")
string(REPLACE "," ";" programs "${programs}")
add_custom_target(fidelity # writes docs/fidelity.md
  COMMAND ${CMAKE_CTEST_COMMAND} --test-dir ${PROJECT_BINARY_DIR} -R "^unit[.]mock[.]isa[.]exec_ops_" --output-on-failure
  COMMAND unit.mock.isa.fidelity --write
  DEPENDS ${programs} VERBATIM)

if(TARGET sample_vector_add)
  add_test(NAME samples.vector_add COMMAND sample_vector_add mockkfd+amd@gfx1100)
  set_tests_properties(samples.vector_add PROPERTIES LABELS samples)
endif()
if(TARGET sample_null_gpu)
  add_test(NAME samples.null_gpu COMMAND sample_null_gpu)
  set_tests_properties(samples.null_gpu PROPERTIES LABELS samples)
endif()

# The program's subcommands, good and bad use: tests/cli/*_test.sh PROGRAM SOURCE_DIR JSON_CHECK TRACE_CHECK.
if(TARGET bellwire-cli)
  add_executable(json_check ${CMAKE_CURRENT_SOURCE_DIR}/cli/json_check.c)
  target_link_libraries(json_check PRIVATE bw_flags bellwire-core)
  add_executable(trace_check ${CMAKE_CURRENT_SOURCE_DIR}/cli/trace_check.c)
  target_link_libraries(trace_check PRIVATE bw_flags bellwire-core)
  file(GLOB scripts CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/cli/*_test.sh)
  foreach(path IN LISTS scripts)
    get_filename_component(name ${path} NAME_WE)
    string(REGEX REPLACE "_test$" "" name ${name})
    add_test(NAME cli.${name} COMMAND bash ${path} $<TARGET_FILE:bellwire-cli> ${PROJECT_SOURCE_DIR}
      $<TARGET_FILE:json_check> $<TARGET_FILE:trace_check>)
    set(labels cli)
    if(name MATCHES "^(arguments|cache|compile|files|help|interrupt|json|launch|limits|mock|output|run|text|usage)$") # dozens of runs each
      list(APPEND labels slow)
    endif()
    set_tests_properties(cli.${name} PROPERTIES LABELS "${labels}" TIMEOUT 300 SKIP_RETURN_CODE 77)
  endforeach()
endif()
if(TARGET sample_ocr)
  add_test(NAME conformance.ocr COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/conformance/ocr.sh $<TARGET_FILE:sample_ocr>
    ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
  set_tests_properties(conformance.ocr PROPERTIES LABELS "conformance;slow" SKIP_RETURN_CODE 77 TIMEOUT 600)
endif()
if(TARGET conformance.models)
  set_tests_properties(conformance.models PROPERTIES LABELS "conformance;slow" TIMEOUT 600)
endif()

# The ONNX backend tests once more through compiled kernels: on the CPU, and on the mock gfx1100.
if(TARGET conformance.onnx)
  foreach(device host mockkfd+amd@gfx1100)
    string(REGEX REPLACE "[+].*" "" name ${device})
    add_test(NAME conformance.onnx.${name} COMMAND conformance.onnx -d ${device})
    set_tests_properties(conformance.onnx.${name} PROPERTIES LABELS "conformance;slow" SKIP_RETURN_CODE 77 TIMEOUT 900)
  endforeach()
endif()

# What an installation is good for; consumers of a sanitized library would need its sanitizer.
if(TARGET bellwire-cli AND NOT BW_SANITIZE AND NOT BW_FUZZ)
  add_test(NAME install.consumers COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/install/install.sh ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR})
  set_tests_properties(install.consumers PROPERTIES LABELS "install;slow" TIMEOUT 300)
endif()

if(BW_SANITIZE MATCHES thread)
  get_property(all_tests DIRECTORY PROPERTY TESTS)
  set_property(TEST ${all_tests} APPEND PROPERTY ENVIRONMENT
    "TSAN_OPTIONS=suppressions=${CMAKE_CURRENT_SOURCE_DIR}/tsan.supp")
endif()
