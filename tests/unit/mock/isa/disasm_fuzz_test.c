/* Goal: words of gfx1100 mean here what they mean to LLVM 19 (disasm_fuzz.h). */
#include "tests/check.h"

#if BW_HAVE_LLVM
#include "mock/isa/inst.h"

#define FUZZ_GENERATION bw_gfx11
#define FUZZ_OPS        BW_GFX11_OP_COUNT
#define FUZZ_CPU        "gfx1100"
#include "tests/unit/mock/isa/disasm_common.h"

static struct words make_smem(struct bw_rng *rng)
{
    uint32_t op = pick_opcode(rng, BW_GFX11_SMEM, 8), soffset = chance(rng, 50) ? BW_SREG_NULL : bits(rng, 7);
    return (struct words){
        {0x3du << 26 | op << 18 | rarely(rng, 2, 30) << 13 | bits(rng, 5) << 8 | bits(rng, 5) << 1,
         soffset << 25 | rarely(rng, 21, 70)}};
}

static struct words make_flat(struct bw_rng *rng)
{
    uint32_t op = pick_opcode(rng, BW_GFX11_FLAT, 7), segment = (uint32_t)bw_rng_below(rng, 3);
    uint32_t saddr = chance(rng, 50) || segment == BW_SEGMENT_FLAT ? BW_SREG_NULL : bits(rng, 6) * 2;
    uint32_t sve = segment == BW_SEGMENT_SCRATCH ? bits(rng, 1) : 0;
    return (struct words){
        {0x37u << 26 | op << 18 | segment << 16 | rarely(rng, 3, 40) << 13 | rarely(rng, 13, 60),
         bits(rng, 8) << 24 | sve << 23 | saddr << 16 | bits(rng, 16)}};
}

static struct words make_mubuf(struct bw_rng *rng)
{
    uint32_t op = pick_opcode(rng, BW_GFX11_MUBUF, 8);
    uint32_t modes = bits(rng, 2) << 1 | rarely(rng, 1, 20);
    return (struct words){{0x38u << 26 | op << 18 | rarely(rng, 3, 40) << 12 | rarely(rng, 12, 60),
                           scalar_source(rng) << 24 | modes << 21 | bits(rng, 5) << 16 | bits(rng, 16)}};
}

static struct words make_mtbuf(struct bw_rng *rng)
{
    uint32_t op = bits(rng, 4), modes = bits(rng, 2) << 1 | rarely(rng, 1, 20);
    return (struct words){
        {0x3au << 26 | bits(rng, 7) << 19 | op << 15 | rarely(rng, 3, 40) << 12 | rarely(rng, 12, 60),
         scalar_source(rng) << 24 | modes << 21 | bits(rng, 5) << 16 | bits(rng, 16)}};
}

static struct words make_ldsdir(struct bw_rng *rng)
{
    return (struct words){{0xceu << 24 | rarely(rng, 2, 20) << 22 | bits(rng, 22), bits(rng, 32)}};
}

static bool is_graphics_format(const struct difference *d)
{
    uint32_t top = d->words.w[0] >> 26;
    return top == 0x3c || top == 0x3e || d->words.w[0] >> 24 == 0xcd;
}

/* A scalar destination field of 8 bits that names a constant. */
static bool is_constant_destination(const struct difference *d)
{
    if (starts_with(d->llvm_text, "v_readfirstlane"))
        return bw_field(d->words.w[0], 17, 24) >= 128;
    if (starts_with(d->llvm_text, "v_readlane"))
        return bw_field(d->words.w[0], 0, 7) >= 128;
    return starts_with(d->llvm_text, "v_cmp_") && strstr(d->llvm_text, "_e64") &&
           bw_field(d->words.w[0], 0, 7) >= 128;
}

static bool is_dpp_scalar_source(const struct difference *d)
{
    return strstr(d->llvm_text, "_e64_dpp") && bw_field(d->words.w[1], 9, 17) < 256;
}

static bool is_buffer_literal(const struct difference *d)
{
    return (d->words.w[0] >> 26 == 0x38 || d->words.w[0] >> 26 == 0x3a) && d->words.w[1] >> 24 == 255;
}

static void correct(char *llvm_text)
{
    (void)llvm_text;
}

const struct known_difference known_differences[] = {
    {"LLVM's own text marks an operand or control value as invalid", is_marked_invalid},
    {"graphics: export, image, parameter interpolation (not executed by compute)", is_graphics_format},
    {"v_mov_b16 on half registers, which LLVM emits only with real-true16", is_half_register_move},
    {"sources that gfx11 does not have: lds_direct, vccz, execz", is_missing_source},
    {"sext() on an integer source, which gfx11 does not have", is_integer_modifier},
    {"scalar destination that is a constant", is_constant_destination},
    {"constant where a scalar register is taken", is_constant_register},
    {"lane mask that is a constant", is_constant_lane_mask},
    {"DPP beside a scalar or constant second source, which gfx11 does not have", is_dpp_scalar_source},
    {"WMMA accumulator in a scalar register or literal", is_wmma_scalar_source},
    {"scalar tuple that starts at no multiple of its alignment", is_misaligned_tuple},
    {"neg or abs on a source that takes neither", is_stray_modifier},
    {"literal as buffer offset", is_buffer_literal},
    {"LLVM's assembler refuses what its disassembler prints", is_refused_by_assembler},
    {"alias: LLVM assembles the text to other words, which decode here", is_alias},
    {NULL, NULL},
};

FUZZ(smem)
FUZZ(flat)
FUZZ(mubuf)
FUZZ(mtbuf)
FUZZ(ldsdir)

/* --- coverage: opcodes that LLVM accepts, and that the table has --- */

static const struct opcode_space opcode_spaces[] = {
    {"SOP1", 0x17du << 23, 8, 256, 2, {AT(4, 16), 8}, 0},
    {"SOP2", 2u << 30, 23, 96, 1, {AT(4, 16) | AT(12, 8) | 8}, 0},
    {"SOPC", 0x17eu << 23, 16, 128, 1, {AT(12, 8) | 8}, 0},
    {"SOPK", 0xbu << 28, 23, 29, 1, {AT(4, 16) | 0x12}, 0},
    {"SOPP", 0x17fu << 23, 16, 128, 1, {3}, 0},
    {"SMEM", 0x3du << 26, 18, 256, 2, {AT(4, 6) | 4, AT(0x10, 32) | AT(124, 57)}, 0},
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
    {"DS", 0x36u << 26, 18, 256, 5, {AT(8, 32), AT(12, 40), AT(16, 48), AT(4, 56), AT(1, 17)}, 0},
    {"FLAT",
     0x37u << 26,
     18,
     128,
     3,
     {AT(8, 32) | AT(12, 40) | AT(4, 56) | AT(124, 48), AT(1, 16), AT(2, 16)},
     0},
    {"MUBUF", 0x38u << 26, 18, 256, 2, {AT(8, 32) | AT(4, 40) | AT(2, 48) | AT(128, 56), AT(1, 14)}, 0},
    {"MTBUF", 0x3au << 26, 15, 16, 1, {AT(8, 32) | AT(4, 40) | AT(2, 48) | AT(128, 56)}, 0},
    {"LDSDIR", 0xceu << 24, 20, 4, 1, {4}, 0},
};

/* v_mov_b16: see known_differences; v_illegal. */
static bool is_left_out(const struct opcode_space *space, unsigned opcode)
{
    return (strcmp(space->name, "VOP1") == 0 && opcode == 28) ||
           (strcmp(space->name, "VOP2") == 0 && opcode == 0);
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
        {"DS", test_ds},
        {"FLAT", test_flat},
        {"MUBUF", test_mubuf},
        {"MTBUF", test_mtbuf},
        {"LDSDIR", test_ldsdir},
        {"any word", test_any},
    };
    return fuzz_run("isa.disasm_fuzz", tests, BW_COUNT_OF(tests));
}

#else
int main(void)
{
    puts("skipped: built without LLVM");
    return BW_TEST_SKIPPED;
}
#endif
