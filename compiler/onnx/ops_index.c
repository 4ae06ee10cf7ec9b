/* Gathering, scattering, sorting: elements chosen by index. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "compiler/onnx/ops.h"

static const int64_t *dims_of(struct bw_onnx_call *c, bw_tensor x)
{
    return bw_tensor_dims(c->g, x);
}

static bw_tensor integer(struct bw_onnx_call *c, int64_t value)
{
    return bw_tensor_scalar_int(c->g, BW_I64, value);
}

/* As BW_I64, negative ones counted from the end of an axis of this size. */
static bw_tensor wrapped(struct bw_onnx_call *c, bw_tensor index, int64_t size)
{
    index = bw_tensor_cast(c->g, BW_I64, index);
    bw_tensor below = bw_tensor_less(c->g, index, integer(c, 0));
    return bw_tensor_where(c->g, below, bw_tensor_add(c->g, index, integer(c, size)), index);
}

static int gather(struct bw_onnx_call *c)
{
    bw_tensor x = bw_onnx_in(c, 0), index = bw_onnx_in(c, 1);
    uint32_t axis = bw_onnx_axis(c, bw_onnx_int(c, "axis", 0), bw_tensor_rank(c->g, x));
    if (c->rc || bw_onnx_check_index(c, 1, dims_of(c, x)[axis]))
        return c->rc;
    return bw_onnx_out(c, 0, bw_onnx_take(c, x, axis, index));
}

static int gather_elements(struct bw_onnx_call *c)
{
    bw_tensor x = bw_onnx_in(c, 0), index = bw_onnx_in(c, 1), indexes[BW_TENSOR_RANK_MAX];
    uint32_t rank = bw_tensor_rank(c->g, x), axis = bw_onnx_axis(c, bw_onnx_int(c, "axis", 0), rank);
    if (c->rc || bw_tensor_rank(c->g, index) != rank)
        return bw_onnx_fail(c, -EINVAL, "data of rank %u, indices of rank %u", rank,
                            bw_tensor_rank(c->g, index));
    for (uint32_t i = 0; i < rank; i++) {
        if (i != axis && dims_of(c, index)[i] > dims_of(c, x)[i])
            return bw_onnx_fail(c, -EINVAL, "indices are larger than data along axis %u", i);
        indexes[i] = i == axis ? index : bw_tensor_indexes(c->g, BW_I64, rank, dims_of(c, index), i);
    }
    if (bw_onnx_check_index(c, 1, dims_of(c, x)[axis]))
        return c->rc;
    return bw_onnx_out(c, 0, bw_tensor_gather_nd(c->g, x, indexes));
}

/* Indexes in rows of k, for axes of these dims. */
static int check_rows(struct bw_onnx_call *c, uint32_t input, const int64_t *dims, int64_t k)
{
    struct bw_onnx_limits limits = {.period = (uint32_t)k, .from_end = true};
    memcpy(limits.sizes, dims, (size_t)k * sizeof *dims);
    return bw_onnx_check_indexes(c, input, &limits);
}

/* data [batch.., d..], indices [batch.., i.., k]: out [batch.., i.., d[k:]..] */
static int gather_nd(struct bw_onnx_call *c)
{
    bw_tensor x = bw_onnx_in(c, 0), index = bw_onnx_in(c, 1), indexes[BW_TENSOR_RANK_MAX];
    int64_t batch = bw_onnx_int(c, "batch_dims", 0), out[BW_TENSOR_RANK_MAX], column[BW_TENSOR_RANK_MAX];
    uint32_t rank = bw_tensor_rank(c->g, x), index_rank = bw_tensor_rank(c->g, index);
    if (!index_rank || batch < 0 || batch >= index_rank || batch > rank)
        return bw_onnx_fail(c, -EINVAL, "indices of rank %u, %lld batch dimensions", index_rank,
                            (long long)batch);
    int64_t k = dims_of(c, index)[index_rank - 1], kept = rank - batch - k, out_rank = index_rank - 1 + kept;
    if (k < 0 || kept < 0 || out_rank > BW_TENSOR_RANK_MAX)
        return bw_onnx_fail(c, -EINVAL, "%lld indices for data of rank %u", (long long)k, rank);
    for (int64_t i = 0; i < batch; i++)
        if (dims_of(c, index)[i] != dims_of(c, x)[i])
            return bw_onnx_fail(c, -EINVAL, "batch dimension %lld is %lld in data and %lld in indices",
                                (long long)i, (long long)dims_of(c, x)[i], (long long)dims_of(c, index)[i]);
    if (check_rows(c, 1, dims_of(c, x) + batch, k))
        return c->rc;
    for (int64_t i = 0; i < out_rank; i++) {
        out[i] = i < index_rank - 1 ? dims_of(c, index)[i] : dims_of(c, x)[rank - out_rank + i];
        column[i] = i < index_rank - 1 ? out[i] : 1;
    }
    int64_t starts[BW_TENSOR_RANK_MAX] = {0}, stops[BW_TENSOR_RANK_MAX], steps[BW_TENSOR_RANK_MAX];
    for (uint32_t i = 0; i < index_rank; i++) {
        stops[i] = dims_of(c, index)[i];
        steps[i] = 1;
    }
    for (uint32_t axis = 0; axis < rank; axis++) {
        int64_t which = axis - batch;
        if (which >= 0 && which < k) {
            starts[index_rank - 1] = which;
            stops[index_rank - 1] = which + 1;
            indexes[axis] = bw_tensor_reshape(c->g, bw_tensor_slice(c->g, index, starts, stops, steps),
                                              (uint32_t)out_rank, column);
        } else {
            uint32_t at = which < 0 ? axis : (uint32_t)(out_rank - rank + axis);
            indexes[axis] = bw_tensor_indexes(c->g, BW_I64, (uint32_t)out_rank, out, at);
        }
    }
    return bw_onnx_out(c, 0, bw_tensor_gather_nd(c->g, x, indexes));
}

/* ---- scattering: each output element looks for the updates that hit it ---- */

enum scatter { SCATTER_SET, SCATTER_ADD, SCATTER_MUL, SCATTER_MAX, SCATTER_MIN };

static enum scatter scatter_kind(struct bw_onnx_call *c)
{
    static const char *const names[] = {"none", "add", "mul", "max", "min"};
    for (enum scatter kind = SCATTER_SET; kind <= SCATTER_MIN; kind++)
        if (bw_onnx_string_is(c, "reduction", names[kind], kind == SCATTER_SET))
            return kind;
    bw_onnx_fail(c, -ENOTSUP, "unknown reduction");
    return SCATTER_SET;
}

/* data combined with the updates (broadcast against hits) along the last axis of hits. */
static bw_tensor scatter_reduce(struct bw_onnx_call *c, enum scatter kind, bw_tensor data, bw_tensor hits,
                                bw_tensor updates, uint32_t axis)
{
    bool is_float = bw_dtype_is_float(bw_tensor_dtype(c->g, data));
    double lowest = is_float ? -INFINITY : (double)bw_dtype_int_min(bw_tensor_dtype(c->g, data));
    double highest = is_float ? INFINITY : (double)bw_dtype_int_max(bw_tensor_dtype(c->g, data));
    double idle = kind == SCATTER_ADD ? 0 : kind == SCATTER_MUL ? 1 : kind == SCATTER_MAX ? lowest : highest;
    bw_tensor masked = bw_tensor_where(c->g, hits, updates, bw_onnx_scalar_like(c, data, idle));
    uint32_t mask = 1u << axis;
    switch (kind) {
    case SCATTER_ADD:
        return bw_tensor_add(c->g, data, bw_tensor_sum(c->g, masked, mask, false));
    case SCATTER_MUL:
        return bw_tensor_mul(c->g, data, bw_tensor_prod(c->g, masked, mask, false));
    case SCATTER_MAX:
        return bw_tensor_max(c->g, data, bw_tensor_reduce_max(c->g, masked, mask, false));
    default:
        return bw_tensor_min(c->g, data, bw_tensor_reduce_min(c->g, masked, mask, false));
    }
}

/* The number of the last update that hits, -1 where none does. */
static bw_tensor last_hit(struct bw_onnx_call *c, bw_tensor hits, uint32_t axis)
{
    bw_tensor number = bw_tensor_indexes(c->g, BW_I64, bw_tensor_rank(c->g, hits), dims_of(c, hits), axis);
    return bw_tensor_reduce_max(c->g, bw_tensor_where(c->g, hits, number, integer(c, -1)), 1u << axis, false);
}

/* x of shape `from` <= dims on all axes but one, padded to dims there, and that axis moved to the end. */
static bw_tensor scatter_operand(struct bw_onnx_call *c, bw_tensor x, const int64_t *dims, uint32_t axis,
                                 double padding)
{
    uint32_t rank = bw_tensor_rank(c->g, x), axes[BW_TENSOR_RANK_MAX];
    int64_t low[BW_TENSOR_RANK_MAX] = {0}, high[BW_TENSOR_RANK_MAX];
    for (uint32_t i = 0; i < rank; i++) {
        high[i] = i == axis ? 0 : dims[i] - dims_of(c, x)[i];
        axes[i] = i < axis ? i : i + 1 < rank ? i + 1 : axis;
        if (high[i] < 0)
            bw_onnx_fail(c, -EINVAL, "indices are larger than data along axis %u", i);
    }
    return c->rc ? (bw_tensor){0} : bw_tensor_permute(c->g, bw_tensor_pad(c->g, x, low, high, padding), axes);
}

static int scatter_elements(struct bw_onnx_call *c)
{
    bw_tensor data = bw_onnx_in(c, 0), index = bw_onnx_in(c, 1), updates = bw_onnx_in(c, 2),
              indexes[BW_TENSOR_RANK_MAX];
    uint32_t rank = bw_tensor_rank(c->g, data), axis = bw_onnx_axis(c, bw_onnx_int(c, "axis", 0), rank);
    enum scatter kind = scatter_kind(c);
    if (c->rc || bw_tensor_rank(c->g, index) != rank || bw_tensor_rank(c->g, updates) != rank ||
        rank + 1 > BW_TENSOR_RANK_MAX)
        return bw_onnx_fail(c, -EINVAL, "data, indices and updates have different ranks");
    if (memcmp(dims_of(c, index), dims_of(c, updates), rank * sizeof(int64_t)) != 0)
        return bw_onnx_fail(c, -EINVAL, "indices and updates have different shapes");
    if (bw_onnx_check_index(c, 1, dims_of(c, data)[axis]))
        return c->rc;
    int64_t dims[BW_TENSOR_RANK_MAX], spread[BW_TENSOR_RANK_MAX], column[BW_TENSOR_RANK_MAX],
        count = dims_of(c, index)[axis];
    memcpy(dims, dims_of(c, data), rank * sizeof *dims);
    memcpy(spread, dims, rank * sizeof *dims);
    memcpy(column, dims, rank * sizeof *dims);
    spread[rank] = column[rank] = count;
    column[axis] = 1;
    index = scatter_operand(c, wrapped(c, index, dims[axis]), dims, axis, -1);
    updates = scatter_operand(c, updates, dims, axis, 0);
    bw_tensor place = bw_tensor_indexes(c->g, BW_I64, rank + 1, spread, axis);
    bw_tensor hits = bw_tensor_equal(c->g, bw_tensor_reshape(c->g, index, rank + 1, column), place);
    if (kind != SCATTER_SET)
        return bw_onnx_out(
            c, 0,
            scatter_reduce(c, kind, data, hits, bw_tensor_reshape(c->g, updates, rank + 1, column), rank));
    bw_tensor last = last_hit(c, hits, rank);
    for (uint32_t i = 0; i < rank; i++) /* of updates: the other axes, then the hit's number */
        indexes[i] = i + 1 == rank ? bw_tensor_max(c->g, last, integer(c, 0))
                                   : bw_tensor_indexes(c->g, BW_I64, rank, dims, i < axis ? i : i + 1);
    bw_tensor written = count ? bw_tensor_gather_nd(c->g, updates, indexes) : data;
    return bw_onnx_out(c, 0, bw_tensor_where(c->g, bw_tensor_less(c->g, last, integer(c, 0)), data, written));
}

/* Rows of indices as numbers of slices of data. */
static bw_tensor slice_numbers(struct bw_onnx_call *c, bw_tensor index, int64_t rows, int64_t k,
                               const int64_t *dims)
{
    int64_t matrix[] = {rows, k}, column[] = {rows}, starts[] = {0, 0}, stops[] = {rows, 0}, steps[] = {1, 1},
            stride = 1;
    bw_tensor number = bw_tensor_full(c->g, BW_I64, 1, column, 0),
              flat = bw_tensor_reshape(c->g, index, 2, matrix);
    for (int64_t axis = k - 1; axis >= 0; axis--) {
        starts[1] = axis;
        stops[1] = axis + 1;
        bw_tensor at = bw_tensor_reshape(c->g, bw_tensor_slice(c->g, flat, starts, stops, steps), 1, column);
        number =
            bw_tensor_add(c->g, number, bw_tensor_mul(c->g, wrapped(c, at, dims[axis]), integer(c, stride)));
        stride *= dims[axis];
    }
    return number;
}

static int scatter_nd(struct bw_onnx_call *c)
{
    bw_tensor data = bw_onnx_in(c, 0), index = bw_onnx_in(c, 1), updates = bw_onnx_in(c, 2);
    uint32_t rank = bw_tensor_rank(c->g, data), index_rank = bw_tensor_rank(c->g, index);
    enum scatter kind = scatter_kind(c);
    int64_t k = index_rank ? dims_of(c, index)[index_rank - 1] : -1, dims[BW_TENSOR_RANK_MAX], slices = 1,
            slice = 1, rows = 1;
    if (c->rc || k < 0 || k > rank)
        return bw_onnx_fail(c, -EINVAL, "indices of rank %u for data of rank %u", index_rank, rank);
    memcpy(dims, dims_of(c, data), rank * sizeof *dims);
    for (uint32_t i = 0; i < rank; i++)
        *(i < k ? &slices : &slice) *= dims[i];
    for (uint32_t i = 0; i + 1 < index_rank; i++)
        rows *= dims_of(c, index)[i];
    bool fits = index_rank - 1 + rank - k == bw_tensor_rank(c->g, updates);
    for (uint32_t i = 0; fits && i < bw_tensor_rank(c->g, updates); i++)
        fits = dims_of(c, updates)[i] ==
               (i + 1 < index_rank ? dims_of(c, index)[i] : dims[i + 1 - index_rank + k]);
    if (!fits)
        return bw_onnx_fail(c, -EINVAL, "updates do not have the shape that data and indices give");
    if (check_rows(c, 1, dims, k))
        return c->rc;
    if (!rows || !slices || !slice)
        return bw_onnx_out(c, 0, data);
    bw_tensor number = slice_numbers(c, index, rows, k, dims);
    int64_t row[] = {1, rows}, square[] = {slices, rows}, flat[] = {slices, slice}, changes[] = {rows, slice},
            cube[] = {1, rows, slice}, column[] = {slices, rows, 1};
    bw_tensor hits = bw_tensor_equal(c->g, bw_tensor_reshape(c->g, number, 2, row),
                                     bw_tensor_indexes(c->g, BW_I64, 2, square, 0));
    bw_tensor matrix = bw_tensor_reshape(c->g, data, 2, flat), result;
    updates = bw_tensor_reshape(c->g, updates, 2, changes);
    if (kind == SCATTER_SET) {
        int64_t tall[] = {slices, 1};
        bw_tensor last = bw_tensor_reshape(c->g, last_hit(c, hits, 1), 2, tall);
        bw_tensor indexes[] = {bw_tensor_max(c->g, last, integer(c, 0)),
                               bw_tensor_indexes(c->g, BW_I64, 2, flat, 1)};
        bw_tensor none = bw_tensor_less(c->g, last, integer(c, 0));
        result = bw_tensor_where(c->g, none, matrix, bw_tensor_gather_nd(c->g, updates, indexes));
    } else {
        result = scatter_reduce(c, kind, matrix, bw_tensor_reshape(c->g, hits, 3, column),
                                bw_tensor_reshape(c->g, updates, 3, cube), 1);
    }
    return bw_onnx_out(c, 0, bw_tensor_reshape(c->g, result, rank, dims));
}

static int one_hot(struct bw_onnx_call *c)
{
    bw_tensor index = bw_onnx_in(c, 0), values = bw_onnx_in(c, 2);
    struct bw_onnx_ints depth = bw_onnx_ints_in(c, 1);
    uint32_t rank = bw_tensor_rank(c->g, index) + 1, axis = bw_onnx_axis(c, bw_onnx_int(c, "axis", -1), rank);
    if (c->rc || depth.count != 1 || depth.data[0] < 0 || bw_tensor_elements(c->g, values) != 2 ||
        rank > BW_TENSOR_RANK_MAX)
        return bw_onnx_fail(c, -EINVAL, "depth and values must be one number and two");
    int64_t dims[BW_TENSOR_RANK_MAX], column[BW_TENSOR_RANK_MAX], zero[] = {0}, one[] = {1}, two[] = {2};
    for (uint32_t i = 0; i < rank; i++) {
        dims[i] = i == axis ? depth.data[0] : dims_of(c, index)[i < axis ? i : i - 1];
        column[i] = i == axis ? 1 : dims[i];
    }
    bw_tensor wanted = bw_tensor_reshape(c->g, wrapped(c, index, depth.data[0]), rank, column);
    bw_tensor on = bw_tensor_equal(c->g, bw_tensor_indexes(c->g, BW_I64, rank, dims, axis), wanted);
    bw_tensor off_value = bw_tensor_slice(c->g, values, zero, one, one),
              on_value = bw_tensor_slice(c->g, values, one, two, one);
    return bw_onnx_out(c, 0,
                       bw_tensor_where(c->g, on, bw_tensor_reshape(c->g, on_value, 0, NULL),
                                       bw_tensor_reshape(c->g, off_value, 0, NULL)));
}

/* ---- TopK ---- */

/* x [rows, n], ranked by counting: how many come before it. n^2 comparisons, no data-dependent step. */
static bw_tensor ranks_by_counting(struct bw_onnx_call *c, bw_tensor x, bool largest)
{
    int64_t rows = dims_of(c, x)[0], n = dims_of(c, x)[1], mine[] = {rows, n, 1}, others[] = {rows, 1, n},
            cube[] = {1, n, n};
    if (bw_dtype_is_float(bw_tensor_dtype(c->g, x))) /* NaN ranks as infinity: else it would rank nowhere */
        x = bw_tensor_where(c->g, bw_tensor_is_nan(c->g, x), bw_onnx_scalar_like(c, x, INFINITY), x);
    bw_tensor a = bw_tensor_reshape(c->g, x, 3, mine), b = bw_tensor_reshape(c->g, x, 3, others);
    bw_tensor earlier = bw_tensor_less(c->g, bw_tensor_indexes(c->g, BW_I64, 3, cube, 2),
                                       bw_tensor_indexes(c->g, BW_I64, 3, cube, 1));
    bw_tensor before = largest ? bw_tensor_greater(c->g, b, a) : bw_tensor_less(c->g, b, a);
    before = bw_tensor_or(c->g, before, bw_tensor_and(c->g, bw_tensor_equal(c->g, a, b), earlier));
    return bw_tensor_sum(c->g, bw_tensor_cast(c->g, BW_I64, before), 4, false);
}

/* Index of the element that has each rank below k: [rows, k] */
static bw_tensor indexes_by_rank(struct bw_onnx_call *c, bw_tensor ranks, int64_t k)
{
    int64_t rows = dims_of(c, ranks)[0], n = dims_of(c, ranks)[1], mine[] = {rows, 1, n}, cube[] = {1, k, n};
    bw_tensor hit = bw_tensor_equal(c->g, bw_tensor_reshape(c->g, ranks, 3, mine),
                                    bw_tensor_indexes(c->g, BW_I64, 3, cube, 1));
    bw_tensor number = bw_tensor_where(c->g, hit, bw_tensor_indexes(c->g, BW_I64, 3, cube, 2), integer(c, 0));
    return bw_tensor_sum(c->g, number, 4, false);
}

struct sort_item {
    double value;
    int64_t integer, index;
};

static int item_order(const void *left, const void *right)
{
    const struct sort_item *a = left, *b = right;
    if (a->value != b->value)
        return a->value < b->value ? -1 : 1;
    if (a->integer != b->integer)
        return a->integer < b->integer ? -1 : 1;
    return (a->index > b->index) - (a->index < b->index);
}

/* Long rows are sorted on the host. */
static bw_tensor indexes_by_sorting(struct bw_onnx_call *c, bw_tensor x, int64_t k, bool largest)
{
    struct bw_onnx_value *value = bw_onnx_value_tensor(c->session, x);
    int64_t rows = dims_of(c, x)[0], n = dims_of(c, x)[1], dims[] = {rows, k};
    if (!value || bw_onnx_value_realize(c->session, value, &c->dynamic))
        return (bw_tensor){0};
    struct sort_item *items = calloc((size_t)n + 1, sizeof *items);
    int64_t *chosen = calloc((size_t)(rows * k) + 1, sizeof *chosen);
    for (int64_t row = 0; items && chosen && row < rows; row++) {
        for (int64_t i = 0; i < n; i++) {
            double number = bw_onnx_host_double(value->dtype, value->host, row * n + i);
            number = isnan(number) ? INFINITY : number; /* as in ranks_by_counting */
            int64_t integral = bw_dtype_is_float(value->dtype)
                                   ? 0
                                   : bw_onnx_host_int(value->dtype, value->host, row * n + i);
            items[i] = (struct sort_item){largest ? -number : number, largest ? ~integral : integral, i};
        }
        qsort(items, (size_t)n, sizeof *items, item_order);
        for (int64_t i = 0; i < k; i++)
            chosen[row * k + i] = items[i].index;
    }
    bool failed = !items || !chosen;
    free(items);
    if (failed) {
        free(chosen);
        bw_onnx_fail(c, -ENOMEM, "no memory");
        return (bw_tensor){0};
    }
    struct bw_onnx_value *result = bw_onnx_value_host(c->session, BW_I64, 2, dims, chosen, !c->dynamic);
    return result ? bw_onnx_tensor_of(c->session, result) : (bw_tensor){0};
}

static int top_k(struct bw_onnx_call *c)
{
    enum { COUNTED_MAX = 1024 };
    bw_tensor x = bw_onnx_in(c, 0);
    uint32_t rank = bw_tensor_rank(c->g, x), axis = bw_onnx_axis(c, bw_onnx_int(c, "axis", -1), rank),
             axes[BW_TENSOR_RANK_MAX], back[BW_TENSOR_RANK_MAX];
    struct bw_onnx_ints given = c->opset < 10 ? (struct bw_onnx_ints){0} : bw_onnx_ints_in(c, 1);
    int64_t k = c->opset < 10 ? bw_onnx_int(c, "k", 0) : given.count ? given.data[0] : -1;
    bool largest = bw_onnx_int(c, "largest", 1);
    if (c->rc || (given.given && given.count != 1) || k < 0 || k > dims_of(c, x)[axis])
        return bw_onnx_fail(c, -EINVAL, "%lld of %lld elements", (long long)k,
                            c->rc ? 0 : (long long)dims_of(c, x)[axis]);
    /* the axis last, the others joined */
    int64_t moved[BW_TENSOR_RANK_MAX], rows = 1, n = dims_of(c, x)[axis];
    for (uint32_t i = 0; i < rank; i++) {
        axes[i] = i + 1 == rank ? axis : i < axis ? i : i + 1;
        moved[i] = i + 1 == rank ? k : dims_of(c, x)[axes[i]];
        back[axes[i]] = i;
        rows *= i + 1 == rank ? 1 : moved[i];
    }
    int64_t matrix[] = {rows, n}, chosen_dims[] = {rows, k};
    bw_tensor flat = bw_tensor_reshape(c->g, bw_tensor_permute(c->g, x, axes), 2, matrix), chosen;
    if (!rows || !k)
        chosen = bw_tensor_full(c->g, BW_I64, 2, chosen_dims, 0);
    else
        chosen = n <= COUNTED_MAX ? indexes_by_rank(c, ranks_by_counting(c, flat, largest), k)
                                  : indexes_by_sorting(c, flat, k, largest);
    bw_tensor indexes[] = {bw_tensor_indexes(c->g, BW_I64, 2, chosen_dims, 0), chosen};
    bw_tensor values = bw_tensor_gather_nd(c->g, flat, indexes);
    bw_onnx_out(c, 1, bw_tensor_permute(c->g, bw_tensor_reshape(c->g, chosen, rank, moved), back));
    return bw_onnx_out(c, 0, bw_tensor_permute(c->g, bw_tensor_reshape(c->g, values, rank, moved), back));
}

static const struct bw_onnx_op rows[] = {
    {"Gather", 1, .function = gather},
    {"GatherElements", 11, .function = gather_elements},
    {"GatherND", 11, .function = gather_nd},
    {"OneHot", 9, .function = one_hot},
    {"Scatter", 9, .function = scatter_elements},
    {"ScatterElements", 11, .function = scatter_elements},
    {"ScatterND", 11, .function = scatter_nd},
    {"TopK", 1, .function = top_k},
};

const struct bw_onnx_ops bw_onnx_ops_index = {rows, BW_COUNT_OF(rows)};
