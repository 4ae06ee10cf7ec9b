/* A hardware queue: a ring in the process's address space that an engine's thread consumes; or one that its
 * front feeds with indirect buffers, as a kernel driver does on rings of its own.
 *
 * In threaded mode each queue has a thread of its own, so that clients meet real concurrency; in single-step
 * mode bw_mock_step picks queues. Either way all work happens in bw_mock_queue_step, one packet at a time. */
#ifndef BW_MOCK_ENGINE_QUEUE_H
#define BW_MOCK_ENGINE_QUEUE_H

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "mock/isa/isa.h"
#include "mock/machine.h"

enum bw_mock_queue_type { BW_MOCK_QUEUE_PM4, BW_MOCK_QUEUE_AQL, BW_MOCK_QUEUE_SDMA };

enum bw_mock_queue_state { BW_MOCK_QUEUE_RUNS, BW_MOCK_QUEUE_FAILED, BW_MOCK_QUEUE_EVICTED };

enum {
    BW_MOCK_SH_FIRST = 0x2c00, /* dword addresses of SET_SH_REG's range: Mesa sid.h, SI_SH_REG_OFFSET / 4 */
    BW_MOCK_SH_COUNT = 0x400,
    BW_MOCK_UCONFIG_FIRST = 0xc000, /* CIK_UCONFIG_REG_OFFSET / 4 */
    BW_MOCK_UCONFIG_COUNT = 0x4000,
    BW_MOCK_PACKET_WORDS = 0x4001,             /* the longest PM4 packet: header and 2^14 words */
    BW_MOCK_SDMA_PACKET_WORDS = 4 + (1 << 20), /* WRITE LINEAR with the largest count */
};

/* An indirect buffer that is being read. Positions in words. */
struct bw_mock_stream {
    uint64_t va;
    uint32_t words, at;
};

struct bw_mock_queue {
    struct bw_mock *machine;
    struct bw_mock_context *context;
    enum bw_mock_queue_type type;
    uint32_t id;          /* as CREATE_QUEUE returned it */
    uint32_t sdma_engine; /* SDMA */
    char name[32];        /* "mec queue 1", "sdma0 queue 2" */

    uint64_t ring_va, ring_bytes;
    uint64_t read_va, write_va; /* pointers in memory */
    uint64_t eop_va, save_va;
    uint32_t percentage, priority;
    struct bw_mock_doorbell *doorbell;
    uint32_t doorbell_index;
    void *feed; /* the front's: it feeds the queue, and there is no ring, no pointer and no doorbell page */
    uint32_t evictions; /* of the context when the queue was made */

    uint64_t read;    /* words (PM4), packets (AQL), bytes (SDMA); never wraps */
    uint64_t write;   /* last doorbell taken over */
    uint32_t *packet; /* room for one */
    struct bw_mock_stream indirect;
    bool in_indirect;
    uint64_t aql_start;  /* AQL: GPU clock when the packet began */
    bool vendor_running; /* AQL: the indirect buffer of a vendor packet is being executed */
    bool wait_armed;     /* the request of a write-then-wait was sent */
    uint32_t retries;    /* polls done of a bounded POLL_REGMEM */
    bool again;          /* the last step was at the same packet */
    struct {             /* with jitter */
        struct bw_rng rng;
        uint64_t mean_ns;  /* of what is held up */
        uint64_t until_ns; /* single-step: the packet is held up until then */
        bool drawn;        /* for the packet that the queue is at */
    } speed;
    _Atomic bool hung;             /* by fault injection */
    uint32_t sh[BW_MOCK_SH_COUNT]; /* register state */
    uint32_t hdp_flush_done;       /* GPU_HDP_FLUSH_DONE as this queue sees it */

    struct {
        struct bw_isa_dispatch dispatch;
        struct bw_isa_result result;
        unsigned times; /* that it still is to run */
        bool under_way;
        _Atomic uint64_t entry_va;           /* while it runs, else 0 */
    } kernel;                                /* that the queue is at */
    struct bw_isa_control control;           /* of the dispatch that runs */
    _Atomic uint64_t waves_retired, packets; /* since ever, those of the dispatch that runs left out */
    _Atomic bool waits;                      /* at a packet, for memory or for another queue */
    char text[384];            /* what it waits for or failed on; this and the next four: error_lock */
    uint64_t fault_pc;         /* of the wave that failed */
    uint64_t fault_entry_va;   /* of its kernel */
    uint64_t fault_va;         /* with faulted: where, */
    bool faulted;              /* on memory */
    _Atomic uint32_t state;    /* enum bw_mock_queue_state */
    _Atomic uint32_t stopping; /* the thread shall end */
    _Atomic uint32_t inactive; /* UPDATE_QUEUE took its ring or its share away */
    bool destroying;           /* somebody destroys it already; guarded by machine.lock */
    bool has_thread;
    pthread_t thread;
};

/* Starts consuming: a thread in threaded mode. The queue's description is filled in. 0 or -errno. */
int bw_mock_queue_start(struct bw_mock_queue *queue);
/* Stops whatever runs and ends the thread. Without machine.lock. */
void bw_mock_queue_halt(struct bw_mock_queue *queue);
/* Frees a queue that is halted and in no process's list any more. Without machine.lock (it takes step_lock).
 */
void bw_mock_queue_free(struct bw_mock_queue *queue);

enum bw_mock_queue_progress bw_mock_queue_step(struct bw_mock_queue *queue);
/* A fed queue begins with the indirect buffer. */
void bw_mock_queue_begin(struct bw_mock_queue *queue, uint64_t va, uint32_t words);
/* A fed queue begins with the work of whoever comes next: registers hold what the last one left there. */
void bw_mock_queue_forget_registers(struct bw_mock_queue *queue);

/* What hardware would not tell. Any thread; the queue is in its process's list, and machine.lock is held. */
void bw_mock_queue_look(struct bw_mock_queue *queue, struct bw_queue_view *view);

/* Client side: a write to the doorbell page of a context, at byte offset. */
void bw_mock_doorbell_write(struct bw_mock_context *context, uint64_t offset, uint64_t value);
/* Makes the engine behind a doorbell look again. */
void bw_mock_doorbell_wake(struct bw_mock_doorbell *doorbell);
/* Tells blocked queues that memory may have changed. */
void bw_mock_progress_signal(struct bw_mock *machine);

/* Where the packet that is read starts, for people. */
void bw_mock_queue_place(const struct bw_mock_queue *queue, char *text, size_t size);
/* How the packets that wait compare: function 0 always, then <, <=, ==, !=, >=, >. */
enum { BW_MOCK_COMPARE_EQUAL = 3 };
bool bw_mock_compare(uint32_t function, uint64_t value, uint64_t reference);
const char *bw_mock_compare_name(uint32_t function);

/* Per type: one packet. */
enum bw_mock_queue_progress bw_mock_pm4_step(struct bw_mock_queue *queue);
enum bw_mock_queue_progress bw_mock_aql_step(struct bw_mock_queue *queue);
enum bw_mock_queue_progress bw_mock_sdma_step(struct bw_mock_queue *queue);

/* Failures of an engine: recorded by name, told to the process as the kernel would, and the queue stops. Each
 * returns BW_MOCK_QUEUE_STOPPED. */
enum bw_mock_queue_progress bw_mock_queue_fail(struct bw_mock_queue *queue, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The queue waits: what for is kept for bw_mock_queue_look. Returns BW_MOCK_QUEUE_BLOCKED. */
enum bw_mock_queue_progress bw_mock_queue_block(struct bw_mock_queue *queue, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* By fault injection: nothing moves any more until the queue is destroyed. Returns BW_MOCK_QUEUE_BLOCKED. */
enum bw_mock_queue_progress bw_mock_queue_hang(struct bw_mock_queue *queue, const char *site);
/* A memory fault: also evicts the other queues of the process on this GPU, as the kernel does
 * (kfd_int_process_v11.c, kfd_dqm_evict_pasid). what names the packet or the kernel. */
enum bw_mock_queue_progress bw_mock_queue_fault(struct bw_mock_queue *queue,
                                                const struct bw_mock_violation *violation, const char *what);

/* The same three for the packet that is being read, called `name`: the texts say where it starts. */
enum bw_mock_queue_progress bw_mock_queue_packet_fail(struct bw_mock_queue *queue, const char *name,
                                                      const char *format, va_list arguments);
enum bw_mock_queue_progress bw_mock_queue_packet_block(struct bw_mock_queue *queue, const char *name,
                                                       uint64_t va, uint32_t function, uint64_t value,
                                                       uint64_t reference);
enum bw_mock_queue_progress bw_mock_queue_packet_fault(struct bw_mock_queue *queue, const char *name,
                                                       const struct bw_mock_violation *violation);

#endif
