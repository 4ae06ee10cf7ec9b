/* Hash-consed nodes: storage, interning, accessors. Contract in ir.h. */
#include "compiler/ir.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "compiler/ir_internal.h"

enum {
    TABLE_SIZE_MIN = 1024,
    /* A graph of this many nodes needs about 1 GiB; more is a runaway rewrite, not a model. */
    NODES_MAX = 1 << 24,
};

static const struct {
    const char *name;
    enum bw_op_class op_class;
} op_rows[BW_OP_COUNT] = {
#define X(name, op_class) {#name, BW_OP_##op_class},
    BW_OPS(X)
#undef X
};

enum bw_op_class bw_op_class(enum bw_op op)
{
    return op_rows[(unsigned)op < BW_OP_COUNT ? op : BW_OP_NONE].op_class;
}

const char *bw_op_name(enum bw_op op)
{
    return op_rows[(unsigned)op < BW_OP_COUNT ? op : BW_OP_NONE].name;
}

static uint32_t *table_grow(uint32_t **table, uint32_t *size, uint32_t wanted)
{
    uint32_t *grown = calloc(wanted, sizeof **table);
    if (grown) {
        free(*table);
        *table = grown;
        *size = wanted;
    }
    return grown;
}

int bw_ir_create(struct bw_ir **out, struct bw_err *err)
{
    struct bw_ir *ir = calloc(1, sizeof *ir);
    if (!ir || !table_grow(&ir->node_table, &ir->node_table_size, TABLE_SIZE_MIN) ||
        !table_grow(&ir->blob_table, &ir->blob_table_size, TABLE_SIZE_MIN) ||
        bw_vec_push(&ir->nodes, (struct bw_ir_node){0}) ||
        bw_vec_push(&ir->blobs, (struct bw_ir_blob_row){0}) || bw_vec_push(&ir->shapes, NULL)) {
        bw_ir_destroy(ir);
        return bw_fail(err, -ENOMEM, "ir", "new graph");
    }
    *out = ir;
    return 0;
}

void bw_ir_destroy(struct bw_ir *ir)
{
    if (!ir)
        return;
    bw_arena_free(&ir->arena);
    bw_vec_free(&ir->nodes);
    bw_vec_free(&ir->sources);
    bw_vec_free(&ir->blobs);
    bw_vec_free(&ir->shapes);
    bw_vec_free(&ir->keys);
    free(ir->node_table);
    free(ir->blob_table);
    free(ir);
}

int bw_ir_error(const struct bw_ir *ir, struct bw_err *err)
{
    if (err && ir->err.code)
        *err = ir->err;
    return ir->err.code;
}

bw_node bw_ir_fail(struct bw_ir *ir, int code, const char *format, ...)
{
    if (ir->err.code)
        return 0;
    char text[sizeof ir->err.what];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    bw_fail(&ir->err, code, "ir", "%s", text);
    return 0;
}

uint32_t bw_ir_count(const struct bw_ir *ir)
{
    return (uint32_t)ir->nodes.count;
}

static int blob_rehash(struct bw_ir *ir)
{
    if (!table_grow(&ir->blob_table, &ir->blob_table_size, ir->blob_table_size * 2))
        return -ENOMEM;
    for (uint32_t i = 1; i < ir->blobs.count; i++) {
        uint32_t mask = ir->blob_table_size - 1;
        uint32_t at = (uint32_t)XXH3_64bits(ir->blobs.data[i].data, ir->blobs.data[i].size_bytes) & mask;
        while (ir->blob_table[at])
            at = (at + 1) & mask;
        ir->blob_table[at] = i;
    }
    return 0;
}

uint64_t bw_ir_blob(struct bw_ir *ir, const void *data, uint32_t size_bytes)
{
    if (ir->blobs.count * 2 > ir->blob_table_size && blob_rehash(ir))
        return bw_ir_fail(ir, -ENOMEM, "interning %u bytes", size_bytes);
    uint32_t mask = ir->blob_table_size - 1, at = (uint32_t)XXH3_64bits(data, size_bytes) & mask;
    for (; ir->blob_table[at]; at = (at + 1) & mask) {
        const struct bw_ir_blob_row *row = &ir->blobs.data[ir->blob_table[at]];
        if (row->size_bytes == size_bytes && !memcmp(row->data, data, size_bytes))
            return ir->blob_table[at];
    }
    void *copy = bw_arena_copy(&ir->arena, data, size_bytes);
    if (!copy || bw_vec_reserve(&ir->shapes, 1) ||
        bw_vec_push(&ir->blobs, (struct bw_ir_blob_row){copy, size_bytes}))
        return bw_ir_fail(ir, -ENOMEM, "interning %u bytes", size_bytes);
    ir->shapes.data[ir->shapes.count++] = NULL;
    assert(ir->shapes.count == ir->blobs.count);
    ir->blob_table[at] = (uint32_t)ir->blobs.count - 1;
    return ir->blob_table[at];
}

const void *bw_ir_blob_data(const struct bw_ir *ir, uint64_t blob)
{
    assert(blob < ir->blobs.count);
    return ir->blobs.data[blob].data;
}

/* Shapes are interned cut to their rank, so that garbage behind it never splits equal shapes. */
uint64_t bw_ir_shape_blob(struct bw_ir *ir, const struct bw_shape *shape)
{
    assert(shape->rank <= BW_RANK_MAX);
    int64_t packed[1 + BW_RANK_MAX] = {shape->rank};
    memcpy(packed + 1, shape->dims, shape->rank * sizeof packed[0]);
    uint64_t blob = bw_ir_blob(ir, packed, (1 + shape->rank) * (uint32_t)sizeof packed[0]);
    if (!blob || ir->shapes.data[blob])
        return blob;
    struct bw_shape *full = bw_arena_alloc(&ir->arena, sizeof *full);
    if (!full)
        return bw_ir_fail(ir, -ENOMEM, "interning a shape");
    full->rank = shape->rank;
    memcpy(full->dims, shape->dims, shape->rank * sizeof shape->dims[0]);
    ir->shapes.data[blob] = full;
    return blob;
}

static uint64_t node_hash(const struct bw_ir_node *node, const bw_node *sources)
{
    uint64_t head[2] = {node->op | (uint64_t)node->dtype << 8 | (uint64_t)node->source_count << 16,
                        node->arg};
    return XXH3_64bits_withSeed(sources, node->source_count * sizeof *sources,
                                XXH3_64bits(head, sizeof head));
}

static int node_rehash(struct bw_ir *ir)
{
    if (!table_grow(&ir->node_table, &ir->node_table_size, ir->node_table_size * 2))
        return -ENOMEM;
    uint32_t mask = ir->node_table_size - 1;
    for (uint32_t i = 1; i < ir->nodes.count; i++) {
        const struct bw_ir_node *node = &ir->nodes.data[i];
        uint32_t at = (uint32_t)node_hash(node, ir->sources.data + node->source_offset) & mask;
        while (ir->node_table[at])
            at = (at + 1) & mask;
        ir->node_table[at] = i;
    }
    return 0;
}

static bool node_equal(const struct bw_ir *ir, const struct bw_ir_node *a, const struct bw_ir_node *b,
                       const bw_node *b_sources)
{
    return a->op == b->op && a->dtype == b->dtype && a->arg == b->arg && a->source_count == b->source_count &&
           (!b->source_count ||
            !memcmp(ir->sources.data + a->source_offset, b_sources, b->source_count * sizeof *b_sources));
}

/* Appends a node that is known to be new; its shape is derived here. */
static bw_node node_append(struct bw_ir *ir, struct bw_ir_node node, const bw_node *sources,
                           uint32_t table_at)
{
    struct bw_shape shape = {0};
    if (bw_ir_shape_derive(ir, node.op, node.dtype, node.arg, sources, node.source_count, &shape))
        return 0;
    uint64_t shape_blob = bw_ir_shape_blob(ir, &shape);
    if (!shape_blob)
        return 0;
    if (ir->nodes.count >= NODES_MAX)
        return bw_ir_fail(ir, -E2BIG, "more than %d nodes in one graph", NODES_MAX);
    node.shape = (uint32_t)shape_blob;
    node.source_offset = (uint32_t)ir->sources.count;
    if (bw_vec_reserve(&ir->sources, node.source_count) || bw_vec_push(&ir->nodes, node))
        return bw_ir_fail(ir, -ENOMEM, "node %zu", ir->nodes.count);
    if (node.source_count)
        memcpy(ir->sources.data + ir->sources.count, sources, node.source_count * sizeof *sources);
    ir->sources.count += node.source_count;
    ir->node_table[table_at] = (uint32_t)ir->nodes.count - 1;
    bw_ir_bounds_derive(ir, (bw_node)ir->nodes.count - 1);
    return (bw_node)ir->nodes.count - 1;
}

bw_node bw_ir_add(struct bw_ir *ir, enum bw_op op, enum bw_dtype dtype, uint64_t arg, const bw_node *sources,
                  uint32_t source_count)
{
    if (source_count > BW_IR_SOURCES_MAX)
        return bw_ir_fail(ir, -E2BIG, "%s with %u sources (at most %d)", bw_op_name(op), source_count,
                          BW_IR_SOURCES_MAX);
    if (bw_dtype_is_storage(dtype))
        return bw_ir_fail(ir, -ENOTSUP, "%s of %s, which is a storage type: its bytes are a tensor of %s",
                          bw_op_name(op), bw_dtype_name(dtype), bw_dtype_name(bw_dtype_carrier(dtype)));
    for (uint32_t i = 0; i < source_count; i++) {
        if (!sources[i])
            return 0;
        assert(sources[i] < ir->nodes.count);
    }
    if (ir->nodes.count * 2 > ir->node_table_size && node_rehash(ir))
        return bw_ir_fail(ir, -ENOMEM, "node %zu", ir->nodes.count);
    static const bw_node nothing[1];
    if (!source_count)
        sources = nothing; /* memcpy and memcmp take no NULL, not even for no bytes */
    struct bw_ir_node node = {
        .op = (uint8_t)op, .dtype = (uint8_t)dtype, .source_count = (uint16_t)source_count, .arg = arg};
    uint32_t mask = ir->node_table_size - 1, at = (uint32_t)node_hash(&node, sources) & mask;
    for (; ir->node_table[at]; at = (at + 1) & mask)
        if (node_equal(ir, &ir->nodes.data[ir->node_table[at]], &node, sources))
            return ir->node_table[at];
    /* `sources` may point into the ir's own array, which grows: copy small lists first. */
    bw_node copied[8];
    if (source_count <= BW_RANK_MAX / 2) {
        memcpy(copied, sources, source_count * sizeof *sources);
        return node_append(ir, node, copied, at);
    }
    bw_node *heap = malloc(source_count * sizeof *heap);
    if (!heap)
        return bw_ir_fail(ir, -ENOMEM, "node %zu", ir->nodes.count);
    memcpy(heap, sources, source_count * sizeof *heap);
    bw_node made = node_append(ir, node, heap, at);
    free(heap);
    return made;
}

static const struct bw_ir_node *node_at(const struct bw_ir *ir, bw_node node)
{
    assert(node && node < ir->nodes.count);
    return &ir->nodes.data[node];
}

enum bw_op bw_ir_op(const struct bw_ir *ir, bw_node node)
{
    return node ? node_at(ir, node)->op : BW_OP_NONE;
}

enum bw_dtype bw_ir_dtype(const struct bw_ir *ir, bw_node node)
{
    return node ? node_at(ir, node)->dtype : BW_VOID;
}

uint64_t bw_ir_arg(const struct bw_ir *ir, bw_node node)
{
    return node_at(ir, node)->arg;
}

uint32_t bw_ir_source_count(const struct bw_ir *ir, bw_node node)
{
    return node_at(ir, node)->source_count;
}

bw_node bw_ir_source(const struct bw_ir *ir, bw_node node, uint32_t index)
{
    const struct bw_ir_node *at = node_at(ir, node);
    assert(index < at->source_count);
    return ir->sources.data[at->source_offset + index];
}

const bw_node *bw_ir_sources(const struct bw_ir *ir, bw_node node)
{
    return ir->sources.data + node_at(ir, node)->source_offset;
}

const struct bw_shape *bw_ir_shape(const struct bw_ir *ir, bw_node node)
{
    return ir->shapes.data[node_at(ir, node)->shape];
}

int64_t bw_ir_elements(const struct bw_ir *ir, bw_node node)
{
    const struct bw_shape *shape = bw_ir_shape(ir, node);
    int64_t elements = 1;
    for (uint32_t i = 0; i < shape->rank; i++)
        elements *= shape->dims[i]; /* cannot overflow: checked when the shape was derived */
    return elements;
}

/* Keys hash content, not ids: args that are blobs are hashed as bytes. */
static bool arg_is_blob(enum bw_op op)
{
    switch (op) {
    case BW_OP_BUFFER:
    case BW_OP_INDEXES:
    case BW_OP_RESHAPE:
    case BW_OP_PERMUTE:
    case BW_OP_EXPAND:
    case BW_OP_PAD:
    case BW_OP_SHRINK:
    case BW_OP_VARIABLE:
    case BW_OP_LOCAL:
        return true;
    default:
        return false;
    }
}

static struct bw_key node_key(const struct bw_ir *ir, bw_node at)
{
    const struct bw_ir_node *node = &ir->nodes.data[at];
    XXH3_state_t *state = XXH3_createState();
    struct bw_key key = {{0, 0}};
    if (!state)
        return key;
    XXH3_128bits_reset(state);
    /* Names, not enum values, so that a key survives a new op in the middle of the list. */
    const char *name = bw_op_name(node->op), *dtype = bw_dtype_name(node->dtype);
    XXH3_128bits_update(state, name, strlen(name) + 1);
    XXH3_128bits_update(state, dtype, strlen(dtype) + 1);
    if (arg_is_blob(node->op))
        XXH3_128bits_update(state, ir->blobs.data[node->arg].data, ir->blobs.data[node->arg].size_bytes);
    else if (node->op == BW_OP_REDUCE || node->op == BW_OP_FOLD) {
        const char *reduce = bw_op_name(bw_ir_reduce_op(ir, at));
        uint32_t axes = (uint32_t)(node->arg >> 8);
        XXH3_128bits_update(state, reduce, strlen(reduce) + 1);
        XXH3_128bits_update(state, &axes, sizeof axes);
    } else
        XXH3_128bits_update(state, &node->arg, sizeof node->arg);
    for (uint32_t i = 0; i < node->source_count; i++)
        XXH3_128bits_update(state, &ir->keys.data[ir->sources.data[node->source_offset + i]], sizeof key);
    XXH128_hash_t hash = XXH3_128bits_digest(state);
    XXH3_freeState(state);
    return (struct bw_key){{hash.low64, hash.high64}};
}

struct bw_key bw_ir_key(struct bw_ir *ir, bw_node node)
{
    struct bw_key none = {{0, 0}};
    if (!node || bw_vec_reserve(&ir->keys, ir->nodes.count - ir->keys.count))
        return none;
    /* Sources come before users, so one pass in order computes all that are missing. */
    while (ir->keys.count <= node) {
        struct bw_key key = ir->keys.count ? node_key(ir, (bw_node)ir->keys.count) : none;
        ir->keys.data[ir->keys.count++] = key;
    }
    return ir->keys.data[node];
}
