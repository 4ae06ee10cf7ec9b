/* Goal: loading a file into a GPU takes as long as the slower of reading and copying, and not as long as
 * both: a disk and a copy engine that are made slow enough for the machine's own noise not to matter. */
#include "tests/unit/drivers/disk/rig.h"

#include <time.h>

static double now_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static double run_seconds(struct disk_rig *rig, struct bw_linked_graph *linked)
{
    double begin = now_seconds();
    BW_OK(disk_rig_run(rig, linked), &rig->err);
    return now_seconds() - begin;
}

enum { BYTES = 11 << 20, PARTS = 4 };

/* Several copies of one source in one graph: a long pipeline with a file that is not. */
static struct bw_linked_graph *copies_link(struct disk_rig *rig, struct bw_device *device,
                                           struct bw_buffer *const *targets, struct bw_buffer *source)
{
    struct bw_graph *graph = NULL;
    struct bw_linked_graph *linked = NULL;
    BW_OK(bw_graph_create(rig->ctx, &graph, &rig->err), &rig->err);
    for (uint32_t i = 0; i < PARTS; i++)
        BW_OK(bw_graph_copy(graph, device, disk_rig_range(targets[i], 0, BYTES),
                            disk_rig_range(source, 0, BYTES), &rig->err),
              &rig->err);
    BW_OK(bw_graph_link(graph, NULL, &linked, &rig->err), &rig->err);
    bw_graph_destroy(graph);
    return linked;
}

static void reading_and_copying_overlap(void)
{
    struct disk_rig rig;
    if (!disk_rig_open_faulty(&rig, "overlap", 0, "sdma0:delay=10;sdma1:delay=10"))
        return;
    struct bw_buffer *file = disk_rig_file(&rig, 0, BYTES), *memory[PARTS], *targets[PARTS];
    for (uint32_t i = 0; i < PARTS; i++) {
        targets[i] = disk_rig_buffer(&rig, rig.gpu, BYTES, 0);
        memory[i] = disk_rig_buffer(&rig, rig.disk, BYTES, BW_BUFFER_HOST);
    }
    struct bw_linked_graph *read = copies_link(&rig, rig.disk, memory, file),
                           *load = copies_link(&rig, rig.gpu, targets, file);
    run_seconds(&rig, load);
    double copies = run_seconds(&rig, load); /* the disk is fast: what the engine takes */
    rig.faults.ns_per_kib = (uint64_t)(copies * 1e9 / PARTS / (BYTES / 1024.0));
    double reads = run_seconds(&rig, read), both = run_seconds(&rig, load);
    printf("(reads %.2f s, copies %.2f s, both %.2f s: %.2f of the slower) ", reads, copies, both,
           (copies > reads ? copies : reads) / both);
    BW_TRUE(both < 0.75 * (reads + copies));
    uint8_t *data = malloc(BYTES);
    for (uint32_t i = 0; i < PARTS; i++) {
        BW_OK(bw_buffer_read(targets[i], 0, data, BYTES, &rig.err), &rig.err);
        BW_BYTES(data, rig.file, BYTES);
    }
    free(data);
    bw_linked_graph_destroy(read);
    bw_linked_graph_destroy(load);
    for (uint32_t i = 0; i < PARTS; i++) {
        bw_buffer_destroy(memory[i]);
        bw_buffer_destroy(targets[i]);
    }
    bw_buffer_destroy(file);
    disk_rig_close(&rig);
}

BW_TEST_MAIN("scenario.disk_to_gpu", {"reading and copying overlap", reading_and_copying_overlap})
