/* One dispatch under way. Internal to run.c, launch.c and pool.c. */
#ifndef BW_MOCK_ISA_RUN_H
#define BW_MOCK_ISA_RUN_H

#include "base/rng.h"
#include "mock/isa/pool.h"

enum {
    BW_SCRATCH_SLOTS_MAX = 4096, /* COMPUTE_TMPRING_SIZE.WAVES has 12 bits */
    BW_FAULT_PATIENCE = 512,     /* turns of waves, 2^16 instructions each: well below a second */
};

struct bw_run {
    struct bw_isa_pool *pool;
    const struct bw_isa_dispatch *dispatch;
    struct bw_isa_control *control;
    struct bw_program *program;
    const struct bw_uop *entry;
    uint64_t groups;          /* how many there are */
    uint64_t groups_per_take; /* handed out at once */
    uint32_t waves_per_group; /* of a whole group */
    size_t slot_bytes;        /* distance between wave blocks */
    uint32_t user_sgprs;
    bool uses_scratch;
    _Atomic uint64_t next_group;
    _Atomic uint64_t fault_group; /* the lowest that has failed; nothing above it is started any more */
    _Atomic int64_t patience;     /* with those below it, which may never end: see lose_patience */
    _Atomic bool out_of_memory;   /* a worker had no room for a group */
    _Atomic bool stopped;         /* control->stop was seen */
    pthread_mutex_t lock;         /* the fields below */
    uint64_t instructions, waves;
    struct bw_fault fault; /* of fault_group */
    uint32_t fault_wave;
    uint8_t scratch_used[BW_SCRATCH_SLOTS_MAX];
    pthread_cond_t scratch_freed;
};

/* A workgroup on a worker. */
struct bw_group {
    uint64_t index;
    uint32_t id[3], size[3];
    uint32_t waves, items;                    /* work-items */
    struct bw_wave *live[BW_GROUP_WAVES_MAX]; /* started and not ended, in the order of their index */
    uint32_t live_count, started;
    uint32_t slots_used;                        /* bit per slot */
    uint16_t scratch_slots[BW_GROUP_WAVES_MAX]; /* of the waves, in order, when scratch is used */
    uint8_t *slots;                             /* wave blocks */
    uint8_t *lds;
};

/* Memory in which a group lives on a worker. A group that waits for another one gives way to it and keeps its
 * berth. */
struct bw_berth {
    struct bw_berth *next;
    struct bw_group group;
    size_t slots_bytes; /* allocated */
    size_t slot_bytes;  /* distance of the wave blocks, and how many are laid out so */
    uint32_t slots_laid;
    uint8_t *slots;
    uint8_t *lds;
};

/* pool.c: memory for one more group; NULL when out of it. Given back to worker->berths. */
struct bw_berth *bw_berth_take(const struct bw_run *run, struct bw_worker *worker);

/* pool.c: forgets resolved ranges when something was unmapped since they were resolved. */
void bw_worker_refresh(struct bw_worker *worker);

/* pool.c: prepares the worker's memory and works. */
void bw_run_join(struct bw_run *run, struct bw_worker *worker);

/* launch.c: the initial state of a wave. */
void bw_group_place(const struct bw_run *run, struct bw_group *group, uint64_t index);
void bw_wave_launch(const struct bw_run *run, struct bw_worker *worker, struct bw_group *group,
                    struct bw_wave *wave, uint32_t index);

#endif
