/* The registers that a compute queue may write or read, by family. */
#ifndef BW_MOCK_ENGINE_REGISTERS_H
#define BW_MOCK_ENGINE_REGISTERS_H

#include <stdint.h>

#include "mock/chip.h"

/* Families that differ here. */
enum { BW_MOCK_GFX9 = 1, BW_MOCK_GFX11 = 2, BW_MOCK_GFX12 = 4, BW_MOCK_GFX_ALL = 7 };

struct bw_mock_register {
    const char *name;
    uint32_t address; /* in dwords */
    uint32_t count;   /* consecutive registers of this kind */
    uint32_t mask;    /* bits that exist; setting another is an error */
    uint32_t families;
};

/* Indices into struct bw_mock_queue's sh[], named as Mesa's register database names them. */
enum bw_mock_sh {
    BW_MOCK_COMPUTE_START_X = 0x2e04 - 0x2c00,
    BW_MOCK_COMPUTE_NUM_THREAD_X = 0x2e07 - 0x2c00,
    BW_MOCK_COMPUTE_PGM_LO = 0x2e0c - 0x2c00,
    BW_MOCK_COMPUTE_PGM_HI = 0x2e0d - 0x2c00,
    BW_MOCK_COMPUTE_DISPATCH_SCRATCH_BASE_LO = 0x2e10 - 0x2c00,
    BW_MOCK_COMPUTE_DISPATCH_SCRATCH_BASE_HI = 0x2e11 - 0x2c00,
    BW_MOCK_COMPUTE_PGM_RSRC1 = 0x2e12 - 0x2c00,
    BW_MOCK_COMPUTE_PGM_RSRC2 = 0x2e13 - 0x2c00,
    BW_MOCK_COMPUTE_TMPRING_SIZE = 0x2e18 - 0x2c00,
    BW_MOCK_COMPUTE_RESTART_X = 0x2e1b - 0x2c00,
    BW_MOCK_COMPUTE_PGM_RSRC3 = 0x2e28 - 0x2c00,      /* gfx10 and later */
    BW_MOCK_COMPUTE_PGM_RSRC3_GFX9 = 0x2e2d - 0x2c00, /* gfx90a and later */
    BW_MOCK_COMPUTE_USER_DATA_0 = 0x2e40 - 0x2c00,
};

uint32_t bw_mock_family(const struct bw_mock_chip *chip);
/* The register at a dword address of the SH or UCONFIG space; NULL: none that a compute queue may touch. */
const struct bw_mock_register *bw_mock_register_find(const struct bw_mock_chip *chip, uint32_t address);

/* Memory-mapped registers that queues poll or write: the host data path's flush (nbio_4_3_0, segment 2 base
 * 0xd20). */
enum { BW_MOCK_HDP_FLUSH_REQ = 0xd20 + 0x106, BW_MOCK_HDP_FLUSH_DONE = 0xd20 + 0x107 };

#endif
