/* Encoders of the host's packets: see packet.h. */
#include "drivers/host/packet.h"

#include <assert.h>
#include <errno.h>

#include "base/bits.h"

/* Words that each packet must have, header included; NOP is any length. */
static const uint8_t packet_words[BW_HOST_OP_COUNT] = {
    [BW_HOST_OP_NOP] = 1,
    [BW_HOST_OP_KERNEL] = BW_HOST_KERNEL_WORDS,
    [BW_HOST_OP_COPY] = BW_HOST_COPY_WORDS,
    [BW_HOST_OP_WAIT] = BW_HOST_WAIT_WORDS,
    [BW_HOST_OP_SIGNAL] = BW_HOST_SIGNAL_WORDS,
    [BW_HOST_OP_TIMESTAMP] = BW_HOST_TIMESTAMP_WORDS,
    [BW_HOST_OP_BARRIER] = BW_HOST_BARRIER_WORDS,
};

static void packet_begin(struct bw_encoder *encoder, enum bw_host_opcode opcode)
{
    bw_encoder_word(encoder, bw_host_header(opcode, packet_words[opcode]));
    encoder->packets++;
}

static int launch_check(const struct bw_kernel *kernel, const struct bw_dispatch *dispatch,
                        struct bw_err *err)
{
    for (int i = 0; i < 3; i++) {
        if (dispatch->group_size[i] != 1) {
            bw_fail(err, -EINVAL, "host", "kernel %s: group size in dimension %d", kernel->info.name, i);
            bw_err_expected(err, "1: a workgroup is one call on the host");
            bw_err_observed(err, "%u", dispatch->group_size[i]);
            return -EINVAL;
        }
    }
    if (dispatch->dynamic_lds_bytes)
        return bw_fail(err, -EINVAL, "host", "kernel %s: the host has no dynamic group memory",
                       kernel->info.name);
    return 0;
}

int bw_host_encode_kernel(struct bw_queue *queue, struct bw_encoder *encoder, struct bw_kernel *kernel,
                          const struct bw_dispatch *dispatch, struct bw_err *err)
{
    assert(queue->kind == BW_QUEUE_COMPUTE);
    int rc = launch_check(kernel, dispatch, err);
    if (rc)
        return rc;
    packet_begin(encoder, BW_HOST_OP_KERNEL);
    bw_encoder_operand64(encoder, bw_operand_constant((uintptr_t)kernel), 0);
    bw_encoder_operand64(encoder, dispatch->argument_block, 0);
    for (int i = 0; i < 3; i++)
        bw_encoder_operand32(encoder, dispatch->group_count[i], 0, UINT32_MAX, 0);
    return encoder->failed;
}

int bw_host_encode_copy(struct bw_queue *queue, struct bw_encoder *encoder, struct bw_operand target,
                        struct bw_operand source, uint64_t size_bytes, uint64_t *done_bytes)
{
    uint64_t chunk_bytes =
        size_bytes < queue->device->caps.copy_bytes_max ? size_bytes : queue->device->caps.copy_bytes_max;
    assert(chunk_bytes > 0);
    packet_begin(encoder, BW_HOST_OP_COPY);
    bw_encoder_operand64(encoder, target, 0);
    bw_encoder_operand64(encoder, source, 0);
    bw_encoder_operand64(encoder, bw_operand_constant(chunk_bytes), 0);
    *done_bytes = chunk_bytes;
    return encoder->failed;
}

int bw_host_encode_wait(struct bw_queue *queue, struct bw_encoder *encoder, struct bw_operand address,
                        struct bw_operand value)
{
    packet_begin(encoder, BW_HOST_OP_WAIT);
    bw_encoder_operand64(encoder, address, 0);
    bw_encoder_operand64(encoder, value, 0);
    return encoder->failed;
}

int bw_host_encode_signal(struct bw_queue *queue, struct bw_encoder *encoder, struct bw_operand address,
                          struct bw_operand value, bool interrupt)
{
    packet_begin(encoder, BW_HOST_OP_SIGNAL);
    bw_encoder_operand64(encoder, address, 0);
    bw_encoder_operand64(encoder, value, 0);
    bw_encoder_word(encoder, interrupt ? BW_HOST_SIGNAL_INTERRUPT : 0);
    return encoder->failed;
}

int bw_host_encode_timestamp(struct bw_queue *queue, struct bw_encoder *encoder, struct bw_operand address)
{
    packet_begin(encoder, BW_HOST_OP_TIMESTAMP);
    bw_encoder_operand64(encoder, address, 0);
    return encoder->failed;
}

/* A queue of the host runs one packet after the other on coherent memory, so a barrier costs and does
 * nothing; it is written all the same, so that schedules can be counted on devices of this language. */
int bw_host_encode_barrier(struct bw_queue *queue, struct bw_encoder *encoder, uint32_t flags)
{
    packet_begin(encoder, BW_HOST_OP_BARRIER);
    bw_encoder_word(encoder, flags);
    encoder->cache_operations++;
    return encoder->failed;
}

int bw_host_encode_end(struct bw_queue *queue, struct bw_encoder *encoder)
{
    return encoder->failed;
}

int bw_host_argument_block(struct bw_kernel *kernel, const struct bw_dispatch *dispatch,
                           struct bw_encoder *block, struct bw_err *err)
{
    for (uint64_t i = 0; i < bw_div_up(kernel->info.argument_bytes, sizeof(uint32_t)); i++)
        bw_encoder_word(block, 0);
    return block->failed
               ? bw_fail(err, block->failed, "host", "argument block of kernel %s", kernel->info.name)
               : 0;
}

int bw_host_packets_check(const uint32_t *words, uint32_t word_count)
{
    for (uint32_t at = 0; at < word_count;) {
        uint32_t opcode = bw_host_header_opcode(words[at]), length = bw_host_header_words(words[at]);
        if (opcode >= BW_HOST_OP_COUNT || length == 0 || length > word_count - at)
            return -EINVAL;
        if (opcode != BW_HOST_OP_NOP && length != packet_words[opcode])
            return -EINVAL;
        at += length;
    }
    return 0;
}
