/* PM4 builders: see pm4.h. */
#include "drivers/amd/pm4.h"

#include "base/bits.h"

/* Idle clocks between two reads of a polled word; the kernel's own waits use 4 to 10. */
enum { POLL_INTERVAL = 4, ACQUIRE_POLL_INTERVAL = 10 };

enum { DMA_SELECT_L2 = 3 }; /* DMA_DATA, PAL's MEC packet definitions */

static uint32_t pm4_header(uint32_t opcode, uint32_t word_count)
{
    assert(word_count >= 2);
    return bw_amd_bits_pack(BW_AMD_PM4_HEADER_TYPE, BW_AMD_PM4_TYPE_3) |
           bw_amd_bits_pack(BW_AMD_PM4_HEADER_COUNT, word_count - 2) |
           bw_amd_bits_pack(BW_AMD_PM4_HEADER_OPCODE, opcode);
}

static void pm4_begin(struct bw_amd_emit *emit, uint32_t opcode, uint32_t word_count)
{
    bw_amd_emit_begin(emit, pm4_header(opcode, word_count), word_count);
}

void bw_amd_pm4_set_sh_reg_operands(struct bw_encoder *encoder, uint32_t reg,
                                    const struct bw_amd_register_value *values, uint32_t count)
{
    uint32_t registers = 0;
    for (uint32_t i = 0; i < count; i++)
        registers += values[i].wide ? 2 : 1;
    assert(registers >= 1 && reg >= BW_AMD_PM4_SH_REG_FIRST && reg + registers <= BW_AMD_PM4_SH_REG_END);
    struct bw_amd_emit emit;
    pm4_begin(&emit, BW_AMD_PM4_OP_SET_SH_REG, BW_AMD_PM4_WORDS_SET_SH_REG + registers);
    bw_amd_emit_put(&emit, BW_AMD_PM4_SET_SH_REG_REG_OFFSET, reg - BW_AMD_PM4_SH_REG_FIRST);
    for (uint32_t i = 0, word = BW_AMD_PM4_WORDS_SET_SH_REG; i < count; word += values[i].wide ? 2 : 1, i++) {
        uint32_t bits = BW_AMD_BITS(word, 0, 31);
        if (values[i].wide)
            bw_amd_emit_operand64(&emit, bits, values[i].operand, values[i].shift);
        else if (values[i].operand.symbol == BW_SYMBOL_NONE)
            bw_amd_emit_put(&emit, bits, (uint32_t)(values[i].operand.addend >> values[i].shift));
        else
            bw_amd_emit_operand32(&emit, bits, values[i].operand, values[i].shift);
    }
    bw_amd_emit_end(&emit, encoder);
}

static void set_registers(struct bw_encoder *encoder, uint32_t opcode, uint32_t offset,
                          const uint32_t *values, uint32_t count)
{
    struct bw_amd_emit emit;
    pm4_begin(&emit, opcode, BW_AMD_PM4_WORDS_SET_SH_REG + count);
    bw_amd_emit_put(&emit, BW_AMD_PM4_SET_SH_REG_REG_OFFSET, offset);
    for (uint32_t i = 0; i < count; i++)
        bw_amd_emit_put(&emit, BW_AMD_BITS(BW_AMD_PM4_WORDS_SET_SH_REG + i, 0, 31), values[i]);
    bw_amd_emit_end(&emit, encoder);
}

void bw_amd_pm4_set_sh_reg(struct bw_encoder *encoder, uint32_t reg, const uint32_t *values, uint32_t count)
{
    assert(count >= 1 && reg >= BW_AMD_PM4_SH_REG_FIRST && reg + count <= BW_AMD_PM4_SH_REG_END);
    set_registers(encoder, BW_AMD_PM4_OP_SET_SH_REG, reg - BW_AMD_PM4_SH_REG_FIRST, values, count);
}

void bw_amd_pm4_set_uconfig_reg(struct bw_encoder *encoder, uint32_t reg, const uint32_t *values,
                                uint32_t count)
{
    assert(count >= 1 && reg >= BW_AMD_PM4_UCONFIG_REG_FIRST && reg + count <= BW_AMD_PM4_UCONFIG_REG_END);
    set_registers(encoder, BW_AMD_PM4_OP_SET_UCONFIG_REG, reg - BW_AMD_PM4_UCONFIG_REG_FIRST, values, count);
}

void bw_amd_pm4_dispatch_direct(struct bw_encoder *encoder, const struct bw_operand group_count[3],
                                uint32_t initiator)
{
    struct bw_amd_emit emit;
    pm4_begin(&emit, BW_AMD_PM4_OP_DISPATCH_DIRECT, BW_AMD_PM4_WORDS_DISPATCH_DIRECT);
    bw_amd_emit_operand32(&emit, BW_AMD_PM4_DISPATCH_DIRECT_DIM_X, group_count[0], 0);
    bw_amd_emit_operand32(&emit, BW_AMD_PM4_DISPATCH_DIRECT_DIM_Y, group_count[1], 0);
    bw_amd_emit_operand32(&emit, BW_AMD_PM4_DISPATCH_DIRECT_DIM_Z, group_count[2], 0);
    bw_amd_emit_put(&emit, BW_AMD_PM4_DISPATCH_DIRECT_DISPATCH_INITIATOR, initiator);
    bw_amd_emit_end(&emit, encoder);
}

void bw_amd_pm4_event_write(struct bw_encoder *encoder, uint32_t event_type, uint32_t event_index)
{
    struct bw_amd_emit emit;
    pm4_begin(&emit, BW_AMD_PM4_OP_EVENT_WRITE, BW_AMD_PM4_WORDS_EVENT_WRITE);
    bw_amd_emit_put(&emit, BW_AMD_PM4_EVENT_WRITE_EVENT_TYPE, event_type);
    bw_amd_emit_put(&emit, BW_AMD_PM4_EVENT_WRITE_EVENT_INDEX, event_index);
    bw_amd_emit_end(&emit, encoder);
}

/* All of memory: size in units of 256 bytes, so that 40 ones cover 48-bit addresses (nvd.h, soc15d.h). */
static void acquire_everything(struct bw_amd_emit *emit)
{
    bw_amd_emit_put(emit, BW_AMD_PM4_ACQUIRE_MEM_COHER_SIZE, UINT32_MAX);
    bw_amd_emit_put(emit, BW_AMD_PM4_ACQUIRE_MEM_COHER_SIZE_HI, UINT8_MAX);
    bw_amd_emit_put(emit, BW_AMD_PM4_ACQUIRE_MEM_POLL_INTERVAL, ACQUIRE_POLL_INTERVAL);
}

/* The kernel's own gfx9 sync (gfx_v9_0_emit_mem_sync) names the same actions. */
static void acquire_mem_gfx9(struct bw_amd_emit *emit, uint32_t cache)
{
    bool invalidate = cache & BW_AMD_CACHE_INVALIDATE,
         local = cache & (BW_AMD_CACHE_INVALIDATE | BW_AMD_CACHE_LOCAL);
    pm4_begin(emit, BW_AMD_PM4_OP_ACQUIRE_MEM_GFX9, BW_AMD_PM4_WORDS_ACQUIRE_MEM_GFX9);
    acquire_everything(emit);
    bw_amd_emit_put(emit, BW_AMD_PM4_ACQUIRE_MEM_GFX9_TC_WB_ACTION,
                    (cache & (BW_AMD_CACHE_WRITE_BACK | BW_AMD_CACHE_INVALIDATE)) != 0);
    bw_amd_emit_put(emit, BW_AMD_PM4_ACQUIRE_MEM_GFX9_TC_ACTION, invalidate);
    bw_amd_emit_put(emit, BW_AMD_PM4_ACQUIRE_MEM_GFX9_TCL1_ACTION, local);
    bw_amd_emit_put(emit, BW_AMD_PM4_ACQUIRE_MEM_GFX9_SH_KCACHE_ACTION, local);
    bw_amd_emit_put(emit, BW_AMD_PM4_ACQUIRE_MEM_GFX9_SH_ICACHE_ACTION, (cache & BW_AMD_CACHE_CODE) != 0);
}

static void acquire_mem_gcr(struct bw_amd_emit *emit, uint32_t cache)
{
    bool invalidate = cache & BW_AMD_CACHE_INVALIDATE,
         local = cache & (BW_AMD_CACHE_INVALIDATE | BW_AMD_CACHE_LOCAL);
    /* Invalidating the L2 without writing it back would lose dirty lines; the kernel never does one without
     * the other. */
    bool write_back = cache & (BW_AMD_CACHE_WRITE_BACK | BW_AMD_CACHE_INVALIDATE);
    pm4_begin(emit, BW_AMD_PM4_OP_ACQUIRE_MEM, BW_AMD_PM4_WORDS_ACQUIRE_MEM);
    acquire_everything(emit);
    bw_amd_emit_put(emit, BW_AMD_PM4_ACQUIRE_MEM_GLI_INV, (cache & BW_AMD_CACHE_CODE) != 0);
    bw_amd_emit_put(emit, BW_AMD_PM4_ACQUIRE_MEM_GLM_WB, write_back);
    bw_amd_emit_put(emit, BW_AMD_PM4_ACQUIRE_MEM_GLM_INV, invalidate);
    bw_amd_emit_put(emit, BW_AMD_PM4_ACQUIRE_MEM_GLK_INV, local);
    bw_amd_emit_put(emit, BW_AMD_PM4_ACQUIRE_MEM_GLV_INV, local);
    bw_amd_emit_put(emit, BW_AMD_PM4_ACQUIRE_MEM_GL1_INV, local);
    bw_amd_emit_put(emit, BW_AMD_PM4_ACQUIRE_MEM_GL2_INV, invalidate);
    bw_amd_emit_put(emit, BW_AMD_PM4_ACQUIRE_MEM_GL2_WB, write_back);
}

void bw_amd_pm4_acquire_mem_emit(struct bw_amd_emit *emit, uint32_t generation, uint32_t cache)
{
    assert(generation == BW_AMD_PM4_GCR || generation == BW_AMD_PM4_COHER);
    if (generation == BW_AMD_PM4_COHER)
        acquire_mem_gfx9(emit, cache);
    else
        acquire_mem_gcr(emit, cache);
}

void bw_amd_pm4_acquire_mem(struct bw_encoder *encoder, uint32_t generation, uint32_t cache)
{
    struct bw_amd_emit emit;
    bw_amd_pm4_acquire_mem_emit(&emit, generation, cache);
    bw_amd_emit_end(&emit, encoder);
    encoder->cache_operations++;
}

static void release_cache_gfx9(struct bw_amd_emit *emit, uint32_t cache)
{
    bool invalidate = cache & BW_AMD_CACHE_INVALIDATE, write_back = cache & BW_AMD_CACHE_WRITE_BACK;
    bw_amd_emit_put(emit, BW_AMD_PM4_RELEASE_MEM_GFX9_TC_WB_ACTION, write_back || invalidate);
    bw_amd_emit_put(emit, BW_AMD_PM4_RELEASE_MEM_GFX9_TCL1_ACTION, invalidate);
    bw_amd_emit_put(emit, BW_AMD_PM4_RELEASE_MEM_GFX9_TC_ACTION, invalidate);
    /* Write-back alone is asked for non-coherent lines (gfx_v9_0_ring_emit_fence,
     * AMDGPU_FENCE_FLAG_TC_WB_ONLY). */
    bw_amd_emit_put(emit, BW_AMD_PM4_RELEASE_MEM_GFX9_TC_NC_ACTION, write_back && !invalidate);
}

static void release_cache_gcr(struct bw_amd_emit *emit, uint32_t cache)
{
    bool invalidate = cache & BW_AMD_CACHE_INVALIDATE;
    bool write_back = cache & (BW_AMD_CACHE_WRITE_BACK | BW_AMD_CACHE_INVALIDATE);
    bw_amd_emit_put(emit, BW_AMD_PM4_RELEASE_MEM_GLM_WB, write_back);
    bw_amd_emit_put(emit, BW_AMD_PM4_RELEASE_MEM_GLM_INV, invalidate);
    bw_amd_emit_put(emit, BW_AMD_PM4_RELEASE_MEM_GLV_INV, invalidate);
    bw_amd_emit_put(emit, BW_AMD_PM4_RELEASE_MEM_GL1_INV, invalidate);
    bw_amd_emit_put(emit, BW_AMD_PM4_RELEASE_MEM_GL2_INV, invalidate);
    bw_amd_emit_put(emit, BW_AMD_PM4_RELEASE_MEM_GL2_WB, write_back);
    /* Inner caches before outer ones. */
    bw_amd_emit_put(emit, BW_AMD_PM4_RELEASE_MEM_SEQ, cache != 0);
}

void bw_amd_pm4_release_mem(struct bw_encoder *encoder, uint32_t generation,
                            const struct bw_amd_release *release)
{
    assert(generation == BW_AMD_PM4_GCR || generation == BW_AMD_PM4_COHER);
    assert((release->cache & BW_AMD_CACHE_CODE) == 0);
    _Static_assert((int)BW_AMD_PM4_RELEASE_MEM_ADDRESS_LO == (int)BW_AMD_PM4_RELEASE_MEM_GFX9_ADDRESS_LO,
                   "both generations place the sink alike");
    struct bw_amd_emit emit;
    pm4_begin(&emit, BW_AMD_PM4_OP_RELEASE_MEM, BW_AMD_PM4_WORDS_RELEASE_MEM);
    bw_amd_emit_put(&emit, BW_AMD_PM4_RELEASE_MEM_EVENT_TYPE, BW_AMD_EVENT_CACHE_FLUSH_AND_INV_TS);
    bw_amd_emit_put(&emit, BW_AMD_PM4_RELEASE_MEM_EVENT_INDEX, BW_AMD_EVENT_INDEX_END_OF_PIPE);
    if (generation == BW_AMD_PM4_COHER)
        release_cache_gfx9(&emit, release->cache);
    else
        release_cache_gcr(&emit, release->cache);
    bw_amd_emit_put(&emit, BW_AMD_PM4_RELEASE_MEM_INT_SEL, release->interrupt_select);
    bw_amd_emit_put(&emit, BW_AMD_PM4_RELEASE_MEM_DATA_SEL, release->data_select);
    bw_amd_emit_operand64(&emit, BW_AMD_PM4_RELEASE_MEM_ADDRESS_LO, release->address, 0);
    bw_amd_emit_operand64(&emit, BW_AMD_PM4_RELEASE_MEM_DATA_LO, release->data, 0);
    bw_amd_emit_put(&emit, BW_AMD_PM4_RELEASE_MEM_INT_CTXID, release->interrupt_context);
    bw_amd_emit_end(&emit, encoder);
    encoder->cache_operations += release->cache != 0;
}

void bw_amd_pm4_wait_mem(struct bw_encoder *encoder, uint32_t function, struct bw_operand address,
                         struct bw_operand reference, uint32_t mask)
{
    struct bw_amd_emit emit;
    pm4_begin(&emit, BW_AMD_PM4_OP_WAIT_REG_MEM, BW_AMD_PM4_WORDS_WAIT_REG_MEM);
    bw_amd_emit_put(&emit, BW_AMD_PM4_WAIT_REG_MEM_FUNCTION, function);
    bw_amd_emit_put(&emit, BW_AMD_PM4_WAIT_REG_MEM_MEM_SPACE, BW_AMD_WAIT_SPACE_MEMORY);
    bw_amd_emit_operand64(&emit, BW_AMD_PM4_WAIT_REG_MEM_POLL_ADDR_LO, address, 0);
    bw_amd_emit_operand32(&emit, BW_AMD_PM4_WAIT_REG_MEM_REFERENCE, reference, 0);
    bw_amd_emit_put(&emit, BW_AMD_PM4_WAIT_REG_MEM_MASK, mask);
    bw_amd_emit_put(&emit, BW_AMD_PM4_WAIT_REG_MEM_POLL_INTERVAL, POLL_INTERVAL);
    bw_amd_emit_end(&emit, encoder);
}

void bw_amd_pm4_wait_mem64(struct bw_encoder *encoder, uint32_t function, struct bw_operand address,
                           struct bw_operand reference, uint64_t mask)
{
    struct bw_amd_emit emit;
    pm4_begin(&emit, BW_AMD_PM4_OP_WAIT_REG_MEM64, BW_AMD_PM4_WORDS_WAIT_REG_MEM64);
    bw_amd_emit_put(&emit, BW_AMD_PM4_WAIT_REG_MEM64_FUNCTION, function);
    bw_amd_emit_put(&emit, BW_AMD_PM4_WAIT_REG_MEM64_MEM_SPACE, BW_AMD_WAIT_SPACE_MEMORY);
    bw_amd_emit_operand64(&emit, BW_AMD_PM4_WAIT_REG_MEM64_POLL_ADDR_LO, address, 0);
    bw_amd_emit_operand64(&emit, BW_AMD_PM4_WAIT_REG_MEM64_REFERENCE_LO, reference, 0);
    bw_amd_emit_operand64(&emit, BW_AMD_PM4_WAIT_REG_MEM64_MASK_LO, bw_operand_constant(mask), 0);
    bw_amd_emit_put(&emit, BW_AMD_PM4_WAIT_REG_MEM64_POLL_INTERVAL, POLL_INTERVAL);
    bw_amd_emit_end(&emit, encoder);
}

void bw_amd_pm4_write_data(struct bw_encoder *encoder, struct bw_operand address, const uint32_t *values,
                           uint32_t count)
{
    assert(count >= 1 && BW_AMD_PM4_WORDS_WRITE_DATA + count <= BW_AMD_EMIT_WORDS_MAX);
    struct bw_amd_emit emit;
    pm4_begin(&emit, BW_AMD_PM4_OP_WRITE_DATA, BW_AMD_PM4_WORDS_WRITE_DATA + count);
    bw_amd_emit_put(&emit, BW_AMD_PM4_WRITE_DATA_DST_SEL, BW_AMD_SELECT_MEMORY);
    bw_amd_emit_put(&emit, BW_AMD_PM4_WRITE_DATA_WR_CONFIRM, 1);
    bw_amd_emit_operand64(&emit, BW_AMD_PM4_WRITE_DATA_DST_ADDR_LO, address, 0);
    for (uint32_t i = 0; i < count; i++)
        bw_amd_emit_put(&emit, BW_AMD_BITS(BW_AMD_PM4_WORDS_WRITE_DATA + i, 0, 31), values[i]);
    bw_amd_emit_end(&emit, encoder);
}

void bw_amd_pm4_copy_data(struct bw_encoder *encoder, struct bw_operand target, struct bw_operand source,
                          uint32_t size_bytes)
{
    assert(size_bytes == 4 || size_bytes == 8);
    struct bw_amd_emit emit;
    pm4_begin(&emit, BW_AMD_PM4_OP_COPY_DATA, BW_AMD_PM4_WORDS_COPY_DATA);
    bw_amd_emit_put(&emit, BW_AMD_PM4_COPY_DATA_SRC_SEL, BW_AMD_SELECT_L2);
    bw_amd_emit_put(&emit, BW_AMD_PM4_COPY_DATA_DST_SEL, BW_AMD_SELECT_L2);
    bw_amd_emit_put(&emit, BW_AMD_PM4_COPY_DATA_COUNT_SEL, size_bytes == 8);
    bw_amd_emit_put(&emit, BW_AMD_PM4_COPY_DATA_WR_CONFIRM, 1);
    bw_amd_emit_operand64(&emit, BW_AMD_PM4_COPY_DATA_SRC_LO, source, 0);
    bw_amd_emit_operand64(&emit, BW_AMD_PM4_COPY_DATA_DST_LO, target, 0);
    bw_amd_emit_end(&emit, encoder);
}

void bw_amd_pm4_dma_data(struct bw_encoder *encoder, struct bw_operand target, struct bw_operand source,
                         uint32_t size_bytes)
{
    assert(size_bytes >= 1 && size_bytes <= BW_AMD_PM4_DMA_BYTES_MAX);
    struct bw_amd_emit emit;
    pm4_begin(&emit, BW_AMD_PM4_OP_DMA_DATA, BW_AMD_PM4_WORDS_DMA_DATA);
    bw_amd_emit_put(&emit, BW_AMD_PM4_DMA_DATA_SRC_SEL, DMA_SELECT_L2);
    bw_amd_emit_put(&emit, BW_AMD_PM4_DMA_DATA_DST_SEL, DMA_SELECT_L2);
    bw_amd_emit_put(&emit, BW_AMD_PM4_DMA_DATA_CP_SYNC, 1);
    bw_amd_emit_operand64(&emit, BW_AMD_PM4_DMA_DATA_SRC_LO_OR_DATA, source, 0);
    bw_amd_emit_operand64(&emit, BW_AMD_PM4_DMA_DATA_DST_LO, target, 0);
    bw_amd_emit_put(&emit, BW_AMD_PM4_DMA_DATA_BYTE_COUNT, size_bytes);
    bw_amd_emit_end(&emit, encoder);
}

void bw_amd_pm4_cond_exec(struct bw_encoder *encoder, struct bw_operand address, uint32_t words)
{
    struct bw_amd_emit emit;
    pm4_begin(&emit, BW_AMD_PM4_OP_COND_EXEC, BW_AMD_PM4_WORDS_COND_EXEC);
    bw_amd_emit_operand64(&emit, BW_AMD_PM4_COND_EXEC_ADDR_LO, address, 0);
    bw_amd_emit_put(&emit, BW_AMD_PM4_COND_EXEC_EXEC_COUNT, words);
    bw_amd_emit_end(&emit, encoder);
}

void bw_amd_pm4_pred_exec(struct bw_encoder *encoder, uint32_t xcc_mask, uint32_t words)
{
    struct bw_amd_emit emit;
    pm4_begin(&emit, BW_AMD_PM4_OP_PRED_EXEC, BW_AMD_PM4_WORDS_PRED_EXEC);
    bw_amd_emit_put(&emit, BW_AMD_PM4_PRED_EXEC_EXEC_COUNT, words);
    bw_amd_emit_put(&emit, BW_AMD_PM4_PRED_EXEC_VIRTUAL_XCC_ID_SELECT, xcc_mask);
    bw_amd_emit_end(&emit, encoder);
}

void bw_amd_pm4_nop(struct bw_encoder *encoder, uint32_t words)
{
    /* A count of all ones means a one-word packet, so the longest counted NOP has one word less. */
    assert(words >= 2 && words - 2 < BW_AMD_PM4_COUNT_MAX);
    bw_encoder_word(encoder, pm4_header(BW_AMD_PM4_OP_NOP, words));
    for (uint32_t i = 1; i < words; i++)
        bw_encoder_word(encoder, 0);
    encoder->packets++;
}

void bw_amd_pm4_pad(struct bw_encoder *encoder, uint32_t alignment_words)
{
    assert(bw_is_pow2(alignment_words) && alignment_words >= 2);
    uint32_t words = (uint32_t)(bw_align_up(encoder->count, alignment_words) - encoder->count);
    if (words == 1)
        words += alignment_words;
    if (words)
        bw_amd_pm4_nop(encoder, words);
}

void bw_amd_pm4_indirect_buffer(uint32_t words[BW_AMD_PM4_IB_PACKET_WORDS], uint64_t address,
                                uint32_t word_count)
{
    assert(address % 4 == 0 && word_count >= 1 && word_count <= BW_AMD_PM4_IB_WORDS_MAX);
    words[0] = pm4_header(BW_AMD_PM4_OP_INDIRECT_BUFFER, BW_AMD_PM4_WORDS_INDIRECT_BUFFER);
    words[1] = bw_lo32(address);
    words[2] = bw_hi32(address);
    words[3] = bw_amd_bits_pack(BW_AMD_PM4_INDIRECT_BUFFER_IB_SIZE, word_count) |
               bw_amd_bits_pack(BW_AMD_PM4_INDIRECT_BUFFER_VALID, 1);
}
