# The execution files of the ISA emulator are compiled once per instruction-set level of the host; bw_isa_pool_create picks
# the level by cpuid. The plain compilation of each file is the lowest level; the others are wrappers made here.
set(BW_EXEC_LEVELS)
# Instrumented builds check the same source once, at the lowest level: the others cost minutes and show nothing more.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64" AND NOT BW_SANITIZE)
  set(BW_EXEC_LEVELS avx2 avx512)
endif()
# No contraction: a multiply and an add are two roundings in the ISA, as written. No vzeroupper: handlers run in chains.
set(BW_EXEC_OPTIMISE -O3)
if(BW_SANITIZE)
  set(BW_EXEC_OPTIMISE -O1)
endif()
set(BW_EXEC_FLAGS ${BW_EXEC_OPTIMISE} -ffp-contract=off -fno-math-errno -fno-trapping-math -Wno-psabi)
if(CMAKE_C_COMPILER_ID MATCHES Clang)
  # Its conversion of unsigned vectors takes a difference whose zero is negative when MODE rounds down.
  list(APPEND BW_EXEC_FLAGS -frounding-math)
endif()
set(BW_EXEC_FLAGS_avx2 -mavx2 -mfma -mf16c -mbmi -mbmi2 -mno-vzeroupper)
set(BW_EXEC_FLAGS_avx512 ${BW_EXEC_FLAGS_avx2} -mavx512f -mavx512dq -mavx512vl -mavx512bw -mprefer-vector-width=512)
file(GLOB BW_EXEC_FILES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/mock/isa/exec_*.c)
if(BW_EXEC_LEVELS)
  set_source_files_properties(${PROJECT_SOURCE_DIR}/mock/isa/pool.c PROPERTIES COMPILE_DEFINITIONS BW_EXEC_LEVELS_X86)
endif()
foreach(file IN LISTS BW_EXEC_FILES)
  set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS "${BW_EXEC_FLAGS}")
  get_filename_component(name ${file} NAME_WE)
  foreach(level IN LISTS BW_EXEC_LEVELS)
    set(wrapper ${PROJECT_BINARY_DIR}/mock-isa/${name}_${level}.c)
    file(CONFIGURE OUTPUT ${wrapper} CONTENT "#include \"mock/isa/${name}.c\"\n")
    set_source_files_properties(${wrapper} PROPERTIES COMPILE_OPTIONS "${BW_EXEC_FLAGS};${BW_EXEC_FLAGS_${level}}"
                                OBJECT_DEPENDS ${file})
    list(APPEND BW_CORE_SOURCES ${wrapper})
  endforeach()
endforeach()
