/* An interface whose GPU is this file: memory is malloc'd, VRAM included, doorbells are recorded, and SDMA
 * rings are executed at the doorbell by an engine of its own (numbers written out, nothing of drivers/amd),
 * so that uploads complete. Compute rings are only recorded. */
#ifndef BW_TESTS_AMD_FAKE_IFACE_H
#define BW_TESTS_AMD_FAKE_IFACE_H

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "iface/iface.h"

enum { FAKE_BLOCKS = 256, FAKE_QUEUES = 16 };

struct fake_block {
    uint64_t va, size_bytes;
    uint8_t *data;
    uint32_t flags;
};

struct fake_iface;
struct fake_queue {
    struct fake_iface *fake;
    bool used, sdma, stalled;
    struct bw_iface_queue_request request;
    uint64_t ring_va, ring_bytes;
    uint64_t doorbell, doorbells;
    uint64_t done_bytes; /* SDMA: consumed */
};

struct fake_iface {
    struct bw_iface base;
    struct bw_sys sys;
    struct fake_block blocks[FAKE_BLOCKS];
    struct fake_queue queues[FAKE_QUEUES];
    uint64_t next_va, clock_ns;
    uint64_t vram_left_bytes;
    uint32_t interrupts, closed, queues_created, queues_destroyed;
    struct bw_fault fault;
    uint32_t sdma_copies;
};

static inline uint8_t *fake_at(struct fake_iface *fake, uint64_t va, uint64_t size_bytes)
{
    for (int i = 0; i < FAKE_BLOCKS; i++) {
        struct fake_block *block = &fake->blocks[i];
        if (block->data && va >= block->va && va - block->va <= block->size_bytes &&
            size_bytes <= block->size_bytes - (va - block->va))
            return block->data + (va - block->va);
    }
    return NULL;
}

static inline uint64_t fake_read64(struct fake_iface *fake, uint64_t va)
{
    uint64_t value;
    memcpy(&value, fake_at(fake, va, 8), 8);
    return value;
}

static inline uint32_t fake_word(struct fake_iface *fake, uint64_t va)
{
    uint32_t value;
    memcpy(&value, fake_at(fake, va, 4), 4);
    return value;
}

static inline int fake_alloc(struct bw_iface *iface, uint64_t size_bytes, uint32_t flags,
                             uint64_t cpu_address, struct bw_iface_memory *memory, struct bw_err *err)
{
    struct fake_iface *fake = (struct fake_iface *)iface;
    size_bytes = (size_bytes + 4095) / 4096 * 4096;
    if (flags & BW_IFACE_VRAM && size_bytes > fake->vram_left_bytes)
        return bw_fail(err, -ENOMEM, "fake", "no VRAM");
    for (int i = 0; i < FAKE_BLOCKS; i++) {
        struct fake_block *block = &fake->blocks[i];
        if (block->data)
            continue;
        *block = (struct fake_block){fake->next_va, size_bytes, calloc(1, size_bytes), flags};
        fake->next_va += size_bytes + 4096;
        if (flags & BW_IFACE_VRAM)
            fake->vram_left_bytes -= size_bytes;
        memset(memory, 0, sizeof *memory);
        memory->gpu_va = block->va;
        memory->size_bytes = size_bytes;
        memory->handle = (uint64_t)i + 1;
        memory->flags = flags;
        if (flags & BW_IFACE_HOST)
            memory->cpu = (struct bw_region){block->data, size_bytes, BW_MEMORY_CACHED, NULL, NULL};
        return 0;
    }
    return bw_fail(err, -ENOMEM, "fake", "no block");
}

static inline int fake_free(struct bw_iface *iface, struct bw_iface_memory *memory, struct bw_err *err)
{
    struct fake_iface *fake = (struct fake_iface *)iface;
    struct fake_block *block = &fake->blocks[memory->handle - 1];
    assert(memory->handle && block->data);
    if (block->flags & BW_IFACE_VRAM)
        fake->vram_left_bytes += block->size_bytes;
    free(block->data);
    memset(block, 0, sizeof *block);
    memset(memory, 0, sizeof *memory);
    return 0;
}

/* One SDMA packet at words; returns its length. Sizes and opcodes as sdma_v6_0_0_pkt_open.h has them. */
static inline uint32_t fake_sdma_packet(struct fake_iface *fake, const uint32_t *words)
{
    uint64_t second = words[1] | (uint64_t)words[2] << 32;
    switch (words[0] & 0xffff) {
    case 0x0000:
        return 1 + (words[0] >> 16 & 0x3fff);
    case 0x0001: {
        uint64_t source = words[3] | (uint64_t)words[4] << 32, target = words[5] | (uint64_t)words[6] << 32;
        uint64_t size_bytes = (uint64_t)words[1] + 1;
        fake->sdma_copies++;
        memmove(fake_at(fake, target, size_bytes), fake_at(fake, source, size_bytes), size_bytes);
        return 7;
    }
    case 0x0004: {
        uint32_t count = words[3];
        assert(second % 32 == 0 && count % 8 == 0);
        const uint32_t *commands = (const uint32_t *)fake_at(fake, second, count * 4ull);
        for (uint32_t at = 0; at < count;)
            at += fake_sdma_packet(fake, commands + at);
        return 6;
    }
    case 0x0005:
        memcpy(fake_at(fake, second, 4), &words[3], 4);
        return 4;
    case 0x0006:
        fake->interrupts++;
        return 2;
    default:
        assert(!"SDMA packet that the fake does not know");
        return 1;
    }
}

static inline void fake_sdma_run(struct fake_queue *queue)
{
    struct fake_iface *fake = queue->fake;
    uint8_t *ring = fake_at(fake, queue->ring_va, queue->ring_bytes);
    while (!queue->stalled && queue->done_bytes != queue->doorbell) {
        uint32_t words[8];
        for (int i = 0; i < 8; i++)
            memcpy(&words[i], ring + (queue->done_bytes + 4u * i) % queue->ring_bytes, 4);
        uint32_t count = fake_sdma_packet(fake, words);
        /* A packet never crosses the ring's end. */
        assert(queue->done_bytes % queue->ring_bytes + count * 4ull <= queue->ring_bytes);
        queue->done_bytes += count * 4ull;
        assert(queue->done_bytes <= queue->doorbell);
    }
    memcpy(fake_at(fake, queue->request.read_pointer_va, 8), &queue->done_bytes, 8);
}

static inline void fake_doorbell_write(void *user, uint64_t offset, uint32_t width_bytes, uint64_t value)
{
    struct fake_queue *queue = user;
    assert(offset == 0 && width_bytes == 8);
    /* The write pointer in memory was there before the doorbell. */
    assert(fake_read64(queue->fake, queue->request.write_pointer_va) == value);
    queue->doorbell = value;
    queue->doorbells++;
    if (queue->sdma)
        fake_sdma_run(queue);
}

static inline uint64_t fake_doorbell_read(void *user, uint64_t offset, uint32_t width_bytes)
{
    return 0;
}

static const struct bw_region_ops fake_doorbell_ops = {fake_doorbell_read, fake_doorbell_write};

static inline int fake_queue_create(struct bw_iface *iface, const struct bw_iface_queue_request *request,
                                    struct bw_iface_queue *queue, struct bw_err *err)
{
    struct fake_iface *fake = (struct fake_iface *)iface;
    for (uint32_t i = 0; i < FAKE_QUEUES; i++) {
        if (fake->queues[i].used)
            continue;
        fake->queues[i] = (struct fake_queue){.fake = fake,
                                              .used = true,
                                              .sdma = request->kind == BW_IFACE_QUEUE_SDMA,
                                              .request = *request,
                                              .ring_va = request->ring->gpu_va,
                                              .ring_bytes = request->ring->size_bytes};
        *queue = (struct bw_iface_queue){
            .id = i, .doorbell = {NULL, 8, BW_MEMORY_UNCACHED, &fake_doorbell_ops, &fake->queues[i]}};
        fake->queues_created++;
        return 0;
    }
    return bw_fail(err, -ENOSPC, "fake", "queues");
}

static inline int fake_queue_destroy(struct bw_iface *iface, struct bw_iface_queue *queue, struct bw_err *err)
{
    struct fake_iface *fake = (struct fake_iface *)iface;
    assert(fake->queues[queue->id].used);
    fake->queues[queue->id].used = false;
    fake->queues_destroyed++;
    return 0;
}

static inline int fake_wait_interrupt(struct bw_iface *iface, uint64_t timeout_ns, struct bw_err *err)
{
    ((struct fake_iface *)iface)->clock_ns += timeout_ns;
    return 0;
}

static inline void fake_interrupt_target(struct bw_iface *iface, uint64_t *mailbox_va, uint32_t *event_id)
{
    struct bw_iface_memory memory = {0};
    fake_alloc(iface, 4096, BW_IFACE_HOST, 0, &memory, NULL);
    *mailbox_va = memory.gpu_va;
    *event_id = 42;
}

static inline int fake_query_fault(struct bw_iface *iface, struct bw_fault *fault, struct bw_err *err)
{
    struct fake_iface *fake = (struct fake_iface *)iface;
    *fault = fake->fault;
    memset(&fake->fault, 0, sizeof fake->fault);
    return 0;
}

static inline int fake_available(struct bw_iface *iface, uint64_t *available_bytes, struct bw_err *err)
{
    *available_bytes = ((struct fake_iface *)iface)->vram_left_bytes;
    return 0;
}

static inline void fake_close(struct bw_iface *iface)
{
    struct fake_iface *fake = (struct fake_iface *)iface;
    fake->closed++;
    for (int i = 0; i < FAKE_BLOCKS; i++)
        if (fake->blocks[i].flags & BW_IFACE_HOST && fake->blocks[i].size_bytes == 4096) {
            free(fake->blocks[i].data); /* the mailbox is the interface's own */
            fake->blocks[i].data = NULL;
        }
}

static inline uint64_t fake_clock(struct bw_sys *sys)
{
    struct fake_iface *fake = (struct fake_iface *)((char *)sys - offsetof(struct fake_iface, sys));
    return fake->clock_ns += 1000;
}

static inline uint32_t fake_blocks_in_use(const struct fake_iface *fake)
{
    uint32_t count = 0;
    for (int i = 0; i < FAKE_BLOCKS; i++)
        count += fake->blocks[i].data != NULL;
    return count;
}

static const struct bw_iface_ops fake_ops = {
    .name = "fake",
    .alloc = fake_alloc,
    .free = fake_free,
    .queue_create = fake_queue_create,
    .queue_destroy = fake_queue_destroy,
    .wait_interrupt = fake_wait_interrupt,
    .interrupt_target = fake_interrupt_target,
    .query_fault = fake_query_fault,
    .available_memory = fake_available,
    .close = fake_close,
};
static const struct bw_sys_ops fake_sys_ops = {.clock_ns = fake_clock};

static inline void fake_init(struct fake_iface *fake)
{
    memset(fake, 0, sizeof *fake);
    fake->base.ops = &fake_ops;
    fake->base.sys = &fake->sys;
    fake->sys.ops = &fake_sys_ops;
    fake->next_va = 0x7f0000000000;
    fake->vram_left_bytes = 1ull << 30;
    fake->base.properties = (struct bw_iface_properties){
        .node_name = "fake node 1",
        .product = "Fake",
        .gfx_version = 110000,
        .vram_bytes = 1ull << 30,
        .simd_count = 8, /* 4 CUs of 2 */
        .simd_per_cu = 2,
        .scratch_slots_per_cu = 32,
        .shader_engines = 2,
        .xcc_count = 1,
        .sdma_engines = 2,
        .sdma_queues_per_engine = 6,
        .cp_queues = 8,
        .timestamp_hz = 100000000,
        .lds_aperture = 0x1000000000000,
        .scratch_aperture = 0x2000000000000,
    };
}

#endif
