/* Goal: on a machine with two sockets what the engines of a GPU read and write in host memory lies next to
 * it: signals, command buffers, and staging memory, between GPUs that do not reach each other on the
 * target's side, for a disk on that of the GPU; replays ask for nothing. */
#include <unistd.h>

#include "hcq/linked.h"
#include "tests/unit/hcq/mock_rig.h"

enum { GPUS = 4, NODES = 2, BYTES = 300000 };

static bool numa_open(struct machine *machine)
{
    struct bw_mock_config mock = {.gpu_count = GPUS, .cu_count = 1, .vram_bytes = 64 << 20, .nodes = NODES};
    return machine_open_config(machine, RIG_THREADED, mock, 0);
}

static uint32_t node_at(const struct machine *machine, const void *address)
{
    return bw_mock_memory_node(machine->sys, address);
}

/* Replays a graph of one copy, and compares. Where its staging memory lies; UINT32_MAX: it has none. */
static uint32_t staging_node(struct machine *machine, uint32_t device, struct bw_buffer *target,
                             struct bw_buffer *source)
{
    struct rig *rig = &machine->rig;
    struct bw_graph *graph = rig_graph(rig);
    bool has_disk = bw_device_info(bw_buffer_device(source))->file_bytes > 0;
    uint32_t node = UINT32_MAX;
    uint64_t ticket;
    BW_OK(bw_graph_copy(graph, rig->devices[device], range_all(target), range_all(source), &rig->err),
          &rig->err);
    struct bw_linked_graph *linked = rig_link(rig, graph);
    if (!linked)
        return node;
    for (size_t i = 0; i < linked->held.count; i++) {
        struct bw_block *block = linked->held.data[i];
        if (block->memory.flags & BW_BUFFER_HOST)
            node = node_at(machine, bw_block_map(block));
    }
    for (int i = 0; i < 2; i++) {
        uint64_t calls = __atomic_load_n(&machine->sys->calls, __ATOMIC_RELAXED);
        BW_OK(bw_linked_graph_replay(linked, NULL, &ticket, &rig->err), &rig->err);
        if (!WAY_DRM && !has_disk) /* whose threads read meanwhile */
            BW_EQ(__atomic_load_n(&machine->sys->calls, __ATOMIC_RELAXED), calls);
        BW_OK(bw_linked_graph_wait(linked, ticket, &rig->err), &rig->err);
    }
    bw_linked_graph_destroy(linked);
    return node;
}

static void signals_and_buffers_are_near(void)
{
    struct machine machine;
    if (!numa_open(&machine))
        return;
    struct rig *rig = &machine.rig;
    for (uint32_t i = 0; i < GPUS; i++) {
        const struct bw_device_info *info = bw_device_info(rig->devices[i]);
        BW_TRUE(info->has_numa_node && info->numa_placed);
        BW_EQ(info->numa_node, i * NODES / GPUS);
        BW_EQ(node_at(&machine, bw_block_map(bw_hcq_device_of(rig->devices[i])->signals)), info->numa_node);
        struct bw_buffer *buffer = rig_buffer(rig, i, BYTES, BW_BUFFER_HOST);
        BW_EQ(node_at(&machine, bw_buffer_map(buffer)), info->numa_node);
        bw_buffer_destroy(buffer);
    }
    machine_close(&machine);
}

static void copies_through_the_host_are_staged_at_their_target(void)
{
    struct machine machine;
    struct bw_err err;
    if (!numa_open(&machine))
        return;
    BW_OK(bw_mock_fault_add(machine.sys, "link.0-3:fail=EINVAL", &err), &err);
    BW_OK(bw_mock_fault_add(machine.sys, "link.3-0:fail=EINVAL", &err), &err);
    struct rig *rig = &machine.rig;
    struct bw_buffer *first = rig_buffer(rig, 0, BYTES, 0), *last = rig_buffer(rig, GPUS - 1, BYTES, 0);
    uint8_t *bytes = malloc(BYTES), *got = malloc(BYTES);
    for (uint32_t i = 0; i < BYTES; i++)
        bytes[i] = (uint8_t)(i * 7 + i / 256);
    BW_OK(bw_buffer_write(first, 0, bytes, BYTES, &err), &err);
    BW_EQ(staging_node(&machine, 0, last, first), 1);
    BW_OK(bw_buffer_read(last, 0, got, BYTES, &err), &err);
    BW_BYTES(got, bytes, BYTES);
    BW_EQ(staging_node(&machine, 0, first, last), 0);
    free(bytes);
    free(got);
    bw_buffer_destroy(first);
    bw_buffer_destroy(last);
    machine_close(&machine);
}

static void a_disk_is_staged_at_its_gpu(void)
{
    struct machine machine;
    char path[300], name[320];
    uint8_t *bytes = malloc(BYTES), *got = malloc(BYTES);
    const char *folder = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/bw_numa_test_XXXXXX", folder && *folder ? folder : "/tmp");
    int fd = mkstemp(path);
    for (uint32_t i = 0; i < BYTES; i++)
        bytes[i] = (uint8_t)(i * 11 + i / 256);
    BW_EQ(write(fd, bytes, BYTES), BYTES);
    snprintf(name, sizeof name, "disk:%s", path);
    if (!numa_open(&machine))
        return;
    struct rig *rig = &machine.rig;
    struct bw_device *disk = NULL;
    struct bw_buffer *file = NULL;
    BW_OK(bw_device_open(rig->ctx, name, &disk, &rig->err), &rig->err);
    BW_TRUE(!bw_device_info(disk)->has_numa_node);
    BW_OK(bw_buffer_file(disk, 0, BYTES, &file, &rig->err), &rig->err);
    for (uint32_t i = 0; i < GPUS; i++) { /* what one is done with is no other one's on another node */
        struct bw_buffer *target = rig_buffer(rig, i, BYTES, 0);
        BW_EQ(staging_node(&machine, i, target, file), i * NODES / GPUS);
        BW_OK(bw_buffer_read(target, 0, got, BYTES, &rig->err), &rig->err);
        BW_BYTES(got, bytes, BYTES);
        bw_buffer_destroy(target);
    }
    bw_buffer_destroy(file);
    bw_device_close(disk);
    machine_close(&machine);
    close(fd);
    unlink(path);
    free(bytes);
    free(got);
}

BW_TEST_MAIN("hcq.numa", {"signals and buffers are near", signals_and_buffers_are_near},
             {"copies through the host are staged at their target",
              copies_through_the_host_are_staged_at_their_target},
             {"a disk is staged at its GPU", a_disk_is_staged_at_its_gpu})
