/* Goal: whichever call of the operating system fails while a file is opened, linked, read and closed, the
 * error is told and nothing stays open or mapped. */
#include <bellwire/graph.h>

#include <unistd.h>

#include "base/map.h"
#include "iface/sys_wrap.h"
#include "tests/check.h"

enum { BYTES = 300000 };

struct life {
    struct bw_sys *host, *sys;
    struct bw_ctx *ctx;
    struct bw_device *disk, *cpu;
    struct bw_buffer *file, *memory, *target;
    struct bw_graph *graph;
    struct bw_linked_graph *linked;
    struct bw_err err;
};

static int life_copy(struct life *life)
{
    struct bw_range from = {.buffer = life->file, .size_bytes = BYTES},
                    between = {.buffer = life->memory, .size_bytes = BYTES},
                    to = {.buffer = life->target, .size_bytes = BYTES};
    uint64_t ticket;
    int rc = bw_graph_create(life->ctx, &life->graph, &life->err);
    if (!rc)
        rc = bw_graph_copy(life->graph, life->disk, between, from, &life->err);
    if (!rc)
        rc = bw_graph_copy(life->graph, life->cpu, to, between, &life->err);
    if (!rc)
        rc = bw_graph_link(life->graph, NULL, &life->linked, &life->err);
    if (!rc)
        rc = bw_linked_graph_replay(life->linked, NULL, &ticket, &life->err);
    return rc ? rc : bw_linked_graph_wait(life->linked, ticket, &life->err);
}

/* 0, or the first error. */
static int life_run(struct life *life, const char *name, const uint8_t *expected)
{
    struct bw_ctx_config config = {.size = sizeof config, .sys = life->sys};
    uint8_t *data = malloc(BYTES);
    int rc = bw_ctx_create(&config, &life->ctx, &life->err);
    if (!rc)
        rc = bw_device_open(life->ctx, name, &life->disk, &life->err);
    if (!rc)
        rc = bw_device_open(life->ctx, "host:0", &life->cpu, &life->err);
    if (!rc)
        rc = bw_buffer_file(life->disk, 1, BYTES, &life->file, &life->err);
    if (!rc)
        rc = bw_buffer_create(life->disk, BYTES, BW_BUFFER_HOST, &life->memory, &life->err);
    if (!rc)
        rc = bw_buffer_create(life->cpu, BYTES, 0, &life->target, &life->err);
    if (!rc)
        rc = life_copy(life);
    if (!rc)
        rc = bw_buffer_read(life->target, 0, data, BYTES, &life->err);
    if (!rc)
        BW_BYTES(data, expected + 1, BYTES);
    if (!rc)
        rc = bw_buffer_read(life->file, 5, data, 100, &life->err);
    if (!rc)
        BW_BYTES(data, expected + 6, 100);
    free(data);
    bw_linked_graph_destroy(life->linked);
    bw_graph_destroy(life->graph);
    bw_buffer_destroy(life->file);
    bw_buffer_destroy(life->memory);
    bw_buffer_destroy(life->target);
    bw_device_close(life->disk);
    bw_device_close(life->cpu);
    bw_ctx_destroy(life->ctx);
    return rc;
}

static void every_call_fails_once(void)
{
    char name[320] = "disk:";
    char *path = name + strlen(name);
    const char *directory = getenv("TMPDIR");
    snprintf(path, sizeof name - 5, "%s/bw_disk_test_XXXXXX", directory && *directory ? directory : "/tmp");
    uint8_t *bytes = malloc(BYTES + 1);
    int fd = mkstemp(path);
    for (size_t i = 0; i < BYTES + 1; i++)
        bytes[i] = (uint8_t)bw_hash64(i);
    BW_EQ(write(fd, bytes, BYTES + 1), BYTES + 1);
    uint64_t failed = 0;
    for (uint64_t nth = 1;; nth++) {
        struct life life = {0};
        BW_EQ(bw_sys_host_create(&life.host), 0);
        BW_EQ(bw_sys_wrap_create(life.host, &life.sys), 0);
        bw_sys_wrap_fail(life.sys, BW_SYS_CALL_ANY, nth, EIO);
        int rc = life_run(&life, name, bytes);
        bool fired = bw_sys_wrap_fired(life.sys);
        BW_TRUE(rc == 0 || (fired && rc == -EIO && life.err.code == rc));
        failed += rc != 0;
        BW_EQ(bw_sys_wrap_open_descriptors(life.sys), 0);
        BW_EQ(bw_sys_wrap_mapped_bytes(life.sys), 0);
        bw_sys_destroy(life.sys);
        bw_sys_destroy(life.host);
        if (!fired)
            break;
    }
    BW_TRUE(failed >=
            8); /* open, size, ring, and memory of either device; unmapping and closing fail unseen */
    free(bytes);
    close(fd);
    unlink(path);
}

BW_TEST_MAIN("scenario.disk_every_call_fails", {"every call fails once", every_call_fails_once})
