/* Recurrent layers, unrolled over time: one matrix product for the inputs of all steps, one per step for the
 * state. */
#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "compiler/onnx/ops.h"

enum { RNN = 1, GRU = 3, LSTM = 4 }; /* gates */
enum { STEPS_MAX = 1 << 14 };        /* each is a few dozen operations of the graph */

struct activation {
    struct bw_bytes name;
    double alpha, beta;
};

struct recurrent {
    int64_t gates, steps, batch, inputs, hidden, directions;
    bool reverse_only, batch_first, linear_before_reset, input_forget, has_clip;
    double clip;
    struct activation activations[6]; /* up to three per direction */
    uint32_t per_direction;
    bw_tensor x, w, r, b, lengths, h, c, p; /* x [T, B, I]; others as given; id 0 when absent */
    bw_tensor running;                      /* bool [T, B, 1], with lengths */
};

/* ---- activations ---- */

struct activation_row {
    const char *name;
    double alpha, beta;
};

static const struct activation_row activation_rows[] = {
    {"Sigmoid", 0, 0},      {"Tanh", 0, 0},
    {"Relu", 0, 0},         {"Affine", 1, 0},
    {"LeakyRelu", 0.01, 0}, {"ThresholdedRelu", 1, 0},
    {"ScaledTanh", 1, 1},   {"HardSigmoid", 0.2, 0.5},
    {"Elu", 1, 0},          {"Softsign", 0, 0},
    {"Softplus", 0, 0},
};

static bw_tensor constant(struct bw_onnx_call *c, bw_tensor like, double value)
{
    return bw_onnx_scalar_like(c, like, value);
}

static bw_tensor affine(struct bw_onnx_call *c, bw_tensor x, double factor, double addend)
{
    return bw_tensor_add(c->g, bw_tensor_mul(c->g, x, constant(c, x, factor)), constant(c, x, addend));
}

static bw_tensor activate_rare(struct bw_onnx_call *c, const struct activation *a, bw_tensor x)
{
    bw_tensor zero = constant(c, x, 0), one = constant(c, x, 1), negative = bw_tensor_less(c->g, x, zero);
    if (bw_onnx_equals(a->name, "LeakyRelu"))
        return bw_tensor_where(c->g, negative, affine(c, x, a->alpha, 0), x);
    if (bw_onnx_equals(a->name, "ThresholdedRelu"))
        return bw_tensor_where(c->g, bw_tensor_greater(c->g, x, constant(c, x, a->alpha)), x, zero);
    if (bw_onnx_equals(a->name, "ScaledTanh"))
        return affine(c, bw_tensor_tanh(c->g, affine(c, x, a->beta, 0)), a->alpha, 0);
    if (bw_onnx_equals(a->name, "HardSigmoid"))
        return bw_tensor_max(c->g, bw_tensor_min(c->g, affine(c, x, a->alpha, a->beta), one), zero);
    if (bw_onnx_equals(a->name, "Elu"))
        return bw_tensor_where(c->g, negative,
                               affine(c, bw_tensor_sub(c->g, bw_tensor_exp(c->g, x), one), a->alpha, 0), x);
    if (bw_onnx_equals(a->name, "Softsign"))
        return bw_tensor_div(c->g, x, bw_tensor_add(c->g, bw_tensor_abs(c->g, x), one));
    bw_tensor tail = bw_tensor_exp(c->g, bw_tensor_neg(c->g, bw_tensor_abs(c->g, x))); /* Softplus */
    return bw_tensor_add(c->g, bw_tensor_relu(c->g, x), bw_tensor_log(c->g, bw_tensor_add(c->g, tail, one)));
}

static bw_tensor activate(struct bw_onnx_call *c, const struct recurrent *n, const struct activation *a,
                          bw_tensor x)
{
    if (n->has_clip)
        x = bw_tensor_max(c->g, bw_tensor_min(c->g, x, constant(c, x, n->clip)), constant(c, x, -n->clip));
    if (bw_onnx_equals(a->name, "Sigmoid"))
        return bw_tensor_sigmoid(c->g, x);
    if (bw_onnx_equals(a->name, "Tanh"))
        return bw_tensor_tanh(c->g, x);
    if (bw_onnx_equals(a->name, "Relu"))
        return bw_tensor_relu(c->g, x);
    return bw_onnx_equals(a->name, "Affine") ? affine(c, x, a->alpha, a->beta) : activate_rare(c, a, x);
}

/* alpha and beta are lists with entries only for the activations that take them; those without keep their
 * defaults. */
static int activations_read(struct bw_onnx_call *c, struct recurrent *n)
{
    static const char *const usual[] = {"Sigmoid", "Tanh",
                                        "Tanh"}; /* LSTM; GRU its first two, RNN the second */
    const struct bw_onnx_attribute *names = bw_onnx_attribute(c, "activations", BW_ONNX_ATTR_STRINGS);
    const struct bw_onnx_attribute *alpha = bw_onnx_attribute(c, "activation_alpha", BW_ONNX_ATTR_FLOATS);
    const struct bw_onnx_attribute *beta = bw_onnx_attribute(c, "activation_beta", BW_ONNX_ATTR_FLOATS);
    n->per_direction = n->gates == LSTM ? 3 : n->gates == GRU ? 2 : 1;
    uint32_t count = n->per_direction * (uint32_t)n->directions;
    if (names && names->count != count)
        return bw_onnx_fail(c, -EINVAL, "%llu activations instead of %u", (unsigned long long)names->count,
                            count);
    for (uint32_t i = 0; i < count; i++) {
        struct activation *a = &n->activations[i];
        const char *absent = usual[(i % n->per_direction) + (n->gates == RNN)];
        const struct activation_row *row = NULL;
        a->name = names ? names->strings[i] : (struct bw_bytes){(const uint8_t *)absent, strlen(absent)};
        for (size_t k = 0; k < BW_COUNT_OF(activation_rows); k++)
            if (bw_onnx_equals(a->name, activation_rows[k].name))
                row = &activation_rows[k];
        if (!row)
            return bw_onnx_fail(c, -ENOTSUP, "activation '%s'", bw_onnx_text(a->name).text);
        a->alpha = alpha && i < alpha->count ? (double)alpha->floats[i] : row->alpha;
        a->beta = beta && i < beta->count ? (double)beta->floats[i] : row->beta;
    }
    return c->rc;
}

/* ---- pieces ---- */

/* x[.., start:stop, ..] along an axis. */
static bw_tensor part(struct bw_onnx_call *c, bw_tensor x, uint32_t axis, int64_t start, int64_t stop)
{
    int64_t starts[BW_TENSOR_RANK_MAX] = {0}, stops[BW_TENSOR_RANK_MAX], steps[BW_TENSOR_RANK_MAX];
    for (uint32_t i = 0; i < bw_tensor_rank(c->g, x); i++) {
        stops[i] = bw_tensor_dims(c->g, x)[i];
        steps[i] = 1;
    }
    starts[axis] = start;
    stops[axis] = stop;
    return bw_tensor_slice(c->g, x, starts, stops, steps);
}

/* x[i] of the first axis, without it. */
static bw_tensor element(struct bw_onnx_call *c, bw_tensor x, int64_t i)
{
    if (!x.id)
        return x;
    bw_tensor one = part(c, x, 0, i, i + 1);
    return bw_tensor_reshape(c->g, one, bw_tensor_rank(c->g, x) - 1, bw_tensor_dims(c->g, x) + 1);
}

static bw_tensor gate(struct bw_onnx_call *c, const struct recurrent *n, bw_tensor x, int64_t i)
{
    return x.id ? part(c, x, bw_tensor_rank(c->g, x) - 1, i * n->hidden, (i + 1) * n->hidden) : x;
}

static bw_tensor transposed(struct bw_onnx_call *c, bw_tensor x)
{
    static const uint32_t axes[] = {1, 0};
    return bw_tensor_permute(c->g, x, axes);
}

static bw_tensor sum_or(struct bw_onnx_call *c, bw_tensor a, bw_tensor b)
{
    return b.id ? bw_tensor_add(c->g, a, b) : a;
}

/* ---- steps ---- */

struct direction {
    bw_tensor r;              /* [gates * H, H] transposed */
    bw_tensor w_bias, r_bias; /* [gates * H], or id 0 */
    bw_tensor peephole;       /* [3 H], or id 0 */
    const struct activation *f;
    bw_tensor h, c; /* state [B, H] */
};

static bw_tensor rnn_step(struct bw_onnx_call *c, const struct recurrent *n, struct direction *d, bw_tensor x)
{
    bw_tensor sum = bw_tensor_add(c->g, x, sum_or(c, bw_tensor_matmul(c->g, d->h, d->r), d->r_bias));
    return activate(c, n, &d->f[0], sum);
}

/* Gates in the order z, r, h. The reset gate acts before the product, or after it (linear_before_reset). */
static bw_tensor gru_step(struct bw_onnx_call *c, const struct recurrent *n, struct direction *d, bw_tensor x)
{
    bw_tensor product = sum_or(c, bw_tensor_matmul(c->g, d->h, d->r), d->r_bias), hidden;
    bw_tensor z = activate(c, n, &d->f[0], bw_tensor_add(c->g, gate(c, n, x, 0), gate(c, n, product, 0)));
    bw_tensor r = activate(c, n, &d->f[0], bw_tensor_add(c->g, gate(c, n, x, 1), gate(c, n, product, 1)));
    if (n->linear_before_reset) {
        hidden = bw_tensor_mul(c->g, r, gate(c, n, product, 2));
    } else {
        bw_tensor weights = part(c, d->r, 1, 2 * n->hidden, 3 * n->hidden);
        hidden = sum_or(c, bw_tensor_matmul(c->g, bw_tensor_mul(c->g, r, d->h), weights),
                        gate(c, n, d->r_bias, 2));
    }
    hidden = activate(c, n, &d->f[1], bw_tensor_add(c->g, gate(c, n, x, 2), hidden));
    bw_tensor rest = bw_tensor_sub(c->g, constant(c, z, 1), z);
    return bw_tensor_add(c->g, bw_tensor_mul(c->g, rest, hidden), bw_tensor_mul(c->g, z, d->h));
}

static bw_tensor with_peephole(struct bw_onnx_call *c, const struct recurrent *n, const struct direction *d,
                               bw_tensor sum, int64_t which, bw_tensor cell)
{
    return d->peephole.id
               ? bw_tensor_add(c->g, sum, bw_tensor_mul(c->g, gate(c, n, d->peephole, which), cell))
               : sum;
}

/* Gates in the order i, o, f, c; peepholes i, o, f. */
static bw_tensor lstm_step(struct bw_onnx_call *c, const struct recurrent *n, struct direction *d,
                           bw_tensor x, bw_tensor *cell)
{
    bw_tensor sums = bw_tensor_add(c->g, x, sum_or(c, bw_tensor_matmul(c->g, d->h, d->r), d->r_bias));
    bw_tensor i = activate(c, n, &d->f[0], with_peephole(c, n, d, gate(c, n, sums, 0), 0, d->c));
    bw_tensor f = n->input_forget
                      ? bw_tensor_sub(c->g, constant(c, i, 1), i)
                      : activate(c, n, &d->f[0], with_peephole(c, n, d, gate(c, n, sums, 2), 2, d->c));
    bw_tensor candidate = activate(c, n, &d->f[1], gate(c, n, sums, 3));
    *cell = bw_tensor_add(c->g, bw_tensor_mul(c->g, f, d->c), bw_tensor_mul(c->g, i, candidate));
    bw_tensor o = activate(c, n, &d->f[0], with_peephole(c, n, d, gate(c, n, sums, 1), 1, *cell));
    return bw_tensor_mul(c->g, o, activate(c, n, &d->f[2], *cell));
}

/* Where the sequence has ended the state stays and the output is zero. */
static bw_tensor step(struct bw_onnx_call *c, const struct recurrent *n, struct direction *d, bw_tensor x,
                      int64_t t)
{
    bw_tensor cell = d->c, h;
    if (n->gates == LSTM)
        h = lstm_step(c, n, d, x, &cell);
    else
        h = n->gates == GRU ? gru_step(c, n, d, x) : rnn_step(c, n, d, x);
    if (!n->lengths.id) {
        d->h = h;
        d->c = cell;
        return h;
    }
    bw_tensor running = element(c, n->running, t);
    d->h = bw_tensor_where(c->g, running, h, d->h);
    if (n->gates == LSTM)
        d->c = bw_tensor_where(c->g, running, cell, d->c);
    return bw_tensor_where(c->g, running, h, constant(c, h, 0));
}

static void direction_start(struct bw_onnx_call *c, const struct recurrent *n, struct direction *d,
                            int64_t which)
{
    int64_t state[] = {n->batch, n->hidden}, width = n->gates * n->hidden;
    bw_tensor bias = element(c, n->b, which);
    *d = (struct direction){.r = transposed(c, element(c, n->r, which)),
                            .peephole = element(c, n->p, which),
                            .f = &n->activations[which * n->per_direction],
                            .h = element(c, n->h, which),
                            .c = element(c, n->c, which)};
    if (bias.id) {
        d->w_bias = part(c, bias, 0, 0, width);
        d->r_bias = part(c, bias, 0, width, 2 * width);
    }
    enum bw_dtype dtype = bw_tensor_dtype(c->g, n->x);
    if (!d->h.id)
        d->h = bw_tensor_full(c->g, dtype, 2, state, 0);
    if (!d->c.id)
        d->c = bw_tensor_full(c->g, dtype, 2, state, 0);
}

/* Outputs of all steps [T, 1, B, H]; the direction's state is the final one. */
static bw_tensor direction_run(struct bw_onnx_call *c, const struct recurrent *n, struct direction *d,
                               int64_t which)
{
    bool backward = n->reverse_only || which == 1;
    int64_t row[] = {1, 1, n->batch, n->hidden};
    bw_tensor *outputs = bw_onnx_alloc(c, (uint64_t)n->steps, sizeof *outputs);
    bw_tensor weights = transposed(c, element(c, n->w, which));
    bw_tensor projected = sum_or(c, bw_tensor_matmul(c->g, n->x, weights), d->w_bias); /* [T, B, gates * H] */
    for (int64_t i = 0; outputs && i < n->steps; i++) {
        int64_t t = backward ? n->steps - 1 - i : i;
        outputs[t] = bw_tensor_reshape(c->g, step(c, n, d, element(c, projected, t), t), 4, row);
    }
    return outputs ? bw_tensor_concat(c->g, outputs, (uint32_t)n->steps, 0) : (bw_tensor){0};
}

/* ---- the layer ---- */

static bw_tensor optional_in(struct bw_onnx_call *c, uint32_t input)
{
    return bw_onnx_has(c, input) ? bw_onnx_in(c, input) : (bw_tensor){0};
}

/* [B, D, H] to [D, B, H], when the batch comes first. */
static bw_tensor state_in(struct bw_onnx_call *c, const struct recurrent *n, uint32_t input)
{
    static const uint32_t axes[] = {1, 0, 2};
    bw_tensor x = optional_in(c, input);
    return x.id && n->batch_first && bw_tensor_rank(c->g, x) == 3 ? bw_tensor_permute(c->g, x, axes) : x;
}

static bool shape_is(struct bw_onnx_call *c, bw_tensor x, uint32_t rank, int64_t a, int64_t b, int64_t d)
{
    const int64_t wanted[] = {a, b, d};
    return !x.id || (bw_tensor_rank(c->g, x) == rank &&
                     !memcmp(bw_tensor_dims(c->g, x), wanted, rank * sizeof *wanted));
}

static int recurrent_read(struct bw_onnx_call *c, struct recurrent *n)
{
    static const uint32_t axes[] = {1, 0, 2};
    n->batch_first = bw_onnx_int(c, "layout", 0);
    n->x = bw_onnx_in(c, 0);
    n->w = bw_onnx_in(c, 1);
    n->r = bw_onnx_in(c, 2);
    if (c->rc || bw_tensor_rank(c->g, n->x) != 3 || bw_tensor_rank(c->g, n->w) != 3 ||
        bw_tensor_rank(c->g, n->r) != 3)
        return bw_onnx_fail(c, -EINVAL, "X, W and R must have rank 3");
    if (n->batch_first)
        n->x = bw_tensor_permute(c->g, n->x, axes);
    n->steps = bw_tensor_dims(c->g, n->x)[0];
    n->batch = bw_tensor_dims(c->g, n->x)[1];
    n->inputs = bw_tensor_dims(c->g, n->x)[2];
    n->hidden = bw_tensor_dims(c->g, n->r)[2];
    if (bw_onnx_int(c, "hidden_size", n->hidden) != n->hidden)
        return bw_onnx_fail(c, -EINVAL, "hidden_size %lld, but R is for %lld",
                            (long long)bw_onnx_int(c, "hidden_size", 0), (long long)n->hidden);
    n->reverse_only = bw_onnx_string_is(c, "direction", "reverse", false);
    n->directions = bw_onnx_string_is(c, "direction", "bidirectional", false) ? 2 : 1;
    n->linear_before_reset = bw_onnx_int(c, "linear_before_reset", 0);
    n->input_forget = bw_onnx_int(c, "input_forget", 0);
    n->has_clip = bw_onnx_attribute(c, "clip", BW_ONNX_ATTR_FLOAT) != NULL;
    n->clip = bw_onnx_float(c, "clip", 0);
    n->b = optional_in(c, 3);
    n->lengths = bw_onnx_has(c, 4) ? bw_tensor_cast(c->g, BW_I64, bw_onnx_in(c, 4)) : (bw_tensor){0};
    n->h = state_in(c, n, 5);
    n->c = n->gates == LSTM ? state_in(c, n, 6) : (bw_tensor){0};
    n->p = n->gates == LSTM ? optional_in(c, 7) : (bw_tensor){0};
    int64_t d = n->directions, width = n->gates * n->hidden;
    bool fits = shape_is(c, n->w, 3, d, width, n->inputs) && shape_is(c, n->r, 3, d, width, n->hidden) &&
                shape_is(c, n->b, 2, d, 2 * width, 0) && shape_is(c, n->lengths, 1, n->batch, 0, 0) &&
                shape_is(c, n->h, 3, d, n->batch, n->hidden) &&
                shape_is(c, n->c, 3, d, n->batch, n->hidden) && shape_is(c, n->p, 2, d, 3 * n->hidden, 0);
    if (n->steps > STEPS_MAX)
        return bw_onnx_fail(c, -E2BIG, "%lld steps, at most %d", (long long)n->steps, STEPS_MAX);
    if (c->rc || !fits || n->steps < 1 || !n->batch || !n->hidden)
        return bw_onnx_fail(c, -EINVAL, "shapes of weights, bias or states do not fit");
    return activations_read(c, n);
}

/* Which sequences go on at which step, in memory: a step that compared its own number would be a kernel of
 * its own. */
static void running_find(struct bw_onnx_call *c, struct recurrent *n)
{
    int64_t dims[] = {n->steps, n->batch, 1}, row[] = {1, n->batch, 1};
    if (!n->lengths.id)
        return;
    bw_tensor number = bw_tensor_indexes(c->g, BW_I64, 3, dims, 0);
    n->running =
        bw_tensor_contiguous(c->g, bw_tensor_less(c->g, number, bw_tensor_reshape(c->g, n->lengths, 3, row)));
}

/* [D, B, H], or [B, D, H] */
static bw_tensor states_out(struct bw_onnx_call *c, const struct recurrent *n, const bw_tensor *states)
{
    static const uint32_t axes[] = {1, 0, 2};
    int64_t dims[] = {1, n->batch, n->hidden};
    bw_tensor parts[2];
    for (int64_t i = 0; i < n->directions; i++)
        parts[i] = bw_tensor_reshape(c->g, states[i], 3, dims);
    bw_tensor joined = bw_tensor_concat(c->g, parts, (uint32_t)n->directions, 0);
    return n->batch_first ? bw_tensor_permute(c->g, joined, axes) : joined;
}

static int recurrent(struct bw_onnx_call *c)
{
    static const uint32_t batch_first[] = {2, 0, 1, 3};
    struct recurrent n = {.gates = c->op->variant};
    bw_tensor outputs[2], hidden[2], cells[2];
    if (recurrent_read(c, &n))
        return c->rc;
    running_find(c, &n);
    for (int64_t i = 0; i < n.directions; i++) {
        struct direction d;
        direction_start(c, &n, &d, i);
        outputs[i] = direction_run(c, &n, &d, i);
        hidden[i] = d.h;
        cells[i] = d.c;
    }
    bw_tensor y = bw_tensor_concat(c->g, outputs, (uint32_t)n.directions, 1); /* [T, D, B, H] */
    bw_onnx_out(c, 0, n.batch_first ? bw_tensor_permute(c->g, y, batch_first) : y);
    if (n.gates == LSTM)
        bw_onnx_out(c, 2, states_out(c, &n, cells));
    return bw_onnx_out(c, 1, states_out(c, &n, hidden));
}

static const struct bw_onnx_op rows[] = {
    {"GRU", 1, .function = recurrent, .variant = GRU},
    {"LSTM", 1, .function = recurrent, .variant = LSTM},
    {"RNN", 1, .function = recurrent, .variant = RNN},
};

const struct bw_onnx_ops bw_onnx_ops_rnn = {rows, BW_COUNT_OF(rows)};
