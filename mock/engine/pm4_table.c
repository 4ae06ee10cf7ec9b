/* The packets that the MEC knows. Sources: ROCT-Thunk-Interface
 * tests/kfdtest/include/pm4_pkt_struct_{ai,nv}.h and kfd_pm4_opcodes.h; Mesa src/amd/common/sid.h. Reserved
 * masks leave out what the two sources do not agree on. */
#include "base/bits.h"
#include "mock/engine/pm4.h"
#include "mock/engine/registers.h"

#define RDNA (BW_MOCK_GFX11 | BW_MOCK_GFX12)

static const struct bw_mock_pm4 packets[] = {
    {"NOP", 0x10, BW_MOCK_GFX_ALL, 0, 0x3fff, {0}, bw_mock_pm4_nop},
    {"DISPATCH_DIRECT", 0x15, BW_MOCK_GFX_ALL, 4, 4, {0}, bw_mock_pm4_dispatch_direct},
    {"DISPATCH_INDIRECT", 0x16, BW_MOCK_GFX_ALL, 3, 3, {0x3, 0xffff0000}, bw_mock_pm4_dispatch_indirect},
    {"ATOMIC_MEM", 0x1e, BW_MOCK_GFX_ALL, 8, 8, {0xf1fffc80, 0x3}, bw_mock_pm4_atomic_mem},
    {"COND_EXEC",
     0x22,
     BW_MOCK_GFX_ALL,
     4,
     4,
     {0x3, 0xffff0000, 0xf9ffffff, 0xffffc000},
     bw_mock_pm4_cond_exec},
    {"PRED_EXEC", 0x23, BW_MOCK_GFX_ALL, 1, 1, {0x00ffc000}, bw_mock_pm4_pred_exec},
    {"WRITE_DATA", 0x37, BW_MOCK_GFX_ALL, 4, 0x3fff, {0xf9eef0ff, 0x3}, bw_mock_pm4_write_data},
    {"WAIT_REG_MEM",
     0x3c,
     BW_MOCK_GFX_ALL,
     6,
     6,
     {0xf9ffff08, 0, 0, 0, 0, 0x7fff0000},
     bw_mock_pm4_wait_reg_mem},
    {"INDIRECT_BUFFER",
     0x3f,
     BW_MOCK_GFX_ALL,
     3,
     3,
     {0x3, 0xffff0000, 0xc0600000},
     bw_mock_pm4_indirect_buffer},
    {"COPY_DATA", 0x40, BW_MOCK_GFX_ALL, 5, 5, {0xd9ee90f0}, bw_mock_pm4_copy_data},
    {"EVENT_WRITE", 0x46, BW_MOCK_GFX_ALL, 1, 3, {0x7ffff0c0}, bw_mock_pm4_event_write},
    {"RELEASE_MEM", 0x49, RDNA, 7, 7, {0xa10000c0, 0x18fcffff}, bw_mock_pm4_release_mem},
    {"RELEASE_MEM", 0x49, BW_MOCK_GFX9, 7, 7, {0xd9c440c0, 0x18fcffff}, bw_mock_pm4_release_mem},
    {"DMA_DATA", 0x50, BW_MOCK_GFX_ALL, 6, 6, {0x19cf8ffe}, bw_mock_pm4_dma_data},
    {"ACQUIRE_MEM",
     0x58,
     RDNA,
     7,
     7,
     {0xffffffff, 0, 0, 0, 0xff000000, 0xffff0000, 0xfff80000},
     bw_mock_pm4_acquire_mem},
    {"ACQUIRE_MEM", 0x58, BW_MOCK_GFX9, 6, 6, {0, 0, 0, 0, 0xff000000, 0xffff0000}, bw_mock_pm4_acquire_mem},
    {"SET_SH_REG", 0x76, BW_MOCK_GFX_ALL, 2, 0x3fff, {0xffff0000}, bw_mock_pm4_set_sh_reg},
    {"SET_UCONFIG_REG", 0x79, BW_MOCK_GFX_ALL, 2, 0x3fff, {0xffff0000}, bw_mock_pm4_set_uconfig_reg},
    {"WAIT_REG_MEM64",
     0x93,
     BW_MOCK_GFX_ALL,
     8,
     8,
     {0xf9ffff08, 0x7, 0, 0, 0, 0, 0, 0x7fff0000},
     bw_mock_pm4_wait_reg_mem64},
};

const struct bw_mock_pm4 *bw_mock_pm4_find(uint32_t opcode, uint32_t families)
{
    for (size_t i = 0; i < BW_COUNT_OF(packets); i++) {
        if (packets[i].opcode == opcode && (packets[i].families & families))
            return &packets[i];
    }
    return NULL;
}
