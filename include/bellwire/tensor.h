/* Tensors: lazy values in a graph. Nothing is computed until the graph is compiled to a plan and run.
 *
 * A bw_tensor is a number in its graph, passed by value; 0 means failed. Builder calls never fail loudly: the
 * first error is kept in the graph (bw_tensor_graph_error), later calls on failed tensors do nothing. One
 * thread per graph. Binary operations broadcast as NumPy does; both sides must have one dtype (bw_tensor_cast
 * converts). */
#ifndef BW_TENSOR_H
#define BW_TENSOR_H

#include <stdbool.h>
#include <stdint.h>

#include <bellwire/device.h>
#include <bellwire/dtype.h>

#ifdef __cplusplus
extern "C" {
#endif

struct bw_tensor_graph;
typedef struct {
    uint32_t id;
} bw_tensor;

enum { BW_TENSOR_RANK_MAX = 16 };

int bw_tensor_graph_create(struct bw_tensor_graph **graph, struct bw_err *err);
void bw_tensor_graph_destroy(struct bw_tensor_graph *graph);
int bw_tensor_graph_error(const struct bw_tensor_graph *graph, struct bw_err *err);

uint32_t bw_tensor_rank(const struct bw_tensor_graph *g, bw_tensor x);
const int64_t *bw_tensor_dims(const struct bw_tensor_graph *g, bw_tensor x);
enum bw_dtype bw_tensor_dtype(const struct bw_tensor_graph *g, bw_tensor x);
int64_t bw_tensor_elements(const struct bw_tensor_graph *g, bw_tensor x);

/* Sources. An input gets its data at each run, in the order of creation. Data of `constant` is copied; of
 * `constant_borrowed` it is used in place and must outlive the graph and its plans (mapped weights). */
bw_tensor bw_tensor_input(struct bw_tensor_graph *g, enum bw_dtype dtype, uint32_t rank, const int64_t *dims);
bw_tensor bw_tensor_constant(struct bw_tensor_graph *g, enum bw_dtype dtype, uint32_t rank,
                             const int64_t *dims, const void *data);
bw_tensor bw_tensor_constant_borrowed(struct bw_tensor_graph *g, enum bw_dtype dtype, uint32_t rank,
                                      const int64_t *dims, const void *data);
/* A constant that is the first bytes of a range of a file (bw_buffer_file), row-major, little-endian. Nothing
 * is read before it is used: a plan copies it from the disk to its device, an evaluation loads it and keeps
 * it. The graph, and plans made of it, hold the range; its device stays open until they are gone. Bytes of
 * BW_BOOL that are not 0 count as 1. -ERANGE: the range is too short. */
bw_tensor bw_tensor_file(struct bw_tensor_graph *g, enum bw_dtype dtype, uint32_t rank, const int64_t *dims,
                         struct bw_buffer *range);
bw_tensor bw_tensor_scalar(struct bw_tensor_graph *g, enum bw_dtype dtype, double value); /* rank 0 */
bw_tensor bw_tensor_scalar_int(struct bw_tensor_graph *g, enum bw_dtype dtype, int64_t value);
bw_tensor bw_tensor_full(struct bw_tensor_graph *g, enum bw_dtype dtype, uint32_t rank, const int64_t *dims,
                         double value);
bw_tensor bw_tensor_indexes(struct bw_tensor_graph *g, enum bw_dtype dtype, uint32_t rank,
                            const int64_t *dims, uint32_t axis);

/* Movement: index arithmetic, no copies. Negative axes are not accepted here. A dim of -1 in reshape is
 * inferred. */
bw_tensor bw_tensor_reshape(struct bw_tensor_graph *g, bw_tensor x, uint32_t rank, const int64_t *dims);
bw_tensor bw_tensor_permute(struct bw_tensor_graph *g, bw_tensor x, const uint32_t *axes);
bw_tensor bw_tensor_expand(struct bw_tensor_graph *g, bw_tensor x, uint32_t rank,
                           const int64_t *dims); /* NumPy broadcast to */
bw_tensor bw_tensor_pad(struct bw_tensor_graph *g, bw_tensor x, const int64_t *low, const int64_t *high,
                        double value); /* negative crops */
bw_tensor bw_tensor_slice(struct bw_tensor_graph *g, bw_tensor x, const int64_t *start, const int64_t *stop,
                          const int64_t *step); /* resolved, step != 0 */
bw_tensor bw_tensor_flip(struct bw_tensor_graph *g, bw_tensor x, uint32_t axes_mask);
bw_tensor bw_tensor_concat(struct bw_tensor_graph *g, const bw_tensor *x, uint32_t count, uint32_t axis);
bw_tensor bw_tensor_contiguous(struct bw_tensor_graph *g, bw_tensor x);
/* out[p] = data[index_0[p], ..]: one index tensor per axis of data, broadcast together; negative indexes
 * count from the end; what is still outside is clamped. */
bw_tensor bw_tensor_gather_nd(struct bw_tensor_graph *g, bw_tensor data, const bw_tensor *indexes);
/* The numbers of a storage type, whose bytes are given (dtype.h: of its carrier): of small floats exactly as
 * f32, of small integers and of other types the tensor itself. */
bw_tensor bw_tensor_decode(struct bw_tensor_graph *g, enum bw_dtype dtype, bw_tensor bytes);

/* Elementwise, by NumPy's meaning of the names; min and max propagate NaN. floor_div and floor_mod round
 * towards minus infinity, trunc_mod has the sign of a; shl and shr are of integers. */
bw_tensor bw_tensor_cast(struct bw_tensor_graph *g, enum bw_dtype dtype, bw_tensor x);
bw_tensor bw_tensor_bitcast(struct bw_tensor_graph *g, enum bw_dtype dtype, bw_tensor x);
#define BW_TENSOR_UNARY(X)                                                                                  \
    X(neg)                                                                                                  \
    X(not )                                                                                                 \
    X(reciprocal)                                                                                           \
    X(sqrt) X(exp2) X(log2) X(sin) X(trunc) X(floor) X(ceil) X(round_even) X(abs) X(exp) X(log) X(cos)      \
        X(tan) X(asin) X(acos) X(atan) X(sinh) X(cosh) X(tanh) X(asinh) X(acosh) X(atanh) X(sigmoid) X(erf) \
            X(relu) X(sign) X(is_nan) X(is_inf)
#define BW_TENSOR_BINARY(X)                                                                               \
    X(add)                                                                                                \
    X(sub)                                                                                                \
    X(mul)                                                                                                \
    X(div) X(floor_div) X(floor_mod) X(trunc_mod) X(max) X(min) X(and) X(or) X(xor) X(shl) X(shr) X(less) \
        X(less_equal) X(greater) X(greater_equal) X(equal) X(not_equal) X(pow)
#define BW_TENSOR_DECLARE(name) bw_tensor bw_tensor_##name(struct bw_tensor_graph *g, bw_tensor x);
BW_TENSOR_UNARY(BW_TENSOR_DECLARE)
#undef BW_TENSOR_DECLARE
#define BW_TENSOR_DECLARE(name) \
    bw_tensor bw_tensor_##name(struct bw_tensor_graph *g, bw_tensor a, bw_tensor b);
BW_TENSOR_BINARY(BW_TENSOR_DECLARE)
#undef BW_TENSOR_DECLARE
bw_tensor bw_tensor_where(struct bw_tensor_graph *g, bw_tensor condition, bw_tensor a, bw_tensor b);

/* Reductions over the axes in the mask; keep: reduced axes stay as 1. f16/bf16 sums accumulate in f32. */
bw_tensor bw_tensor_sum(struct bw_tensor_graph *g, bw_tensor x, uint32_t axes_mask, bool keep);
bw_tensor bw_tensor_prod(struct bw_tensor_graph *g, bw_tensor x, uint32_t axes_mask, bool keep);
bw_tensor bw_tensor_reduce_max(struct bw_tensor_graph *g, bw_tensor x, uint32_t axes_mask, bool keep);
bw_tensor bw_tensor_reduce_min(struct bw_tensor_graph *g, bw_tensor x, uint32_t axes_mask, bool keep);
bw_tensor bw_tensor_mean(struct bw_tensor_graph *g, bw_tensor x, uint32_t axes_mask, bool keep);
bw_tensor bw_tensor_argmax(struct bw_tensor_graph *g, bw_tensor x, uint32_t axis, bool keep,
                           bool last_index); /* i64 */
bw_tensor bw_tensor_softmax(struct bw_tensor_graph *g, bw_tensor x, uint32_t axes_mask);
bw_tensor bw_tensor_log_softmax(struct bw_tensor_graph *g, bw_tensor x, uint32_t axes_mask);
bw_tensor bw_tensor_cumsum(struct bw_tensor_graph *g, bw_tensor x, uint32_t axis, bool exclusive,
                           bool reverse);

bw_tensor bw_tensor_matmul(struct bw_tensor_graph *g, bw_tensor a,
                           bw_tensor b); /* NumPy matmul, batched, 1-d rules */

/* Sliding windows over the last `spatial` axes: x[..., d1, .., dn] -> [..., o1, .., on, k1, .., kn]. x is
 * already padded. */
bw_tensor bw_tensor_windows(struct bw_tensor_graph *g, bw_tensor x, uint32_t spatial, const int64_t *kernel,
                            const int64_t *stride, const int64_t *dilation);

struct bw_conv {
    uint32_t spatial;                                      /* number of spatial axes */
    const int64_t *stride, *dilation, *pad_low, *pad_high; /* one per spatial axis */
    const int64_t *output_padding;                         /* transposed only, may be NULL */
    int64_t groups;
};
/* x [N, C, spatial...], weight [M, C/groups, k...] (transposed: [C, M/groups, k...]), bias [M] or id 0. */
bw_tensor bw_tensor_conv(struct bw_tensor_graph *g, bw_tensor x, bw_tensor weight, bw_tensor bias,
                         const struct bw_conv *conv);
bw_tensor bw_tensor_conv_transpose(struct bw_tensor_graph *g, bw_tensor x, bw_tensor weight, bw_tensor bias,
                                   const struct bw_conv *conv);

/* True when x depends on no input: then bw_tensor_evaluate gives its value now, on this thread, through the
 * tensor evaluator (the oracle). data: caller frees. -EINVAL when it depends on an input. */
bool bw_tensor_is_constant(const struct bw_tensor_graph *g, bw_tensor x);
int bw_tensor_evaluate(struct bw_tensor_graph *g, bw_tensor x, void **data, struct bw_err *err);
/* The same with inputs given (one pointer per input, in creation order). */
int bw_tensor_evaluate_with(struct bw_tensor_graph *g, const bw_tensor *x, uint32_t count,
                            const void *const *inputs, uint32_t input_count, void **data, struct bw_err *err);

/* Plans: a compiled graph on one device. */
struct bw_plan;
struct bw_plan_options {
    uint64_t size;
    bool profile;
    bool encode_only; /* command buffers to look at: nothing is uploaded or run, now or later */
};
int bw_plan_create(struct bw_tensor_graph *g, struct bw_device *device, const bw_tensor *outputs,
                   uint32_t output_count, const struct bw_plan_options *options, struct bw_plan **plan,
                   struct bw_err *err);
void bw_plan_destroy(struct bw_plan *plan);
/* Runs once, synchronously. inputs/outputs: caller memory, contiguous, in order; sizes follow from the
 * tensors. */
int bw_plan_run(struct bw_plan *plan, const void *const *inputs, void *const *outputs, struct bw_err *err);

struct bw_plan_stats {
    uint32_t kernels, copies, compiled, cache_hits;
    uint64_t buffer_bytes, constant_bytes;
    double schedule_seconds, compile_seconds, link_seconds, run_seconds; /* run: of the last bw_plan_run */
};
void bw_plan_stats(const struct bw_plan *plan, struct bw_plan_stats *stats);

#ifdef __cplusplus
}
#endif
#endif
