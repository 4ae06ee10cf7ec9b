/* Growable array as a macro over {data, count, capacity}. Not thread safe.
 *
 *   BW_VEC(uint32_t) words = {0};
 *   if (bw_vec_push(&words, 7)) return -ENOMEM;
 *   for (size_t i = 0; i < words.count; i++) use(words.data[i]);
 *   bw_vec_free(&words); */
#ifndef BW_BASE_VEC_H
#define BW_BASE_VEC_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define BW_VEC(type)            \
    struct {                    \
        type *data;             \
        size_t count, capacity; \
    }

/* Makes room for `extra` more elements: 0 or -ENOMEM, the vector unchanged on failure. */
#define bw_vec_reserve(vec, extra) \
    bw_vec_grow((void **)&(vec)->data, &(vec)->capacity, (vec)->count, extra, sizeof *(vec)->data)

/* Appends one element: 0 or -ENOMEM. */
#define bw_vec_push(vec, ...) \
    (bw_vec_reserve(vec, 1) ? -ENOMEM : ((vec)->data[(vec)->count++] = (__VA_ARGS__), 0))

#define bw_vec_free(vec) (free((vec)->data), (vec)->data = NULL, (vec)->count = (vec)->capacity = 0)

static inline int bw_vec_grow(void **data, size_t *capacity, size_t count, size_t extra, size_t element_bytes)
{
    if (count + extra <= *capacity)
        return 0;
    size_t wanted = *capacity ? *capacity * 2 : 8;
    if (wanted < count + extra)
        wanted = count + extra;
    if (wanted > SIZE_MAX / element_bytes)
        return -ENOMEM;
    void *grown = realloc(*data, wanted * element_bytes);
    if (!grown)
        return -ENOMEM;
    *data = grown;
    *capacity = wanted;
    return 0;
}

#endif
