/* Instantiates the loops of a file in both precisions. The file has its loops within #ifdef REAL.
 * In its #else it defines REAL_TEMPLATE as its own name and includes this header, which includes
 * the file once for each precision. NAME(x) is x_fp32 or x_fp64. */
#define REAL          float
#define REAL_WIDE     false
#define REAL_INTEGER  uint32_t
#define REAL_MANTISSA 23 /* bits stored */
#define REAL_ABSOLUTE fabsf
#define REAL_COPYSIGN copysignf
#define REAL_ROOT     sqrtf
#define NAME(name)    name##_fp32
#include REAL_TEMPLATE /* NOLINT(bugprone-suspicious-include): the file itself */
#undef REAL
#undef REAL_WIDE
#undef REAL_INTEGER
#undef REAL_MANTISSA
#undef REAL_ABSOLUTE
#undef REAL_COPYSIGN
#undef REAL_ROOT
#undef NAME

#define REAL          double
#define REAL_WIDE     true
#define REAL_INTEGER  uint64_t
#define REAL_MANTISSA 52
#define REAL_ABSOLUTE fabs
#define REAL_COPYSIGN copysign
#define REAL_ROOT     sqrt
#define NAME(name)    name##_fp64
#include REAL_TEMPLATE /* NOLINT(bugprone-suspicious-include): the file itself */
#undef REAL
#undef REAL_WIDE
#undef NAME
#undef REAL_TEMPLATE
