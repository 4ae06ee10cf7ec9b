/* Sources: ROCR-Runtime core/inc/sdma_registers.h, ROCT kfdtest sdma_pkt_struct.h, Mesa sid.h (SDMA_OPCODE_*,
 * the limits of a copy). Counts are in words; reserved bits as both name them. SDMA 4 (gfx9) counts 22 bits
 * of bytes, 5 and later 30. */
#include "base/bits.h"
#include "mock/engine/registers.h"
#include "mock/engine/sdma.h"

#define RDNA (BW_MOCK_GFX11 | BW_MOCK_GFX12)

static const struct bw_mock_sdma packets[] = {
    {"NOP", 0, 0, BW_MOCK_GFX_ALL, 1, {0xc0000000}, bw_mock_sdma_nop},
    {"COPY_LINEAR", 1, 0, RDNA, 7, {0xf5fa0000, 0xc0000000, 0xe0e0ffff}, bw_mock_sdma_copy_linear},
    {"COPY_LINEAR", 1, 0, BW_MOCK_GFX9, 7, {0xf7fa0000, 0xffc00000, 0xfcfcffff}, bw_mock_sdma_copy_linear},
    {"WRITE_LINEAR", 2, 0, BW_MOCK_GFX_ALL, 4, {0xfffa0000, 0x3, 0, 0xe0f00000}, bw_mock_sdma_write_linear},
    {"INDIRECT", 4, 0, BW_MOCK_GFX_ALL, 6, {0x7ff00000, 0x1f, 0, 0xfff00000}, bw_mock_sdma_indirect},
    {"FENCE", 5, 0, RDNA, 4, {0xe8200000, 0x3}, bw_mock_sdma_fence},
    {"FENCE", 5, 0, BW_MOCK_GFX9, 4, {0xffff0000, 0x3}, bw_mock_sdma_fence},
    {"TRAP", 6, 0, BW_MOCK_GFX_ALL, 2, {0xffff0000, 0xf0000000}, bw_mock_sdma_trap},
    {"POLL_REGMEM",
     8,
     0,
     BW_MOCK_GFX_ALL,
     6,
     {0x03ff0000, 0x3, 0, 0, 0, 0xf0000000},
     bw_mock_sdma_poll_regmem},
    {"COND_EXE", 9, 0, BW_MOCK_GFX_ALL, 5, {0x60ff0000, 0x3, 0, 0, 0xffffc000}, bw_mock_sdma_cond_exe},
    {"ATOMIC", 10, 0, BW_MOCK_GFX_ALL, 8, {0x01fa0000, 0x3, 0, 0, 0, 0, 0, 0xffffe000}, bw_mock_sdma_atomic},
    {"CONST_FILL", 11, 0, RDNA, 5, {0x3ffc0000, 0, 0, 0, 0xc0000000}, bw_mock_sdma_const_fill},
    {"CONST_FILL", 11, 0, BW_MOCK_GFX9, 5, {0x3ffc0000, 0, 0, 0, 0xffc00000}, bw_mock_sdma_const_fill},
    {"TIMESTAMP_GET_GLOBAL", 13, 2, BW_MOCK_GFX_ALL, 3, {0xffff0000, 0x7}, bw_mock_sdma_timestamp},
    {"GCR_REQ", 17, 0, RDNA, 5, {0xffff0000}, bw_mock_sdma_gcr},
};

const struct bw_mock_sdma *bw_mock_sdma_find(uint32_t opcode, uint32_t sub_opcode, uint32_t families)
{
    for (size_t i = 0; i < BW_COUNT_OF(packets); i++) {
        if (packets[i].opcode == opcode && packets[i].sub_opcode == sub_opcode &&
            (packets[i].families & families))
            return &packets[i];
    }
    return NULL;
}
