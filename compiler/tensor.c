/* Tensor graphs: creation, sources, questions. Builders are in tensor_movement.c, tensor_elementwise.c,
 * tensor_math.c, tensor_reduce.c and tensor_conv.c. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/tensor_internal.h"

int bw_tensor_graph_create(struct bw_tensor_graph **graph, struct bw_err *err)
{
    struct bw_tensor_graph *g = calloc(1, sizeof *g);
    if (!g)
        return bw_fail(err, -ENOMEM, "tensor", "graph");
    int rc = bw_ir_create(&g->ir, err);
    if (rc) {
        free(g);
        return rc;
    }
    *graph = g;
    return 0;
}

void bw_tensor_graph_destroy(struct bw_tensor_graph *graph)
{
    if (!graph)
        return;
    for (size_t i = 0; i < graph->buffers.count; i++) {
        if (graph->buffers.data[i].owned)
            free((void *)(uintptr_t)graph->buffers.data[i].data);
        bw_buffer_destroy(graph->buffers.data[i].file);
    }
    bw_vec_free(&graph->buffers);
    bw_vec_free(&graph->inputs);
    bw_vec_free(&graph->depends_on_input);
    bw_vec_free(&graph->slots);
    bw_vec_free(&graph->labels);
    bw_ir_destroy(graph->ir);
    free(graph);
}

void bw_tensor_graph_label(struct bw_tensor_graph *g, struct bw_tensor_label label)
{
    bw_node begin = g->labels.count ? g->labels.data[g->labels.count - 1].end : 0;
    label.end = bw_ir_count(g->ir);
    if (label.end > begin)
        bw_vec_push(&g->labels, label);
}

const struct bw_tensor_label *bw_tensor_graph_label_of(const struct bw_tensor_graph *g, bw_node node)
{
    size_t low = 0, high = g->labels.count;
    while (low < high) { /* the first that ends behind it */
        size_t middle = low + (high - low) / 2;
        if (g->labels.data[middle].end > node)
            high = middle;
        else
            low = middle + 1;
    }
    return low < g->labels.count ? &g->labels.data[low] : NULL;
}

int bw_tensor_graph_error(const struct bw_tensor_graph *graph, struct bw_err *err)
{
    return bw_ir_error(graph->ir, err);
}

uint32_t bw_tensor_rank(const struct bw_tensor_graph *g, bw_tensor x)
{
    return x.id ? bw_ir_shape(g->ir, x.id)->rank : 0;
}

const int64_t *bw_tensor_dims(const struct bw_tensor_graph *g, bw_tensor x)
{
    static const int64_t none[BW_TENSOR_RANK_MAX] = {0};
    return x.id ? bw_ir_shape(g->ir, x.id)->dims : none;
}

enum bw_dtype bw_tensor_dtype(const struct bw_tensor_graph *g, bw_tensor x)
{
    return x.id ? bw_ir_dtype(g->ir, x.id) : BW_VOID;
}

int64_t bw_tensor_elements(const struct bw_tensor_graph *g, bw_tensor x)
{
    return x.id ? bw_ir_elements(g->ir, x.id) : 0;
}

static int shape_fill(struct bw_tensor_graph *g, struct bw_shape *shape, uint32_t rank, const int64_t *dims)
{
    memset(shape, 0, sizeof *shape);
    if (rank > BW_RANK_MAX) {
        bw_ir_fail(g->ir, -E2BIG, "rank %u (at most %d)", rank, BW_RANK_MAX);
        return -E2BIG;
    }
    shape->rank = rank;
    if (rank)
        memcpy(shape->dims, dims, rank * sizeof *dims);
    return 0;
}

static bw_tensor buffer_add(struct bw_tensor_graph *g, struct bw_tensor_buffer row)
{
    uint32_t number = (uint32_t)g->buffers.count;
    row.node = bw_ir_buffer(g->ir, row.dtype, number, &row.shape);
    if (!row.node || !bw_dtype_bytes(row.dtype))
        return bw_tensor_fail(g, -EINVAL, "buffer of %s", bw_dtype_name(row.dtype));
    row.size_bytes = (uint64_t)bw_ir_elements(g->ir, row.node) * bw_dtype_bytes(row.dtype);
    row.input_index = (uint32_t)g->inputs.count;
    if (bw_vec_reserve(&g->buffers, 1) || bw_vec_reserve(&g->inputs, 1))
        return bw_tensor_fail(g, -ENOMEM, "buffer table");
    g->buffers.data[g->buffers.count++] = row;
    if (row.kind == BW_TENSOR_INPUT)
        g->inputs.data[g->inputs.count++] = number;
    return bw_tensor_of(row.node);
}

bw_tensor bw_tensor_input(struct bw_tensor_graph *g, enum bw_dtype dtype, uint32_t rank, const int64_t *dims)
{
    struct bw_tensor_buffer row = {.kind = BW_TENSOR_INPUT, .dtype = dtype};
    if (shape_fill(g, &row.shape, rank, dims))
        return bw_tensor_of(0);
    return buffer_add(g, row);
}

bw_node bw_tensor_full_node(struct bw_tensor_graph *g, bw_node scalar, const struct bw_shape *shape)
{
    struct bw_shape ones = {.rank = shape->rank};
    for (uint32_t i = 0; i < ones.rank; i++)
        ones.dims[i] = 1;
    return bw_ir_expand(g->ir, bw_ir_reshape(g->ir, scalar, &ones), shape);
}

/* The CONST of one element at data, of any alignment. */
static bw_node element_const(struct bw_tensor_graph *g, enum bw_dtype dtype, const void *data)
{
    uint64_t bits = 0;
    memcpy(&bits, data, bw_dtype_bytes(dtype));
    float f32;
    double f64;
    switch (dtype) {
    case BW_F16:
        return bw_ir_const_float(g->ir, dtype, (double)bw_f16_to_f32((uint16_t)bits));
    case BW_BF16:
        return bw_ir_const_float(g->ir, dtype, (double)bw_bf16_to_f32((uint16_t)bits));
    case BW_F32:
        memcpy(&f32, data, sizeof f32);
        return bw_ir_const_float(g->ir, dtype, (double)f32);
    case BW_F64:
        memcpy(&f64, data, sizeof f64);
        return bw_ir_const_float(g->ir, dtype, f64);
    default:
        return bw_ir_const_int(g->ir, dtype, (int64_t)bits);
    }
}

/* Do all elements equal the first? Looks no further than the first difference. */
static bool elements_equal(const uint8_t *data, int64_t elements, uint32_t element_bytes)
{
    return elements < 2 || !memcmp(data, data + element_bytes, (size_t)(elements - 1) * element_bytes);
}

static bw_tensor constant_add(struct bw_tensor_graph *g, enum bw_dtype dtype, uint32_t rank,
                              const int64_t *dims, const void *data, bool copy)
{
    struct bw_tensor_buffer row = {.kind = BW_TENSOR_CONSTANT, .dtype = dtype, .owned = copy, .data = data};
    uint32_t element_bytes = bw_dtype_bytes(dtype);
    if (shape_fill(g, &row.shape, rank, dims))
        return bw_tensor_of(0);
    bw_node probe = bw_ir_buffer(g->ir, dtype, 0, &row.shape); /* checks the shape */
    if (!probe || !element_bytes)
        return bw_tensor_fail(g, -EINVAL, "constant of %s", bw_dtype_name(dtype));
    int64_t elements = bw_ir_elements(g->ir, probe);
    if (elements && elements_equal(data, elements, element_bytes))
        return bw_tensor_of(bw_tensor_full_node(g, element_const(g, dtype, data), &row.shape));
    if (copy) {
        uint64_t size_bytes = (uint64_t)elements * element_bytes;
        void *copied = malloc(size_bytes ? size_bytes : 1);
        if (!copied)
            return bw_tensor_fail(g, -ENOMEM, "constant of %llu bytes", (unsigned long long)size_bytes);
        if (size_bytes)
            memcpy(copied, data, size_bytes);
        row.data = copied;
    }
    bw_tensor added = buffer_add(g, row);
    if (!added.id && copy)
        free((void *)(uintptr_t)row.data);
    return added;
}

bw_tensor bw_tensor_constant(struct bw_tensor_graph *g, enum bw_dtype dtype, uint32_t rank,
                             const int64_t *dims, const void *data)
{
    return constant_add(g, dtype, rank, dims, data, true);
}

bw_tensor bw_tensor_constant_borrowed(struct bw_tensor_graph *g, enum bw_dtype dtype, uint32_t rank,
                                      const int64_t *dims, const void *data)
{
    return constant_add(g, dtype, rank, dims, data, false);
}

/* The device only has the file's bytes: 0 or something else, until they are compared. */
static bw_tensor file_bools(struct bw_tensor_graph *g, uint32_t rank, const int64_t *dims,
                            struct bw_buffer *range)
{
    bw_tensor bytes = bw_tensor_file(g, BW_U8, rank, dims, range);
    return bytes.id ? bw_tensor_not_equal(g, bytes, bw_tensor_scalar_int(g, BW_U8, 0)) : bytes;
}

bw_tensor bw_tensor_file(struct bw_tensor_graph *g, enum bw_dtype dtype, uint32_t rank, const int64_t *dims,
                         struct bw_buffer *range)
{
    struct bw_tensor_buffer row = {.kind = BW_TENSOR_CONSTANT, .dtype = dtype, .owned = true};
    struct bw_err err;
    if (dtype == BW_BOOL)
        return file_bools(g, rank, dims, range);
    if (shape_fill(g, &row.shape, rank, dims))
        return bw_tensor_of(0);
    bw_node probe = bw_ir_buffer(g->ir, dtype, 0, &row.shape); /* checks the shape */
    if (!probe || !bw_dtype_bytes(dtype))
        return bw_tensor_fail(g, -EINVAL, "file of %s", bw_dtype_name(dtype));
    uint64_t size_bytes = (uint64_t)bw_ir_elements(g->ir, probe) * bw_dtype_bytes(dtype);
    if (size_bytes && bw_buffer_view(range, 0, size_bytes, &row.file, &err))
        return bw_tensor_fail(g, err.code, "%llu bytes of a range of %llu of %s",
                              (unsigned long long)size_bytes, (unsigned long long)bw_buffer_size(range),
                              bw_device_info(bw_buffer_device(range))->name);
    bw_tensor added = buffer_add(g, row);
    if (!added.id)
        bw_buffer_destroy(row.file);
    return added;
}

int bw_tensor_buffer_data(struct bw_tensor_graph *graph, uint32_t buffer, const void **data,
                          struct bw_err *err)
{
    struct bw_tensor_buffer *row = &graph->buffers.data[buffer];
    assert(row->kind == BW_TENSOR_CONSTANT);
    if (row->file && !row->data) {
        void *loaded = malloc(row->size_bytes);
        int rc = loaded ? bw_buffer_read(row->file, 0, loaded, row->size_bytes, err)
                        : bw_fail(err, -ENOMEM, "tensor", "%llu bytes of a file",
                                  (unsigned long long)row->size_bytes);
        if (rc) {
            free(loaded);
            return rc;
        }
        row->data = loaded;
    }
    *data = row->data;
    return 0;
}

bw_tensor bw_tensor_scalar(struct bw_tensor_graph *g, enum bw_dtype dtype, double value)
{
    if (bw_dtype_is_float(dtype))
        return bw_tensor_of(bw_ir_const_float(g->ir, dtype, value));
    /* saturates, as casts do; bw_ir_cast of a constant is just that */
    return bw_tensor_of(bw_ir_cast(g->ir, dtype, bw_ir_const_float(g->ir, BW_F64, value)));
}

bw_tensor bw_tensor_scalar_int(struct bw_tensor_graph *g, enum bw_dtype dtype, int64_t value)
{
    return bw_tensor_of(bw_ir_const_int(g->ir, dtype, value));
}

bw_tensor bw_tensor_full(struct bw_tensor_graph *g, enum bw_dtype dtype, uint32_t rank, const int64_t *dims,
                         double value)
{
    struct bw_shape shape;
    if (shape_fill(g, &shape, rank, dims))
        return bw_tensor_of(0);
    return bw_tensor_of(bw_tensor_full_node(g, bw_tensor_scalar(g, dtype, value).id, &shape));
}

bw_tensor bw_tensor_indexes(struct bw_tensor_graph *g, enum bw_dtype dtype, uint32_t rank,
                            const int64_t *dims, uint32_t axis)
{
    struct bw_shape shape;
    if (shape_fill(g, &shape, rank, dims))
        return bw_tensor_of(0);
    return bw_tensor_of(bw_ir_indexes(g->ir, dtype, &shape, axis));
}

bw_node bw_tensor_uniform_node(const struct bw_tensor_graph *g, bw_node x)
{
    while (x) {
        switch (bw_ir_op(g->ir, x)) {
        case BW_OP_CONST:
            return x;
        case BW_OP_RESHAPE:
        case BW_OP_PERMUTE:
        case BW_OP_EXPAND:
        case BW_OP_SHRINK:
        case BW_OP_FLIP:
        case BW_OP_CONTIGUOUS:
            x = bw_ir_source(g->ir, x, 0);
            break;
        default:
            return 0;
        }
    }
    return 0;
}

bool bw_tensor_depends_on_input(struct bw_tensor_graph *graph, bw_node node)
{
    uint32_t count = bw_ir_count(graph->ir);
    size_t known = graph->depends_on_input.count;
    if (bw_vec_reserve(&graph->depends_on_input, count - known))
        return true; /* out of memory: the careful answer */
    for (bw_node i = (bw_node)known; i < count; i++) {
        bool depends = false;
        if (i && bw_ir_op(graph->ir, i) == BW_OP_BUFFER) {
            uint32_t number = bw_ir_buffer_number(graph->ir, i);
            depends = number < graph->buffers.count && graph->buffers.data[number].node == i &&
                      graph->buffers.data[number].kind == BW_TENSOR_INPUT;
        }
        for (uint32_t s = 0; i && s < bw_ir_source_count(graph->ir, i); s++)
            depends |= graph->depends_on_input.data[bw_ir_source(graph->ir, i, s)];
        graph->depends_on_input.data[i] = depends;
    }
    graph->depends_on_input.count = count;
    return graph->depends_on_input.data[node];
}

bool bw_tensor_is_constant(const struct bw_tensor_graph *g, bw_tensor x)
{
    /* The table of dependences is a cache: filling it does not change what the graph means. */
    return x.id && !bw_tensor_depends_on_input((struct bw_tensor_graph *)(uintptr_t)g, x.id);
}
