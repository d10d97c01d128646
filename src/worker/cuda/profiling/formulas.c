#include "worker/cuda/profiling/formulas.h"

#include <math.h>
#include <string.h>

/* clang-format off */
#define TERM(metric, factor) {metric ".sum", factor, factor}
#define LIMITED(metric, factor, limit) {metric ".sum", factor, limit}
#define END {NULL, 0.0, 0.0}
#define THREADS(op) "sm__sass_thread_inst_executed_op_" op "_pred_on"
#define TENSOR(path) "sm__ops_path_tensor_" path

enum { WARP = 32, SECTOR = 32 /* byte */ };

static const struct formula_term absent[] = {END};

static const struct formula_term vector_fp64[] = {
    TERM(THREADS("dadd"), 1), TERM(THREADS("dmul"), 1), TERM(THREADS("dfma"), 2), END};
static const struct formula_term vector_fp32[] = {
    TERM(THREADS("fadd"), 1), TERM(THREADS("fmul"), 1), TERM(THREADS("ffma"), 2), END};
/* FFMA2, FADD2 and FMUL2 work on two numbers; only some Blackwell chips have them. */
static const struct formula_term vector_fp32_packed[] = {
    TERM(THREADS("fadd"), 1), TERM(THREADS("fmul"), 1), TERM(THREADS("ffma"), 2),
    TERM(THREADS("fadd2"), 2), TERM(THREADS("fmul2"), 2), TERM(THREADS("ffma2"), 4), END};
/* Leaves out additions: their counter also counts conversions from fp16 to fp32 (HADD2.F32). */
static const struct formula_term vector_fp16[] = {
    TERM(THREADS("hmul"), 2), TERM(THREADS("hfma"), 4), END};
/* HFMA2.MMA is a packed FMA on the tensor pipe; the compiler also loads constants with it. Real
 * FMAs go to both pipes evenly: if T of F are on the tensor pipe, at most 2 (F - T) are real. */
static const struct formula_term vector_fp16_on_two_pipes[] = {
    LIMITED(THREADS("hmul"), 2, 2), LIMITED(THREADS("hfma"), 4, 8),
    LIMITED("sm__inst_executed_pipe_tensor_op_hmma_type_hfma2", 0, -8 * WARP), END};

static const struct formula_term tensor_fp64[] = {TERM(TENSOR("src_fp64"), 1), END};
static const struct formula_term tensor_tf32[] = {TERM(TENSOR("src_tf32_dst_fp32"), 1), END};
static const struct formula_term tensor_fp16[] = {
    TERM(TENSOR("src_fp16_dst_fp16"), 1), TERM(TENSOR("src_fp16_dst_fp32"), 1), END};
static const struct formula_term tensor_fp16_turing[] = { /* Turing has neither bf16 nor tf32 */
    TERM(TENSOR("src_fp16_dst_fp16"), 1), TERM(TENSOR("src_fp16_bf16_tf32_dst_fp32"), 1), END};
static const struct formula_term tensor_fp16_any[] = {TERM(TENSOR("src_fp16"), 1), END};
static const struct formula_term tensor_bf16[] = {TERM(TENSOR("src_bf16_dst_fp32"), 1), END};
static const struct formula_term tensor_fp8_any[] = {TERM(TENSOR("src_fp8"), 1), END};
static const struct formula_term tensor_fp8[] = {
    TERM(TENSOR("src_fp8_dst_fp16"), 1), TERM(TENSOR("src_fp8_dst_fp32"), 1), END};
static const struct formula_term tensor_fp8_and_below[] = { /* one counter for fp4, fp6, fp8 */
    TERM(TENSOR("src_fp4_fp6_fp8_dst_fp16"), 1), TERM(TENSOR("src_fp4_fp6_fp8_dst_fp32"), 1), END};
/* Counts instructions for 4 bits only. Instructions for 8 bits also take fp4, as fp8 or fp6. */
static const struct formula_term tensor_fp4[] = {TERM(TENSOR("src_fp4_dst_fp32"), 1), END};
static const struct formula_term tensor_int8[] = {TERM(TENSOR("src_int8"), 1), END};

static const struct formula_term dram_read[] = {TERM("dram__bytes_read", 1), END};
static const struct formula_term dram_write[] = {TERM("dram__bytes_write", 1), END};
static const struct formula_term dram_op_read[] = {TERM("dram__bytes_op_read", 1), END};
static const struct formula_term dram_op_write[] = {TERM("dram__bytes_op_write", 1), END};
static const struct formula_term l2_read[] = {
    TERM("lts__t_sectors_srcunit_tex_op_read", SECTOR), END};
static const struct formula_term l2_write[] = {
    TERM("lts__t_sectors_srcunit_tex_op_write", SECTOR),
    TERM("lts__t_sectors_srcunit_tex_op_red", SECTOR),
    TERM("lts__t_sectors_srcunit_tex_op_atom", SECTOR), END};
#define L1_STORES "l1tex__t_bytes_pipe_lsu_mem_global_op_st"
static const struct formula_term l1_read[] = {TERM("l1tex__t_bytes", 1), TERM(L1_STORES, -1), END};
static const struct formula_term l1_write[] = {TERM(L1_STORES, 1), END};

/* Fraction of the peak of a multiprocessor while it has a warp. */
#define BUSY(metric)                                                                               \
    (const struct formula_term[]){{metric ".avg.pct_of_peak_sustained_active", 0.01, 0.01}, END}
/* An amount and its peak per second. CUPTI's elapsed time is 8 to 22 us longer than a kernel. */
#define AMOUNT(metric) (const struct formula_term[]){TERM(metric, 1), END}
#define PEAK(metric)                                                                               \
    (const struct formula_term[]){{metric ".sum.peak_sustained_elapsed.per_second", 1, 1}, END}
#define STALL(of, reason)                                                                          \
    [QUANTITY_ACTIVITY + ACTIVITY_STALL_##of] =                                                    \
        (const struct formula_term[]){TERM("smsp__warps_issue_stalled_" reason, 1), END}
#define NO_STALL(of) [QUANTITY_ACTIVITY + ACTIVITY_STALL_##of] = absent
#define DEVICE_MEMORY(read, write)                                                                 \
    [QUANTITY_DRAM_READ] = read, [QUANTITY_DRAM_WRITE] = write,                                    \
    [QUANTITY_ACTIVITY + ACTIVITY_DRAM] = AMOUNT("dram__bytes"),                                   \
    [QUANTITY_PEAK_DRAM] = PEAK("dram__bytes")
#define HOST_MEMORY                                                                                \
    [QUANTITY_DRAM_READ] = absent, [QUANTITY_DRAM_WRITE] = absent,                                 \
    [QUANTITY_ACTIVITY + ACTIVITY_DRAM] = absent, [QUANTITY_PEAK_DRAM] = absent
/* Memory and activities. The last arguments are DRAM, DRAM_OP or HOST_MEMORY. */
#define ACTIVITIES(imc_miss, gmma, ...)                                                            \
    __VA_ARGS__, imc_miss, gmma,                                                                   \
    [QUANTITY_L2_READ] = l2_read, [QUANTITY_L2_WRITE] = l2_write,                                  \
    [QUANTITY_L1_READ] = l1_read, [QUANTITY_L1_WRITE] = l1_write,                                  \
    [QUANTITY_ACTIVITY + ACTIVITY_L2] = AMOUNT("lts__t_sectors"),                                  \
    [QUANTITY_PEAK_L2] = PEAK("lts__t_sectors"),                                                   \
    [QUANTITY_ACTIVITY + ACTIVITY_DATA_PIPE] = BUSY("l1tex__data_pipe_lsu_wavefronts"),            \
    [QUANTITY_ACTIVITY + ACTIVITY_ISSUE] = BUSY("smsp__issue_active"),                             \
    [QUANTITY_ACTIVITY + ACTIVITY_FMA] = BUSY("sm__pipe_fma_cycles_active"),                       \
    [QUANTITY_ACTIVITY + ACTIVITY_FP64] = BUSY("sm__pipe_fp64_cycles_active"),                     \
    [QUANTITY_ACTIVITY + ACTIVITY_TENSOR] = BUSY("sm__pipe_tensor_cycles_active"),                 \
    [QUANTITY_ACTIVITY + ACTIVITY_THREADS] = BUSY("sm__warps_active"),                             \
    [QUANTITY_ACTIVITY + ACTIVITY_MULTIPROCESSORS] = AMOUNT("sm__cycles_active"),                  \
    [QUANTITY_PEAK_MULTIPROCESSORS] = PEAK("sm__cycles_active"),                                   \
    STALL(BARRIER, "barrier"), STALL(BRANCH_RESOLVING, "branch_resolving"),                        \
    STALL(DISPATCH_STALL, "dispatch_stall"), STALL(DRAIN, "drain"),                                \
    STALL(LG_THROTTLE, "lg_throttle"), STALL(LONG_SCOREBOARD, "long_scoreboard"),                  \
    STALL(MATH_PIPE_THROTTLE, "math_pipe_throttle"), STALL(MEMBAR, "membar"),                      \
    STALL(MIO_THROTTLE, "mio_throttle"), STALL(MISC, "misc"),                                      \
    STALL(NO_INSTRUCTION, "no_instruction"), STALL(SHORT_SCOREBOARD, "short_scoreboard"),          \
    STALL(SLEEPING, "sleeping"), STALL(TEX_THROTTLE, "tex_throttle"), STALL(WAIT, "wait"),         \
    STALL(NOT_SELECTED, "not_selected"), STALL(SELECTED, "selected")
#define DRAM           DEVICE_MEMORY(dram_read, dram_write)
#define DRAM_OP        DEVICE_MEMORY(dram_op_read, dram_op_write)
#define IMC_MISS       STALL(IMC_MISS, "imc_miss")
#define OLD(...)       ACTIVITIES(IMC_MISS, NO_STALL(GMMA), __VA_ARGS__) /* before Blackwell */
#define HOPPER         ACTIVITIES(IMC_MISS, STALL(GMMA, "gmma"), DRAM)
#define BLACKWELL(...) ACTIVITIES(NO_STALL(IMC_MISS), NO_STALL(GMMA), __VA_ARGS__)

#define VECTOR(fp64, fp32, fp16)                                                                   \
    [QUANTITY_VECTOR_FP64] = fp64, [QUANTITY_VECTOR_FP32] = fp32, [QUANTITY_VECTOR_FP16] = fp16
#define TENSORS(fp64, tf32, fp16, bf16, fp8, fp4, int8)                                            \
    [QUANTITY_TENSOR_FP64] = fp64, [QUANTITY_TENSOR_TF32] = tf32, [QUANTITY_TENSOR_FP16] = fp16,   \
    [QUANTITY_TENSOR_BF16] = bf16, [QUANTITY_TENSOR_FP8] = fp8, [QUANTITY_TENSOR_FP4] = fp4,       \
    [QUANTITY_TENSOR_INT8] = int8
#define SINCE_AMPERE(fp16, fp8, fp4)                                                               \
    TENSORS(tensor_fp64, tensor_tf32, fp16, tensor_bf16, fp8, fp4, tensor_int8)

/* On Blackwell constants are loaded with HFMA2 on the pipe of the real FMAs. No counter separates
 * the two, so 16-bit vector FLOPs are absent there. */
const struct chip_family chip_families[] = {
    {"GV100", {"GV100"}, {
        VECTOR(vector_fp64, vector_fp32, vector_fp16),
        TENSORS(absent, absent, tensor_fp16, absent, absent, absent, absent), OLD(DRAM)}},
    {"TU10x", {"TU102", "TU104", "TU106"}, {
        VECTOR(vector_fp64, vector_fp32, vector_fp16),
        TENSORS(absent, absent, tensor_fp16_turing, absent, absent, absent, tensor_int8),
        OLD(DRAM)}},
    {"TU11x", {"TU116", "TU117"}, { /* no tensor units */
        VECTOR(vector_fp64, vector_fp32, vector_fp16),
        TENSORS(absent, absent, absent, absent, absent, absent, absent), OLD(DRAM)}},
    {"GA100", {"GA100"}, {
        VECTOR(vector_fp64, vector_fp32, vector_fp16_on_two_pipes),
        SINCE_AMPERE(tensor_fp16, absent, absent), OLD(DRAM)}},
    {"GA10x", {"GA102", "GA103", "GA104", "GA106", "GA107"}, {
        VECTOR(vector_fp64, vector_fp32, vector_fp16),
        SINCE_AMPERE(tensor_fp16, absent, absent), OLD(DRAM)}},
    {"GA10B", {"GA10B"}, {
        VECTOR(vector_fp64, vector_fp32, vector_fp16_on_two_pipes),
        SINCE_AMPERE(tensor_fp16, absent, absent), OLD(HOST_MEMORY)}},
    {"AD10x", {"AD102", "AD103", "AD104", "AD106", "AD107"}, {
        VECTOR(vector_fp64, vector_fp32, vector_fp16),
        SINCE_AMPERE(tensor_fp16, tensor_fp8_any, absent), OLD(DRAM)}},
    {"GH100", {"GH100"}, {
        VECTOR(vector_fp64, vector_fp32, vector_fp16_on_two_pipes),
        SINCE_AMPERE(tensor_fp16_any, tensor_fp8_any, absent), HOPPER}},
    {"GB100", {"GB100", "GB102"}, {
        VECTOR(vector_fp64, vector_fp32_packed, absent),
        SINCE_AMPERE(tensor_fp16, tensor_fp8_and_below, tensor_fp4), BLACKWELL(DRAM)}},
    {"GB11x", {"GB110", "GB112"}, {
        VECTOR(vector_fp64, vector_fp32_packed, absent),
        SINCE_AMPERE(tensor_fp16, tensor_fp8, tensor_fp4), BLACKWELL(DRAM)}},
    {"GB10B", {"GB10B", "GB10C"}, {
        VECTOR(vector_fp64, vector_fp32, absent),
        SINCE_AMPERE(tensor_fp16, tensor_fp8_and_below, tensor_fp4), BLACKWELL(HOST_MEMORY)}},
    {"GB20x", {"GB202", "GB203", "GB205", "GB206", "GB207"}, {
        VECTOR(vector_fp64, vector_fp32, absent),
        SINCE_AMPERE(tensor_fp16, tensor_fp8, tensor_fp4), BLACKWELL(DRAM_OP)}},
    {"GB20B", {"GB20B", "GB20C"}, {
        VECTOR(vector_fp64, vector_fp32, absent),
        SINCE_AMPERE(tensor_fp16, tensor_fp8, tensor_fp4), BLACKWELL(HOST_MEMORY)}},
    {"GR100", {"GR100"}, { /* the counter of fp4 is unknown */
        VECTOR(vector_fp64, vector_fp32_packed, absent),
        SINCE_AMPERE(tensor_fp16, tensor_fp8, absent), BLACKWELL(DRAM_OP)}},
    {NULL, {NULL}, {NULL}},
};
/* clang-format on */

const struct chip_family *chip_family_find(const char *chip)
{
    for (const struct chip_family *family = chip_families; family->name; ++family)
        for (size_t i = 0; i < sizeof family->chips / sizeof *family->chips; ++i)
            if (family->chips[i] && strcmp(family->chips[i], chip) == 0)
                return family;
    return NULL;
}

bool chip_family_has(const struct chip_family *family, enum quantity quantity)
{
    return family->formula[quantity]->metric != NULL;
}

/* Returns the index of the metric in the list, or `count`. */
static size_t find(const char *const *metrics, size_t count, const char *metric)
{
    size_t i = 0;
    while (i < count && strcmp(metrics[i], metric) != 0)
        ++i;
    return i;
}

size_t formulas_metrics(const struct chip_family *family, const bool wanted[QUANTITY_COUNT],
                        const char *metrics[FORMULAS_METRICS_MAX])
{
    size_t count = 0;
    for (int quantity = 0; quantity < QUANTITY_COUNT; ++quantity)
        for (const struct formula_term *term = family->formula[quantity];
             wanted[quantity] && term->metric; ++term)
            if (find(metrics, count, term->metric) == count && count < FORMULAS_METRICS_MAX)
                metrics[count++] = term->metric;
    return count;
}

double formulas_evaluate(const struct chip_family *family, enum quantity quantity,
                         const char *const *metrics, const double *values, size_t count)
{
    double sum = 0.0, limit = 0.0;
    if (!chip_family_has(family, quantity))
        return NAN;
    for (const struct formula_term *term = family->formula[quantity]; term->metric; ++term) {
        size_t at = find(metrics, count, term->metric);
        double value = at < count ? values[at] : NAN;
        sum += term->factor * value;
        limit += term->limit * value;
    }
    return isnan(sum) || isnan(limit) ? NAN : fmax(0.0, fmin(sum, limit));
}
