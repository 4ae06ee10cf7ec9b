/* Sources: ROCR-Runtime core/inc/sdma_registers.h, ROCT kfdtest sdma_pkt_struct.h, Mesa sid.h
 * (SDMA_OPCODE_*). Counts are in words; reserved bits as both name them.
 *
 * How much one packet moves: ROCr's GpuAgent::CreateBlitSdma sends copies of up to 0x3fffffff bytes to gfx90a
 * and to gfx11 and gfx12, and Mesa's ac_emit_sdma_constant_fill counts fills in 30 bits from SDMA 6 on. Of
 * SDMA 4.4, which all of this mock's gfx9 chips have, amdgpu says the same ("drm/amdgpu/sdma4.0: adjust SDMA
 * limits": 1 << 22 before 4.4, 1 << 30 since). Mesa keeps its copies 256 bytes shorter
 * (SDMA_V5_2_COPY_MAX_BYTES), for what engines before SDMA 4 did with the last 255 (amdgpu sdma_v3_0.c: "not
 * 0x3fffff due to HW limitation"); ROCr's clients show that these do not. */
#include "base/bits.h"
#include "mock/engine/registers.h"
#include "mock/engine/sdma.h"

#define RDNA (BW_MOCK_GFX11 | BW_MOCK_GFX12)

enum { COPY_BYTES_MAX = 1 << 30, FILL_BYTES_MAX = 1 << 30 };

static const struct bw_mock_sdma packets[] = {
    {"NOP", 0, 0, BW_MOCK_GFX_ALL, 1, {0xc0000000}, 0, bw_mock_sdma_nop},
    {"COPY_LINEAR", 1, 0, RDNA, 7, {0xf5fa0000, 0, 0xe0e0ffff}, COPY_BYTES_MAX, bw_mock_sdma_copy_linear},
    {"COPY_LINEAR",
     1,
     0,
     BW_MOCK_GFX9,
     7,
     {0xf7fa0000, 0, 0xfcfcffff},
     COPY_BYTES_MAX,
     bw_mock_sdma_copy_linear},
    {"WRITE_LINEAR",
     2,
     0,
     BW_MOCK_GFX_ALL,
     4,
     {0xfffa0000, 0x3, 0, 0xe0f00000},
     0,
     bw_mock_sdma_write_linear},
    {"INDIRECT", 4, 0, BW_MOCK_GFX_ALL, 6, {0x7ff00000, 0x1f, 0, 0xfff00000}, 0, bw_mock_sdma_indirect},
    {"FENCE", 5, 0, RDNA, 4, {0xe8200000, 0x3}, 0, bw_mock_sdma_fence},
    {"FENCE", 5, 0, BW_MOCK_GFX9, 4, {0xffff0000, 0x3}, 0, bw_mock_sdma_fence},
    {"TRAP", 6, 0, BW_MOCK_GFX_ALL, 2, {0xffff0000, 0xf0000000}, 0, bw_mock_sdma_trap},
    {"POLL_REGMEM",
     8,
     0,
     BW_MOCK_GFX_ALL,
     6,
     {0x03ff0000, 0x3, 0, 0, 0, 0xf0000000},
     0,
     bw_mock_sdma_poll_regmem},
    {"COND_EXE", 9, 0, BW_MOCK_GFX_ALL, 5, {0x60ff0000, 0x3, 0, 0, 0xffffc000}, 0, bw_mock_sdma_cond_exe},
    {"ATOMIC",
     10,
     0,
     BW_MOCK_GFX_ALL,
     8,
     {0x01fa0000, 0x3, 0, 0, 0, 0, 0, 0xffffe000},
     0,
     bw_mock_sdma_atomic},
    {"CONST_FILL", 11, 0, BW_MOCK_GFX_ALL, 5, {0x3ffc0000}, FILL_BYTES_MAX, bw_mock_sdma_const_fill},
    {"TIMESTAMP_GET_GLOBAL", 13, 2, BW_MOCK_GFX_ALL, 3, {0xffff0000, 0x7}, 0, bw_mock_sdma_timestamp},
    {"GCR_REQ", 17, 0, RDNA, 5, {0xffff0000}, 0, bw_mock_sdma_gcr},
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
