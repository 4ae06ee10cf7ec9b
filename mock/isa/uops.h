/* Which uops there are: one per operation of the table that has a direct meaning, numbered as enum
 * bw_gfx11_op, and the helpers that the translator puts around them. Handlers come in levels, one per host
 * instruction set. */
#ifndef BW_MOCK_ISA_UOPS_H
#define BW_MOCK_ISA_UOPS_H

#include "mock/isa/inst.h"
#include "mock/isa/wave.h"

enum bw_uop_kind {
    BW_UOP_FIRST_HELPER = BW_GFX11_OP_COUNT,
#define BW_UOP(identifier) BW_UOP_##identifier,
#include "mock/isa/uops.def"
#undef BW_UOP
    BW_UOP_COUNT
};

struct bw_uop_row {
    uint16_t kind; /* enum bw_gfx11_op or enum bw_uop_kind */
    bw_handler run;
};

/* What a DPP modifier does with the lanes of a half: lane[i] is where lane i reads. */
struct bw_lane_select {
    uint8_t lane[BW_LANES];
    uint32_t in_range; /* lanes whose source exists */
    uint32_t enabled;  /* by row and bank mask */
    bool fetch_inactive;
    bool zero_invalid; /* bound_ctrl: lanes without a source read 0; else they are off */
};

struct bw_uop_table {
    const struct bw_uop_row *rows;
    size_t count;
};

/* Every execution file exports its handlers as BW_LEVEL(bw_exec_<file>). */
#define BW_EXEC_FILES(_) \
    _(salu)              \
    _(control)           \
    _(int) _(float) _(compare) _(wide) _(trans) _(dual) _(half) _(double) _(matrix) _(cross) _(memory) _(lds)
#define BW_EXEC_DECLARE(file) \
    extern const struct bw_uop_table bw_exec_##file##_base, bw_exec_##file##_avx2, bw_exec_##file##_avx512;
BW_EXEC_FILES(BW_EXEC_DECLARE)

/* Handlers that gain nothing from vectors: one table for all levels. */
extern const struct bw_uop_table bw_plain_atomic, bw_plain_buffer, bw_plain_odd, bw_plain_rounding,
    bw_plain_saturate;

#endif
