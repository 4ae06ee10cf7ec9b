/* Who touched which bytes last: of each byte its last writer, and of each queue its newest reader since.
 *
 * All byte ranges of a plan are known before the first is recorded. So their ends are sorted once, and from
 * then on a range is a range of small numbers: slots between neighbouring ends. Slots that have the same
 * history and follow each other form a run; a bitmap says where runs start, so what a touch costs depends
 * hardly on how many there are. With n pieces written, m readers of all of them cost m + n: summaries over
 * 64, 64 * 64, ... slots are kept until one of them is written. Not thread safe. */
#ifndef BW_HCQ_HISTORY_H
#define BW_HCQ_HISTORY_H

#include "hcq/plan.h"

enum { BW_RUNS_LEVELS_MAX = 7 }; /* 2^32 slots, 64 to a word, up to a level of one bit */

/* A value for each slot in [0, slot_count), kept once per run, where it starts. Bit i of level 0: a run
 * starts at slot i; of a level above: word i of the level below has a bit. */
struct bw_runs {
    uint64_t *levels[BW_RUNS_LEVELS_MAX];
    uint32_t level_count, slot_count;
    uint32_t *values;
};

/* A reader in the list of a run. */
struct bw_reader {
    uint32_t operation, next; /* next: index, 0 ends the list */
};

struct bw_history {
    const struct bw_plan *plan;
    uint32_t queue_count;
    struct {
        uint32_t begin, end;
    } * slots;             /* by touch of the plan: [begin, end) */
    struct bw_runs writes; /* the last writer's index + 1; 0: none */
    struct bw_runs reads;  /* head of a list of readers, one a queue; 0: none */
    BW_VEC(struct bw_reader) readers;
    uint32_t free_reader;
    /* By level and word of the writes' bitmap: the newest writer of each queue below it, index + 1. */
    uint32_t *newest[BW_RUNS_LEVELS_MAX];
    bool *fresh[BW_RUNS_LEVELS_MAX]; /* one that is not has none that is above it */
    uint64_t visit_count;            /* of runs, readers and summaries: what everything cost, for tests */
};

/* Of a plan whose operations and touches are complete. 0, -ENOMEM or -E2BIG; to be freed in any case. */
int bw_history_create(struct bw_history *history, const struct bw_plan *plan);
void bw_history_free(struct bw_history *history);

/* Raises, by queue, to the newest operation there, index + 1: of a touch that writes, need to what it has to
 * come after; of one that reads, need_data to whose bytes it has to see. */
void bw_history_needs(struct bw_history *history, uint32_t touch, uint32_t *need, uint32_t *need_data);
/* The operation does the touch, after all that were recorded; its queue is known. 0 or -ENOMEM. */
int bw_history_record(struct bw_history *history, uint32_t touch, uint32_t operation);

#endif
