/* Goal: words of gfx1201 mean here what they mean to LLVM 19 (disasm_fuzz.h). */
#include "tests/check.h"

#if BW_HAVE_LLVM
#include "mock/isa/inst.h"

#define FUZZ_GENERATION bw_gfx12
#define FUZZ_OPS        BW_GFX12_OP_COUNT
#define FUZZ_CPU        "gfx1201"
#include "tests/unit/mock/isa/disasm_common.h"

static struct words make_smem(struct bw_rng *rng)
{
    uint32_t op = pick_opcode(rng, BW_GFX11_SMEM, 6), soffset = chance(rng, 50) ? BW_SREG_NULL : bits(rng, 7);
    return (struct words){
        {0x3du << 26 | op << 13 | rarely(rng, 4, 30) << 21 | bits(rng, 5) << 8 | bits(rng, 5) << 1,
         soffset << 25 | rarely(rng, 24, 70)}};
}

/* Hints and scope, in the second dword of VFLAT and VBUFFER. */
static uint32_t cache_bits(struct bw_rng *rng)
{
    return rarely(rng, 3, 40) << 20 | rarely(rng, 2, 40) << 18;
}

static struct words make_vflat(struct bw_rng *rng)
{
    enum { FLAT = 0xec, SCRATCH = 0xed };
    uint32_t op = pick_opcode(rng, BW_GFX11_FLAT, 8), encoding = FLAT + (uint32_t)bw_rng_below(rng, 3);
    uint32_t saddr = chance(rng, 50) || encoding == FLAT ? BW_SREG_NULL : bits(rng, 6) * 2;
    uint32_t sve = encoding == SCRATCH ? bits(rng, 1) : 0;
    return (struct words){{encoding << 24 | op << 14 | saddr,
                           bits(rng, 8) << 23 | cache_bits(rng) | sve << 17 | bits(rng, 8),
                           rarely(rng, 24, 60) << 8 | bits(rng, 8)}};
}

static struct words make_vbuffer(struct bw_rng *rng)
{
    bool is_typed = chance(rng, 25);
    uint32_t op = is_typed ? 0x80 | bits(rng, 4) : pick_opcode(rng, BW_GFX11_MUBUF, 8);
    return (struct words){{0xc4u << 24 | rarely(rng, 1, 20) << 22 | op << 14 | bits(rng, 7),
                           bits(rng, 2) << 30 | (is_typed ? bits(rng, 7) << 23 : 0) | cache_bits(rng) |
                               bits(rng, 5) << 11 | bits(rng, 8),
                           rarely(rng, 24, 60) << 8 | bits(rng, 8)}};
}

/* V_CNDMASK_B32 with DPP: the bar behind the condition belongs before its comma. S_BARRIER_SIGNAL and its
 * like have a blank behind M0. */
static void correct(char *llvm_text)
{
    static const char slip[] = ", vcc_lo|", right[] = "|, vcc_lo";
    char *at = strncmp(llvm_text, "v_cndmask_b32_dpp", 17) == 0 ? strstr(llvm_text, slip) : NULL;
    size_t length = strlen(llvm_text);
    if (at)
        memcpy(at, right, sizeof right - 1);
    if (length && llvm_text[length - 1] == ' ')
        llvm_text[length - 1] = 0;
}

static bool is_constant_destination(const struct difference *d)
{
    if (starts_with(d->llvm_text, "v_readfirstlane"))
        return bw_field(d->words.w[0], 17, 24) >= 128;
    if (starts_with(d->llvm_text, "v_s_") || starts_with(d->llvm_text, "v_readlane"))
        return bw_field(d->words.w[0], 0, 7) >= 128;
    return starts_with(d->llvm_text, "v_cmp_") && strstr(d->llvm_text, "_e64") &&
           bw_field(d->words.w[0], 0, 7) >= 128;
}

/* VINTERP, VDSDIR, VIMAGE, VSAMPLE, VEXPORT. */
static bool is_graphics_format(const struct difference *d)
{
    uint32_t top = d->words.w[0] >> 24;
    return top == 0xcd || top == 0xce || top >> 2 == 0xd0 >> 2 || top >> 2 == 0xe4 >> 2 ||
           top >> 2 == 0xf8 >> 2;
}

const struct known_difference known_differences[] = {
    {"LLVM's own text marks an operand or control value as invalid", is_marked_invalid},
    {"graphics: export, image, parameter loads and interpolation (not executed by compute)",
     is_graphics_format},
    {"v_mov_b16 on half registers, which LLVM emits only with real-true16", is_half_register_move},
    {"sources that gfx12 does not have: lds_direct, vccz, execz", is_missing_source},
    {"sext() on an integer source, which gfx12 does not have", is_integer_modifier},
    {"scalar destination that is a constant", is_constant_destination},
    {"constant where a scalar register is taken", is_constant_register},
    {"lane mask that is a constant", is_constant_lane_mask},
    {"WMMA accumulator in a scalar register or literal", is_wmma_scalar_source},
    {"scalar tuple that starts at no multiple of its alignment", is_misaligned_tuple},
    {"neg or abs on a source that takes neither", is_stray_modifier},
    {"LLVM's assembler refuses what its disassembler prints", is_refused_by_assembler},
    {"alias: LLVM assembles the text to other words, which decode here", is_alias},
    {NULL, NULL},
};

FUZZ(smem)
FUZZ(vflat)
FUZZ(vbuffer)

static const struct opcode_space opcode_spaces[] = {
    {"SOP1", 0x17du << 23, 8, 256, 2, {AT(4, 16), 8}, 0},
    {"SOP2", 2u << 30, 23, 96, 1, {AT(4, 16) | AT(12, 8) | 8}, 0},
    {"SOPC", 0x17eu << 23, 16, 128, 1, {AT(12, 8) | 8}, 0},
    {"SOPK", 0xbu << 28, 23, 29, 1, {AT(4, 16) | 0x12}, 0},
    {"SOPP", 0x17fu << 23, 16, 128, 1, {3}, 0},
    {"SMEM", 0x3du << 26, 13, 64, 2, {AT(4, 6) | 4, AT(0x10, 32) | AT(124, 57)}, 0},
    {"VOP1", 0x3fu << 25, 9, 256, 2, {AT(4, 17), 0x108}, 0},
    {"VOP2", 0, 25, 62, 1, {AT(4, 17) | AT(12, 9) | 0x108}, 0},
    {"VOPC", 0x3eu << 25, 17, 256, 1, {AT(12, 9) | 0x108}, 0},
    {"VOP3",
     0x35u << 26,
     16,
     1024,
     6,
     {4, AT(0x108, 32), AT(0x110, 41), AT(0x10, 41), AT(0x118, 50), AT(0x18, 50)},
     0},
    {"VOP3P", 0xccu << 24, 16, 128, 3, {4 | AT(0x108, 32) | AT(0x110, 41), AT(0x118, 50), AT(1, 14)}, 0},
    {"VDS", 0x36u << 26, 18, 256, 4, {AT(8, 32), AT(12, 40), AT(16, 48), AT(4, 56)}, 0},
    {"VFLAT", 0xecu << 24 | 124, 14, 256, 1, {AT(4, 32) | AT(12, 55)}, 8},
    {"VSCRATCH", 0xedu << 24 | 124, 14, 256, 1, {AT(4, 32) | AT(12, 55)}, 8},
    {"VGLOBAL", 0xeeu << 24 | 124, 14, 256, 1, {AT(4, 32) | AT(12, 55)}, 8},
    {"VBUFFER", 0xc4u << 24 | 124, 14, 256, 1, {AT(4, 32) | AT(8, 41)}, 8},
};

/* v_mov_b16 on half registers, which LLVM emits only with real-true16; v_illegal. */
static bool is_left_out(const struct opcode_space *space, unsigned opcode)
{
    return (strcmp(space->name, "VOP1") == 0 && opcode == 28) ||
           (strcmp(space->name, "VOP2") == 0 && opcode == 0) ||
           (strcmp(space->name, "VOP3") == 0 && opcode == 0x180 + 28);
}

static void test_coverage(void)
{
    check_coverage(opcode_spaces, BW_COUNT_OF(opcode_spaces), is_left_out);
}

int main(void)
{
    static const struct bw_test tests[] = {
        {"opcode coverage", test_coverage},
        {"SOP1", test_sop1},
        {"SOP2", test_sop2},
        {"SOPC", test_sopc},
        {"SOPK", test_sopk},
        {"SOPP", test_sopp},
        {"SMEM", test_smem},
        {"VOP1", test_vop1},
        {"VOP2", test_vop2},
        {"VOPC", test_vopc},
        {"VOP3", test_vop3},
        {"VOP3P", test_vop3p},
        {"VOPD", test_vopd},
        {"VDS", test_ds},
        {"VFLAT, VSCRATCH, VGLOBAL", test_vflat},
        {"VBUFFER", test_vbuffer},
        {"any word", test_any},
    };
    return fuzz_run("isa.disasm_gfx12", tests, BW_COUNT_OF(tests));
}

#else
int main(void)
{
    puts("skipped: built without LLVM");
    return BW_TEST_SKIPPED;
}
#endif
