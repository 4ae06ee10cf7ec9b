/* SDMA builders: see sdma.h. */
#include "drivers/amd/sdma.h"

#include <string.h>

#include "base/bits.h"

/* FENCE.MTYPE 3 = uncached, so that a host poller sees the word (sdma_v6_0_ring_emit_fence). */
enum { FENCE_MTYPE_UNCACHED = 3, POLL_INTERVAL = 10, POLL_RETRY_FOREVER = 0xfff, FILL_SIZE_WORD = 2 };

uint64_t bw_amd_sdma_copy_bytes_max(uint32_t generation)
{
    return generation == BW_AMD_SDMA_4 ? BW_AMD_SDMA_4_COPY_BYTES_MAX : BW_AMD_SDMA_5_COPY_BYTES_MAX;
}

uint64_t bw_amd_sdma_fill_bytes_max(uint32_t generation)
{
    return generation == BW_AMD_SDMA_4 ? BW_AMD_SDMA_4_FILL_BYTES_MAX : BW_AMD_SDMA_5_FILL_BYTES_MAX;
}

void bw_amd_sdma_copy_linear(struct bw_encoder *encoder, uint32_t generation, struct bw_operand target,
                             struct bw_operand source, uint64_t size_bytes)
{
    assert(size_bytes >= 1 && size_bytes <= bw_amd_sdma_copy_bytes_max(generation));
    struct bw_amd_emit emit;
    bw_amd_emit_begin(&emit, BW_AMD_SDMA_OP_COPY_LINEAR, BW_AMD_SDMA_WORDS_COPY_LINEAR);
    bw_amd_emit_put(&emit, BW_AMD_SDMA_COPY_LINEAR_COUNT, (uint32_t)(size_bytes - 1));
    bw_amd_emit_operand64(&emit, BW_AMD_SDMA_COPY_LINEAR_SRC_ADDR_LO, source, 0);
    bw_amd_emit_operand64(&emit, BW_AMD_SDMA_COPY_LINEAR_DST_ADDR_LO, target, 0);
    bw_amd_emit_end(&emit, encoder);
}

void bw_amd_sdma_const_fill(struct bw_encoder *encoder, uint32_t generation, struct bw_operand target,
                            uint32_t word, uint64_t size_bytes)
{
    assert(size_bytes >= 4 && size_bytes % 4 == 0 && size_bytes <= bw_amd_sdma_fill_bytes_max(generation));
    struct bw_amd_emit emit;
    bw_amd_emit_begin(&emit, BW_AMD_SDMA_OP_CONST_FILL, BW_AMD_SDMA_WORDS_CONST_FILL);
    bw_amd_emit_put(&emit, BW_AMD_SDMA_CONST_FILL_FILLSIZE, FILL_SIZE_WORD);
    bw_amd_emit_operand64(&emit, BW_AMD_SDMA_CONST_FILL_DST_ADDR_LO, target, 0);
    bw_amd_emit_put(&emit, BW_AMD_SDMA_CONST_FILL_SRC_DATA, word);
    bw_amd_emit_put(&emit, BW_AMD_SDMA_CONST_FILL_COUNT, (uint32_t)(size_bytes - 1));
    bw_amd_emit_end(&emit, encoder);
}

void bw_amd_sdma_write_linear(struct bw_encoder *encoder, struct bw_operand target, const uint32_t *values,
                              uint32_t count)
{
    assert(count >= 1 && BW_AMD_SDMA_WORDS_WRITE_LINEAR + count <= BW_AMD_EMIT_WORDS_MAX);
    struct bw_amd_emit emit;
    bw_amd_emit_begin(&emit, BW_AMD_SDMA_OP_WRITE_LINEAR, BW_AMD_SDMA_WORDS_WRITE_LINEAR + count);
    bw_amd_emit_operand64(&emit, BW_AMD_SDMA_WRITE_LINEAR_DST_ADDR_LO, target, 0);
    bw_amd_emit_put(&emit, BW_AMD_SDMA_WRITE_LINEAR_COUNT, count - 1);
    for (uint32_t i = 0; i < count; i++)
        bw_amd_emit_put(&emit, BW_AMD_BITS(BW_AMD_SDMA_WORDS_WRITE_LINEAR + i, 0, 31), values[i]);
    bw_amd_emit_end(&emit, encoder);
}

void bw_amd_sdma_fence(struct bw_encoder *encoder, uint32_t generation, struct bw_operand address,
                       struct bw_operand data, unsigned shift)
{
    struct bw_amd_emit emit;
    bw_amd_emit_begin(&emit, BW_AMD_SDMA_OP_FENCE, BW_AMD_SDMA_WORDS_FENCE);
    if (generation == BW_AMD_SDMA_5)
        bw_amd_emit_put(&emit, BW_AMD_SDMA_FENCE_MTYPE, FENCE_MTYPE_UNCACHED);
    bw_amd_emit_operand64(&emit, BW_AMD_SDMA_FENCE_ADDR_LO, address, 0);
    bw_amd_emit_operand32(&emit, BW_AMD_SDMA_FENCE_DATA, data, shift);
    bw_amd_emit_end(&emit, encoder);
}

void bw_amd_sdma_trap(struct bw_encoder *encoder, uint32_t context)
{
    struct bw_amd_emit emit;
    bw_amd_emit_begin(&emit, BW_AMD_SDMA_OP_TRAP, BW_AMD_SDMA_WORDS_TRAP);
    bw_amd_emit_put(&emit, BW_AMD_SDMA_TRAP_INT_CONTEXT, context);
    bw_amd_emit_end(&emit, encoder);
}

void bw_amd_sdma_poll_memory(struct bw_encoder *encoder, struct bw_operand address, struct bw_operand value,
                             uint32_t mask)
{
    struct bw_amd_emit emit;
    bw_amd_emit_begin(&emit, BW_AMD_SDMA_OP_POLL_REGMEM, BW_AMD_SDMA_WORDS_POLL_REGMEM);
    bw_amd_emit_put(&emit, BW_AMD_SDMA_POLL_REGMEM_FUNC, BW_AMD_SDMA_FUNC_GREATER_OR_EQUAL);
    bw_amd_emit_put(&emit, BW_AMD_SDMA_POLL_REGMEM_MEM_POLL, 1);
    bw_amd_emit_operand64(&emit, BW_AMD_SDMA_POLL_REGMEM_ADDR_LO, address, 0);
    bw_amd_emit_operand32(&emit, BW_AMD_SDMA_POLL_REGMEM_VALUE, value, 0);
    bw_amd_emit_put(&emit, BW_AMD_SDMA_POLL_REGMEM_MASK, mask);
    bw_amd_emit_put(&emit, BW_AMD_SDMA_POLL_REGMEM_INTERVAL, POLL_INTERVAL);
    bw_amd_emit_put(&emit, BW_AMD_SDMA_POLL_REGMEM_RETRY_COUNT, POLL_RETRY_FOREVER);
    bw_amd_emit_end(&emit, encoder);
}

void bw_amd_sdma_timestamp(struct bw_encoder *encoder, struct bw_operand address)
{
    struct bw_amd_emit emit;
    bw_amd_emit_begin(&emit, BW_AMD_SDMA_OP_TIMESTAMP_GET_GLOBAL, BW_AMD_SDMA_WORDS_TIMESTAMP_GET_GLOBAL);
    bw_amd_emit_operand64(&emit, BW_AMD_SDMA_TIMESTAMP_GET_GLOBAL_WRITE_ADDR_LO, address, 0);
    bw_amd_emit_end(&emit, encoder);
}

void bw_amd_sdma_nop_words(uint32_t *words, uint32_t count)
{
    assert(count >= 1 && count - 1 <= bw_amd_bits_max(BW_AMD_SDMA_NOP_COUNT));
    memset(words, 0, count * sizeof *words);
    words[0] = BW_AMD_SDMA_OP_NOP | bw_amd_bits_pack(BW_AMD_SDMA_NOP_COUNT, count - 1);
}

void bw_amd_sdma_nop(struct bw_encoder *encoder, uint32_t words)
{
    assert(words >= 1 && words - 1 <= bw_amd_bits_max(BW_AMD_SDMA_NOP_COUNT));
    bw_encoder_word(encoder, BW_AMD_SDMA_OP_NOP | bw_amd_bits_pack(BW_AMD_SDMA_NOP_COUNT, words - 1));
    for (uint32_t i = 1; i < words; i++)
        bw_encoder_word(encoder, 0);
    encoder->packets++;
}

void bw_amd_sdma_pad(struct bw_encoder *encoder, uint32_t alignment_words)
{
    uint32_t words = (uint32_t)(bw_align_up(encoder->count, alignment_words) - encoder->count);
    if (words)
        bw_amd_sdma_nop(encoder, words);
}

void bw_amd_sdma_indirect(uint32_t words[BW_AMD_SDMA_IB_PACKET_WORDS], uint64_t address, uint32_t word_count)
{
    assert(address % (BW_AMD_SDMA_IB_ALIGNMENT_WORDS * 4) == 0);
    assert(word_count && word_count % BW_AMD_SDMA_IB_ALIGNMENT_WORDS == 0 &&
           word_count <= BW_AMD_SDMA_IB_WORDS_MAX);
    words[0] = BW_AMD_SDMA_OP_INDIRECT;
    words[1] = bw_lo32(address);
    words[2] = bw_hi32(address);
    words[3] = bw_amd_bits_pack(BW_AMD_SDMA_INDIRECT_IB_SIZE, word_count);
    words[4] = 0; /* no context save area: user queues are preempted between packets */
    words[5] = 0;
}
