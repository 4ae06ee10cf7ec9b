/* Operations between lanes, and registers named at run time. RDNA3 Shader ISA document, sections 7.7 "Data
 * parallel processing", 16.7 and 16.12. */
#include "mock/isa/exec_vec.h"

/* uop->g is the distance between the halves of a register, 0 in wave32: these uops handle the whole wave. */
static inline uint32_t wave_lanes(const struct bw_uop *uop)
{
    return uop->g ? 64 : 32;
}

static inline uint32_t *lane_of(struct bw_wave *wave, const struct bw_uop *uop, int32_t offset, uint32_t lane)
{
    return BW_AT(uint32_t, wave, offset + (lane >= BW_LANES ? uop->g : 0)) + lane % BW_LANES;
}

HANDLER(x_V_READFIRSTLANE_B32)
{
    uint64_t exec = uop->g ? bw_sgpr64(wave, BW_OFFSET_SGPR(BW_SREG_EXEC_LO)) : wave->sgpr[BW_SREG_EXEC_LO];
    uint32_t lane = exec ? (uint32_t)__builtin_ctzll(exec) : 0;
    write_scalar(wave, uop->d, *lane_of(wave, uop, uop->a, lane));
    NEXT;
}

HANDLER(x_V_READLANE_B32)
{
    uint32_t lane = scalar(wave, uop->b) & (wave_lanes(uop) - 1);
    write_scalar(wave, uop->d, *lane_of(wave, uop, uop->a, lane));
    NEXT;
}

HANDLER(x_V_WRITELANE_B32)
{
    uint32_t lane = scalar(wave, uop->b) & (wave_lanes(uop) - 1);
    *lane_of(wave, uop, uop->d, lane) = scalar(wave, uop->a);
    NEXT;
}

/* d = b + bits of a below this lane; uop->g says which dword of the wave's mask a is for: with the half of
 * the lane, lower (count all of it), same (count below) or upper (none). */
HANDLER(x_MBCNT)
{
    const uint32_t *A = BW_AT(const uint32_t, wave, uop->a), *B = BW_AT(const uint32_t, wave, uop->b);
    uint32_t r[BW_LANES] __attribute__((aligned(64)));
    for (unsigned lane = 0; lane < BW_LANES; lane++) {
        uint32_t below = uop->g < 0 ? ALL_LANES : uop->g > 0 ? 0 : (1u << lane) - 1;
        r[lane] = B[lane] + (uint32_t)__builtin_popcount(A[lane] & below);
    }
    write_lanes(wave, uop->d, exec_of(wave, uop), (const vu *)(const void *)r);
    NEXT;
}

/* Lane select from 64 bits of scalar data, four per lane of a row; uop->g: rows are exchanged first. op_sel:
 * bit 0 fetch from lanes that are off, bit 1 bound control (uop->e). */
static inline void permute_rows(struct bw_wave *wave, const struct bw_uop *uop, unsigned other_row)
{
    const uint32_t *data = BW_AT(const uint32_t, wave, uop->a);
    uint64_t select = (uint64_t)scalar(wave, uop->c) << 32 | scalar(wave, uop->b);
    uint32_t exec = exec_of(wave, uop), keep = 0, r[BW_LANES] __attribute__((aligned(64)));
    for (unsigned lane = 0; lane < BW_LANES; lane++) {
        unsigned source = ((lane & 16) ^ other_row) | (select >> (4 * (lane & 15)) & 15);
        bool valid = (uop->e & 1) || (exec >> source & 1);
        r[lane] = valid ? data[source] : 0;
        keep |= (uint32_t)(!valid && !(uop->e & 2)) << lane;
    }
    write_lanes(wave, uop->d, exec & ~keep, (const vu *)(const void *)r);
}

HANDLER(x_V_PERMLANE16_B32)
{
    permute_rows(wave, uop, 0);
    NEXT;
}

HANDLER(x_V_PERMLANEX16_B32)
{
    permute_rows(wave, uop, 16);
    NEXT;
}

/* Exchanges the halves of a wave64. */
HANDLER(x_V_PERMLANE64_B32)
{
    struct bw_vreg low = *BW_AT(const struct bw_vreg, wave, uop->a);
    struct bw_vreg high = *BW_AT(const struct bw_vreg, wave, uop->a + uop->g);
    write_lanes(wave, uop->d, wave->sgpr[BW_SREG_EXEC_LO], (const vu *)(const void *)&high);
    write_lanes(wave, uop->d + uop->g, wave->sgpr[BW_SREG_EXEC_HI], (const vu *)(const void *)&low);
    NEXT;
}

HANDLER(x_V_SWAP_B32)
{
    vu *d = BW_AT(vu, wave, uop->d), *a = BW_AT(vu, wave, uop->a);
    uint32_t exec = exec_of(wave, uop);
    EACH_CHUNK
    {
        vu was = d[i];
        d[i] = blend(exec, i, a[i], was);
        a[i] = blend(exec, i, was, a[i]);
    }
    NEXT;
}

/* Data parallel primitives: the source's lanes are permuted into d before the operation runs, and the lanes
 * for which it runs are put into the mask at b. The selection is fixed: uop->imm points to it. */
HANDLER(x_DPP)
{
    const struct bw_lane_select *select = (const struct bw_lane_select *)(uintptr_t)uop->imm;
    const uint32_t *data = BW_AT(const uint32_t, wave, uop->a);
    uint32_t *d = BW_AT(uint32_t, wave, uop->d);
    uint32_t exec = exec_of(wave, uop), fetched = select->fetch_inactive ? ALL_LANES : exec, valid = 0;
    for (unsigned lane = 0; lane < BW_LANES; lane++)
        valid |= (fetched >> select->lane[lane] & select->in_range >> lane & 1) << lane;
    for (unsigned lane = 0; lane < BW_LANES; lane++)
        d[lane] = data[select->lane[lane]];
    vu *vectors = (vu *)(void *)d;
    EACH_CHUNK vectors[i] = vectors[i] & lanes_of(valid, i);
    *BW_AT(uint32_t, wave, uop->b) = exec & select->enabled & (select->zero_invalid ? ALL_LANES : valid);
    NEXT;
}

/* Vector registers named through M0: a and d are those of the instruction, e and f how much of M0 is added to
 * each. */
HANDLER(x_MOVREL)
{
    uint32_t m0 = wave->sgpr[BW_SREG_M0];
    uint32_t a = (uint32_t)uop->e + (uop->a == 1 ? m0 : uop->a == 2 ? m0 & 0x3ff : 0);
    uint32_t d = (uint32_t)uop->f + (uop->b == 1 ? m0 : uop->b == 2 ? m0 >> 16 & 0x3ff : 0);
    uint32_t count = (uint32_t)uop->c;
    int32_t base = uop->g;
    if ((uop->a && a >= count) || d >= count)
        return bw_wave_fault(wave, uop, BW_ISA_ILLEGAL_INSTRUCTION, 0, 0, 0);
    /* a source that is not a register stands at uop->d */
    const vu *from = BW_AT(const vu, wave, uop->d ? uop->d : base + (int32_t)a * BW_VREG_BYTES);
    vu r[BW_CHUNKS];
    EACH_CHUNK r[i] = from[i];
    write_lanes(wave, base + (int32_t)d * BW_VREG_BYTES, exec_of(wave, uop), r);
    STEP;
}

/* The swap of two registers named through M0: d = e + M0[25:16], a = f + M0[9:0]. */
HANDLER(x_SWAPREL)
{
    uint32_t m0 = wave->sgpr[BW_SREG_M0], count = (uint32_t)uop->c;
    uint32_t first = (uint32_t)uop->e + (m0 >> 16 & 0x3ff), second = (uint32_t)uop->f + (m0 & 0x3ff);
    if (first >= count || second >= count)
        return bw_wave_fault(wave, uop, BW_ISA_ILLEGAL_INSTRUCTION, 0, 0, 0);
    vu *d = BW_AT(vu, wave, uop->g + (int32_t)first * BW_VREG_BYTES);
    vu *a = BW_AT(vu, wave, uop->g + (int32_t)second * BW_VREG_BYTES);
    uint32_t exec = exec_of(wave, uop);
    EACH_CHUNK
    {
        vu was = d[i];
        d[i] = blend(exec, i, a[i], was);
        a[i] = blend(exec, i, was, a[i]);
    }
    STEP;
}

#define R(op) {BW_GFX11_##op, x_##op},
#define H(op) {BW_UOP_##op, x_##op},
/* clang-format off */
static const struct bw_uop_row rows[] = {
    R(V_READFIRSTLANE_B32) R(V_READLANE_B32) R(V_WRITELANE_B32) R(V_PERMLANE16_B32) R(V_PERMLANEX16_B32)
    R(V_PERMLANE64_B32) R(V_SWAP_B32) H(MBCNT) H(DPP) H(MOVREL) H(SWAPREL)
};
/* clang-format on */
const struct bw_uop_table BW_LEVEL(bw_exec_cross) = {rows, sizeof rows / sizeof rows[0]};
