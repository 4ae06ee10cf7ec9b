/* Device clocks beside the host's: a queue writes its clock while the host looks at its own before and after;
 * of a few tries the one with the narrowest window wins, and its middle is taken. Rates are nominal, and the
 * host's own is steered: 50 ppm is 50 us in each second. So two points are kept, as close around what was
 * stamped as can be had, and times between them are interpolated. */
#include <assert.h>
#include <string.h>

#include "base/bits.h"
#include "hcq/hcq.h"

#define NS_PER_S 1000000000ull

enum {
    TRIES = 20,
    GOOD_ERROR_NS = 10000,     /* an idle machine gets there at once, a busy one now and then */
    COMMAND_BYTES = 4096,      /* a timestamp and a signal, and the stamp itself at the end */
    FRESH_NS = 10000000,       /* a point is good for so long: 100 ppm make 1 us of that */
    REFRESH_ERROR_NS = 200000, /* a point worse than this is no gain over the nominal rate */
    RATE_SPAN_NS = 1000000000, /* points so far apart tell the rate to some ppm, for times beyond them, too */
    RESTART_ERROR_NS =
        10000000,        /* what a rate of +-1 % may be off besides: a clock that is off by more ... */
    RESTART_SHARE = 100, /* ... has begun anew, as after a reset */
};

/* One stamp on the device's first queue, at `stamp_offset` in the block. */
static int stamp_submit(struct bw_hcq_device *device, struct bw_block *block, struct bw_encoder *encoder,
                        uint64_t stamp_offset, struct bw_err *err)
{
    static const struct bw_hcq_label label = {"timestamp"};
    struct bw_hcq_queue *queue = &device->queues[0];
    const struct bw_driver_ops *ops = device->device->ops;
    int rc = bw_hcq_queue_window(queue, 1, err);
    if (rc)
        return rc;
    struct bw_point done = bw_point_after(bw_hcq_queue_reserve(queue, 1), 1);
    encoder->count = 0;
    ops->encode_timestamp(queue->queue, encoder, bw_operand_constant(block->memory.address + stamp_offset));
    ops->encode_signal(queue->queue, encoder,
                       bw_operand_constant(device->signals->memory.address + queue->signal_offset),
                       bw_operand_constant(done.value), true);
    ops->encode_end(queue->queue, encoder);
    assert(!encoder->failed && encoder->count * sizeof(uint32_t) <= stamp_offset);
    memcpy(bw_block_map(block), encoder->words, encoder->count * sizeof(uint32_t));
    bw_hcq_queue_remember(queue, done, &label);
    rc = bw_hcq_queue_submit(queue, block->memory.address, encoder->count, err);
    if (!rc)
        rc = bw_hcq_queue_flush(queue, err);
    return rc ? rc : bw_hcq_queue_wait(queue, done, err);
}

static int point_try(struct bw_hcq_device *device, struct bw_block *block, struct bw_encoder *encoder,
                     struct bw_clock_point *point, struct bw_err *err)
{
    uint64_t stamp_offset = COMMAND_BYTES - sizeof(uint64_t);
    bw_hcq_turn_take(device->ctx);
    uint64_t begin_ns = device->sys->ops->clock_ns(device->sys);
    int rc = stamp_submit(device, block, encoder, stamp_offset, err);
    uint64_t window_ns = device->sys->ops->clock_ns(device->sys) - begin_ns;
    bw_hcq_turn_give(device->ctx);
    memcpy(&point->ticks, (char *)bw_block_map(block) + stamp_offset, sizeof point->ticks);
    point->host_ns = begin_ns + window_ns / 2;
    point->error_ns = bw_div_up(window_ns, 2) + bw_div_up(NS_PER_S, device->device->caps.timestamp_hz);
    return rc;
}

static int point_measure(struct bw_hcq_device *device, struct bw_clock_point *best, struct bw_err *err)
{
    struct bw_block *block;
    struct bw_encoder encoder = {0};
    best->error_ns = UINT64_MAX;
    int rc = bw_block_create(device, COMMAND_BYTES, BW_BUFFER_HOST | BW_BUFFER_UNCACHED, &block, err);
    if (rc)
        return rc;
    for (int i = 0; i < TRIES && best->error_ns > GOOD_ERROR_NS && !rc; i++) {
        struct bw_clock_point point;
        rc = point_try(device, block, &encoder, &point, err);
        if (!rc && point.error_ns < best->error_ns)
            *best = point;
    }
    bw_encoder_free(&encoder);
    bw_block_release(block);
    return rc;
}

struct bw_hcq_clock bw_hcq_clock_get(struct bw_hcq_device *device)
{
    pthread_mutex_lock(&device->lock);
    struct bw_hcq_clock clock = device->clock;
    pthread_mutex_unlock(&device->lock);
    return clock;
}

static uint64_t distance(uint64_t a, uint64_t b)
{
    return a > b ? a - b : b - a;
}

static bool clock_restarted(const struct bw_hcq_device *device, const struct bw_clock_point *point)
{
    struct bw_hcq_clock last = {device->clock.last, device->clock.last, true};
    uint64_t expected_ns = bw_hcq_clock_host_ns(&last, device->device->caps.timestamp_hz, point->ticks);
    uint64_t passed_ns = distance(point->host_ns, last.last.host_ns);
    return distance(expected_ns, point->host_ns) > passed_ns / RESTART_SHARE + RESTART_ERROR_NS;
}

static void point_note(struct bw_hcq_device *device, const struct bw_clock_point *point)
{
    pthread_mutex_lock(&device->lock);
    bool follows = device->clock.known && !clock_restarted(device, point);
    device->clock.previous = follows ? device->clock.last : *point;
    device->clock.last = *point;
    device->clock.known = true;
    pthread_mutex_unlock(&device->lock);
}

static bool device_idle(const struct bw_hcq_device *device)
{
    bool idle = true;
    for (uint32_t i = 0; i < device->queue_count; i++)
        idle = idle && bw_hcq_queue_idle(&device->queues[i]);
    return idle;
}

int bw_hcq_clock_align(struct bw_hcq_device *device, struct bw_err *err)
{
    struct bw_clock_point point = {0};
    if (bw_hcq_clock_get(device).known || device->queue_count == 0) {
        bw_hcq_clock_refresh(device);
        return 0;
    }
    if (device->device->caps.timestamp_is_clock) { /* so they agree everywhere */
        point_note(device, &point);
        return 0;
    }
    int rc =
        bw_hcq_devices_wait(device->ctx, 1ull << device->index, err); /* an idle device answers at once */
    if (!rc)
        rc = point_measure(device, &point, err);
    if (!rc)
        point_note(device, &point);
    return rc;
}

void bw_hcq_clock_refresh(struct bw_hcq_device *device)
{
    struct bw_clock_point point;
    struct bw_hcq_clock clock = bw_hcq_clock_get(device);
    uint64_t age_ns = device->sys->ops->clock_ns(device->sys) - clock.last.host_ns;
    if (!clock.known || device->device->caps.timestamp_is_clock || age_ns < FRESH_NS ||
        bw_hcq_device_failed(device) || !device_idle(device))
        return;
    if (point_measure(device, &point, NULL) == 0 && point.error_ns <= REFRESH_ERROR_NS)
        point_note(device, &point);
}

uint64_t bw_hcq_clock_host_ns(const struct bw_hcq_clock *clock, uint64_t hz, uint64_t ticks)
{
    const struct bw_clock_point *from = &clock->previous, *to = &clock->last;
    bool between = ticks >= from->ticks && ticks <= to->ticks;
    bool measured =
        to->ticks > from->ticks && (between || to->host_ns - from->host_ns >= (uint64_t)RATE_SPAN_NS);
    __int128 rise_ns = measured ? to->host_ns - from->host_ns : NS_PER_S;
    __int128 run_ticks = measured ? to->ticks - from->ticks : hz;
    const struct bw_clock_point *near = ticks > to->ticks ? to : from;
    assert(run_ticks > 0);
    return near->host_ns + (uint64_t)(((__int128)ticks - (__int128)near->ticks) * rise_ns / run_ticks);
}
