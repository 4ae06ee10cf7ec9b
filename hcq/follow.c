/* Whose work a device's own may have begun after by the kernel's hand (caps.submit_wait). The kernel lets go
 * of what depends on work that failed, and its signals come as if all was well: whoever goes by the signals
 * of a device looks also at those of the devices that it followed. Nobody has to look further: what a device
 * followed was either looked at before, or is followed by whoever follows the device (replay.c). */
#include "hcq/hcq.h"

/* In a turn. */
void bw_hcq_follow_note(struct bw_hcq_device *device, const struct bw_hcq_device *other)
{
    struct bw_point *followed = device->followed[other->index];
    for (uint32_t i = 0; i < other->queue_count; i++)
        __atomic_store_n(&followed[i].value, bw_hcq_queue_submitted(&other->queues[i]).value,
                         __ATOMIC_RELAXED);
    if (!(__atomic_load_n(&device->follows, __ATOMIC_RELAXED) >> other->index & 1))
        __atomic_fetch_or(&device->follows, 1ull << other->index, __ATOMIC_RELEASE);
}

static int followed_wait(const struct bw_hcq_device *device, struct bw_hcq_device *other, struct bw_err *err)
{
    const struct bw_point *followed = device->followed[other->index];
    int rc = 0;
    for (uint32_t i = 0; i < other->queue_count && !rc; i++) {
        struct bw_point until = {__atomic_load_n(&followed[i].value, __ATOMIC_RELAXED)};
        if (!bw_point_reached(bw_hcq_queue_now(&other->queues[i]), until))
            rc = bw_hcq_queue_wait(&other->queues[i], until, err);
    }
    return rc;
}

int bw_hcq_followed_wait(const struct bw_hcq_device *device, uint64_t except, struct bw_err *err)
{
    uint64_t devices = __atomic_load_n(&device->follows, __ATOMIC_ACQUIRE) & ~except;
    int rc = 0;
    for (; devices && !rc; devices &= devices - 1) {
        struct bw_hcq_device *other = bw_hcq_device_at(device->ctx, (uint32_t)__builtin_ctzll(devices));
        if (other)
            rc = followed_wait(device, other, err);
    }
    return rc;
}
