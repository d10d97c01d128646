/* Attributes of library functions that clang's analyzer needs. tests/lint_tidy.py includes this
 * header before each file. */
#if __has_include(<mpi.h>)
#include <mpi.h>
/* Redeclared to add an attribute. NOLINTNEXTLINE(readability-redundant-declaration) */
int MPI_Abort(MPI_Comm comm, int status) __attribute__((analyzer_noreturn));
#endif
