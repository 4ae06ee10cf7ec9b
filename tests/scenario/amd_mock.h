/* A mock gfx1100 behind the real KFD or DRM interface (tests/way.h), driven through the device seam: what the
 * AMD scenarios share. */
#ifndef BW_TESTS_SCENARIO_AMD_MOCK_H
#define BW_TESTS_SCENARIO_AMD_MOCK_H

#include <bellwire/err.h>
#include <bellwire/mock.h>

#include <errno.h>

#include "drivers/amd/device.h"
#include "drivers/driver.h"
#include "iface/iface.h"
#include "tests/check.h"
#include "tests/way.h"

struct amd_mock {
    struct bw_sys *sys;
    struct bw_device *device;
    const struct bw_driver_ops *ops;
    struct bw_queue *compute, *copy;
    struct bw_memory arguments;         /* host memory for argument blocks; one launch at a time uses it */
    struct bw_memory commands, signals; /* host memory; one 8-byte signal per cache line */
    uint64_t command_words;             /* used of `commands` */
    struct bw_err err;
};

enum { AMD_MOCK_COMMAND_BYTES = 1 << 20, AMD_MOCK_SIGNAL_STRIDE = 64, AMD_MOCK_VRAM_BYTES = 1 << 30 };
static const uint64_t amd_mock_deadline_ns = 20000000000;

static inline bool amd_mock_open_with(struct amd_mock *mock, uint32_t ring_bytes, uint64_t vram_bytes)
{
    memset(mock, 0, sizeof *mock);
    struct bw_mock_config config = {.size = sizeof config,
                                    .arch = "gfx1100",
                                    .cu_count = 4,
                                    .vram_bytes = vram_bytes,
                                    .threads = 1,
                                    .kfd_absent = WAY_DRM};
    struct bw_iface *iface;
    if (!BW_OK(bw_mock_kfd_create(&config, &mock->sys, &mock->err), &mock->err))
        return false;
    if (!BW_OK(way_open(mock->sys, 0, &iface, &mock->err), &mock->err) ||
        !BW_OK(bw_amd_open(NULL, iface, &mock->device, &mock->err), &mock->err)) {
        bw_sys_destroy(mock->sys);
        return false;
    }
    mock->ops = mock->device->ops;
    if (ring_bytes)
        bw_amd_device(mock->device)->compute_ring_bytes = bw_amd_device(mock->device)->copy_ring_bytes =
            ring_bytes;
    return BW_OK(mock->ops->queue_create(mock->device, BW_QUEUE_COMPUTE, 0, &mock->compute, &mock->err),
                 &mock->err) &&
           BW_OK(mock->ops->queue_create(mock->device, BW_QUEUE_COPY, 0, &mock->copy, &mock->err),
                 &mock->err) &&
           BW_OK(mock->ops->alloc(mock->device, AMD_MOCK_COMMAND_BYTES, BW_BUFFER_HOST | BW_BUFFER_UNCACHED,
                                  &mock->commands, &mock->err),
                 &mock->err) &&
           BW_OK(mock->ops->alloc(mock->device, 65536, BW_BUFFER_HOST | BW_BUFFER_UNCACHED, &mock->arguments,
                                  &mock->err),
                 &mock->err) &&
           BW_OK(mock->ops->alloc(mock->device, 4096, BW_BUFFER_HOST | BW_BUFFER_UNCACHED, &mock->signals,
                                  &mock->err),
                 &mock->err);
}

static inline bool amd_mock_open(struct amd_mock *mock, uint32_t ring_bytes)
{
    return amd_mock_open_with(mock, ring_bytes, AMD_MOCK_VRAM_BYTES);
}

static inline void amd_mock_close(struct amd_mock *mock)
{
    if (mock->compute)
        mock->ops->queue_destroy(mock->compute);
    if (mock->copy)
        mock->ops->queue_destroy(mock->copy);
    if (mock->commands.size_bytes)
        mock->ops->free(mock->device, &mock->commands);
    if (mock->arguments.size_bytes)
        mock->ops->free(mock->device, &mock->arguments);
    if (mock->signals.size_bytes)
        mock->ops->free(mock->device, &mock->signals);
    if (mock->device)
        mock->ops->close(mock->device);
    if (mock->sys)
        bw_sys_destroy(mock->sys);
}

static inline struct bw_operand amd_mock_signal(const struct amd_mock *mock, uint32_t index)
{
    return bw_operand_constant(mock->signals.address + (uint64_t)index * AMD_MOCK_SIGNAL_STRIDE);
}

static inline uint64_t amd_mock_signal_read(const struct amd_mock *mock, uint32_t index)
{
    const volatile char *base = mock->signals.cpu.base;
    return __atomic_load_n((const volatile uint64_t *)(base + (uint64_t)index * AMD_MOCK_SIGNAL_STRIDE),
                           __ATOMIC_ACQUIRE);
}

static inline void amd_mock_signal_write(const struct amd_mock *mock, uint32_t index, uint64_t value)
{
    volatile char *base = mock->signals.cpu.base;
    __atomic_store_n((volatile uint64_t *)(base + (uint64_t)index * AMD_MOCK_SIGNAL_STRIDE), value,
                     __ATOMIC_RELEASE);
}

/* Closes the encoder and submits it from fresh command memory (which is reused from its start when it runs
 * out: callers that submit much wait in between). */
static inline int amd_mock_submit(struct amd_mock *mock, struct bw_queue *queue, struct bw_encoder *encoder)
{
    mock->ops->encode_end(queue, encoder);
    if (mock->command_words + encoder->count > AMD_MOCK_COMMAND_BYTES / 4)
        mock->command_words = 0;
    uint64_t first = mock->command_words;
    for (uint32_t i = 0; i < encoder->count; i++)
        bw_wr32(&mock->commands.cpu, (first + i) * 4, encoder->words[i]);
    int rc = mock->ops->submit(queue, mock->commands.address + first * 4, encoder->count);
    rc = rc ? rc : mock->ops->flush(queue);
    if (rc == 0)
        mock->command_words += encoder->count;
    bw_encoder_free(encoder);
    return rc;
}

/* Waits until the signal has the value, by interrupts. Prints what the mock complains about when it does not
 * come. */
static inline bool amd_mock_wait(struct amd_mock *mock, uint32_t index, uint64_t value)
{
    uint64_t start_ns = mock->sys->ops->clock_ns(mock->sys);
    while ((int64_t)(amd_mock_signal_read(mock, index) - value) < 0) {
        mock->ops->wait_interrupt(mock->device, 1000000);
        if (mock->sys->ops->clock_ns(mock->sys) - start_ns > amd_mock_deadline_ns) {
            char text[512];
            bw_mock_last_error(mock->sys, text, sizeof text);
            printf("\n      mock: %s\n", text);
            return BW_EQ(amd_mock_signal_read(mock, index), value);
        }
    }
    return true;
}

struct amd_launch {
    uint32_t groups[3], group_size[3];
    uint64_t values[8]; /* visible arguments in order */
};

/* Writes the argument block at offset `at` of mock->arguments and appends the launch. */
static inline int amd_mock_encode_launch(struct amd_mock *mock, struct bw_encoder *encoder,
                                         struct bw_kernel *kernel, const struct amd_launch *launch,
                                         uint64_t at)
{
    struct bw_encoder block = {0};
    struct bw_dispatch dispatch = {.argument_block = bw_operand_constant(mock->arguments.address + at)};
    for (int i = 0; i < 3; i++) {
        dispatch.group_count[i] = bw_operand_constant(launch->groups[i]);
        dispatch.group_size[i] = launch->group_size[i];
    }
    int rc = mock->ops->argument_block(kernel, &dispatch, &block, &mock->err);
    volatile uint8_t *bytes = (volatile uint8_t *)mock->arguments.cpu.base + at;
    for (uint32_t i = 0; !rc && i < block.count * 4; i++)
        bytes[i] = ((const uint8_t *)block.words)[i];
    for (uint32_t i = 0; !rc && i < kernel->info.argument_count; i++)
        for (uint32_t k = 0; k < kernel->info.arguments[i].size_bytes; k++)
            bytes[kernel->info.arguments[i].offset + k] = (uint8_t)(launch->values[i] >> 8 * k);
    bw_encoder_free(&block);
    return rc ? rc : mock->ops->encode_kernel(mock->compute, encoder, kernel, &dispatch, &mock->err);
}

/* One launch from start to end; signal 31 counts launches. 0, -EIO when the device faulted (mock->err says
 * how), -ETIMEDOUT. */
static inline int amd_mock_launch(struct amd_mock *mock, struct bw_kernel *kernel,
                                  const struct amd_launch *launch)
{
    enum { SIGNAL = 31 };
    uint64_t value = amd_mock_signal_read(mock, SIGNAL) + 1, start_ns = mock->sys->ops->clock_ns(mock->sys);
    struct bw_encoder e = {0};
    mock->ops->encode_barrier(mock->compute, &e, BW_BARRIER_ACQUIRE);
    int rc = amd_mock_encode_launch(mock, &e, kernel, launch, 0);
    mock->ops->encode_signal(mock->compute, &e, amd_mock_signal(mock, SIGNAL), bw_operand_constant(value),
                             true);
    rc = rc ? rc : amd_mock_submit(mock, mock->compute, &e);
    bw_encoder_free(&e);
    while (!rc && amd_mock_signal_read(mock, SIGNAL) != value) {
        mock->ops->wait_interrupt(mock->device, 1000000);
        rc = mock->ops->query_fault(mock->device, &mock->err);
        if (!rc && mock->sys->ops->clock_ns(mock->sys) - start_ns > amd_mock_deadline_ns)
            rc = bw_fail(&mock->err, -ETIMEDOUT, "test", "kernel %s does not end", kernel->info.name);
    }
    return rc;
}

#endif
