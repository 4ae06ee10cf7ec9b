/* The pool: worker threads and the code they share. Internal to the emulator. */
#ifndef BW_MOCK_ISA_POOL_H
#define BW_MOCK_ISA_POOL_H

#include <pthread.h>

#include "mock/isa/program.h"

struct bw_run; /* one dispatch under way: run.c */

struct bw_thread {
    struct bw_worker worker;
    pthread_t thread;
    bool started;
};

struct bw_isa_pool {
    bw_handler handlers[BW_UOP_COUNT];
    pthread_mutex_t code_lock; /* codes, and everything inside them, while a dispatch runs */
    struct bw_code *codes;     /* newest first */
    unsigned codes_count;
    uint64_t code_id_next;

    pthread_mutex_t lock; /* the fields below */
    pthread_cond_t wake, idle;
    struct bw_run *run; /* what workers may join, NULL when there is nothing */
    uint64_t run_serial;
    unsigned joined; /* workers inside run */
    bool quit;
    unsigned threads_count;    /* the caller's included */
    struct bw_thread *threads; /* [0] belongs to whoever calls bw_isa_run */
};

/* Instruction sets of the host for which handlers exist, each including the ones before it. */
enum bw_isa_level { BW_ISA_LEVEL_BASE, BW_ISA_LEVEL_AVX2, BW_ISA_LEVEL_AVX512 };
enum bw_isa_level bw_isa_host_level(void);
/* As bw_isa_pool_create, with handlers of a level that the host has (tests run them all). */
int bw_isa_pool_create_level(unsigned threads, enum bw_isa_level level, struct bw_isa_pool **pool);

/* What a thread does for a dispatch until nothing is left of it; run.c. */
void bw_run_work(struct bw_run *run, struct bw_worker *worker);

#endif
