/* A tiny KFD client of the tests' own: every number here is written down again, from the public interface, so
 * that a test never agrees with the mock just because both read the same header. */
#ifndef BW_TESTS_MOCK_CLIENT_H
#define BW_TESTS_MOCK_CLIENT_H

#include <bellwire/err.h>
#include <bellwire/mock.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>

#include "tests/check.h"

#define KFD(number, bytes) _IOC(_IOC_READ | _IOC_WRITE, 'K', number, bytes)

enum { COMPUTE = 0, SDMA = 1, AQL = 2 };
enum { PAGE = 4096, RING = 0x4000, DOORBELL_BYTES = 0x2000 };
#define VRAM   (1u << 0)
#define GTT    (1u << 1)
#define USER   (1u << 2)
#define RWX    (3u << 30)
#define PUBLIC (1u << 29)

struct client {
    struct bw_sys *sys;
    int kfd, render;
    uint32_t gpu_id;
    struct bw_region doorbells;
    uint64_t next_va;
    uint64_t event_page;
};

/* A buffer; cpu is NULL for VRAM that is not PUBLIC. */
struct memory {
    uint64_t handle, va, size;
    struct bw_region region;
    void *cpu;
};

struct queue {
    uint32_t type, id;
    struct memory ring, pointers, eop, save;
    uint64_t doorbell; /* offset in the page */
    uint64_t put;      /* words (compute), bytes (SDMA), packets (AQL) */
    uint64_t ring_bytes;
};

static inline int client_ioctl(struct client *client, unsigned number, void *args, size_t bytes)
{
    return client->sys->ops->ioctl(client->sys, client->kfd, KFD(number, bytes), args);
}

/* A line of a topology file: "name value". */
static inline uint64_t client_property(struct client *client, const char *path, const char *name)
{
    char text[8192] = {0};
    int fd = client->sys->ops->open(client->sys, path, O_RDONLY);
    if (fd < 0)
        return UINT64_MAX;
    client->sys->ops->read(client->sys, fd, text, sizeof text - 1);
    client->sys->ops->close(client->sys, fd);
    if (!name)
        return strtoull(text, NULL, 10);
    size_t length = strlen(name);
    for (char *line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        if (strncmp(line, name, length) == 0 && line[length] == ' ')
            return strtoull(line + length, NULL, 10);
    }
    return UINT64_MAX;
}

static inline bool client_open_config(struct client *client, const struct bw_mock_config *config)
{
    struct bw_err err = {0};
    memset(client, 0, sizeof *client);
    client->next_va = 0x100000000ull;
    if (!BW_OK(bw_mock_kfd_create(config, &client->sys, &err), &err))
        return false;
    const struct bw_sys_ops *ops = client->sys->ops;
    client->kfd = ops->open(client->sys, "/dev/kfd", O_RDWR);
    client->render = ops->open(client->sys, "/dev/dri/renderD128", O_RDWR);
    client->gpu_id =
        (uint32_t)client_property(client, "/sys/devices/virtual/kfd/kfd/topology/nodes/1/gpu_id", NULL);
    struct {
        uint32_t drm_fd, gpu_id;
    } acquire = {(uint32_t)client->render, client->gpu_id};
    return BW_TRUE(client->kfd >= 0) && BW_TRUE(client->render >= 0) &&
           BW_EQ(client_ioctl(client, 0x15, &acquire, sizeof acquire), 0);
}

static inline bool client_open(struct client *client)
{
    return client_open_config(
        client,
        &(struct bw_mock_config){.size = sizeof(struct bw_mock_config), .arch = "gfx1100", .threads = 1});
}

static inline void client_close(struct client *client)
{
    if (client->doorbells.size_bytes)
        client->sys->ops->unmap(client->sys, &client->doorbells);
    client->sys->ops->close(client->sys, client->render);
    client->sys->ops->close(client->sys, client->kfd);
    bw_sys_destroy(client->sys);
}

struct alloc_args {
    uint64_t va, size, handle, mmap_offset;
    uint32_t gpu_id, flags;
};

struct map_args {
    uint64_t handle, ids;
    uint32_t count, done;
};

/* Allocates and maps; the CPU sees it at the same address when it may. 0 or -errno of the call that failed.
 */
static inline int memory_create(struct client *client, uint64_t size, uint32_t flags, struct memory *memory)
{
    struct alloc_args args = {
        .va = client->next_va, .size = size, .gpu_id = client->gpu_id, .flags = flags | RWX};
    memset(memory, 0, sizeof *memory);
    int rc = client_ioctl(client, 0x16, &args, sizeof args);
    if (rc)
        return rc;
    struct map_args map = {.handle = args.handle, .ids = (uintptr_t)&client->gpu_id, .count = 1};
    rc = client_ioctl(client, 0x18, &map, sizeof map);
    if (rc)
        return rc;
    memory->handle = args.handle;
    memory->va = args.va;
    memory->size = size;
    client->next_va += (size + 2 * PAGE - 1) / PAGE * PAGE + PAGE; /* an unmapped page after each */
    if ((flags & GTT) || (flags & PUBLIC)) {
        struct bw_map_request request = {.fd = client->render,
                                         .offset = args.mmap_offset,
                                         .size_bytes = (size + PAGE - 1) / PAGE * PAGE,
                                         .writable = true};
        rc = client->sys->ops->map(client->sys, &request, &memory->region);
        memory->cpu = (void *)memory->region.base;
    }
    return rc;
}

static inline int memory_unmap(struct client *client, struct memory *memory)
{
    struct map_args map = {.handle = memory->handle, .ids = (uintptr_t)&client->gpu_id, .count = 1};
    return client_ioctl(client, 0x19, &map, sizeof map);
}

static inline int memory_destroy(struct client *client, struct memory *memory)
{
    int rc = memory_unmap(client, memory);
    if (memory->cpu)
        client->sys->ops->unmap(client->sys, &memory->region);
    return rc ? rc : client_ioctl(client, 0x17, &memory->handle, 8);
}

struct create_queue_args {
    uint64_t ring, write_pointer, read_pointer, doorbell_offset;
    uint32_t ring_size, gpu_id, type, percentage, priority, id;
    uint64_t eop, eop_size, save;
    uint32_t save_size, stack_size;
    uint32_t sdma_engine, pad;
};

/* Figures of kfd_queue.c worked out by hand for 96 CUs of gfx1100: 3072 waves. */
enum {
    STACK_1100 = 0xa000, /* round up (40 + 3072 * 12 + 8, 4096) */
    SAVE_1100 = STACK_1100 + 96 * (0x60000 + 0x4000 + 0x10000 + 0x1000),
    DEBUG_1100 = 3072 * 32,
};

/* Fills the buffers and the arguments of a queue. */
static inline bool queue_prepare(struct client *client, uint32_t type, uint64_t ring_bytes,
                                 struct queue *queue, struct create_queue_args *args)
{
    memset(queue, 0, sizeof *queue);
    queue->type = type;
    queue->ring_bytes = ring_bytes;
    bool good = BW_EQ(memory_create(client, ring_bytes, GTT, &queue->ring), 0) &&
                BW_EQ(memory_create(client, PAGE, GTT, &queue->pointers), 0);
    *args = (struct create_queue_args){
        .ring = queue->ring.va,
        .write_pointer = queue->pointers.va,
        .read_pointer = queue->pointers.va + 64,
        .ring_size = (uint32_t)ring_bytes,
        .gpu_id = client->gpu_id,
        .type = type,
        .percentage = 100,
        .priority = 7,
    };
    if (type != SDMA) {
        good = good && BW_EQ(memory_create(client, PAGE, VRAM, &queue->eop), 0) &&
               BW_EQ(memory_create(client, SAVE_1100 + DEBUG_1100, VRAM, &queue->save), 0);
        args->eop = queue->eop.va;
        args->eop_size = PAGE;
        args->save = queue->save.va;
        args->save_size = SAVE_1100;
        args->stack_size = STACK_1100;
    }
    return good;
}

static inline bool queue_create_sized(struct client *client, uint32_t type, uint64_t ring_bytes,
                                      struct queue *queue)
{
    struct create_queue_args args;
    if (!queue_prepare(client, type, ring_bytes, queue, &args) ||
        !BW_EQ(client_ioctl(client, 0x02, &args, sizeof args), 0))
        return false;
    queue->id = args.id;
    queue->doorbell = args.doorbell_offset % DOORBELL_BYTES;
    if (!client->doorbells.size_bytes) {
        struct bw_map_request request = {.fd = client->kfd,
                                         .offset = args.doorbell_offset - queue->doorbell,
                                         .size_bytes = DOORBELL_BYTES,
                                         .writable = true};
        return BW_EQ(client->sys->ops->map(client->sys, &request, &client->doorbells), 0);
    }
    return true;
}

static inline bool queue_create(struct client *client, uint32_t type, struct queue *queue)
{
    return queue_create_sized(client, type, RING, queue);
}

static inline void queue_destroy(struct client *client, struct queue *queue)
{
    struct {
        uint32_t id, pad;
    } args = {queue->id, 0};
    BW_EQ(client_ioctl(client, 0x03, &args, sizeof args), 0);
    BW_EQ(memory_destroy(client, &queue->ring), 0);
    BW_EQ(memory_destroy(client, &queue->pointers), 0);
    if (queue->type != SDMA) {
        BW_EQ(memory_destroy(client, &queue->eop), 0);
        BW_EQ(memory_destroy(client, &queue->save), 0);
    }
}

static inline uint64_t *queue_write_pointer(const struct queue *queue)
{
    return (uint64_t *)queue->pointers.cpu;
}

static inline uint64_t queue_read_pointer(const struct queue *queue)
{
    return __atomic_load_n((uint64_t *)queue->pointers.cpu + 8, __ATOMIC_ACQUIRE);
}

/* Puts words into the ring without ringing. */
static inline void queue_put(struct queue *queue, const uint32_t *words, uint32_t count)
{
    uint64_t unit = queue->type == SDMA ? 4 : 1, ring_words = queue->ring_bytes / 4;
    for (uint32_t i = 0; i < count; i++) {
        ((uint32_t *)queue->ring.cpu)[queue->put / unit % ring_words] = words[i];
        queue->put += unit;
    }
}

static inline void queue_ring(struct client *client, struct queue *queue)
{
    __atomic_store_n(queue_write_pointer(queue), queue->put, __ATOMIC_RELEASE);
    bw_wr64(&client->doorbells, queue->doorbell, queue->put);
}

static inline void queue_submit(struct client *client, struct queue *queue, const uint32_t *words,
                                uint32_t count)
{
    queue_put(queue, words, count);
    queue_ring(client, queue);
}

/* Waits up to 20 seconds of the machine's clock for a word. */
static inline bool wait_word(struct client *client, const void *word, uint32_t value)
{
    const struct bw_sys_ops *ops = client->sys->ops;
    uint64_t end = ops->clock_ns(client->sys) + 20000000000;
    while (__atomic_load_n((const uint32_t *)word, __ATOMIC_ACQUIRE) != value) {
        if (ops->clock_ns(client->sys) >= end)
            return false;
        ops->sleep_ns(client->sys, 50000);
    }
    return true;
}

/* Waits until the machine's last error begins like that; prints it otherwise. */
static inline bool wait_error(struct client *client, const char *text)
{
    const struct bw_sys_ops *ops = client->sys->ops;
    char error[512] = "";
    for (int i = 0; i < 40000; i++) {
        bw_mock_last_error(client->sys, error, sizeof error);
        if (strstr(error, text))
            return true;
        ops->sleep_ns(client->sys, 500000);
    }
    return bw_check_str(error, text, "last error", __FILE__, __LINE__);
}

static inline uint32_t lo(uint64_t value)
{
    return (uint32_t)value;
}

static inline uint32_t hi(uint64_t value)
{
    return (uint32_t)(value >> 32);
}

#define PM4(opcode, payload_words) (3u << 30 | ((uint32_t)(payload_words)-1) << 16 | (opcode) << 8)

/* RELEASE_MEM: end of pipe, cache flush, 64-bit data. */
#define RELEASE(va, value) PM4(0x49, 7), 0x14u | 5u << 8, 2u << 29, lo(va), hi(va), lo(value), hi(value), 0

struct create_event_args {
    uint64_t page;
    uint32_t trigger, type, auto_reset, node, id, slot;
};

struct event_data {
    union {
        struct {
            uint32_t not_present, read_only, no_execute, imprecise;
            uint64_t va;
            uint32_t gpu_id, error_type;
        } memory;
        struct {
            uint32_t reset_type, reset_cause, memory_lost, gpu_id;
        } hw;
        uint64_t age;
    };
    uint64_t extension;
    uint32_t id, pad;
};

struct wait_args {
    uint64_t events;
    uint32_t count, all, timeout_ms, result;
};

static inline int event_create(struct client *client, uint32_t type, bool auto_reset,
                               struct create_event_args *args)
{
    uint64_t page = client->event_page;
    client->event_page = 0;
    *args = (struct create_event_args){.page = page, .type = type, .auto_reset = auto_reset};
    return client_ioctl(client, 0x08, args, sizeof *args);
}

static inline int event_wait(struct client *client, uint32_t id, uint32_t timeout_ms, struct event_data *data,
                             uint32_t *result)
{
    *data = (struct event_data){.id = id};
    struct wait_args args = {.events = (uintptr_t)data, .count = 1, .timeout_ms = timeout_ms};
    int rc = client_ioctl(client, 0x0c, &args, sizeof args);
    *result = args.result;
    return rc;
}

#endif
