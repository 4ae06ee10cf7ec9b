/* Tensors over a tuple of devices: of each, every rank holds a part along one axis (it is sharded), or all of
 * it (it is replicated). As with bw_tensor nothing is computed until a plan is made and run; a run is one
 * graph over all devices, kernels and transfers, with no call back into the program.
 *
 * Along a sharded axis of n elements, rank r of R holds n / R elements in a row, the first n % R ranks one
 * more. An axis with fewer elements than there are devices is not sharded: -EINVAL. On a tuple of one device
 * everything is replicated.
 *
 * How results lie:
 *   elementwise    as the sharded operands do, which must agree; replicated ones are cut where that is
 * needed, which moves nothing movement       as the operand does; its axis may move, but must stay whole: a
 * reshape that splits or joins it, a slice, pad or flip of it is refused (-ENOTSUP) reductions     over the
 * sharded axis: each rank reduces what it has, then an all-reduce: replicated matmul         sharded where
 * the operands are outside of the sum; summed over a sharded axis: all-reduce Nothing else moves bytes
 * between devices unless bw_sharded_reshard says so: operands sharded along different axes are refused
 * (-EINVAL). Errors are kept as in bw_tensor_graph: the first one, by name, and later calls on failed tensors
 * do nothing. Sums over ranks are within the bounds that <bellwire/collective.h> gives, in the type of the
 * tensor; all ranks hold the same bits.
 *
 * A bw_sharded belongs to the graph that made it, and so to one tuple: another graph refuses it. */
#ifndef BW_SHARDED_H
#define BW_SHARDED_H

#include <bellwire/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

struct bw_sharded_graph;
typedef struct {
    const struct bw_sharded_graph *graph;
    uint32_t id; /* 0: failed */
} bw_sharded;

enum { BW_SHARDED_REPLICATED = -1 };

/* Devices of one context, family and architecture, each once, at most 64: -EINVAL names what is not. They
 * stay open until graph and plans are gone. One thread per graph. */
int bw_sharded_graph_create(struct bw_device *const *devices, uint32_t device_count,
                            struct bw_sharded_graph **graph, struct bw_err *err);
void bw_sharded_graph_destroy(struct bw_sharded_graph *graph);
int bw_sharded_graph_error(const struct bw_sharded_graph *graph, struct bw_err *err);

/* Of the whole tensor. axis: which one is sharded, or BW_SHARDED_REPLICATED. */
uint32_t bw_sharded_rank(const struct bw_sharded_graph *g, bw_sharded x);
const int64_t *bw_sharded_dims(const struct bw_sharded_graph *g, bw_sharded x);
enum bw_dtype bw_sharded_dtype(const struct bw_sharded_graph *g, bw_sharded x);
int32_t bw_sharded_axis(const struct bw_sharded_graph *g, bw_sharded x);

/* Sources. An input gets the whole tensor at each run, in the order of creation; each rank is sent its part.
 * Data of `constant` is the whole tensor, and copied. */
bw_sharded bw_sharded_input(struct bw_sharded_graph *g, enum bw_dtype dtype, uint32_t rank,
                            const int64_t *dims, int32_t axis);
bw_sharded bw_sharded_constant(struct bw_sharded_graph *g, enum bw_dtype dtype, uint32_t rank,
                               const int64_t *dims, int32_t axis, const void *data);
bw_sharded bw_sharded_scalar(struct bw_sharded_graph *g, enum bw_dtype dtype, double value); /* rank 0 */

/* The same tensor sharded along another axis, or replicated: an all-gather, an all-to-all, or a slice that
 * moves nothing. */
bw_sharded bw_sharded_reshard(struct bw_sharded_graph *g, bw_sharded x, int32_t axis);

/* As their namesakes of <bellwire/tensor.h>, of whole tensors. */
bw_sharded bw_sharded_cast(struct bw_sharded_graph *g, enum bw_dtype dtype, bw_sharded x);
#define BW_SHARDED_DECLARE(name) bw_sharded bw_sharded_##name(struct bw_sharded_graph *g, bw_sharded x);
BW_TENSOR_UNARY(BW_SHARDED_DECLARE)
#undef BW_SHARDED_DECLARE
#define BW_SHARDED_DECLARE(name) \
    bw_sharded bw_sharded_##name(struct bw_sharded_graph *g, bw_sharded a, bw_sharded b);
BW_TENSOR_BINARY(BW_SHARDED_DECLARE)
#undef BW_SHARDED_DECLARE
bw_sharded bw_sharded_where(struct bw_sharded_graph *g, bw_sharded condition, bw_sharded a, bw_sharded b);

bw_sharded bw_sharded_reshape(struct bw_sharded_graph *g, bw_sharded x, uint32_t rank, const int64_t *dims);
bw_sharded bw_sharded_permute(struct bw_sharded_graph *g, bw_sharded x, const uint32_t *axes);
bw_sharded bw_sharded_pad(struct bw_sharded_graph *g, bw_sharded x, const int64_t *low, const int64_t *high,
                          double value);
bw_sharded bw_sharded_slice(struct bw_sharded_graph *g, bw_sharded x, const int64_t *start,
                            const int64_t *stop, const int64_t *step);
bw_sharded bw_sharded_flip(struct bw_sharded_graph *g, bw_sharded x, uint32_t axes_mask);

/* mean: of floats. */
bw_sharded bw_sharded_sum(struct bw_sharded_graph *g, bw_sharded x, uint32_t axes_mask, bool keep);
bw_sharded bw_sharded_prod(struct bw_sharded_graph *g, bw_sharded x, uint32_t axes_mask, bool keep);
bw_sharded bw_sharded_reduce_max(struct bw_sharded_graph *g, bw_sharded x, uint32_t axes_mask, bool keep);
bw_sharded bw_sharded_reduce_min(struct bw_sharded_graph *g, bw_sharded x, uint32_t axes_mask, bool keep);
bw_sharded bw_sharded_mean(struct bw_sharded_graph *g, bw_sharded x, uint32_t axes_mask, bool keep);

/* Operands of two axes or more; leading axes broadcast. */
bw_sharded bw_sharded_matmul(struct bw_sharded_graph *g, bw_sharded a, bw_sharded b);

/* Compiles each rank's kernels and links one graph over all devices. -EINVAL: an output of another graph, or
 * the error that the graph has. The graph may be destroyed afterwards. */
struct bw_sharded_plan;
int bw_sharded_plan_create(struct bw_sharded_graph *g, const bw_sharded *outputs, uint32_t output_count,
                           struct bw_sharded_plan **plan, struct bw_err *err);
void bw_sharded_plan_destroy(struct bw_sharded_plan *plan);
/* Runs once, synchronously: whole tensors in the caller's memory, contiguous, in order. One thread at a time.
 */
int bw_sharded_plan_run(struct bw_sharded_plan *plan, const void *const *inputs, void *const *outputs,
                        struct bw_err *err);

struct bw_sharded_stats {
    uint32_t kernels;     /* of all ranks, without those of collectives */
    uint32_t collectives; /* all-reduces, all-gathers, all-to-alls */
};
void bw_sharded_plan_stats(const struct bw_sharded_plan *plan, struct bw_sharded_stats *stats);

#ifdef __cplusplus
}
#endif
#endif
