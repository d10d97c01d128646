# Sets up roofsweep::cblas: single-precision and double-precision GEMM behind CBLAS, with 32-bit integers.
#
# Uses OpenBLAS if pkg-config knows it, else the first BLAS that FindBLAS finds. -DBLA_VENDOR=NAME selects another, by
# its name in FindBLAS (FlexiBLAS, Intel10_64lp_seq, NVPL, AOCL, Generic, ...). CBLAS_INCLUDE_DIR and CBLAS_LIBRARY name
# header and library if they are not found.
include(CheckSymbolExists)

if(NOT BLA_VENDOR AND NOT CBLAS_LIBRARY AND PkgConfig_FOUND)
  pkg_check_modules(openblas QUIET IMPORTED_TARGET openblas)
endif()
if(CBLAS_LIBRARY)
  set(cblas_link ${CBLAS_LIBRARY})
elseif(openblas_FOUND)
  set(cblas_link PkgConfig::openblas)
else()
  set(BLA_SIZEOF_INTEGER 4)
  find_package(BLAS QUIET)
  if(BLAS_FOUND)
    set(cblas_link BLAS::BLAS)
  endif()
endif()

# Vendors have different names or folders for the header.
if(BLA_VENDOR)
  string(TOLOWER "${BLA_VENDOR}" vendor)
endif()
find_path(CBLAS_INCLUDE_DIR NAMES cblas.h mkl_cblas.h nvpl_blas_cblas.h
  HINTS ${openblas_INCLUDE_DIRS} $ENV{MKLROOT}/include
  PATH_SUFFIXES ${vendor} flexiblas openblas aocl-blis blis mkl)
foreach(header cblas.h mkl_cblas.h nvpl_blas_cblas.h)
  if(NOT CBLAS_HEADER AND CBLAS_INCLUDE_DIR AND EXISTS ${CBLAS_INCLUDE_DIR}/${header})
    set(CBLAS_HEADER ${header})
  endif()
endforeach()

if(cblas_link AND CBLAS_HEADER)
  set(CMAKE_REQUIRED_INCLUDES ${CBLAS_INCLUDE_DIR})
  set(CMAKE_REQUIRED_LIBRARIES ${cblas_link} m)
  check_symbol_exists(cblas_dgemm ${CBLAS_HEADER} CBLAS_IN_BLAS)
  if(NOT CBLAS_IN_BLAS) # netlib and ATLAS have CBLAS in a separate library
    find_library(CBLAS_LIBRARY cblas)
    if(CBLAS_LIBRARY)
      list(PREPEND cblas_link ${CBLAS_LIBRARY})
      set(CMAKE_REQUIRED_LIBRARIES ${cblas_link} m)
      check_symbol_exists(cblas_dgemm ${CBLAS_HEADER} CBLAS_BESIDE_BLAS)
    endif()
  endif()
  unset(CMAKE_REQUIRED_INCLUDES)
  unset(CMAKE_REQUIRED_LIBRARIES)
endif()

if(CBLAS_IN_BLAS OR CBLAS_BESIDE_BLAS)
  add_library(roofsweep_cblas INTERFACE)
  add_library(roofsweep::cblas ALIAS roofsweep_cblas)
  target_link_libraries(roofsweep_cblas INTERFACE ${cblas_link} ${CMAKE_DL_LIBS})
  target_include_directories(roofsweep_cblas SYSTEM INTERFACE ${CBLAS_INCLUDE_DIR})
  target_compile_definitions(roofsweep_cblas INTERFACE ROOFSWEEP_CBLAS_HEADER=<${CBLAS_HEADER}>)
else()
  list(APPEND missing "a CBLAS (Debian: libopenblas-dev; another: BLA_VENDOR; none: -DROOFSWEEP_CPU=OFF)")
endif()
