/* Strided views and walks over them. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/evaluate.h"

/* One value of the evaluator may take this much memory: a wrong shape is refused before the machine swaps. */
static const uint64_t STORAGE_BYTES_MAX = 8ull << 30;

void bw_view_release(struct bw_view *view)
{
    struct bw_storage *storage = view->storage;
    view->storage = NULL;
    if (!storage || --storage->references)
        return;
    if (storage->owned)
        free(storage->data);
    free(storage);
}

int64_t bw_view_stored_elements(const struct bw_shape *shape, uint32_t collapsed)
{
    int64_t elements = 1;
    for (uint32_t i = 0; i < shape->rank; i++)
        elements *= collapsed >> i & 1 ? 1 : shape->dims[i];
    return elements;
}

int bw_view_create(struct bw_view *view, enum bw_dtype dtype, const struct bw_shape *shape,
                   uint32_t collapsed, struct bw_err *err)
{
    uint64_t size_bytes = (uint64_t)bw_view_stored_elements(shape, collapsed) * bw_dtype_bytes(dtype);
    struct bw_storage *storage = size_bytes <= STORAGE_BYTES_MAX ? calloc(1, sizeof *storage) : NULL;
    uint8_t *data = storage ? malloc(size_bytes ? size_bytes : 1) : NULL;
    if (!data) {
        free(storage);
        return bw_fail(err, -ENOMEM, "evaluate", "a value of %llu bytes", (unsigned long long)size_bytes);
    }
    *storage = (struct bw_storage){.references = 1, .owned = true, .data = data};
    *view = (struct bw_view){.storage = storage, .data = data, .dtype = dtype, .shape = *shape};
    int64_t stride = 1;
    for (uint32_t i = shape->rank; i-- > 0;) {
        view->strides[i] = collapsed >> i & 1 ? 0 : stride;
        stride *= collapsed >> i & 1 ? 1 : shape->dims[i];
    }
    return 0;
}

uint32_t bw_view_collapsed(const struct bw_view *view)
{
    uint32_t mask = 0;
    for (uint32_t i = 0; i < view->shape.rank; i++)
        mask |= (uint32_t)(view->strides[i] == 0 || view->shape.dims[i] == 1) << i;
    return mask;
}

/* Drops axes of size 1 and joins those that are one run: what is left walks faster. Returns the rank. */
static uint32_t view_simplify(const struct bw_view *view, int64_t *dims, int64_t *strides)
{
    uint32_t rank = 0;
    for (uint32_t i = 0; i < view->shape.rank; i++) {
        if (view->shape.dims[i] == 1)
            continue;
        dims[rank] = view->shape.dims[i];
        strides[rank++] = view->strides[i];
        if (rank > 1 && strides[rank - 2] == strides[rank - 1] * dims[rank - 1]) {
            dims[rank - 2] *= dims[rank - 1];
            strides[rank - 2] = strides[rank - 1];
            rank--;
        }
    }
    return rank;
}

/* Strides of `shape` over the same elements, as NumPy finds them: each run of new axes must lie in one run of
 * old ones. */
static bool reshape_strides(const struct bw_view *x, const struct bw_shape *shape, int64_t *strides)
{
    int64_t dims[BW_RANK_MAX], old[BW_RANK_MAX];
    uint32_t rank = view_simplify(x, dims, old), axis = 0;
    int64_t left = rank ? dims[0] : 1; /* elements of the old axis not yet given away */
    for (uint32_t i = 0; i < shape->rank; i++) {
        if (shape->dims[i] == 1) {
            strides[i] = 0;
            continue;
        }
        if (left == 1 && ++axis < rank)
            left = dims[axis];
        if (axis >= rank || left % shape->dims[i])
            return false;
        left /= shape->dims[i];
        strides[i] = old[axis] * left;
    }
    return true;
}

int bw_view_reshape(struct bw_view *result, const struct bw_view *x, const struct bw_shape *shape,
                    struct bw_err *err)
{
    struct bw_view view = *x;
    view.shape = *shape;
    if (bw_view_stored_elements(shape, 0) == 0 || !reshape_strides(x, shape, view.strides)) {
        int rc = bw_view_create(&view, x->dtype, shape, 0, err);
        if (rc)
            return rc;
        bw_view_copy(x, view.storage->data);
    } else {
        view.storage->references++;
    }
    *result = view;
    return 0;
}

#define COPY_STRIDED(T)                                                          \
    for (int64_t i = 0; i < n; i++)                                              \
        memcpy((T *)out + i, data + i * stride * (int64_t)sizeof(T), sizeof(T)); \
    return

void bw_evaluate_load(void *out, const uint8_t *data, int64_t stride, int64_t n, uint32_t element_bytes)
{
    if (stride == 1) {
        memcpy(out, data, (size_t)n * element_bytes);
        return;
    }
    switch (element_bytes) {
    case 1:
        COPY_STRIDED(uint8_t);
    case 2:
        COPY_STRIDED(uint16_t);
    case 4:
        COPY_STRIDED(uint32_t);
    default:
        COPY_STRIDED(uint64_t);
    }
}

void bw_cursor_start(struct bw_cursor *cursor, const struct bw_view *view)
{
    *cursor = (struct bw_cursor){.at = view->data, .element_bytes = bw_dtype_bytes(view->dtype)};
    cursor->rank = view_simplify(view, cursor->dims, cursor->strides);
    if (!cursor->rank) { /* one element */
        cursor->rank = 1;
        cursor->dims[0] = 1;
        cursor->strides[0] = 1;
    }
}

/* Steps the cursor past `run` elements of its innermost axis. */
static void cursor_advance(struct bw_cursor *cursor, int64_t run)
{
    uint32_t axis = cursor->rank - 1;
    cursor->index[axis] += run;
    cursor->at += run * cursor->strides[axis] * cursor->element_bytes;
    while (cursor->index[axis] == cursor->dims[axis] && axis) {
        cursor->at -= cursor->index[axis] * cursor->strides[axis] * cursor->element_bytes;
        cursor->index[axis--] = 0;
        cursor->index[axis]++;
        cursor->at += cursor->strides[axis] * cursor->element_bytes;
    }
}

const void *bw_cursor_next(struct bw_cursor *cursor, int64_t n, void *temporary)
{
    uint32_t inner = cursor->rank - 1, bytes = cursor->element_bytes;
    bool aligned = (uintptr_t)cursor->at % bytes == 0;
    if (cursor->strides[inner] == 1 && aligned && cursor->dims[inner] - cursor->index[inner] >= n) {
        const void *direct = cursor->at;
        cursor_advance(cursor, n);
        return direct;
    }
    for (uint8_t *out = temporary; n > 0;) {
        int64_t run = cursor->dims[inner] - cursor->index[inner];
        if (run > n)
            run = n;
        assert(run > 0);
        bw_evaluate_load(out, cursor->at, cursor->strides[inner], run, bytes);
        cursor_advance(cursor, run);
        out += run * bytes;
        n -= run;
    }
    return temporary;
}

void bw_view_copy(const struct bw_view *view, void *out)
{
    struct bw_cursor cursor;
    int64_t left = bw_view_stored_elements(&view->shape, 0);
    bw_cursor_start(&cursor, view);
    for (uint8_t *at = out; left > 0;) {
        int64_t n = cursor.dims[cursor.rank - 1] > BW_BLOCK ? cursor.dims[cursor.rank - 1] : BW_BLOCK;
        if (n > left)
            n = left;
        const void *from = bw_cursor_next(&cursor, n, at);
        if (from != at)
            memcpy(at, from, (size_t)n * cursor.element_bytes);
        at += n * cursor.element_bytes;
        left -= n;
    }
}

void bw_view_copy_into(const struct bw_view *target, const int64_t *low, const struct bw_view *x)
{
    int64_t index[BW_RANK_MAX] = {0}, left = bw_view_stored_elements(&x->shape, 0);
    uint32_t rank = x->shape.rank, bytes = bw_dtype_bytes(x->dtype);
    assert(target->strides[rank - 1] == 1 || x->shape.dims[rank - 1] == 1);
    struct bw_cursor cursor;
    bw_cursor_start(&cursor, x);
    while (left > 0) { /* row by row */
        int64_t row = x->shape.dims[rank - 1], offset = 0;
        for (uint32_t i = 0; i < rank; i++)
            offset += (index[i] + low[i]) * target->strides[i];
        uint8_t *out = target->storage->data + offset * bytes;
        const void *from = bw_cursor_next(&cursor, row, out);
        if (from != out)
            memcpy(out, from, (size_t)row * bytes);
        left -= row;
        for (uint32_t i = rank - 1; i-- > 0;) {
            if (++index[i] < x->shape.dims[i])
                break;
            index[i] = 0;
        }
    }
}
