/* The OS seam: every operating-system call of the library goes through a struct bw_sys, so that a mock can
 * stand in for the machine and a test can fail each call. bw_sys_host() is the real one. */
#ifndef BW_SYS_H
#define BW_SYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <bellwire/err.h>
#include <bellwire/region.h>

#ifdef __cplusplus
extern "C" {
#endif

struct bw_sys;

/* What to map. fd < 0: anonymous memory. fixed_address != 0: exactly there, replacing a reservation or
 * mapping of ours (so that reserve and fixed_address take a mapping back in one step). reserve: address space
 * only, no access. */
struct bw_map_request {
    int fd;
    uint64_t offset, size_bytes;
    uint64_t fixed_address;
    bool reserve, writable, dont_fork;
    bool wipe_on_fork; /* a forked child sees zeros (MADV_WIPEONFORK): how a context notices that it was
                          forked */
    enum bw_memory_type memory_type;
};

struct bw_pci_id {
    uint16_t domain;
    uint8_t bus, device, function;
    uint16_t vendor_id, device_id, subsystem_vendor_id, subsystem_id;
    uint8_t revision;
    uint32_t class_code; /* 24 bits */
};

/* A read that goes on by itself. */
struct bw_ring_read {
    int fd;
    uint32_t tag; /* the caller's */
    void *data;
    uint64_t offset;
    uint32_t size_bytes;
};

/* How it ended: bytes read, fewer than asked for wherever the kernel likes, 0 at the end of the file; or
 * -errno, -EINTR and -EAGAIN included. */
struct bw_ring_done {
    uint32_t tag;
    int32_t result;
};

struct bw_ring;
struct bw_ring_ops {
    /* Starts as many of them as there is room for, in order: their number, or -errno. */
    int (*start)(struct bw_ring *ring, const struct bw_ring_read *reads, uint32_t count);
    /* What has ended since, in any order; waits for the first one, at most so long. Their number (0: none),
     * or -errno of a ring that is of no use any more. */
    int (*finish)(struct bw_ring *ring, struct bw_ring_done *done, uint32_t capacity, uint64_t timeout_ns);
    /* Says that reads into this memory will come, until it is removed: the kernel then looks it up once. 0 or
     * -errno, which does no harm. Any thread. */
    int (*memory_add)(struct bw_ring *ring, void *data, uint64_t size_bytes);
    void (*memory_remove)(struct bw_ring *ring, void *data); /* also when it was never added; any thread */
    void (*close)(struct bw_ring *ring);                     /* nothing is under way any more */
};

/* Reads under way at the same time. One thread at a time, except where it says otherwise. */
struct bw_ring {
    const struct bw_ring_ops *ops;
    const char *kind; /* "io_uring", "io_uring, polled by the kernel" or "threads" */
};

/* On which node of the machine (NUMA) new pages of memory come to lie. A node is preferred: when it is full,
 * the next one serves. */
enum { BW_SYS_NODES_MAX = 1024 /* that Linux has */, BW_NODE_DEFAULT = -1 };
enum bw_node_operation {
    BW_NODE_ASK,    /* 1: the calling thread has a policy; 0: none, its pages come from where it runs */
    BW_NODE_THREAD, /* sets the calling thread's: the node, or BW_NODE_DEFAULT for none */
    BW_NODE_RANGE,  /* of anonymous memory, whole pages of a mapping; those that were touched stay */
};
struct bw_node_request {
    enum bw_node_operation operation;
    int32_t node;
    uint64_t address, size_bytes; /* of a range */
};

struct bw_poll_request {
    int fd;
    short events, revents; /* POLLIN, ... of poll(2) */
};

/* What a machine that is not there knows of a hardware queue. Progress is what a GPU's own counters would
 * show: packets executed and waves ended. A kernel of many waves moves on; a single wave that never ends does
 * not, however busy it is. */
struct bw_queue_view {
    uint64_t progress; /* changes with each packet and each wave */
    uint64_t pc;       /* of the wave that the text is about, or 0 */
    uint64_t entry_va; /* where the kernel begins that runs or failed, or 0: its pc may be in a function of
                          others */
    uint64_t va;       /* with has_va: the address that it failed on */
    bool has_va;
    bool failed;    /* on something of its own */
    bool waits;     /* at a packet, for memory that somebody else is to write */
    char text[400]; /* where it is, what it waits for or what it failed on: "mec queue 1: ..." */
};

/* Everything returns 0 (or a count) or -errno; EINTR is retried inside against the caller's deadline where
 * there is one. All members may be called from any thread. */
struct bw_sys_ops {
    int (*open)(struct bw_sys *sys, const char *path,
                int flags); /* O_CLOEXEC is always added; returns a descriptor */
    int (*close)(struct bw_sys *sys, int fd);
    int64_t (*read)(struct bw_sys *sys, int fd, void *data, uint64_t size_bytes);
    int64_t (*write)(struct bw_sys *sys, int fd, const void *data, uint64_t size_bytes);
    int64_t (*pread)(struct bw_sys *sys, int fd, void *data, uint64_t size_bytes, uint64_t offset);
    int64_t (*pwrite)(struct bw_sys *sys, int fd, const void *data, uint64_t size_bytes, uint64_t offset);
    int (*ioctl)(struct bw_sys *sys, int fd, unsigned long request,
                 void *argument); /* value of ioctl(2) or -errno */
    int (*map)(struct bw_sys *sys, const struct bw_map_request *request, struct bw_region *region);
    int (*unmap)(struct bw_sys *sys, struct bw_region *region);
    /* Changes the access of a whole mapping of anonymous memory: writable or executable, never both
     * (-EINVAL). */
    int (*protect)(struct bw_sys *sys, struct bw_region *region, bool writable, bool executable);
    int (*poll)(struct bw_sys *sys, struct bw_poll_request *requests, uint32_t count, uint64_t timeout_ns);
    /* Calls entry for each name in path, "." and ".." left out, sorted. A non-zero return of entry ends the
     * listing and is returned. */
    int (*list)(struct bw_sys *sys, const char *path, int (*entry)(void *user, const char *name), void *user);
    uint64_t (*clock_ns)(struct bw_sys *sys); /* CLOCK_MONOTONIC, or the mock's virtual clock */
    void (*sleep_ns)(struct bw_sys *sys, uint64_t duration_ns);
    /* Takes an exclusive record lock on fd; -EAGAIN and the holder's pid when another process holds it. */
    int (*lock)(struct bw_sys *sys, int fd, int *holder_pid);
    int (*pci_scan)(struct bw_sys *sys, int (*found)(void *user, const struct bw_pci_id *id), void *user);
    /* Bytes of a file or block device; -EISDIR, or -ESPIPE for what has no offsets. */
    int64_t (*size)(struct bw_sys *sys, int fd);
    /* 1: both descriptors are of one file, pipe or device, however it was opened; 0: they are not. NULL: this
     * machine cannot tell. */
    int (*same_file)(struct bw_sys *sys, int fd, int other_fd);
    /* A ring for up to `entries` reads at once. NULL: this machine has none. */
    int (*ring_open)(struct bw_sys *sys, uint32_t entries, struct bw_ring **ring);
    /* Memory policy. NULL: this machine has none. -EPERM, -ENOSYS: the kernel, or a filter of its calls,
     * refuses; -EINVAL: no such node, or it has no memory. */
    int (*node)(struct bw_sys *sys, const struct bw_node_request *request);
    /* Only where the machine is a mock, else NULL: the queue of the KFD with that number, of the process that
     * opened fd. -ENOENT: there is none; -ENOTSUP: a wrapper around a machine that cannot tell. No system
     * call. */
    int (*queue_look)(struct bw_sys *sys, int fd, uint32_t queue_id, struct bw_queue_view *view);
    void (*destroy)(struct bw_sys *sys);
};

/* Implementations embed this first. Counters are relaxed: calls are counted so that tests can show that a
 * path makes none. */
struct bw_sys {
    const struct bw_sys_ops *ops;
    uint64_t calls;    /* number of calls through the seam, clock reads left out; updated atomically */
    uint64_t wait_ns;  /* deadline of calls that the kernel puts off and that are repeated inside; set by the
                          owner; 0: the interface's own limit */
    uint32_t retained; /* atomic: owners beside the first */
    uint64_t serials;  /* atomic: numbers given out by which one opening is told from any other */
    void *kfd; /* iface/: what the kernel keeps once per process (open /dev/kfd, event page); starts NULL,
                  ended by bw_sys_destroy */
};

/* The real operating system. Ownership: the caller ends it with bw_sys_destroy. 0 or -ENOMEM. */
int bw_sys_host_create(struct bw_sys **sys);
/* One more owner: that many more calls of bw_sys_destroy end it. Any thread. */
void bw_sys_retain(struct bw_sys *sys);
/* Everything opened through sys must be closed before its last owner ends it. NULL is fine. */
void bw_sys_destroy(struct bw_sys *sys);

#ifdef __cplusplus
}
#endif
#endif
