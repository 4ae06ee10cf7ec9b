/* Command packets of the CPU's queues, ours to define: little-endian 32-bit words, a header word
 * {opcode[31:24], word count of the packet[15:0]}, then fields of one or two words. `null` speaks the same
 * language, so that what is measured there is what the host runs. A command buffer is packets back to back.
 */
#ifndef BW_DRIVERS_HOST_PACKET_H
#define BW_DRIVERS_HOST_PACKET_H

#include <string.h>

#include "drivers/driver.h"
#include "drivers/host/host.h"

enum bw_host_opcode {
    BW_HOST_OP_NOP = 0,
    BW_HOST_OP_KERNEL,
    BW_HOST_OP_COPY,
    BW_HOST_OP_WAIT,
    BW_HOST_OP_SIGNAL,
    BW_HOST_OP_TIMESTAMP,
    BW_HOST_OP_BARRIER,
    BW_HOST_OP_COUNT,
};

/* Packet sizes in words, header included. */
enum {
    BW_HOST_KERNEL_WORDS = 8,    /* kernel pointer, argument block address, group counts x y z */
    BW_HOST_COPY_WORDS = 7,      /* target, source, size in bytes */
    BW_HOST_WAIT_WORDS = 5,      /* address, value */
    BW_HOST_SIGNAL_WORDS = 6,    /* address, value, flags */
    BW_HOST_TIMESTAMP_WORDS = 3, /* address */
    BW_HOST_BARRIER_WORDS = 2,   /* enum bw_barrier_flags */
};

enum { BW_HOST_SIGNAL_INTERRUPT = 1 };

static inline uint32_t bw_host_header(enum bw_host_opcode opcode, uint32_t word_count)
{
    return (uint32_t)opcode << 24 | word_count;
}

static inline uint32_t bw_host_header_opcode(uint32_t header)
{
    return header >> 24;
}

static inline uint32_t bw_host_header_words(uint32_t header)
{
    return header & 0xffff;
}

/* A two-word field; packets are only 4-byte aligned. */
static inline uint64_t bw_host_field64(const uint32_t *words)
{
    uint64_t value;
    memcpy(&value, words, sizeof value);
    return value;
}

/* Encoders with the signatures that struct bw_driver_ops wants. */
int bw_host_encode_kernel(struct bw_queue *queue, struct bw_encoder *encoder, struct bw_kernel *kernel,
                          const struct bw_dispatch *dispatch, struct bw_err *err);
int bw_host_encode_copy(struct bw_queue *queue, struct bw_encoder *encoder, struct bw_operand target,
                        struct bw_operand source, uint64_t size_bytes, uint64_t *done_bytes);
int bw_host_encode_wait(struct bw_queue *queue, struct bw_encoder *encoder, struct bw_operand address,
                        struct bw_operand value);
int bw_host_encode_signal(struct bw_queue *queue, struct bw_encoder *encoder, struct bw_operand address,
                          struct bw_operand value, bool interrupt);
int bw_host_encode_timestamp(struct bw_queue *queue, struct bw_encoder *encoder, struct bw_operand address);
int bw_host_encode_barrier(struct bw_queue *queue, struct bw_encoder *encoder, uint32_t flags);
int bw_host_encode_end(struct bw_queue *queue, struct bw_encoder *encoder);
/* The argument block has no hidden part here: zeros. */
int bw_host_argument_block(struct bw_kernel *kernel, const struct bw_dispatch *dispatch,
                           struct bw_encoder *block, struct bw_err *err);

/* One look at a command buffer before it runs: 0, or -EINVAL when a packet is not one of ours or runs past
 * the end. */
int bw_host_packets_check(const uint32_t *words, uint32_t word_count);

#endif
