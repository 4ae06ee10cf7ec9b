/* Devices and their memory.
 *
 * Names are [iface+]driver[:index][@arch[*count][,key=value]...]: "amd", "amd:1", "kfd+amd", "drm+amd",
 * "host:0", "null", "disk:PATH"; mocks "mockkfd+amd@gfx1100", "mockkfd+amd:1@gfx1100*2" (the second of two),
 * with the keys cu (compute units), vram, bar (sizes), xgmi (copy engines for links between GPUs), nodes (of
 * the machine's memory, each with its share of the GPUs), seed (of
 * what undefined memory holds) and jitter (engines of random speed, of that seed):
 * "mockkfd+amd@gfx1100,cu=2,vram=1G".
 * More: man page bellwire(1). */
#ifndef BW_DEVICE_H
#define BW_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include <bellwire/ctx.h>

#ifdef __cplusplus
extern "C" {
#endif

struct bw_device;
struct bw_buffer;

struct bw_device_info {
    char name[64];    /* canonical: "mockkfd+amd:0@gfx1100" */
    char product[64]; /* marketing name, or empty */
    char driver[16], iface[16], arch[16];
    uint64_t vram_bytes; /* 0 for the host */
    uint32_t wave_size;  /* default work-items per wave; 1 on the host */
    uint32_t compute_units;
    uint32_t lds_bytes; /* most per workgroup */
    uint32_t group_size_max;
    bool mock;
    uint64_t file_bytes; /* of a disk: the size of its file when it was opened */
    /* Of the machine's memory nodes (NUMA) the nearest one, where the host memory that this device uses is
     * placed if numa_placed: if there are several, and the kernel lets us (numa_error: -errno where not). */
    bool has_numa_node, numa_placed;
    uint32_t numa_node;
    int numa_error;
};

/* Opens by name ("mockkfd+amd@gfx1100", "host:0", "null", ...). name NULL: config's device, else the first
 * real GPU (by the KFD where that is, else by its render node), else the mock mockkfd+amd@gfx1100
 * (bw_device_info().mock tells). -ENODEV: none such (the hint lists what exists); -EINVAL: not a name;
 * -EBUSY, -EACCES, ... from the interface. The caller ends it with bw_device_close. Thread safe. */
int bw_device_open(struct bw_ctx *ctx, const char *name, struct bw_device **device, struct bw_err *err);

/* Opens every device of a list of names separated by commas, in its order; `mockkfd+amd@gfx1100*8`, with a
 * count and no index, is all eight. After an error none of them is open. -E2BIG: more than `capacity`. */
int bw_device_open_list(struct bw_ctx *ctx, const char *names, struct bw_device **devices, uint32_t capacity,
                        uint32_t *count, struct bw_err *err);

/* Waits for the device's work (bounded by the deadline) and frees what it holds. Buffers and programs must be
 * gone. */
void bw_device_close(struct bw_device *device);

/* After a fault or a hang the device is marked failed: every later call on it returns that same error. This
 * resets it: queues are rebuilt, outstanding work is lost, buffers keep their memory (contents of what was
 * being written are undefined, on every device that it worked with), linked graphs can be replayed again, and
 * bw_linked_graph_wait names the replays that were lost. Other devices never wait for a failed one. 0 on a
 * healthy device. -ENOTSUP: this device cannot be reset. One thread; nothing else may use the device, or
 * graphs that touch it, meanwhile. */
int bw_device_recover(struct bw_device *device, struct bw_err *err);
/* Both live as long as the device is open. */
const struct bw_device_info *bw_device_info(const struct bw_device *device);
struct bw_ctx *bw_device_ctx(const struct bw_device *device);

/* How one device reaches the memory of another. Nearer kinds have greater numbers. */
enum bw_link_kind {
    BW_LINK_NONE,   /* it does not: copies go through host memory */
    BW_LINK_PCIE,   /* through the other one's BAR */
    BW_LINK_XGMI,   /* AMD's links between GPUs */
    BW_LINK_MEMORY, /* both in the memory of this machine: host devices among themselves */
    BW_LINK_SELF,
};
struct bw_link {
    enum bw_link_kind kind;
    uint32_t weight;             /* distance as the kernel's topology counts it; 0: nothing is said */
    uint64_t bandwidth_mb_per_s; /* as the topology says, one direction; 0: nothing is said */
};
/* What `from` may do with memory of `to`, this direction only. The first call for a pair of GPUs proves it by
 * a write and a read that the owner's side has to confirm (milliseconds; seconds where a window stalls); the
 * result is kept until one of the two is closed. Kind NONE: *err, when given, says why, and the call still
 * returns 0. -errno: a device failed meanwhile. */
int bw_device_link(struct bw_device *from, struct bw_device *to, struct bw_link *link, struct bw_err *err);

/* One line per device that could be opened, usable or not. `why` is empty when usable. */
struct bw_device_listing {
    struct bw_device_info info;
    bool usable;
    char why[256];
    bool chosen; /* what bw_device_open takes where it is given no name */
};
/* Calls `entry` for each with its `user`; its text lives for that call. A value other than 0 ends the list
 * and is returned. */
int bw_device_list(struct bw_ctx *ctx, int (*entry)(void *user, const struct bw_device_listing *listing),
                   void *user, struct bw_err *err);

enum bw_buffer_flags {
    BW_BUFFER_DEVICE = 0,     /* device memory; CPU access only through bw_buffer_read/write */
    BW_BUFFER_HOST = 1,       /* host memory that the device can address, mapped for the CPU */
    BW_BUFFER_UNCACHED = 2,   /* with HOST only (-EINVAL): not cached by the device (signals, rings) */
    BW_BUFFER_EXECUTABLE = 4, /* may hold machine code */
};

/* size_bytes > 0. Contents undefined. -ENOMEM: out of device memory (err names size and what is free). */
int bw_buffer_create(struct bw_device *device, uint64_t size_bytes, uint32_t flags, struct bw_buffer **buffer,
                     struct bw_err *err);
/* A window into a buffer; shares its memory and keeps it alive. [offset, offset+size) must lie inside:
 * -ERANGE. */
int bw_buffer_view(struct bw_buffer *buffer, uint64_t offset, uint64_t size_bytes, struct bw_buffer **view,
                   struct bw_err *err);
/* A range of the file of a disk ("disk:PATH"), read only: copies in graphs and bw_buffer_read take it as
 * their source. A disk has no other memory but BW_BUFFER_HOST. A read that fails, and a file that was cut,
 * fail the device with the offset. -ERANGE: not inside the file; -ENOTSUP: the device has no file. */
int bw_buffer_file(struct bw_device *device, uint64_t offset, uint64_t size_bytes, struct bw_buffer **buffer,
                   struct bw_err *err);
/* Drops the handle; memory is reused only when the device is done with it. NULL is fine. */
void bw_buffer_destroy(struct bw_buffer *buffer);
/* In bytes: of a view, its own. */
uint64_t bw_buffer_size(const struct bw_buffer *buffer);
uint64_t bw_buffer_address(const struct bw_buffer *buffer); /* in the device's address space */
void *bw_buffer_map(struct bw_buffer *buffer);              /* CPU pointer of a HOST buffer, else NULL */
struct bw_device *bw_buffer_device(const struct bw_buffer *buffer);

/* Synchronous copies between caller memory and the buffer, staged through the copy queue where needed, any
 * size and alignment. They wait for earlier work that touches the range. */
int bw_buffer_write(struct bw_buffer *buffer, uint64_t offset, const void *data, uint64_t size_bytes,
                    struct bw_err *err);
int bw_buffer_read(struct bw_buffer *buffer, uint64_t offset, void *data, uint64_t size_bytes,
                   struct bw_err *err);

#ifdef __cplusplus
}
#endif
#endif
