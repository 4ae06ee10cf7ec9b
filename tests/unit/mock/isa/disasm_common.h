/* What the generations of gfx11 and gfx12 have in common, after disasm_fuzz.h: formats that are the same
 * words, and ways in which a word may be an instruction for LLVM's disassembler and not for ours
 * (known_differences lists them). */
#ifndef BW_TESTS_DISASM_COMMON_H
#define BW_TESTS_DISASM_COMMON_H

#include "tests/unit/mock/isa/disasm_fuzz.h"

static bool is_half_register_move(const struct difference *d)
{
    return starts_with(d->llvm_text, "v_mov_b16");
}

/* S_MOVRELS, S_SETPC and S_RFE take registers. */
static bool is_constant_register(const struct difference *d)
{
    static const char *const takers[] = {"s_movrels_b", "s_setpc_b64", "s_rfe_b64"};
    bool takes_register = false;
    for (size_t i = 0; i < BW_COUNT_OF(takers); i++)
        takes_register = takes_register || starts_with(d->llvm_text, takers[i]);
    return takes_register && bw_field(d->words.w[0], 0, 7) >= 128;
}

static bool is_missing_source(const struct difference *d)
{
    return strstr(d->llvm_text, "src_lds_direct") || strstr(d->llvm_text, "src_vccz") ||
           strstr(d->llvm_text, "src_execz");
}

static bool is_integer_modifier(const struct difference *d)
{
    return strstr(d->llvm_text, "sext(") != NULL;
}

static bool is_constant_lane_mask(const struct difference *d)
{
    uint32_t src2 = bw_field(d->words.w[1], 18, 26);
    bool takes_mask = starts_with(d->llvm_text, "v_cndmask_b") || strstr(d->llvm_text, "_co_ci_u32");
    return takes_mask && d->words.w[0] >> 26 == VOP3 && src2 >= 126;
}

static bool is_wmma_scalar_source(const struct difference *d)
{
    uint32_t src2 = bw_field(d->words.w[1], 18, 26);
    return starts_with(d->llvm_text, "v_wmma") && (src2 < 128 || src2 == 255);
}

/* LLVM rounds such a tuple down and says so in a comment. */
static bool is_misaligned_tuple(const struct difference *d)
{
    return strstr(d->llvm_text, "scalar reg isn't aligned") != NULL;
}

/* neg or abs of a source that takes none: without those bits the word is an instruction. */
static bool is_stray_modifier(const struct difference *d)
{
    struct words cleared = d->words;
    struct bw_inst inst;
    if (d->words.w[0] >> 26 != VOP3)
        return false;
    cleared.w[0] &= ~(7u << 8);
    cleared.w[1] &= ~(7u << 29);
    if (!bw_inst_decode(&FUZZ_GENERATION, cleared.w, sizeof cleared.w, &inst) || inst.format != BW_GFX11_VOP3)
        return false;
    uint32_t flags = FUZZ_GENERATION.ops[inst.op].flags;
    unsigned used = bw_field(d->words.w[0], 8, 10) | bw_field(d->words.w[1], 29, 31);
    return used >> (flags & BW_GFX11_F_MOD2 ? 2 : flags & BW_GFX11_F_MOD1 ? 1 : 0) != 0;
}

FUZZ(sop1)
FUZZ(sop2)
FUZZ(sopc)
FUZZ(sopk)
FUZZ(sopp)
FUZZ(vop1)
FUZZ(vop2)
FUZZ(vopc)
FUZZ(vop3)
FUZZ(vop3p)
FUZZ(vopd)
FUZZ(ds)
FUZZ(any)

#endif
