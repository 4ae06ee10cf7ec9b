/* Goal: a file is a device like any other: its bytes arrive exactly wherever a graph or a read sends them, it
 * is never written, and what goes wrong with it is told with the offset and hurts nobody else. */
#include "tests/unit/drivers/disk/rig.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "drivers/disk/disk.h"

static uint64_t pick_bytes(struct disk_rig *rig, uint64_t most)
{
    return 1 + bw_rng_below(&rig->rng, bw_rng_below(&rig->rng, 3) ? most : 9000);
}

static void reads_give_the_files_bytes(void)
{
    struct disk_rig rig;
    if (!disk_rig_open(&rig, "reads", 0))
        return;
    uint8_t *data = malloc(DISK_FILE_BYTES);
    BW_EQ(bw_device_info(rig.disk)->file_bytes, DISK_FILE_BYTES);
    for (int i = 0; i < 60; i++) {
        uint64_t bytes = i ? pick_bytes(&rig, 5 << 20) : DISK_FILE_BYTES;
        uint64_t offset = bw_rng_below(&rig.rng, DISK_FILE_BYTES - bytes + 1),
                 inner = bw_rng_below(&rig.rng, bytes);
        struct bw_buffer *file = disk_rig_file(&rig, offset, bytes);
        BW_EQ(bw_buffer_size(file), bytes);
        BW_TRUE(bw_buffer_map(file) == NULL);
        BW_OK(bw_buffer_read(file, inner, data, bytes - inner, &rig.err), &rig.err);
        BW_BYTES(data, rig.file + offset + inner, bytes - inner);
        bw_buffer_destroy(file);
    }
    free(data);
    disk_rig_close(&rig);
}

enum { COPIES = 6, PART_BYTES = 6 << 20 };

/* One graph: several copies out of the file into each kind of memory, then those together on the CPU. */
static void copies_compare(struct disk_rig *rig, uint8_t *data)
{
    struct bw_device *devices[] = {rig->gpu, rig->cpu, rig->gpu, rig->disk};
    static const uint32_t flags[] = {0, 0, BW_BUFFER_HOST, BW_BUFFER_HOST};
    struct bw_buffer *targets[COPIES], *sources[COPIES],
        *all = disk_rig_buffer(rig, rig->cpu, COPIES * PART_BYTES, 0);
    uint64_t offsets[COPIES], bytes[COPIES], at[COPIES];
    struct bw_graph *graph = NULL;
    struct bw_linked_graph *linked = NULL;
    BW_OK(bw_graph_create(rig->ctx, &graph, &rig->err), &rig->err);
    for (uint32_t i = 0; i < COPIES; i++) {
        uint32_t kind = (uint32_t)bw_rng_below(&rig->rng, BW_COUNT_OF(devices));
        bytes[i] = pick_bytes(rig, PART_BYTES - 5000);
        offsets[i] = bw_rng_below(&rig->rng, DISK_FILE_BYTES - bytes[i] + 1);
        at[i] = bw_rng_below(&rig->rng, 5000);
        sources[i] = disk_rig_file(rig, offsets[i], bytes[i]);
        targets[i] = disk_rig_buffer(rig, devices[kind], PART_BYTES, flags[kind]);
        struct bw_range target = disk_rig_range(targets[i], at[i], bytes[i]);
        BW_OK(bw_graph_copy(graph, devices[kind], target, disk_rig_range(sources[i], 0, bytes[i]), &rig->err),
              &rig->err);
        BW_OK(
            bw_graph_copy(graph, rig->cpu, disk_rig_range(all, i * PART_BYTES, bytes[i]), target, &rig->err),
            &rig->err);
    }
    BW_OK(bw_graph_link(graph, NULL, &linked, &rig->err), &rig->err);
    bw_graph_destroy(graph);
    for (int replay = 0; replay < 2 && linked; replay++) {
        memset(data, 0xee, COPIES * PART_BYTES);
        BW_OK(bw_buffer_write(all, 0, data, COPIES * PART_BYTES, &rig->err), &rig->err);
        BW_OK(disk_rig_run(rig, linked), &rig->err);
        BW_OK(bw_buffer_read(all, 0, data, COPIES * PART_BYTES, &rig->err), &rig->err);
        for (uint32_t i = 0; i < COPIES; i++) {
            BW_BYTES(data + i * PART_BYTES, rig->file + offsets[i], bytes[i]);
            BW_EQ(data[i * PART_BYTES + bytes[i]], 0xee);
        }
    }
    bw_linked_graph_destroy(linked);
    for (uint32_t i = 0; i < COPIES; i++) {
        bw_buffer_destroy(targets[i]);
        bw_buffer_destroy(sources[i]);
    }
    bw_buffer_destroy(all);
}

static void copies_arrive_in_every_kind_of_memory(void)
{
    struct disk_rig rig;
    if (!disk_rig_open(&rig, "copies", 0))
        return;
    uint8_t *data = malloc(COPIES * PART_BYTES);
    for (int i = 0; i < 8; i++)
        copies_compare(&rig, data);
    free(data);
    disk_rig_close(&rig);
}

/* Which range of the file is known at replay only. */
static void replays_take_ranges_of_the_file(void)
{
    enum { BYTES = 5000000 };
    struct disk_rig rig;
    if (!disk_rig_open(&rig, "inputs", 0))
        return;
    struct bw_device *devices[] = {rig.gpu, rig.cpu};
    uint8_t *data = malloc(BYTES);
    for (int i = 0; i < 2; i++) {
        struct bw_buffer *target = disk_rig_buffer(&rig, devices[i], BYTES, 0);
        struct bw_graph *graph = NULL;
        struct bw_linked_graph *linked = NULL;
        struct bw_range source = {.input = 0, .size_bytes = BYTES};
        BW_OK(bw_graph_create(rig.ctx, &graph, &rig.err), &rig.err);
        BW_OK(bw_graph_input(graph, 0, rig.disk, &rig.err), &rig.err);
        BW_OK(bw_graph_copy(graph, devices[i], disk_rig_range(target, 0, BYTES), source, &rig.err), &rig.err);
        BW_OK(bw_graph_link(graph, NULL, &linked, &rig.err), &rig.err);
        bw_graph_destroy(graph);
        for (int k = 0; k < 3 && linked; k++) {
            uint64_t offset = bw_rng_below(&rig.rng, DISK_FILE_BYTES - BYTES), ticket;
            struct bw_buffer *file = disk_rig_file(&rig, offset, BYTES);
            struct bw_replay replay = {.inputs = &file, .input_count = 1};
            BW_OK(bw_linked_graph_replay(linked, &replay, &ticket, &rig.err), &rig.err);
            BW_OK(bw_linked_graph_wait(linked, ticket, &rig.err), &rig.err);
            BW_OK(bw_buffer_read(target, 0, data, BYTES, &rig.err), &rig.err);
            BW_BYTES(data, rig.file + offset, BYTES);
            bw_buffer_destroy(file);
        }
        bw_linked_graph_destroy(linked);
        bw_buffer_destroy(target);
    }
    free(data);
    disk_rig_close(&rig);
}

/* While one half of the staging memory is on its way to the GPU, or waits for that, the other one is read. */
static void both_halves_of_staging_are_read_at_once(void)
{
    enum { BYTES = 10 << 20, HALF_BYTES = 4 << 20 }; /* of staging memory */
    struct disk_rig rig;
    if (!disk_rig_open(&rig, "halves", 0))
        return;
    struct bw_buffer *target = disk_rig_buffer(&rig, rig.gpu, BYTES, 0),
                     *file = disk_rig_file(&rig, 123, BYTES);
    struct bw_linked_graph *linked =
        disk_rig_copy(&rig, rig.gpu, disk_rig_range(target, 0, BYTES), disk_rig_range(file, 0, BYTES));
    __atomic_store_n(&rig.faults.spread_max, 0, __ATOMIC_RELAXED);
    BW_OK(disk_rig_run(&rig, linked), &rig.err);
    BW_TRUE(__atomic_load_n(&rig.faults.spread_max, __ATOMIC_RELAXED) > HALF_BYTES + HALF_BYTES / 2);
    bw_linked_graph_destroy(linked);
    bw_buffer_destroy(file);
    bw_buffer_destroy(target);
    disk_rig_close(&rig);
}

/* Two GPUs of one process, of which one only can map the disk's memory: both get the bytes. */
static void several_gpus_load_at_once(void)
{
    enum { BYTES = 5000001, GPUS = 2 };
    static const char *const names[GPUS] = {"mockkfd+amd:0@gfx1100*2,cu=2,vram=64M",
                                            "mockkfd+amd:1@gfx1100*2,cu=2,vram=64M"};
    struct disk_rig rig;
    if (!disk_rig_open(&rig, "gpus", 0))
        return;
    struct bw_device *gpus[GPUS] = {NULL};
    struct bw_buffer *targets[GPUS] = {NULL}, *file = disk_rig_file(&rig, 4321, BYTES);
    struct bw_graph *graph = NULL;
    struct bw_linked_graph *linked = NULL;
    uint8_t *data = malloc(BYTES);
    BW_OK(bw_graph_create(rig.ctx, &graph, &rig.err), &rig.err);
    for (int i = 0; i < GPUS; i++) {
        BW_OK(bw_device_open(rig.ctx, names[i], &gpus[i], &rig.err), &rig.err);
        targets[i] = disk_rig_buffer(&rig, gpus[i], BYTES, 0);
        BW_OK(bw_graph_copy(graph, gpus[i], disk_rig_range(targets[i], 0, BYTES),
                            disk_rig_range(file, 0, BYTES), &rig.err),
              &rig.err);
    }
    BW_OK(bw_graph_link(graph, NULL, &linked, &rig.err), &rig.err);
    bw_graph_destroy(graph);
    BW_OK(disk_rig_run(&rig, linked), &rig.err);
    bw_linked_graph_destroy(linked);
    for (int i = 0; i < GPUS; i++) {
        BW_OK(bw_buffer_read(targets[i], 0, data, BYTES, &rig.err), &rig.err);
        BW_BYTES(data, rig.file + 4321, BYTES);
        bw_buffer_destroy(targets[i]);
        bw_device_close(gpus[i]);
    }
    bw_buffer_destroy(file);
    free(data);
    disk_rig_close(&rig);
}

static void files_are_only_read(void)
{
    enum { BYTES = 4096 };
    struct disk_rig rig;
    if (!disk_rig_open(&rig, "read only", 0))
        return;
    struct bw_device *devices[] = {rig.gpu, rig.cpu, rig.disk};
    struct bw_buffer *file = disk_rig_file(&rig, 0, BYTES), *buffer;
    struct bw_graph *graph;
    struct bw_linked_graph *linked;
    struct bw_program *program;
    struct bw_link link;
    char data[BYTES] = {0};
    BW_EQ(bw_buffer_write(file, 0, data, BYTES, &rig.err), -EROFS);
    for (size_t i = 0; i < BW_COUNT_OF(devices); i++) {
        buffer = disk_rig_buffer(&rig, devices[i], BYTES, BW_BUFFER_HOST);
        for (int input = 0; input < 2; input++) {
            struct bw_range target =
                input ? (struct bw_range){.input = 0, .size_bytes = BYTES} : disk_rig_range(file, 0, BYTES);
            BW_OK(bw_graph_create(rig.ctx, &graph, &rig.err), &rig.err);
            BW_OK(bw_graph_input(graph, 0, rig.disk, &rig.err), &rig.err);
            BW_OK(bw_graph_copy(graph, devices[i], target, disk_rig_range(buffer, 0, BYTES), &rig.err),
                  &rig.err);
            BW_EQ(bw_graph_link(graph, NULL, &linked, &rig.err), -EROFS);
            BW_TRUE(strstr(rig.err.what, "only read") != NULL);
            bw_graph_destroy(graph);
        }
        bw_buffer_destroy(buffer);
        if (devices[i] != rig.disk) {
            BW_OK(bw_device_link(devices[i], rig.disk, &link, &rig.err), &rig.err);
            BW_EQ(link.kind, BW_LINK_NONE);
            BW_EQ(bw_buffer_file(devices[i], 0, 1, &buffer, &rig.err), -ENOTSUP);
        }
    }
    BW_OK(bw_device_link(rig.disk, rig.cpu, &link, &rig.err), &rig.err);
    BW_EQ(link.kind, BW_LINK_MEMORY);
    BW_EQ(bw_buffer_create(rig.disk, BYTES, 0, &buffer, &rig.err), -ENOTSUP);
    BW_EQ(bw_program_load(rig.disk, data, BYTES, &program, &rig.err), -ENOTSUP);
    BW_EQ(bw_buffer_file(rig.disk, DISK_FILE_BYTES, 1, &buffer, &rig.err), -ERANGE);
    BW_EQ(bw_buffer_file(rig.disk, 1, DISK_FILE_BYTES, &buffer, &rig.err), -ERANGE);
    BW_EQ(bw_buffer_file(rig.disk, UINT64_MAX, 2, &buffer, &rig.err), -ERANGE);
    BW_EQ(bw_buffer_file(rig.disk, 1, UINT64_MAX, &buffer, &rig.err), -ERANGE);
    BW_EQ(bw_buffer_file(rig.disk, 0, 0, &buffer, &rig.err), -ERANGE);
    BW_EQ(bw_buffer_view(file, 1, BYTES, &buffer, &rig.err), -ERANGE);
    bw_buffer_destroy(file);
    disk_rig_close(&rig);
}

/* Everybody but the disk goes on as if nothing had been. */
static void others_work(struct disk_rig *rig)
{
    enum { BYTES = 100000 };
    uint8_t *data = malloc(BYTES);
    struct bw_buffer *from = disk_rig_buffer(rig, rig->cpu, BYTES, 0),
                     *to = disk_rig_buffer(rig, rig->gpu, BYTES, 0);
    struct bw_linked_graph *linked =
        disk_rig_copy(rig, rig->gpu, disk_rig_range(to, 0, BYTES), disk_rig_range(from, 0, BYTES));
    BW_OK(bw_buffer_write(from, 0, rig->file + 5, BYTES, &rig->err), &rig->err);
    BW_OK(disk_rig_run(rig, linked), &rig->err);
    BW_OK(bw_buffer_read(to, 0, data, BYTES, &rig->err), &rig->err);
    BW_BYTES(data, rig->file + 5, BYTES);
    bw_linked_graph_destroy(linked);
    bw_buffer_destroy(from);
    bw_buffer_destroy(to);
    free(data);
}

struct load {
    struct bw_buffer *file, *target;
    struct bw_linked_graph *linked;
    uint64_t bytes;
};

static struct load load_make(struct disk_rig *rig, struct bw_device *device)
{
    struct load load = {.bytes = DISK_FILE_BYTES};
    load.file = disk_rig_file(rig, 0, load.bytes);
    load.target = disk_rig_buffer(rig, device, load.bytes, 0);
    load.linked = disk_rig_copy(rig, device, disk_rig_range(load.target, 0, load.bytes),
                                disk_rig_range(load.file, 0, load.bytes));
    return load;
}

static void load_free(struct load *load)
{
    bw_linked_graph_destroy(load->linked);
    bw_buffer_destroy(load->target);
    bw_buffer_destroy(load->file);
}

static void load_works(struct disk_rig *rig, struct load *load)
{
    uint8_t *data = calloc(1, load->bytes);
    BW_OK(disk_rig_run(rig, load->linked), &rig->err);
    BW_OK(bw_buffer_read(load->target, 0, data, load->bytes, &rig->err), &rig->err);
    BW_BYTES(data, rig->file, load->bytes);
    free(data);
}

static void errors_tell_the_offset_and_hurt_nobody_else(void)
{
    for (int gpu = 0; gpu < 2; gpu++) {
        struct disk_rig rig;
        if (!disk_rig_open(&rig, "errors", 0))
            return;
        struct load load = load_make(&rig, gpu ? rig.gpu : rig.cpu);
        char expected[400], byte;
        for (int i = 0; i < 4; i++) {
            uint64_t offset = i ? bw_rng_below(&rig.rng, DISK_FILE_BYTES) : DISK_FILE_BYTES - 1;
            rig.faults.error_offset = offset;
            __atomic_store_n(&rig.faults.error, -EIO, __ATOMIC_RELEASE);
            BW_EQ(disk_rig_run(&rig, load.linked), -EIO);
            /* Where the read begins that failed. */
            unsigned long long told = UINT64_MAX;
            snprintf(expected, sizeof expected, "%s: reading at offset %%llu", rig.path);
            BW_EQ(sscanf(rig.err.what, expected, &told), 1);
            BW_TRUE(told <= offset && offset - told < 1 << 20);
            BW_EQ(bw_buffer_read(load.file, 0, &byte, 1, &rig.err), -EIO); /* the disk is marked */
            others_work(&rig);
            __atomic_store_n(&rig.faults.error, 0, __ATOMIC_RELEASE);
            BW_OK(bw_device_recover(rig.disk, &rig.err), &rig.err);
            load_works(&rig, &load);
        }
        load_free(&load);
        disk_rig_close(&rig);
    }
}

static void a_file_that_is_cut_is_an_error(void)
{
    struct disk_rig rig;
    if (!disk_rig_open(&rig, "cut", 0))
        return;
    struct load load = load_make(&rig, rig.gpu);
    load_works(&rig, &load);
    BW_EQ(ftruncate(rig.fd, 6000000), 0);
    BW_EQ(disk_rig_run(&rig, load.linked), -ENODATA);
    unsigned long long told = 0;
    char expected[400];
    snprintf(expected, sizeof expected, "%s: the file ends at or before offset %%llu", rig.path);
    BW_EQ(sscanf(rig.err.what, expected, &told), 1);
    BW_TRUE(told >= 6000000);
    others_work(&rig);
    BW_EQ(pwrite(rig.fd, rig.file + 6000000, DISK_FILE_BYTES - 6000000, 6000000), DISK_FILE_BYTES - 6000000);
    BW_OK(bw_device_recover(rig.disk, &rig.err), &rig.err);
    load_works(&rig, &load);
    load_free(&load);
    disk_rig_close(&rig);
}

static void a_disk_that_does_not_answer_meets_the_deadline(void)
{
    struct disk_rig rig;
    if (!disk_rig_open(&rig, "hung", 300000000))
        return;
    struct load load = load_make(&rig, rig.cpu);
    __atomic_store_n(&rig.faults.hung, true, __ATOMIC_RELEASE);
    BW_EQ(disk_rig_run(&rig, load.linked), -ETIMEDOUT);
    BW_TRUE(strstr(rig.err.hint, " bytes at offset 0 of ") != NULL);
    others_work(&rig);
    BW_EQ(bw_device_recover(rig.disk, &rig.err), -EBUSY);
    __atomic_store_n(&rig.faults.hung, false, __ATOMIC_RELEASE);
    BW_OK(bw_device_recover(rig.disk, &rig.err), &rig.err);
    load_works(&rig, &load);
    load_free(&load);
    disk_rig_close(&rig);
}

static void opening_fails_by_name(void)
{
    struct disk_rig rig;
    if (!disk_rig_open(&rig, "opening", 0))
        return;
    struct bw_device *device;
    struct bw_buffer *buffer;
    char path[340], name[360];
    snprintf(name, sizeof name, "disk:%s.absent", rig.path);
    BW_EQ(bw_device_open(rig.ctx, name, &device, &rig.err), -ENOENT);
    BW_STR(rig.err.what, name + strlen("disk:"));
    BW_EQ(bw_device_open(rig.ctx, "disk:/", &device, &rig.err), -EISDIR);
    snprintf(path, sizeof path, "%s.fifo", rig.path);
    snprintf(name, sizeof name, "disk:%s", path);
    BW_EQ(mkfifo(path, 0600), 0);
    BW_EQ(bw_device_open(rig.ctx, name, &device, &rig.err), -ESPIPE); /* and does not wait for a writer */
    unlink(path);
    close(open(path, O_CREAT | O_RDWR, 0600));
    if (BW_OK(bw_device_open(rig.ctx, name, &device, &rig.err), &rig.err)) { /* empty */
        BW_EQ(bw_device_info(device)->file_bytes, 0);
        BW_EQ(bw_buffer_file(device, 0, 1, &buffer, &rig.err), -ERANGE);
        bw_device_close(device);
    }
    unlink(path);
    disk_rig_close(&rig);
}

BW_TEST_MAIN("drivers.disk", {"reads give the file's bytes", reads_give_the_files_bytes},
             {"copies arrive in every kind of memory", copies_arrive_in_every_kind_of_memory},
             {"replays take ranges of the file", replays_take_ranges_of_the_file},
             {"both halves of staging are read at once", both_halves_of_staging_are_read_at_once},
             {"several GPUs load at once", several_gpus_load_at_once},
             {"files are only read", files_are_only_read},
             {"errors tell the offset and hurt nobody else", errors_tell_the_offset_and_hurt_nobody_else},
             {"a file that is cut is an error", a_file_that_is_cut_is_an_error},
             {"a disk that does not answer meets the deadline",
              a_disk_that_does_not_answer_meets_the_deadline},
             {"opening fails by name", opening_fails_by_name})
