/* Source: Mesa, src/amd/registers/{gfx9,gfx11,gfx12}.json and the amdgfxregs.h made from them: byte address /
 * 4, mask = the fields that the database lists. */
#include <stddef.h>

#include "base/bits.h"
#include "mock/engine/registers.h"

#define ALL 0xffffffffu

static const struct bw_mock_register registers[] = {
    {"COMPUTE_DISPATCH_INITIATOR", 0x2e00, 1, 0x0003ec7f, BW_MOCK_GFX_ALL},
    {"COMPUTE_DIM", 0x2e01, 3, ALL, BW_MOCK_GFX_ALL},
    {"COMPUTE_START", 0x2e04, 3, ALL, BW_MOCK_GFX_ALL},
    {"COMPUTE_NUM_THREAD", 0x2e07, 3, ALL, BW_MOCK_GFX_ALL},
    {"COMPUTE_PIPELINESTAT_ENABLE", 0x2e0a, 1, 0x1, BW_MOCK_GFX_ALL},
    {"COMPUTE_PERFCOUNT_ENABLE", 0x2e0b, 1, 0x1, BW_MOCK_GFX_ALL},
    {"COMPUTE_PGM_LO", 0x2e0c, 1, ALL, BW_MOCK_GFX_ALL},
    {"COMPUTE_PGM_HI", 0x2e0d, 1, 0xff, BW_MOCK_GFX_ALL},
    {"COMPUTE_DISPATCH_PKT_ADDR_LO", 0x2e0e, 1, ALL, BW_MOCK_GFX_ALL},
    {"COMPUTE_DISPATCH_PKT_ADDR_HI", 0x2e0f, 1, 0xff, BW_MOCK_GFX_ALL},
    {"COMPUTE_DISPATCH_SCRATCH_BASE_LO", 0x2e10, 1, ALL, BW_MOCK_GFX_ALL},
    {"COMPUTE_DISPATCH_SCRATCH_BASE_HI", 0x2e11, 1, 0xff, BW_MOCK_GFX_ALL},
    {"COMPUTE_PGM_RSRC1", 0x2e12, 1, 0xe7ffffff, BW_MOCK_GFX9},
    {"COMPUTE_PGM_RSRC1", 0x2e12, 1, 0xe5bfffff, BW_MOCK_GFX11 | BW_MOCK_GFX12},
    {"COMPUTE_PGM_RSRC2", 0x2e13, 1, 0x7fffffff, BW_MOCK_GFX_ALL},
    {"COMPUTE_VMID", 0x2e14, 1, 0xf, BW_MOCK_GFX_ALL},
    {"COMPUTE_RESOURCE_LIMITS", 0x2e15, 1, 0x07fff3ff, BW_MOCK_GFX_ALL},
    {"COMPUTE_STATIC_THREAD_MGMT_SE0", 0x2e16, 2, ALL, BW_MOCK_GFX_ALL},
    {"COMPUTE_TMPRING_SIZE", 0x2e18, 1, 0x01ffffff, BW_MOCK_GFX9},
    {"COMPUTE_TMPRING_SIZE", 0x2e18, 1, 0x07ffffff, BW_MOCK_GFX11},
    {"COMPUTE_TMPRING_SIZE", 0x2e18, 1, 0x3fffffff, BW_MOCK_GFX12},
    {"COMPUTE_STATIC_THREAD_MGMT_SE2", 0x2e19, 2, ALL, BW_MOCK_GFX_ALL},
    {"COMPUTE_RESTART", 0x2e1b, 3, ALL, BW_MOCK_GFX_ALL},
    {"COMPUTE_THREAD_TRACE_ENABLE", 0x2e1e, 1, 0x1, BW_MOCK_GFX_ALL},
    {"COMPUTE_MISC_RESERVED", 0x2e1f, 1, 0x1f, BW_MOCK_GFX_ALL},
    {"COMPUTE_DISPATCH_ID", 0x2e20, 1, ALL, BW_MOCK_GFX_ALL},
    {"COMPUTE_THREADGROUP_ID", 0x2e21, 1, ALL, BW_MOCK_GFX_ALL},
    {"COMPUTE_REQ_CTRL", 0x2e22, 1, 0x000fffff, BW_MOCK_GFX11 | BW_MOCK_GFX12},
    {"COMPUTE_USER_ACCUM", 0x2e24, 4, 0x7f, BW_MOCK_GFX11 | BW_MOCK_GFX12},
    {"COMPUTE_PGM_RSRC3", 0x2e28, 1, 0x80000fff, BW_MOCK_GFX11 | BW_MOCK_GFX12},
    {"COMPUTE_DDID_INDEX", 0x2e29, 1, 0x7ff, BW_MOCK_GFX11 | BW_MOCK_GFX12},
    {"COMPUTE_SHADER_CHKSUM", 0x2e2a, 1, ALL, BW_MOCK_GFX11 | BW_MOCK_GFX12},
    {"COMPUTE_STATIC_THREAD_MGMT_SE4", 0x2e2b, 4, ALL, BW_MOCK_GFX11 | BW_MOCK_GFX12},
    {"COMPUTE_PGM_RSRC3", 0x2e2d, 1, 0x0001003f, BW_MOCK_GFX9},
    {"COMPUTE_DISPATCH_INTERLEAVE", 0x2e2f, 1, 0x3ff, BW_MOCK_GFX11 | BW_MOCK_GFX12},
    {"COMPUTE_USER_DATA", 0x2e40, 16, ALL, BW_MOCK_GFX_ALL},
    {"COMPUTE_DISPATCH_TUNNEL", 0x2e7d, 1, 0x3ff, BW_MOCK_GFX11 | BW_MOCK_GFX12},
    {"GRBM_GFX_INDEX", 0xc200, 1, 0xffffffff, BW_MOCK_GFX_ALL},
    {"SQ_THREAD_TRACE_USERDATA", 0xc340, 8, ALL, BW_MOCK_GFX_ALL},
    {"TA_CS_BC_BASE_ADDR", 0xc380, 1, ALL, BW_MOCK_GFX_ALL},
    {"TA_CS_BC_BASE_ADDR_HI", 0xc381, 1, 0xff, BW_MOCK_GFX_ALL},
};

uint32_t bw_mock_family(const struct bw_mock_chip *chip)
{
    if (chip->gc.major < 10)
        return BW_MOCK_GFX9;
    return chip->gc.major < 12 ? BW_MOCK_GFX11 : BW_MOCK_GFX12;
}

const struct bw_mock_register *bw_mock_register_find(const struct bw_mock_chip *chip, uint32_t address)
{
    uint32_t family = bw_mock_family(chip);
    for (size_t i = 0; i < BW_COUNT_OF(registers); i++) {
        const struct bw_mock_register *row = &registers[i];
        if ((row->families & family) && address - row->address < row->count)
            return row;
    }
    return NULL;
}
