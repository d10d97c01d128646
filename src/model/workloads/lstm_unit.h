/* A unit of a recurrent layer from the definition, on the host and on GPUs: part of the templates
 * lstm_network.h and kernels/lstm_reference.cu, which define REAL and NAME(x). */
#include "model/workloads/lstm.h"

#undef UNIT_FUNCTION
#ifdef __CUDACC__
#define UNIT_FUNCTION static inline __device__
#else
#include <tgmath.h>
#define UNIT_FUNCTION static inline
#endif

/* A unit at one step of one sample. */
struct NAME(unit) {
    REAL sums[LSTM_SUMS]; /* forward leaves the gates here: sigmoid or tanh of a sum */
    REAL state;           /* c of an LSTM; h of other cells */
};

UNIT_FUNCTION REAL NAME(gate)(REAL v)
{
    return 1 / (1 + exp(-v));
}

/* `before`: the state of the previous step. Returns h, before a projection. */
UNIT_FUNCTION REAL NAME(unit_forward)(enum lstm_kind kind, struct NAME(unit) * unit, REAL before)
{
    REAL *v = unit->sums;
    switch (kind) {
    case LSTM_LSTM:
        v[0] = NAME(gate)(v[0]);
        v[1] = NAME(gate)(v[1]);
        v[2] = tanh(v[2]);
        v[3] = NAME(gate)(v[3]);
        unit->state = v[1] * before + v[0] * v[2];
        return v[3] * tanh(unit->state);
    case LSTM_GRU:
        v[0] = NAME(gate)(v[0]);
        v[1] = NAME(gate)(v[1]);
        v[2] = tanh(v[2] + v[1] * v[3]);
        return unit->state = (1 - v[0]) * v[2] + v[0] * before;
    case LSTM_RELU:
        return unit->state = v[0] = v[0] > 0 ? v[0] : 0;
    default:
        return unit->state = v[0] = tanh(v[0]);
    }
}

/* `d`: the gradient of h. *carried: the part of the state's gradient that comes from the next
 * step; becomes the part for the previous step. Sets the gradients of the sums. */
UNIT_FUNCTION void NAME(unit_backward)(enum lstm_kind kind, const struct NAME(unit) * unit,
                                       REAL before, REAL d, REAL *carried, REAL dsums[LSTM_SUMS])
{
    const REAL *v = unit->sums;
    if (kind == LSTM_LSTM) {
        REAL i = v[0], f = v[1], g = v[2], o = v[3];
        REAL t = tanh(unit->state), dc = *carried + d * o * (1 - t * t);
        *carried = dc * f;
        dsums[0] = dc * g * i * (1 - i);
        dsums[1] = dc * before * f * (1 - f);
        dsums[2] = dc * i * (1 - g * g);
        dsums[3] = d * t * o * (1 - o);
    } else if (kind == LSTM_GRU) {
        REAL z = v[0], r = v[1], n = v[2], q = v[3], dh = d + *carried;
        *carried = dh * z;
        dsums[0] = dh * (before - n) * z * (1 - z);
        dsums[2] = dh * (1 - z) * (1 - n * n);
        dsums[1] = dsums[2] * q * r * (1 - r);
        dsums[3] = dsums[2] * r;
    } else if (kind == LSTM_RELU) {
        dsums[0] = v[0] > 0 ? d : 0;
    } else {
        dsums[0] = d * (1 - v[0] * v[0]);
    }
}
