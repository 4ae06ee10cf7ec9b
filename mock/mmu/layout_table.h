/* Where the fields of entries lie, by generation, from umr's decode_pde_entry.c and decode_pte_entry.c (GFX9,
 * GFX11, GFX12), which name the fields; bits that they and the formats in tinygrad/7900xtx docs/VM.md name
 * neither as a field nor as software's are reserved. In all of them: V 0, S 1, C 2, and in pages Z 3, X 4, R
 * 5, W 6, fragment 11:7, address 47:12; in directory entries the address of a table, 47:6. */
#ifndef BW_MOCK_MMU_LAYOUT_TABLE_H
#define BW_MOCK_MMU_LAYOUT_TABLE_H

#include "mock/mmu/walk.h"

#define BITS(high, low) ((~0ull >> (63 - (high))) & (~0ull << (low)))
#define BIT(number)     (1ull << (number))

struct bw_mock_mmu_layout {
    uint64_t page;       /* in a directory: this entry is a page; on gfx12 in every page */
    uint64_t further;    /* in a page table: this entry leads to one more table; 0: !page does */
    uint64_t offset;     /* TFS in PDE0: such tables lie relative to the page table; 0: not known */
    uint64_t prt;        /* T */
    uint32_t mtype;      /* low bit of the field */
    uint32_t mtype_bits; /* its width; values above UC are reserved */
    uint32_t block;      /* low bit of the block fragment size, 5 bits */
    uint32_t address_bits;
    uint64_t reserved_directory, reserved_page, reserved_further;
};

static const struct bw_mock_mmu_layout bw_mock_mmu_layouts[BW_MOCK_MMU_GENERATION_COUNT] = {
    [BW_MOCK_MMU_GFX9_4] =
        {
            .page = BIT(54),
            .further = BIT(56),
            .prt = BIT(51),
            .mtype = 57,
            .mtype_bits = 2,
            .block = 59,
            .address_bits = 48,
            .reserved_directory = BITS(58, 55) | BITS(53, 48) | BITS(5, 3),
            .reserved_page = BITS(63, 59) | BITS(50, 48),
            .reserved_further = BITS(58, 57) | BITS(55, 48) | BITS(5, 3),
        },
    [BW_MOCK_MMU_GFX11] =
        {
            .page = BIT(54),
            .further = BIT(56),
            .offset = BIT(57),
            .prt = BIT(51),
            .mtype = 48,
            .mtype_bits = 3,
            .block = 59,
            .address_bits = 44,
            .reserved_directory = BITS(56, 55) | BITS(53, 51) | BITS(5, 3),
            .reserved_page = BITS(63, 59),
            .reserved_further = BITS(55, 51) | BITS(5, 3),
        },
    [BW_MOCK_MMU_GFX12] =
        {
            .page = BIT(63),
            .offset = BIT(56),
            .prt = BIT(56),
            .mtype = 54,
            .mtype_bits = 2,
            .block = 58,
            .address_bits = 44,
            .reserved_directory = BIT(57) | BITS(53, 48) | BITS(5, 3),
            .reserved_page = BITS(62, 59) | BITS(51, 48),
            .reserved_further = BIT(57) | BITS(53, 48) | BITS(5, 3),
        },
};

enum {
    BW_MOCK_MMU_V = 1 << 0,
    BW_MOCK_MMU_S = 1 << 1,
    BW_MOCK_MMU_C = 1 << 2,
    BW_MOCK_MMU_Z = 1 << 3,
    BW_MOCK_MMU_X = 1 << 4,
    BW_MOCK_MMU_R = 1 << 5,
    BW_MOCK_MMU_W = 1 << 6,
};

#endif
