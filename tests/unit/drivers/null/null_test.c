/* Goal: the device that retires at the doorbell parks what has to wait, never overruns its ring, and says so
 * when it is fed nonsense. */
#include <bellwire/graph.h>

#include <pthread.h>

#include "tests/check.h"
#include "tests/objects.h"

#include "drivers/host/packet.h"

struct rig {
    struct bw_ctx *ctx;
    struct bw_device *null, *host;
    struct bw_program *program;
    struct bw_err err;
};

static bool rig_open(struct rig *rig, uint64_t wait_ns)
{
    struct bw_ctx_config config = {.size = sizeof config, .wait_ns = wait_ns};
    uint64_t image_bytes;
    void *image = bw_test_file(BW_HOST_KERNELS_PIC, &image_bytes);
    *rig = (struct rig){0};
    bool ok = BW_TRUE(image != NULL) && BW_OK(bw_ctx_create(&config, &rig->ctx, &rig->err), &rig->err) &&
              BW_OK(bw_device_open(rig->ctx, "null", &rig->null, &rig->err), &rig->err) &&
              BW_OK(bw_device_open(rig->ctx, "host:0", &rig->host, &rig->err), &rig->err) &&
              BW_OK(bw_program_load(rig->host, image, image_bytes, &rig->program, &rig->err), &rig->err);
    free(image);
    return ok;
}

static void rig_close(struct rig *rig)
{
    bw_program_destroy(rig->program);
    bw_device_close(rig->host);
    bw_device_close(rig->null);
    bw_ctx_destroy(rig->ctx);
}

struct release {
    struct rig *rig;
    uint32_t *flag;
    uint64_t after_ns;
};

static void *release_main(void *argument)
{
    struct release *release = argument;
    struct bw_sys *sys = bw_ctx_sys(release->rig->ctx);
    sys->ops->sleep_ns(sys, release->after_ns);
    __atomic_store_n(release->flag, 1, __ATOMIC_RELEASE);
    return NULL;
}

/* A kernel on the host holds what null's copy queue waits for; null's ring fills up and drains when a thread
 * lets go. */
static void a_ring_that_is_full_waits_for_its_consumer(void)
{
    enum { REPLAYS = 300, BYTES = 64 };
    struct rig rig;
    struct bw_buffer *flag, *source, *target;
    struct bw_kernel *kernel;
    struct bw_graph *graph;
    struct bw_linked_graph *linked = NULL;
    struct bw_link_options options = {.size = sizeof options, .instances = 64};
    uint64_t ticket = 0;
    uint8_t bytes[BYTES], got[BYTES];
    if (!rig_open(&rig, 20000000000))
        return;
    BW_OK(bw_buffer_create(rig.host, BYTES, BW_BUFFER_HOST, &flag, &rig.err), &rig.err);
    BW_OK(bw_buffer_create(rig.null, BYTES, 0, &source, &rig.err), &rig.err);
    BW_OK(bw_buffer_create(rig.null, BYTES, 0, &target, &rig.err), &rig.err);
    memset(bytes, 0, sizeof bytes);
    BW_OK(bw_buffer_write(flag, 0, bytes, BYTES, &rig.err), &rig.err);
    memset(bytes, 0x5a, sizeof bytes);
    BW_OK(bw_buffer_write(source, 0, bytes, BYTES, &rig.err), &rig.err);
    BW_OK(bw_program_kernel(rig.program, "wait_for_flag", &kernel, &rig.err), &rig.err);
    BW_OK(bw_graph_create(rig.ctx, &graph, &rig.err), &rig.err);
    struct bw_argument argument = {
        .source = BW_ARG_RANGE, .access = BW_ACCESS_READ | BW_ACCESS_WRITE, .range = {flag, 0, 0, BYTES}};
    struct bw_launch launch = {.group_count = {{1, false}, {1, false}, {1, false}},
                               .group_size = {1, 1, 1},
                               .arguments = &argument,
                               .argument_count = 1};
    BW_OK(bw_graph_kernel(graph, kernel, &launch, &rig.err), &rig.err);
    BW_OK(bw_graph_copy(graph, rig.null, (struct bw_range){target, 0, 0, BYTES},
                        (struct bw_range){flag, 0, 0, BYTES}, &rig.err),
          &rig.err);
    BW_OK(bw_graph_copy(graph, rig.null, (struct bw_range){target, 0, 8, BYTES - 8},
                        (struct bw_range){source, 0, 8, BYTES - 8}, &rig.err),
          &rig.err);
    BW_OK(bw_graph_link(graph, &options, &linked, &rig.err), &rig.err);
    bw_graph_destroy(graph);
    struct release release = {&rig, bw_buffer_map(flag), 50000000};
    pthread_t thread;
    BW_EQ(pthread_create(&thread, NULL, release_main, &release), 0);
    for (int i = 0; i < REPLAYS; i++) {
        if (!BW_OK(bw_linked_graph_replay(linked, NULL, &ticket, &rig.err), &rig.err))
            break;
    }
    BW_OK(bw_linked_graph_wait(linked, ticket, &rig.err), &rig.err);
    pthread_join(thread, NULL);
    BW_OK(bw_buffer_read(target, 0, got, BYTES, &rig.err), &rig.err);
    memset(bytes, 0, 8);
    bytes[0] = 1;
    BW_BYTES(got, bytes, BYTES);
    bw_linked_graph_destroy(linked);
    bw_buffer_destroy(flag);
    bw_buffer_destroy(source);
    bw_buffer_destroy(target);
    rig_close(&rig);
}

static void many_submits(void)
{
    enum { REPLAYS = 200000, BYTES = 16 };
    struct rig rig;
    struct bw_buffer *buffers[2];
    struct bw_graph *graph;
    struct bw_linked_graph *linked = NULL;
    uint64_t ticket = 0;
    uint32_t wrong = 0;
    if (!rig_open(&rig, 0))
        return;
    for (int i = 0; i < 2; i++)
        BW_OK(bw_buffer_create(rig.null, BYTES, 0, &buffers[i], &rig.err), &rig.err);
    BW_OK(bw_graph_create(rig.ctx, &graph, &rig.err), &rig.err);
    BW_OK(bw_graph_copy(graph, rig.null, (struct bw_range){NULL, 0, 0, BYTES},
                        (struct bw_range){NULL, 1, 0, BYTES}, &rig.err),
          &rig.err);
    BW_OK(bw_graph_link(graph, NULL, &linked, &rig.err), &rig.err);
    bw_graph_destroy(graph);
    for (uint64_t i = 0; i < REPLAYS; i++) {
        struct bw_buffer *inputs[] = {buffers[i % 2], buffers[(i + 1) % 2]};
        struct bw_replay replay = {.inputs = inputs, .input_count = 2};
        wrong += bw_linked_graph_replay(linked, &replay, &ticket, &rig.err) != 0;
    }
    BW_EQ(wrong, 0);
    BW_EQ(ticket, REPLAYS);
    BW_OK(bw_linked_graph_wait(linked, ticket, &rig.err), &rig.err);
    bw_linked_graph_destroy(linked);
    bw_buffer_destroy(buffers[0]);
    bw_buffer_destroy(buffers[1]);
    rig_close(&rig);
}

/* What could only be our own mistake: words that are no packets. The driver says so instead of running into
 * the weeds. */
static void nonsense_is_noticed(void)
{
    static const uint32_t cases[][2] = {
        {0xff000001, 0},                                 /* no such opcode */
        {BW_HOST_OP_COPY << 24 | BW_HOST_COPY_WORDS, 0}, /* longer than the buffer */
        {0, 0},                                          /* no length */
    };
    for (uint32_t i = 0; i < 3; i++) {
        struct bw_ctx *ctx;
        struct bw_device *null, *host;
        struct bw_queue *null_queue, *host_queue;
        struct bw_err err;
        BW_EQ(bw_host_packets_check(cases[i], 2), -EINVAL);
        if (!BW_OK(bw_ctx_create(NULL, &ctx, &err), &err) || !BW_OK(bw_null_open(ctx, &null, &err), &err) ||
            !BW_OK(bw_host_open(ctx, 0, &host, &err), &err))
            return;
        BW_OK(null->ops->queue_create(null, BW_QUEUE_COPY, 0, &null_queue, &err), &err);
        BW_OK(host->ops->queue_create(host, BW_QUEUE_COPY, 0, &host_queue, &err), &err);
        BW_EQ(null->ops->queue_create(null, BW_QUEUE_COPY, 0, &null_queue, &err), -ENODEV); /* there is one */
        BW_EQ(null->ops->query_fault(null, &err), 0);
        BW_EQ(host->ops->query_fault(host, &err), 0);
        BW_EQ(null->ops->submit(null_queue, (uintptr_t)cases[i], 2), 0);
        BW_EQ(null->ops->flush(null_queue), 0);
        BW_EQ(host->ops->submit(host_queue, (uintptr_t)cases[i], 2), 0);
        BW_EQ(null->ops->query_fault(null, &err), -EIO);
        struct bw_sys *sys = bw_ctx_sys(ctx);
        for (int look = 0; look < 10000 && host->ops->query_fault(host, &err) == 0; look++)
            sys->ops->sleep_ns(sys, 100000);
        BW_EQ(host->ops->query_fault(host, &err), -EIO);
        BW_OK(host->ops->reset(host, &err), &err);
        BW_EQ(host->ops->query_fault(host, &err), 0);
        null->ops->queue_destroy(null_queue);
        host->ops->queue_destroy(host_queue);
        null->ops->close(null);
        host->ops->close(host);
        bw_ctx_destroy(ctx);
    }
}

BW_TEST_MAIN("null",
             {"a_ring_that_is_full_waits_for_its_consumer", a_ring_that_is_full_waits_for_its_consumer},
             {"many_submits", many_submits}, {"nonsense_is_noticed", nonsense_is_noticed})
