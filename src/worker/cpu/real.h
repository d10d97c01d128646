/* What a template needs to know of its precision: define REAL_BITS as 32 or 64, then include the
 * template, which includes this. NAME(x) is x_fp32 or x_fp64. No include guard: it is to be
 * repeated. */
#undef REAL
#undef REAL_INTEGER
#undef REAL_MANTISSA
#undef REAL_ABSOLUTE
#undef REAL_COPYSIGN
#undef REAL_GEMM
#undef NAME

#if REAL_BITS == 32
#define REAL          float
#define REAL_INTEGER  uint32_t
#define REAL_MANTISSA 23 /* bits stored */
#define REAL_ABSOLUTE fabsf
#define REAL_COPYSIGN copysignf
#define REAL_GEMM     cblas_sgemm
#define NAME(name)    name##_fp32
#elif REAL_BITS == 64
#define REAL          double
#define REAL_INTEGER  uint64_t
#define REAL_MANTISSA 52
#define REAL_ABSOLUTE fabs
#define REAL_COPYSIGN copysign
#define REAL_GEMM     cblas_dgemm
#define NAME(name)    name##_fp64
#else
#error "REAL_BITS is 32 or 64"
#endif
