/* A recording of what engines execute, packet by packet, for models of time: copies with their ends, and what
 * orders them, waits for words of memory and writes of such words. Off unless begun: then an engine looks at
 * one word per packet of these kinds, and nothing else is different.
 *
 * Kernels are not recorded: in a model of links they take no time. Nor are copies by the command processor.
 */
#ifndef BW_MOCK_RECORD_H
#define BW_MOCK_RECORD_H

#include <stdint.h>

#include <bellwire/err.h>
#include <bellwire/sys.h>

#include "base/vec.h"

enum {
    BW_MOCK_RECORD_HOST = 0xffff,        /* an end of a copy: no GPU's memory */
    BW_MOCK_RECORD_NO_ENGINE = 0xffff,   /* of a compute queue */
    BW_MOCK_RECORD_EVENTS_MAX = 1 << 22, /* 200 MB: 20 times the packets of a graph of 100,000 copies */
};

enum bw_mock_event_kind { BW_MOCK_EVENT_COPY, BW_MOCK_EVENT_WAIT, BW_MOCK_EVENT_WRITE };

struct bw_mock_event {
    enum bw_mock_event_kind kind;
    uint32_t queue;    /* index into the recording's */
    uint32_t from, to; /* COPY: a GPU's index, or HOST */
    uint64_t size_bytes;
    uint32_t word; /* WAIT, WRITE: index into the recording's words */
    /* WAIT: until (word & mask) compares with value as the packets' function says. WRITE: value. */
    uint32_t function, mask, value;
};

struct bw_mock_record_queue {
    uint32_t gpu, engine;
    char name[32]; /* "sdma0 queue 2" */
};

struct bw_mock_record_word {
    uint64_t key;     /* what tells words apart */
    uint32_t initial; /* value before the first event that is about it */
};

struct bw_mock_recording {
    BW_VEC(struct bw_mock_record_queue) queues;
    BW_VEC(struct bw_mock_record_word) words;
    BW_VEC(struct bw_mock_event) events; /* of one queue in its order; between queues in no order */
};

/* Begins a recording of the machine. -EALREADY: one is under way. -ENOMEM. */
int bw_mock_record_begin(struct bw_sys *sys, struct bw_err *err);
/* Ends it. The caller frees the recording. -ENOMEM, -E2BIG: it is not whole, and thrown away. -ENOENT: none
 * was begun. */
int bw_mock_record_end(struct bw_sys *sys, struct bw_mock_recording *recording, struct bw_err *err);
void bw_mock_recording_free(struct bw_mock_recording *recording);

/* ---- the engines' side ---- */

struct bw_mock;
struct bw_mock_queue;
/* Ends the recording that is under way, if any: the machine is closed. */
void bw_mock_record_drop(struct bw_mock *machine);
/* A copy that is about to be executed, a wait that is over, a write of `bytes` (4 or 8) that is about to be
 * executed. */
void bw_mock_record_copy(struct bw_mock_queue *queue, uint64_t target_va, uint64_t source_va,
                         uint64_t size_bytes);
void bw_mock_record_wait(struct bw_mock_queue *queue, uint64_t va, uint32_t function, uint32_t mask,
                         uint32_t value);
void bw_mock_record_write(struct bw_mock_queue *queue, uint64_t va, uint64_t value, uint32_t bytes);

#endif
