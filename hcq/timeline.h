/* A point on a queue's timeline: 64 bits, monotonic, compared by signed difference, so that a timeline may
 * start anywhere and run past 2^64. A struct, so that nobody writes `<`. */
#ifndef BW_HCQ_TIMELINE_H
#define BW_HCQ_TIMELINE_H

#include <stdbool.h>
#include <stdint.h>

struct bw_point {
    uint64_t value;
};

static inline bool bw_point_reached(struct bw_point now, struct bw_point wanted)
{
    return (int64_t)(now.value - wanted.value) >= 0;
}

static inline struct bw_point bw_point_after(struct bw_point point, uint64_t count)
{
    return (struct bw_point){point.value + count};
}

/* A device-side wait may compare the low 32 bits only, unsigned. All values of one signal slot therefore
 * share their high word: true when `count` more points still do. The first value of a fresh slot is
 * bw_point_window. */
static inline bool bw_point_window_holds(struct bw_point point, uint64_t count)
{
    return count <= UINT32_MAX - (uint32_t)point.value;
}

static inline struct bw_point bw_point_window(struct bw_point point)
{
    return (struct bw_point){(point.value | UINT32_MAX) + 1};
}

#endif
