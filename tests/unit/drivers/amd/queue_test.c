/* Goal: rings never overrun and never lose or repeat a command buffer, however small they are and however the
 * engine behind them stalls, wraps or was left by someone before us. */
#include "drivers/amd/device.h"

#include "base/rng.h"
#include "tests/check.h"
#include "tests/seed.h"
#include "tests/unit/drivers/amd/elf_files.h"
#include "tests/unit/drivers/amd/fake_iface.h"

/* The engine's side of a compute ring, in numbers of its own. It checks what it consumes. */
struct consumer {
    struct fake_iface *fake;
    struct fake_queue *queue;
    uint64_t ring_words;
    uint64_t get;       /* words consumed */
    bool pointer_wraps; /* what it reports */
    uint64_t seen;      /* command buffers */
    uint64_t invalidations;
};

/* What hcq does with a command buffer that is the last for now. */
static int submit_now(struct bw_device *device, struct bw_queue *queue, uint64_t address, uint32_t word_count)
{
    int rc = device->ops->submit(queue, address, word_count);
    return rc ? rc : device->ops->flush(queue);
}

static uint64_t buffer_address(uint64_t index)
{
    return 0x7e0000000000 + index * 32;
}

static void consumer_report(struct consumer *consumer)
{
    uint64_t report = consumer->pointer_wraps ? consumer->get % consumer->ring_words : consumer->get;
    memcpy(fake_at(consumer->fake, consumer->queue->request.read_pointer_va, 8), &report, 8);
}

static uint32_t ring_word(const struct consumer *consumer, uint64_t index)
{
    return fake_word(consumer->fake,
                     consumer->queue->ring_va + (consumer->get + index) % consumer->ring_words * 4);
}

/* Consumes up to `limit` packets. False when something was wrong. */
static bool consume(struct consumer *consumer, uint64_t limit)
{
    for (; limit && consumer->get < consumer->queue->doorbell; limit--) {
        if (consumer->queue->doorbell - consumer->get >= consumer->ring_words)
            return BW_TRUE(!"the writer has lapped the reader");
        switch (ring_word(consumer, 0)) {
        case 0xc0065800:
            consumer->invalidations++;
            consumer->get += 8;
            break;
        case 0xc0023f00: {
            uint64_t address = ring_word(consumer, 1) | (uint64_t)ring_word(consumer, 2) << 32;
            if (address != buffer_address(consumer->seen) || ring_word(consumer, 3) != (1u << 23 | 8))
                return BW_EQ(address, buffer_address(consumer->seen));
            consumer->seen++;
            consumer->get += 4;
            break;
        }
        default:
            return BW_EQ(ring_word(consumer, 0), 0xc0023f00);
        }
    }
    consumer_report(consumer);
    return true;
}

static struct consumer consumer_of(struct fake_iface *fake, const struct bw_amd_queue *queue,
                                   bool pointer_wraps)
{
    struct fake_queue *hardware = &fake->queues[queue->hardware.id];
    return (struct consumer){fake, hardware, hardware->ring_bytes / 4, queue->ring.put, pointer_wraps, 0, 0};
}

static struct bw_device *device_open(struct fake_iface *fake)
{
    struct bw_device *device = NULL;
    struct bw_err err;
    fake_init(fake);
    BW_OK(bw_amd_open(NULL, &fake->base, &device, &err), &err);
    bw_amd_device(device)->compute_ring_bytes = BW_AMD_RING_BYTES_MIN;
    bw_amd_device(device)->copy_ring_bytes = BW_AMD_RING_BYTES_MIN;
    return device;
}

static void a_million_submits_through_a_page(bool pointer_wraps)
{
    enum { SUBMITS = 1000000 };
    struct bw_rng rng = bw_test_rng("submits");
    struct fake_iface fake;
    struct bw_device *device = device_open(&fake);
    struct bw_queue *queue;
    struct bw_err err;
    if (!BW_OK(device->ops->queue_create(device, BW_QUEUE_COMPUTE, 0, &queue, &err), &err))
        return;
    struct consumer consumer = consumer_of(&fake, bw_amd_queue(queue), pointer_wraps);
    uint64_t submitted = 0, refused = 0;
    bool ok = true;
    while (ok && submitted < SUBMITS) {
        int rc = submit_now(device, queue, buffer_address(submitted), 8);
        if (rc == -EAGAIN) {
            refused++;
            ok = BW_TRUE(consumer.seen < submitted) && consume(&consumer, 1 + bw_rng_below(&rng, 300));
        } else {
            ok = rc == 0 || BW_EQ(rc, 0);
            submitted++;
            if (bw_rng_below(&rng, 4) == 0)
                ok = ok && consume(&consumer, bw_rng_below(&rng, 8));
        }
    }
    consume(&consumer, UINT64_MAX);
    BW_EQ(consumer.seen, submitted);
    BW_EQ(consumer.get, consumer.queue->doorbell);
    BW_EQ(consumer.queue->doorbells, submitted);
    BW_EQ(consumer.invalidations, 1);
    BW_TRUE(refused > 0);
    BW_EQ(device->ops->queue_progress(queue),
          pointer_wraps ? consumer.get % consumer.ring_words : consumer.get);
    device->ops->queue_destroy(queue);
    device->ops->close(device);
}

static void a_million_submits_with_a_monotonic_read_pointer(void)
{
    a_million_submits_through_a_page(false);
}

static void a_million_submits_with_a_wrapping_read_pointer(void)
{
    a_million_submits_through_a_page(true);
}

static void a_full_ring_refuses_until_the_engine_moves(void)
{
    struct fake_iface fake;
    struct bw_device *device = device_open(&fake);
    struct bw_queue *queue;
    struct bw_err err;
    if (!BW_OK(device->ops->queue_create(device, BW_QUEUE_COMPUTE, 0, &queue, &err), &err))
        return;
    struct consumer consumer = consumer_of(&fake, bw_amd_queue(queue), false);
    uint64_t submitted = 0;
    while (submit_now(device, queue, buffer_address(submitted), 8) == 0)
        submitted++;
    /* 1024 words, one stays free, 8 for the first invalidation, 4 for each buffer. */
    BW_EQ(submitted, (1024 - 1 - 8) / 4);
    uint64_t doorbell = consumer.queue->doorbell;
    BW_EQ(submit_now(device, queue, buffer_address(submitted), 8), -EAGAIN);
    BW_EQ(consumer.queue->doorbell, doorbell);
    consume(&consumer, 1); /* the invalidation: 8 words, room for two */
    BW_EQ(submit_now(device, queue, buffer_address(submitted++), 8), 0);
    BW_EQ(submit_now(device, queue, buffer_address(submitted++), 8), 0);
    BW_EQ(submit_now(device, queue, buffer_address(submitted), 8), -EAGAIN);
    consume(&consumer, UINT64_MAX);
    BW_EQ(consumer.seen, submitted);
    device->ops->queue_destroy(queue);
    device->ops->close(device);
}

static void rings_go_on_where_someone_left_them(void)
{
    static const uint64_t starts[] = {1, 1020, 1023, 4097, (1ull << 32) - 2, UINT64_MAX / 4 - 1000};
    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++) {
        struct fake_iface fake;
        struct bw_device *device = device_open(&fake);
        struct bw_queue *queue;
        struct bw_err err;
        if (!BW_OK(device->ops->queue_create(device, BW_QUEUE_COMPUTE, 0, &queue, &err), &err))
            return;
        struct bw_amd_queue *amd = bw_amd_queue(queue);
        bw_wr64(&amd->pointer_memory.cpu, BW_AMD_POINTER_WRITE, starts[i]);
        bw_wr64(&amd->pointer_memory.cpu, BW_AMD_POINTER_READ, starts[i]);
        bw_amd_ring_start(&amd->ring);
        struct consumer consumer = consumer_of(&fake, amd, i & 1);
        consumer_report(&consumer);
        uint64_t submitted = 0;
        for (int round = 0; round < 2000; round++) {
            if (submit_now(device, queue, buffer_address(submitted), 8) == 0)
                submitted++;
            else if (!consume(&consumer, UINT64_MAX))
                break;
        }
        consume(&consumer, UINT64_MAX);
        BW_EQ(consumer.seen, submitted);
        BW_TRUE(submitted > 1900);
        device->ops->queue_destroy(queue);
        device->ops->close(device);
    }
}

/* The copy engine runs at the doorbell and asserts that no packet crosses the ring's end. */
static void copy_rings_wrap_between_packets(void)
{
    enum { BUFFERS = 5000 };
    static const uint64_t starts[] = {0, 4, 8, 28, 4096 - 4, 4096 * 3 + 12};
    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++) {
        struct fake_iface fake;
        struct bw_device *device = device_open(&fake);
        struct bw_queue *queue;
        struct bw_memory commands, target;
        struct bw_err err;
        BW_OK(device->ops->queue_create(device, BW_QUEUE_COPY, 0, &queue, &err), &err);
        BW_OK(device->ops->alloc(device, 8192, BW_BUFFER_HOST, &commands, &err), &err);
        BW_OK(device->ops->alloc(device, 8192, BW_BUFFER_HOST, &target, &err), &err);
        struct bw_amd_queue *amd = bw_amd_queue(queue);
        struct fake_queue *hardware = &fake.queues[amd->hardware.id];
        bw_wr64(&amd->pointer_memory.cpu, BW_AMD_POINTER_WRITE, starts[i]);
        bw_wr64(&amd->pointer_memory.cpu, BW_AMD_POINTER_READ, starts[i]);
        hardware->doorbell = hardware->done_bytes = starts[i];
        bw_amd_ring_start(&amd->ring);
        for (uint32_t n = 1; n <= BUFFERS; n++) {
            struct bw_encoder e = {0};
            device->ops->encode_signal(queue, &e, bw_operand_constant(target.address), bw_operand_constant(n),
                                       false);
            device->ops->encode_end(queue, &e);
            for (uint32_t k = 0; k < e.count; k++)
                bw_wr32(&commands.cpu, k * 4, e.words[k]);
            if (!BW_EQ(submit_now(device, queue, commands.address, e.count), 0) ||
                bw_rd64(&target.cpu, 0) != n) {
                BW_EQ(bw_rd64(&target.cpu, 0), n);
                n = BUFFERS;
            }
            bw_encoder_free(&e);
        }
        /* Stalled: refuses when full, runs all of it once released. */
        hardware->stalled = true;
        uint64_t waiting = 0;
        while (submit_now(device, queue, commands.address, 8) == 0)
            waiting++;
        BW_EQ(waiting, 1024 / 8 - 1);
        hardware->stalled = false;
        fake_sdma_run(hardware);
        BW_EQ(submit_now(device, queue, commands.address, 8), 0);
        device->ops->free(device, &commands);
        device->ops->free(device, &target);
        device->ops->queue_destroy(queue);
        device->ops->close(device);
    }
}

static void bad_submissions_are_refused(void)
{
    struct fake_iface fake;
    struct bw_device *device = device_open(&fake);
    struct bw_queue *queue, *none;
    struct bw_err err;
    BW_OK(device->ops->queue_create(device, BW_QUEUE_COMPUTE, 3, &queue, &err), &err);
    BW_EQ(device->ops->queue_create(device, BW_QUEUE_COMPUTE, 4, &none, &err), -EINVAL);
    BW_STR(err.what, "compute queue 4 of 4");
    BW_EQ(submit_now(device, queue, 0x1004, 8), -EINVAL);
    BW_EQ(submit_now(device, queue, 0x1000, 9), -EINVAL);
    BW_EQ(submit_now(device, queue, 0x1000, 1 << 20), -E2BIG);
    BW_EQ(submit_now(device, queue, 0x1000, (1 << 20) - 8), 0);
    BW_EQ(device->ops->submit(queue, 0x1000, 0), 0);
    BW_EQ(fake.queues[0].doorbells, 1);
    BW_EQ(device->ops->submit(queue, 0x1000, 8), 0); /* any number of them, then one doorbell */
    BW_EQ(device->ops->submit(queue, 0x2000, 8), 0);
    BW_EQ(fake.queues[0].doorbells, 1);
    BW_EQ(device->ops->flush(queue), 0);
    BW_EQ(fake.queues[0].doorbells, 2);
    device->ops->queue_destroy(queue);
    device->ops->close(device);
}

static void uploads_invalidate_instruction_caches_once_per_queue(void)
{
    struct fake_iface fake;
    struct bw_device *device = device_open(&fake);
    struct bw_queue *queue;
    struct bw_program *program;
    struct bw_err err;
    BW_OK(device->ops->queue_create(device, BW_QUEUE_COMPUTE, 0, &queue, &err), &err);
    struct consumer consumer = consumer_of(&fake, bw_amd_queue(queue), false);
    BW_EQ(submit_now(device, queue, buffer_address(0), 8), 0);
    BW_EQ(submit_now(device, queue, buffer_address(1), 8), 0);
    struct elf_file file = elf_file_read("kernels.rel.elf");
    BW_OK(device->ops->program_load(device, file.data, file.size_bytes, &program, &err), &err);
    BW_EQ(submit_now(device, queue, buffer_address(2), 8), 0);
    /* 8 + 4, 4, then again 8 + 4: the second acquire comes before the buffer that may run the new code */
    BW_EQ(ring_word(&consumer, 0), 0xc0065800);
    BW_EQ(ring_word(&consumer, 7) & 1, 1);
    BW_EQ(ring_word(&consumer, 16), 0xc0065800);
    BW_EQ(ring_word(&consumer, 24), 0xc0023f00);
    consume(&consumer, UINT64_MAX);
    BW_EQ(consumer.invalidations, 2);
    BW_EQ(consumer.seen, 3);
    device->ops->program_destroy(program);
    free(file.data);
    device->ops->queue_destroy(queue);
    device->ops->close(device);
}

BW_TEST_MAIN("amd queue",
             {"a_million_submits_with_a_monotonic_read_pointer",
              a_million_submits_with_a_monotonic_read_pointer},
             {"a_million_submits_with_a_wrapping_read_pointer",
              a_million_submits_with_a_wrapping_read_pointer},
             {"a_full_ring_refuses_until_the_engine_moves", a_full_ring_refuses_until_the_engine_moves},
             {"rings_go_on_where_someone_left_them", rings_go_on_where_someone_left_them},
             {"copy_rings_wrap_between_packets", copy_rings_wrap_between_packets},
             {"bad_submissions_are_refused", bad_submissions_are_refused},
             {"uploads_invalidate_instruction_caches_once_per_queue",
              uploads_invalidate_instruction_caches_once_per_queue})
