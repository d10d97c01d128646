/* What clang's analyzer cannot know of other people's functions; tests/lint_tidy.py includes it
 * before each file. */
#if __has_include(<mpi.h>)
#include <mpi.h>
/* Declared again, for what it adds. NOLINTNEXTLINE(readability-redundant-declaration) */
int MPI_Abort(MPI_Comm comm, int status) __attribute__((analyzer_noreturn));
#endif
