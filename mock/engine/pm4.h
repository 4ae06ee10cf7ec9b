/* PM4 as the compute micro engine (MEC) reads it. */
#ifndef BW_MOCK_ENGINE_PM4_H
#define BW_MOCK_ENGINE_PM4_H

#include "mock/engine/queue.h"

struct bw_mock_pm4;

/* A packet under execution. */
struct bw_mock_packet {
    struct bw_mock_queue *queue;
    const struct bw_mock_pm4 *kind;
    const uint32_t *words; /* the payload: words[0] follows the header */
    uint32_t count;        /* of payload words */
    uint32_t skip;         /* words of the stream to jump over after this packet */
};

enum { BW_MOCK_PM4_CHECKED_WORDS = 8 };

/* One packet type. Layouts: ROCm's kfdtest packet structures (pm4_pkt_struct_*.h) and Mesa's sid.h. */
struct bw_mock_pm4 {
    const char *name;
    uint8_t opcode;
    uint8_t families; /* enum of registers.h */
    uint16_t count_min, count_max;
    uint32_t reserved[BW_MOCK_PM4_CHECKED_WORDS]; /* bits of each payload word that must be 0 */
    enum bw_mock_queue_progress (*run)(struct bw_mock_packet *packet);
};

/* NULL: the MEC does not know the opcode. */
const struct bw_mock_pm4 *bw_mock_pm4_find(uint32_t opcode, uint32_t families);

/* Fails the packet: text gets its name and place in front. */
enum bw_mock_queue_progress bw_mock_packet_fail(struct bw_mock_packet *packet, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The packet waits: the value at va does not compare as it is to. Returns BW_MOCK_QUEUE_BLOCKED. */
enum bw_mock_queue_progress bw_mock_packet_block(struct bw_mock_packet *packet, uint64_t va,
                                                 uint32_t function, uint64_t value, uint64_t reference);
/* A memory fault of the packet itself. */
enum bw_mock_queue_progress bw_mock_packet_fault(struct bw_mock_packet *packet,
                                                 const struct bw_mock_violation *violation);

/* Runs one indirect buffer inside an AQL queue's vendor packet as well: starts it. */
enum bw_mock_queue_progress bw_mock_pm4_start_indirect(struct bw_mock_packet *packet);
/* One packet of the indirect buffer that runs. */
enum bw_mock_queue_progress bw_mock_pm4_step_indirect(struct bw_mock_queue *queue);

/* pm4_memory.c, pm4_control.c: the packets. */
enum bw_mock_queue_progress bw_mock_pm4_write_data(struct bw_mock_packet *packet);
enum bw_mock_queue_progress bw_mock_pm4_copy_data(struct bw_mock_packet *packet);
enum bw_mock_queue_progress bw_mock_pm4_dma_data(struct bw_mock_packet *packet);
enum bw_mock_queue_progress bw_mock_pm4_release_mem(struct bw_mock_packet *packet);
enum bw_mock_queue_progress bw_mock_pm4_acquire_mem(struct bw_mock_packet *packet);
enum bw_mock_queue_progress bw_mock_pm4_wait_reg_mem(struct bw_mock_packet *packet);
enum bw_mock_queue_progress bw_mock_pm4_wait_reg_mem64(struct bw_mock_packet *packet);
enum bw_mock_queue_progress bw_mock_pm4_atomic_mem(struct bw_mock_packet *packet);
enum bw_mock_queue_progress bw_mock_pm4_nop(struct bw_mock_packet *packet);
enum bw_mock_queue_progress bw_mock_pm4_set_sh_reg(struct bw_mock_packet *packet);
enum bw_mock_queue_progress bw_mock_pm4_set_uconfig_reg(struct bw_mock_packet *packet);
enum bw_mock_queue_progress bw_mock_pm4_event_write(struct bw_mock_packet *packet);
enum bw_mock_queue_progress bw_mock_pm4_pred_exec(struct bw_mock_packet *packet);
enum bw_mock_queue_progress bw_mock_pm4_cond_exec(struct bw_mock_packet *packet);
enum bw_mock_queue_progress bw_mock_pm4_indirect_buffer(struct bw_mock_packet *packet);
enum bw_mock_queue_progress bw_mock_pm4_dispatch_direct(struct bw_mock_packet *packet);
enum bw_mock_queue_progress bw_mock_pm4_dispatch_indirect(struct bw_mock_packet *packet);

static inline uint64_t bw_mock_address(const uint32_t *words)
{
    return (uint64_t)words[1] << 32 | words[0];
}

#endif
