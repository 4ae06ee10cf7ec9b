/* Fault injection: specifications "SITE:ACTION[,nth=N][,count=N][,gpu=I][,seed=S]" and who is hit by one. */
#ifndef BW_MOCK_FAULT_H
#define BW_MOCK_FAULT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <bellwire/err.h>

#include "base/rng.h"
#include "base/vec.h"

enum bw_mock_fault_action {
    BW_MOCK_FAULT_NONE,
    BW_MOCK_FAULT_FAIL,
    BW_MOCK_FAULT_DROP,
    BW_MOCK_FAULT_DELAY,
    BW_MOCK_FAULT_DUP,
    BW_MOCK_FAULT_HANG,
};

struct bw_mock_fault {
    char site[48];
    enum bw_mock_fault_action action;
    int error;         /* FAIL: a positive errno */
    uint64_t delay_ns; /* DELAY */
    uint64_t nth;      /* first occurrence hit, counted from 1 */
    uint64_t count;    /* occurrences hit from there on */
    int64_t gpu;       /* -1: any */
    bool random;       /* with a seed: each occurrence is hit with probability 1/2 */
    struct bw_rng rng;
    uint64_t seen, hit;
};

/* A place of the machine where faults can strike, and which of them. */
struct bw_mock_fault_site {
    char name[48];
    uint32_t actions; /* bit per enum bw_mock_fault_action */
    bool per_gpu;     /* occurrences there belong to one GPU, so that gpu= can choose */
};

struct bw_mock_faults {
    pthread_mutex_t lock;
    _Atomic uint32_t count; /* read without the lock: 0 keeps the common path free of it */
    BW_VEC(struct bw_mock_fault) list;
    BW_VEC(struct bw_mock_fault_site) sites; /* constant once the machine is made */
    uint32_t gpu_count;
};

int bw_mock_faults_init(struct bw_mock_faults *faults, uint32_t gpu_count);
void bw_mock_faults_fini(struct bw_mock_faults *faults);
/* Whoever builds the machine says which sites it has. 0 or -ENOMEM. */
int bw_mock_faults_site(struct bw_mock_faults *faults, const char *name, uint32_t actions, bool per_gpu);
/* -EINVAL names the part that does not parse, and what there is instead. */
int bw_mock_faults_add(struct bw_mock_faults *faults, const char *specification, struct bw_err *err);
void bw_mock_faults_clear(struct bw_mock_faults *faults);

/* Counts one occurrence at site on gpu (-1: none) and says what befalls it. *fault gets a copy when the
 * result is not NONE. check_for: only specifications with one of these actions (bits 1 << action), so that an
 * occurrence of one sort does not count for another. */
enum bw_mock_fault_action bw_mock_faults_check_for(struct bw_mock_faults *faults, const char *site,
                                                   int64_t gpu, uint32_t mask, struct bw_mock_fault *fault);
enum bw_mock_fault_action bw_mock_faults_check(struct bw_mock_faults *faults, const char *site, int64_t gpu,
                                               struct bw_mock_fault *fault);

#endif
