/* The host as a device: see host.h. */
#include <assert.h>
#include <cpuid.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/host/packet.h"
#include "drivers/host/queue.h"

enum {
    COPY_BYTES_MAX = 64 << 20, /* 10 ms: progress is counted per packet, and a wait looks at progress */
    HOST_INDEX_MAX = 63,       /* "host:63": as many as a context has devices */
    HOST_THREADS_MAX = 1024,
    /* For a kernel to come back when its device is reset or closed: a deadline was waited before. */
    GIVE_UP_NS = 1000000000,
};

static void program_free(struct bw_host_device *host, struct bw_host_program *program)
{
    bw_host_object_unload(host->sys, program);
    bw_host_kernels_free(program);
    free(program);
}

void bw_host_device_release(struct bw_host_device *host)
{
    if (!bw_host_left_release(&host->left))
        return;
    for (struct bw_host_program *program = host->left_programs, *next; program; program = next) {
        next = program->next;
        program_free(host, program);
    }
    bw_host_left_fini(&host->left);
    bw_host_interrupt_fini(&host->interrupt);
    free(host);
}

static void host_close(struct bw_device *device)
{
    struct bw_host_device *host = (struct bw_host_device *)device;
    assert(!host->queues[BW_QUEUE_COMPUTE] && !host->queues[BW_QUEUE_COPY]);
    bw_host_device_release(host);
}

static int host_alloc(struct bw_device *device, uint64_t size_bytes, uint32_t flags, struct bw_memory *memory,
                      struct bw_err *err)
{
    return bw_host_memory_alloc(((struct bw_host_device *)device)->sys, "host", size_bytes, flags, memory,
                                err);
}

static void host_free(struct bw_device *device, struct bw_memory *memory)
{
    bw_host_memory_free(&((struct bw_host_device *)device)->left, memory);
}

static int host_program_load(struct bw_device *device, const void *image, uint64_t image_bytes,
                             struct bw_program **out, struct bw_err *err)
{
    struct bw_host_device *host = (struct bw_host_device *)device;
    struct bw_host_object object;
    int rc = bw_host_object_open(image, image_bytes, &object, err);
    if (rc)
        return rc;
    struct bw_host_program *program = calloc(1, sizeof *program);
    rc = program ? bw_host_kernels_read(&object, program, err) : bw_fail(err, -ENOMEM, "host", "program");
    if (!rc) {
        program->base.device = device;
        rc = bw_host_object_load(host->sys, &object, program, err);
        if (rc)
            bw_host_kernels_free(program);
    }
    bw_host_object_close(&object);
    if (rc)
        free(program);
    else
        *out = &program->base;
    return rc;
}

static void host_program_destroy(struct bw_program *base)
{
    struct bw_host_program *program = (struct bw_host_program *)base;
    struct bw_host_device *host = (struct bw_host_device *)base->device;
    if (host->left.any) { /* a thread that never came back may be inside */
        program->next = host->left_programs;
        host->left_programs = program;
    } else {
        program_free(host, program);
    }
}

static int host_wait_interrupt(struct bw_device *device, uint64_t timeout_ns)
{
    bw_host_interrupt_wait(&((struct bw_host_device *)device)->interrupt, timeout_ns);
    return 0;
}

static int host_query_fault(struct bw_device *device, struct bw_err *err)
{
    struct bw_host_device *host = (struct bw_host_device *)device;
    if (!__atomic_load_n(&host->broken, __ATOMIC_ACQUIRE))
        return 0;
    bw_fail(err, -EIO, "host", "a command buffer that is not made of packets");
    bw_err_device(err, device->info.name);
    return -EIO;
}

static int host_reset(struct bw_device *device, struct bw_err *err)
{
    struct bw_host_device *host = (struct bw_host_device *)device;
    for (int kind = 0; kind < 2; kind++) {
        int rc = host->queues[kind] ? bw_host_queue_reset(host->queues[kind], host->give_up_ns) : 0;
        if (rc) {
            bw_fail(err, rc, "host", "a kernel that does not end");
            bw_err_device(err, device->info.name);
            bw_err_hint(err, "a thread cannot be stopped from outside: close the device, or end the process");
            return rc;
        }
    }
    __atomic_store_n(&host->broken, 0, __ATOMIC_RELEASE);
    return 0;
}

static const struct bw_driver_ops host_ops = {
    .name = "host",
    .close = host_close,
    .alloc = host_alloc,
    .free = host_free,
    .map_peer = bw_host_memory_map_peer,
    .program_load = host_program_load,
    .program_destroy = host_program_destroy,
    .program_kernel = bw_host_program_kernel,
    .argument_block = bw_host_argument_block,
    .queue_create = bw_host_queue_create,
    .queue_destroy = bw_host_queue_destroy,
    .encode_kernel = bw_host_encode_kernel,
    .encode_copy = bw_host_encode_copy,
    .encode_wait = bw_host_encode_wait,
    .encode_signal = bw_host_encode_signal,
    .encode_timestamp = bw_host_encode_timestamp,
    .encode_barrier = bw_host_encode_barrier,
    .encode_end = bw_host_encode_end,
    .submit = bw_host_queue_submit,
    .queue_progress = bw_host_queue_progress,
    .wait_interrupt = host_wait_interrupt,
    .query_fault = host_query_fault,
    .reset = host_reset,
};

/* The processor's own name: CPUID leaves 0x80000002 to 4 (Intel SDM volume 2, AMD APM volume 3). */
static void product_read(char *text, size_t text_size)
{
    uint32_t words[13] = {0};
    for (uint32_t leaf = 0; leaf < 3; leaf++) {
        uint32_t *part = &words[leaf * 4];
        if (!__get_cpuid(0x80000002u + leaf, &part[0], &part[1], &part[2], &part[3]))
            return;
    }
    const char *name = (const char *)words;
    while (*name == ' ')
        name++;
    size_t length = strlen(name); /* virtual machines pad it with blanks */
    while (length && name[length - 1] == ' ')
        length--;
    snprintf(text, text_size, "%.*s", (int)length, name);
}

static uint32_t cpu_count(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set))
        return 1; /* more CPUs than a cpu_set_t holds */
    return (uint32_t)CPU_COUNT(&set);
}

static void info_fill(struct bw_host_device *host, uint32_t index)
{
    struct bw_device_info *info = &host->base.info;
    snprintf(info->name, sizeof info->name, "host:%u", index);
    product_read(info->product, sizeof info->product);
    snprintf(info->driver, sizeof info->driver, "host");
    snprintf(info->arch, sizeof info->arch, "x86_64");
    info->wave_size = 1;
    info->compute_units = host->thread_count;
    info->group_size_max = 1;
    host->base.caps = (struct bw_device_caps){
        .compute_queues = 1,
        .copy_queues = 1,
        .compute_copies = true,
        .user_doorbell = false, /* a sleeping thread is woken by a system call */
        .device_wait = true,
        .device_wait_64 = true,
        .copy_bytes_max = COPY_BYTES_MAX,
        .command_alignment_words = 1,
        .timestamp_hz = 1000000000,
        .timestamp_is_clock = true,
        .host_addressable = true,
    };
}

int bw_host_open(struct bw_ctx *ctx, uint32_t index, struct bw_device **device, struct bw_err *err)
{
    uint32_t threads = bw_ctx_config(ctx)->host_threads;
    if (index > HOST_INDEX_MAX)
        return bw_fail(err, -ENODEV, "host", "host:%u: the last one is host:%d", index, HOST_INDEX_MAX);
    if (threads > HOST_THREADS_MAX)
        return bw_fail(err, -EINVAL, "host", "%u threads: at most %d", threads, HOST_THREADS_MAX);
    struct bw_host_device *host = calloc(1, sizeof *host);
    if (!host)
        return bw_fail(err, -ENOMEM, "host", "device");
    host->base.ops = &host_ops;
    host->base.ctx = ctx;
    host->sys = bw_ctx_sys(ctx);
    uint64_t wait_ns = bw_ctx_config(ctx)->wait_ns;
    host->give_up_ns = wait_ns < GIVE_UP_NS ? wait_ns : GIVE_UP_NS;
    host->thread_count = threads ? threads : cpu_count();
    info_fill(host, index);
    bw_host_interrupt_init(&host->interrupt);
    bw_host_left_init(&host->left, host->sys);
    *device = &host->base;
    return 0;
}
