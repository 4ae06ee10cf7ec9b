/* Mock GPUs: a struct bw_sys whose machine holds GPUs that are not there. */
#ifndef BW_MOCK_H
#define BW_MOCK_H

#include <stdbool.h>
#include <stdint.h>

#include <bellwire/err.h>
#include <bellwire/sys.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    BW_MOCK_XGMI_ENGINES_MAX = 14, /* the most that a chip has (gfx942) */
    BW_MOCK_NODES_MAX = 8,         /* two sockets, four nodes in each */
};

struct bw_mock_config {
    uint64_t size;       /* sizeof this struct */
    const char *arch;    /* "gfx1100" */
    uint32_t gpu_count;  /* 0: 1 */
    uint32_t cu_count;   /* 0: the chip's own */
    uint64_t vram_bytes; /* 0: the chip's own (backed lazily) */
    uint32_t threads;    /* emulator threads; 0: one per CPU */
    uint64_t seed;       /* of single-step order and of what undefined memory holds */
    bool single_step;    /* engines advance only in bw_mock_step, in an order fixed by seed */
    uint64_t bar_bytes;  /* of VRAM that the CPU and other GPUs can reach; 0: all of it */
    uint32_t
        xgmi_engines; /* copy engines for links between GPUs, and with them the links, to try schedules on: as
                         if the chip had them; 0: the chip's own; at most BW_MOCK_XGMI_ENGINES_MAX */
    uint64_t
        jitter;      /* 0: engines are as fast as they can be; else the seed of how slow each queue is, and of
                        how long each of its packets is held up (most not at all, one in a while a millisecond).
                        In single-step mode in virtual time: bw_mock_step returns 0 while all are held up. */
    bool kfd_absent; /* a kernel without the KFD: render nodes only, work goes through the ioctl CS */
    uint32_t nodes;  /* of the machine's memory, each with a socket and its share of the GPUs, in order; 0: 1;
                        at most BW_MOCK_NODES_MAX. Threads that call run on node 0 */
    bool node_unknown; /* the firmware does not say which GPU is near which: numa_node is -1 */
};

/* A machine with /dev/kfd (unless it is absent), render nodes and sysfs for these GPUs. Ends with
 * bw_sys_destroy. -ENODEV: arch not modelled (the hint lists those that are). */
int bw_mock_kfd_create(const struct bw_mock_config *config, struct bw_sys **sys, struct bw_err *err);

/* The i-th architecture whose machine code a mock executes; NULL past the end. Machines of others serve
 * memory, copies and packets only, and no device is opened on them. */
const char *bw_mock_arch_at(uint32_t index);

/* "SITE:ACTION[,nth=N][,count=N][,gpu=I][,seed=S]" (docs: `bellwire mock`). -EINVAL names the part that does
 * not parse or does not exist on this machine, and lists what does.
 * Sites of a KFD machine and their actions:
 * - node, calls about memory policy: fail=ERRNO, delay=MS
 * - ioctl.NAME (as AMDKFD_IOC_NAME, any case; of a render node as DRM_AMDGPU_NAME, VERSION, GEM_CLOSE, and
 *   DRM for the rest), map: fail=ERRNO, delay=MS
 * - doorbell, irq: drop, delay=MS, dup
 * - mec, sdmaN for each engine of its GPUs: fail=ERRNO, drop (the engine dies), delay=MS, hang
 * - kernel: fail=ERRNO, drop (it does not run), delay=MS, dup, hang
 * - link.I-J, what GPU I does in memory of GPU J: fail=ERRNO and drop when it is mapped, delay=MS and hang at
 *   each access
 *
 * After hang the queue makes no progress until it is destroyed. Without nth every occurrence is hit, `count`
 * at most if that is given; with nth that one, or `count` from there on; with seed each of those with
 * probability 1/2, drawn from the seed. */
int bw_mock_fault_add(struct bw_sys *sys, const char *specification, struct bw_err *err);
/* None of them strikes any more. */
void bw_mock_fault_clear(struct bw_sys *sys);

/* From now on the machine appends to the file, which exists, a line for each ioctl (with its result and its
 * structure), doorbell, packet, kernel and named error: "12.345678901 gpu0 mec queue 1: DISPATCH_DIRECT 0x4
 * 0x1 0x1 0x21"; the time is the machine's clock in seconds. Several machines may share a file. -EALREADY:
 * the machine is traced. -errno of opening. */
int bw_mock_trace(struct bw_sys *sys, const char *path, struct bw_err *err);

/* Single-step mode: lets one engine do one thing: a packet, or some thousand instructions of a kernel, so
 * that one that never ends gives the step back. Returns 1 when something moved, 0 when all are idle or
 * blocked. A call that sleeps or waits (sleep_ns, WAIT_EVENTS) steps by itself, since nothing else would, and
 * time is virtual: it passes with steps, with what kernels execute (100 ns for an instruction of a wave) and
 * with sleeping only. */
int bw_mock_step(struct bw_sys *sys);

struct bw_mock_stats {
    uint64_t wave_instructions, waves, dispatches, packets, sdma_packets, doorbells, interrupts, ioctls;
};
/* Since the machine was made. Any thread. */
void bw_mock_stats(struct bw_sys *sys, struct bw_mock_stats *stats);
/* How many packets of one opcode the engines have executed: what a driver's own counts are compared with. */
enum bw_mock_packets { BW_MOCK_PACKETS_PM4, BW_MOCK_PACKETS_SDMA };
uint64_t bw_mock_packets_executed(struct bw_sys *sys, enum bw_mock_packets kind, uint8_t opcode);
/* The same of the machine that an open device lives in. -ENOTSUP: it is no mock. */
struct bw_device;
int bw_device_mock_stats(const struct bw_device *device, struct bw_mock_stats *stats);
/* The machine that an open device lives in, owned by the device; NULL: it is no mock that a name made. */
struct bw_sys *bw_device_mock(const struct bw_device *device);

/* On which node of the machine's memory the page at this address lies: what a GPU's host memory got when it
 * was made, and pages that were given a policy before they were touched; 0, where the callers run, for the
 * rest. The kernel of the machine allocates as that of Debian 12 does. */
uint32_t bw_mock_memory_node(struct bw_sys *sys, const void *address);

/* The last named error of an engine ("mec queue 1: packet at 0x40: unknown opcode 0x7f"), or "". Copied. */
void bw_mock_last_error(struct bw_sys *sys, char *text, uint32_t text_size);

#ifdef __cplusplus
}
#endif
#endif
