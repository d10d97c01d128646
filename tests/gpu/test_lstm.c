/* The kernel of lstm, as trial.h says: around all sizes where it takes another way. */
#include "kernels/kernels.h"
#include "model/workloads/lstm.h"
#include "trial.h"

static void lstm_arrays(const struct config *config, struct trial_arrays *arrays)
{
    struct lstm s = lstm_from(config);
    arrays->reads[TENSOR_INPUT] = lstm_x_size(&s);
    arrays->reads[TENSOR_WEIGHT] = lstm_w_size(&s);
    arrays->writes[TENSOR_OUTPUT] = lstm_y_size(&s);
    arrays->between = (s.layers - 1) * lstm_y_size(&s);
}

/* A launch for each layer; the outputs of all but the last follow each other. */
static cudaError_t lstm_launch(const struct config *config, const struct trial_arrays *arrays)
{
    struct lstm s = lstm_from(config);
    size_t element = precision_info[s.precision].bytes, y = (size_t)lstm_y_size(&s) * element;
    cudaError_t code = cudaSuccess;
    for (int64_t layer = 0; layer < s.layers && code == cudaSuccess; ++layer) {
        char *own = (char *)arrays->scratch + (size_t)layer * y;
        const char *w = (const char *)arrays->input[TENSOR_WEIGHT] +
                        (size_t)lstm_w_at(&s, layer, 0, LSTM_INPUT_MATRIX) * element;
        code = kernel_lstm(&s, lstm_input_width(&s, layer),
                           layer == s.layers - 1 ? arrays->result[TENSOR_OUTPUT] : own,
                           layer ? own - y : arrays->input[TENSOR_INPUT], w, NULL);
    }
    return code;
}

static const struct trial kinds[] = {
    {"lstm", lstm_arrays, lstm_launch},
    {NULL, NULL, NULL},
};

static const char *const precisions[] = {"precision=fp16", "precision=bf16", NULL};

/* Eight samples and units, 16 summands, eight or four steps together, 64 units in a block; with
 * more of them two blocks, then four. */
static void all_check(struct trials *trials)
{
    static const char *const blocks[] = {
        "batch=16",
        "batch=1 sequence=1 features=4 hidden=4",
        "batch=9 sequence=7 features=12 hidden=8",
        "batch=8 sequence=9 features=36 hidden=20",
        "batch=130 sequence=5 features=256 hidden=16",
        "batch=5 sequence=8 hidden=36 directions=2",
        "batch=3 sequence=5 features=8 hidden=12 layers=3 directions=2",
        "batch=16 sequence=128",
        "batch=11 sequence=33 features=20 hidden=64",
        NULL,
    };
    static const char *const clusters[] = {
        "batch=7 sequence=3 hidden=68",
        "batch=20 sequence=13 features=36 hidden=100 directions=2",
        "batch=16 hidden=128 layers=2",
        "batch=9 sequence=6 features=12 hidden=132",
        "batch=4 sequence=13 hidden=196",
        "batch=24 sequence=9 features=64 hidden=256",
        NULL,
    };
    int major = 0;
    cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0);
    trial_cross(trials, "lstm", (const char *const *const[]){blocks, precisions, NULL});
    if (major >= 9)
        trial_cross(trials, "lstm", (const char *const *const[]){clusters, precisions, NULL});
}

int main(int count, char **arguments)
{
    return trial_main(count, arguments, kinds, all_check);
}
