/* SDMA: the copy engines' packets. */
#ifndef BW_MOCK_ENGINE_SDMA_H
#define BW_MOCK_ENGINE_SDMA_H

#include "mock/engine/queue.h"

struct bw_mock_sdma_packet {
    struct bw_mock_queue *queue;
    const struct bw_mock_sdma *kind;
    const uint32_t *words; /* words[0] is the header */
    uint32_t count;        /* words in all */
    uint32_t skip;         /* words to jump over after it */
};

enum { BW_MOCK_SDMA_CHECKED_WORDS = 8 };

struct bw_mock_sdma {
    const char *name;
    uint8_t opcode, sub_opcode;
    uint8_t families;
    uint8_t count; /* words, or the fixed part of a packet whose length is in it */
    uint32_t reserved[BW_MOCK_SDMA_CHECKED_WORDS];
    uint32_t bytes_max; /* that one packet copies or fills; 0: it does neither */
    enum bw_mock_queue_progress (*run)(struct bw_mock_sdma_packet *packet);
};

const struct bw_mock_sdma *bw_mock_sdma_find(uint32_t opcode, uint32_t sub_opcode, uint32_t families);

enum bw_mock_queue_progress bw_mock_sdma_fail(struct bw_mock_sdma_packet *packet, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The packet waits: the value at va does not compare as it is to. Returns BW_MOCK_QUEUE_BLOCKED. */
enum bw_mock_queue_progress bw_mock_sdma_block(struct bw_mock_sdma_packet *packet, uint64_t va,
                                               uint32_t function, uint64_t value, uint64_t reference);
enum bw_mock_queue_progress bw_mock_sdma_fault(struct bw_mock_sdma_packet *packet,
                                               const struct bw_mock_violation *violation);
/* Words of the packet in all, from its first words (as many as kind->count). */
uint64_t bw_mock_sdma_length(const struct bw_mock_sdma *kind, const uint32_t *words);

enum bw_mock_queue_progress bw_mock_sdma_nop(struct bw_mock_sdma_packet *packet);
enum bw_mock_queue_progress bw_mock_sdma_copy_linear(struct bw_mock_sdma_packet *packet);
enum bw_mock_queue_progress bw_mock_sdma_write_linear(struct bw_mock_sdma_packet *packet);
enum bw_mock_queue_progress bw_mock_sdma_indirect(struct bw_mock_sdma_packet *packet);
enum bw_mock_queue_progress bw_mock_sdma_fence(struct bw_mock_sdma_packet *packet);
enum bw_mock_queue_progress bw_mock_sdma_trap(struct bw_mock_sdma_packet *packet);
enum bw_mock_queue_progress bw_mock_sdma_cond_exe(struct bw_mock_sdma_packet *packet);
enum bw_mock_queue_progress bw_mock_sdma_poll_regmem(struct bw_mock_sdma_packet *packet);
enum bw_mock_queue_progress bw_mock_sdma_atomic(struct bw_mock_sdma_packet *packet);
enum bw_mock_queue_progress bw_mock_sdma_const_fill(struct bw_mock_sdma_packet *packet);
enum bw_mock_queue_progress bw_mock_sdma_timestamp(struct bw_mock_sdma_packet *packet);
enum bw_mock_queue_progress bw_mock_sdma_gcr(struct bw_mock_sdma_packet *packet);

#endif
