/* Random words of every format, here and in LLVM 19: the same ones are instructions, of the same length and
 * text.
 *
 * LLVM's disassembler is lenient where its assembler is not, and so is the hardware's documentation silent;
 * each way in which the two may differ is a row of known_differences. Whatever is in no row fails. BW_SEED
 * picks other words. */
#include "tests/check.h"

#if BW_HAVE_LLVM
#include "mock/isa/inst.h"

#include "base/bits.h"
#include "base/rng.h"
#include "base/text.h"
#include "base/vec.h"
#include "tests/unit/mock/isa/llvm_oracle.h"

enum { VOP3 = 0x35 }; /* bits [31:26] */
enum { WORDS_PER_FORMAT = 40000, TEXT_MAX = 512, SHOWN_MAX = 10 };

static LLVMDisasmContextRef llvm;
static uint64_t seed = 1;

static uint32_t bits(struct bw_rng *rng, unsigned count)
{
    return (uint32_t)(bw_rng_next(rng) >> (64 - count));
}

static bool chance(struct bw_rng *rng, unsigned percent)
{
    return bw_rng_below(rng, 100) < percent;
}

/* A field that is mostly 0. */
static uint32_t rarely(struct bw_rng *rng, unsigned count, unsigned percent)
{
    return chance(rng, percent) ? bits(rng, count) : 0;
}

static uint32_t scalar_source(struct bw_rng *rng)
{
    switch (bw_rng_below(rng, 8)) {
    case 0:
        return bits(rng, 8);
    case 1:
        return 255;
    case 2:
    case 3:
        return 128 + (uint32_t)bw_rng_below(rng, 81);
    case 4:
        return 240 + (uint32_t)bw_rng_below(rng, 9);
    default:
        return bits(rng, 6) * 2;
    }
}

static uint32_t vector_source(struct bw_rng *rng)
{
    static const uint32_t dpp[] = {233, 234, 250};
    if (chance(rng, 50))
        return 256 + bits(rng, 8);
    return chance(rng, 20) ? dpp[bw_rng_below(rng, 3)] : scalar_source(rng);
}

/* The dword after: a literal, often one that is an inline constant too, or DPP control. */
static uint32_t extra_dword(struct bw_rng *rng)
{
    static const uint32_t special[] = {0x3c00,     0x3f800000, 0xbf000000, 0x3ff00000, 0x3fc45f30,
                                       0x3e22f983, 0x3118,     0x3c003c00, 0x3f80,     0xffff};
    switch (bw_rng_below(rng, 6)) {
    case 0:
        return special[bw_rng_below(rng, BW_COUNT_OF(special))];
    case 1:
        return bits(rng, 7);
    case 2:
        return (uint32_t) - (int32_t)bits(rng, 5);
    case 3:
        return 0xff000000 | bits(rng, 24);
    case 4:
        return bits(rng, 32) & ~(0xfu << 20 | 1u << 17);
    default:
        return bits(rng, 32);
    }
}

/* An opcode: mostly one that the table has, of a row for which `wanted` holds. */
static const struct bw_gfx11_op_row *pick_row(struct bw_rng *rng, enum bw_gfx11_format format)
{
    for (;;) {
        const struct bw_gfx11_op_row *row = &bw_gfx11_ops[bw_rng_below(rng, BW_GFX11_OP_COUNT)];
        bool vop3 =
            format == BW_GFX11_VOP3 && (row->flags & BW_GFX11_F_E64 || row->format == BW_GFX11_VOP3SD);
        if (row->format == format || vop3)
            return row;
    }
}

static uint32_t pick_opcode(struct bw_rng *rng, enum bw_gfx11_format format, unsigned field_bits)
{
    return chance(rng, 85) ? pick_row(rng, format)->opcode : bits(rng, field_bits);
}

struct words {
    uint32_t w[3];
};

static struct words make_sop1(struct bw_rng *rng)
{
    uint32_t op = pick_opcode(rng, BW_GFX11_SOP1, 8);
    return (struct words){
        {0x17du << 23 | bits(rng, 7) << 16 | op << 8 | scalar_source(rng), extra_dword(rng)}};
}

static struct words make_sop2(struct bw_rng *rng)
{
    uint32_t op = (uint32_t)bw_rng_below(rng, 0x60);
    return (struct words){
        {2u << 30 | op << 23 | bits(rng, 6) << 17 | scalar_source(rng) << 8 | scalar_source(rng),
         extra_dword(rng)}};
}

static struct words make_sopc(struct bw_rng *rng)
{
    uint32_t op = pick_opcode(rng, BW_GFX11_SOPC, 7);
    return (struct words){
        {0x17eu << 23 | op << 16 | scalar_source(rng) << 8 | scalar_source(rng), extra_dword(rng)}};
}

static struct words make_sopk(struct bw_rng *rng)
{
    uint32_t op = (uint32_t)bw_rng_below(rng, 29); /* above: SOP1, SOPC and SOPP */
    return (struct words){
        {0xbu << 28 | op << 23 | bits(rng, 6) << 17 | bits(rng, chance(rng, 50) ? 16 : 7), extra_dword(rng)}};
}

static struct words make_sopp(struct bw_rng *rng)
{
    uint32_t op = pick_opcode(rng, BW_GFX11_SOPP, 7);
    return (struct words){{0x17fu << 23 | op << 16 | rarely(rng, chance(rng, 50) ? 16 : 7, 80)}};
}

static struct words make_smem(struct bw_rng *rng)
{
    uint32_t op = pick_opcode(rng, BW_GFX11_SMEM, 8), soffset = chance(rng, 50) ? BW_SREG_NULL : bits(rng, 7);
    return (struct words){
        {0x3du << 26 | op << 18 | rarely(rng, 2, 30) << 13 | bits(rng, 5) << 8 | bits(rng, 5) << 1,
         soffset << 25 | rarely(rng, 21, 70)}};
}

static struct words make_vop1(struct bw_rng *rng)
{
    uint32_t op = pick_opcode(rng, BW_GFX11_VOP1, 8);
    return (struct words){
        {0x3fu << 25 | bits(rng, 8) << 17 | op << 9 | vector_source(rng), extra_dword(rng)}};
}

static struct words make_vop2(struct bw_rng *rng)
{
    uint32_t op = (uint32_t)bw_rng_below(rng, 62); /* above: VOPC and VOP1 */
    return (struct words){{op << 25 | bits(rng, 16) << 9 | vector_source(rng), extra_dword(rng)}};
}

static struct words make_vopc(struct bw_rng *rng)
{
    return (struct words){{0x3eu << 25 | bits(rng, 16) << 9 | vector_source(rng), extra_dword(rng)}};
}

/* Sources that the operation does not have are mostly 0, modifiers mostly absent: or nearly every word is
 * refused. */
static struct words make_vop3(struct bw_rng *rng)
{
    const struct bw_gfx11_op_row *row = pick_row(rng, BW_GFX11_VOP3);
    uint32_t shift = row->format == BW_GFX11_VOP1 ? 0x180 : row->format == BW_GFX11_VOP2 ? 0x100 : 0;
    uint32_t op = chance(rng, 90) ? row->opcode + shift : bits(rng, 10), src[3];
    for (unsigned i = 0; i < 3; i++) {
        bool used = row->src[i].type != BW_T_NONE, scalar = row->src[i].operand_class >= BW_CLASS_SCALAR;
        src[i] = !used && chance(rng, 98) ? 0 : scalar ? scalar_source(rng) : vector_source(rng);
    }
    bool mods = row->flags & (BW_GFX11_F_MOD1 | BW_GFX11_F_MOD2 | BW_GFX11_F_MOD3);
    uint32_t abs = rarely(rng, 3, mods ? 40 : 3), neg = rarely(rng, 3, mods ? 40 : 3);
    uint32_t op_sel = rarely(rng, 4, 40), clamp = rarely(rng, 1, 20), omod = rarely(rng, 2, 20);
    return (struct words){{0x35u << 26 | op << 16 | clamp << 15 | op_sel << 11 | abs << 8 | bits(rng, 8),
                           neg << 29 | omod << 27 | src[2] << 18 | src[1] << 9 | src[0], extra_dword(rng)}};
}

static struct words make_vop3p(struct bw_rng *rng)
{
    const struct bw_gfx11_op_row *row = pick_row(rng, BW_GFX11_VOP3P);
    uint32_t op = chance(rng, 90) ? row->opcode : bits(rng, 7);
    uint32_t src2 = row->src[2].type == BW_T_NONE && chance(rng, 95) ? 0 : vector_source(rng);
    uint32_t mask = row->src[2].type == BW_T_NONE && chance(rng, 95) ? 3 : 7;
    uint32_t neg_hi = rarely(rng, 3, 40) & mask, neg_lo = rarely(rng, 3, 40) & mask,
             op_sel = rarely(rng, 3, 40) & mask;
    uint32_t op_sel_hi = chance(rng, 50) ? 7 : bits(rng, 3);
    return (struct words){
        {0xccu << 24 | op << 16 | rarely(rng, 1, 20) << 15 | (op_sel_hi >> 2) << 14 | op_sel << 11 |
             neg_hi << 8 | bits(rng, 8),
         neg_lo << 29 | (op_sel_hi & 3) << 27 | src2 << 18 | vector_source(rng) << 9 | vector_source(rng),
         extra_dword(rng)}};
}

static struct words make_vopd(struct bw_rng *rng)
{
    uint32_t x = (uint32_t)bw_rng_below(rng, 16), y = (uint32_t)bw_rng_below(rng, 20);
    return (struct words){{0x32u << 26 | x << 22 | y << 17 | rarely(rng, 8, 60) << 9 | vector_source(rng),
                           bits(rng, 15) << 17 | rarely(rng, 8, 60) << 9 | vector_source(rng),
                           extra_dword(rng)}};
}

static struct words make_ds(struct bw_rng *rng)
{
    const struct bw_gfx11_op_row *row = pick_row(rng, BW_GFX11_DS);
    uint32_t op = chance(rng, 90) ? row->opcode : bits(rng, 8), high = bits(rng, 32);
    for (unsigned i = 0; i < 3; i++) {
        if (row->src[i].type == BW_T_NONE && chance(rng, 97))
            high &= ~(0xffu << (8 * i));
    }
    if (row->dst.type == BW_T_NONE && chance(rng, 97))
        high &= 0xffffff;
    uint32_t gds = row->flags & BW_GFX11_F_GDS ? 1 : rarely(rng, 1, 10);
    return (struct words){{0x36u << 26 | op << 18 | gds << 17 | rarely(rng, 16, 60), high}};
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

static struct words make_any(struct bw_rng *rng)
{
    return (struct words){{bits(rng, 32), bits(rng, 32), bits(rng, 32)}};
}

/* --- comparison --- */

struct difference {
    struct words words;
    unsigned llvm_bytes, our_bytes;
    char llvm_text[TEXT_MAX], our_text[TEXT_MAX];
    struct oracle_encoding again; /* LLVM's text, assembled */
};

static unsigned our_print(const void *code, uint64_t code_bytes, char *text)
{
    struct bw_inst inst;
    struct bw_text printed = {0};
    unsigned length = bw_gfx11_decode(code, code_bytes, &inst);
    if (length)
        bw_gfx11_print(&inst, 0, &printed);
    snprintf(text, TEXT_MAX, "%s", bw_text_string(&printed));
    bw_text_free(&printed);
    return length;
}

static bool starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

static bool is_marked_invalid(const struct difference *d)
{
    return strstr(d->llvm_text, "/*") != NULL;
}

static bool is_graphics_format(const struct difference *d)
{
    uint32_t top = d->words.w[0] >> 26;
    return top == 0x3c || top == 0x3e || d->words.w[0] >> 24 == 0xcd;
}

static bool is_half_register_move(const struct difference *d)
{
    return starts_with(d->llvm_text, "v_mov_b16");
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

/* A scalar destination field of 8 bits that names a constant. */
static bool is_constant_destination(const struct difference *d)
{
    if (starts_with(d->llvm_text, "v_readfirstlane"))
        return bw_field(d->words.w[0], 17, 24) >= 128;
    return starts_with(d->llvm_text, "v_cmp_") && strstr(d->llvm_text, "_e64") &&
           bw_field(d->words.w[0], 0, 7) >= 128;
}

static bool is_constant_lane_mask(const struct difference *d)
{
    uint32_t src2 = bw_field(d->words.w[1], 18, 26);
    bool takes_mask = starts_with(d->llvm_text, "v_cndmask_b") || strstr(d->llvm_text, "_co_ci_u32");
    return takes_mask && d->words.w[0] >> 26 == VOP3 && src2 >= 126;
}

static bool is_dpp_scalar_source(const struct difference *d)
{
    return strstr(d->llvm_text, "_e64_dpp") && bw_field(d->words.w[1], 9, 17) < 256;
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
    if (!bw_gfx11_decode(cleared.w, sizeof cleared.w, &inst) || inst.format != BW_GFX11_VOP3)
        return false;
    uint32_t flags = bw_gfx11_ops[inst.op].flags;
    unsigned used = bw_field(d->words.w[0], 8, 10) | bw_field(d->words.w[1], 29, 31);
    return used >> (flags & BW_GFX11_F_MOD2 ? 2 : flags & BW_GFX11_F_MOD1 ? 1 : 0) != 0;
}

static bool is_buffer_literal(const struct difference *d)
{
    return (d->words.w[0] >> 26 == 0x38 || d->words.w[0] >> 26 == 0x3a) && d->words.w[1] >> 24 == 255;
}

static bool is_refused_by_assembler(const struct difference *d)
{
    return d->again.bytes == 0;
}

/* The text has another encoding, the one that LLVM emits; that one decodes here and prints as LLVM prints it.
 * The word is an alias: a scalar tuple that starts odd, an ignored field that is not 0, a literal that could
 * be inline. */
static bool is_alias(const struct difference *d)
{
    char ours[TEXT_MAX], theirs[TEXT_MAX];
    if (!d->again.bytes || memcmp(d->again.code, d->words.w, d->again.bytes) == 0)
        return false;
    unsigned our_bytes = our_print(d->again.code, d->again.bytes, ours);
    return our_bytes == oracle_print(llvm, d->again.code, d->again.bytes, theirs, sizeof theirs) &&
           strcmp(ours, theirs) == 0;
}

/* Every way in which a word may be an instruction for LLVM's disassembler and not for ours. There is no row
 * for the opposite, nor for a different length or text: those fail. */
static const struct {
    const char *reason;
    bool (*holds)(const struct difference *d);
} known_differences[] = {
    {"LLVM's own text marks an operand or control value as invalid", is_marked_invalid},
    {"graphics: export, image, parameter interpolation (not executed by compute)", is_graphics_format},
    {"v_mov_b16 on half registers, which LLVM emits only with real-true16", is_half_register_move},
    {"sources that gfx11 does not have: lds_direct, vccz, execz", is_missing_source},
    {"sext() on an integer source, which gfx11 does not have", is_integer_modifier},
    {"scalar destination that is a constant", is_constant_destination},
    {"lane mask that is a constant", is_constant_lane_mask},
    {"DPP beside a scalar or constant second source, which gfx11 does not have", is_dpp_scalar_source},
    {"WMMA accumulator in a scalar register or literal", is_wmma_scalar_source},
    {"scalar tuple that starts at no multiple of its alignment", is_misaligned_tuple},
    {"neg or abs on a source that takes neither", is_stray_modifier},
    {"literal as buffer offset", is_buffer_literal},
    {"LLVM's assembler refuses what its disassembler prints", is_refused_by_assembler},
    {"alias: LLVM assembles the text to other words, which decode here", is_alias},
};

typedef BW_VEC(struct difference) difference_vec;

static void assemble_again(difference_vec *differences)
{
    const char **texts = calloc(differences->count + 1, sizeof *texts);
    struct oracle_encoding *encodings = calloc(differences->count + 1, sizeof *encodings);
    if (!BW_TRUE(texts && encodings))
        return;
    for (size_t i = 0; i < differences->count; i++)
        texts[i] = differences->data[i].llvm_text;
    BW_EQ(oracle_assemble(texts, differences->count, encodings), 0);
    for (size_t i = 0; i < differences->count; i++)
        differences->data[i].again = encodings[i];
    free(texts);
    free(encodings);
}

static void report(const struct difference *d)
{
    printf("\n    words %08x %08x %08x\n      expected %u \"%s\"\n      observed %u \"%s\"\n", d->words.w[0],
           d->words.w[1], d->words.w[2], d->llvm_bytes, d->llvm_text, d->our_bytes, d->our_text);
}

/* Sorts what only LLVM accepts under its reasons; returns how many have none. */
static unsigned sort_refused(difference_vec *refused, unsigned *counts)
{
    unsigned unknown = 0;
    assemble_again(refused);
    for (size_t i = 0; i < refused->count; i++) {
        size_t row = 0;
        while (row < BW_COUNT_OF(known_differences) && !known_differences[row].holds(&refused->data[i]))
            row++;
        if (row < BW_COUNT_OF(known_differences))
            counts[row]++;
        else if (unknown++ < SHOWN_MAX)
            report(&refused->data[i]);
    }
    return unknown;
}

static void fuzz(const char *name, struct words (*make)(struct bw_rng *))
{
    struct bw_rng rng = {.state = seed};
    difference_vec refused = {0};
    unsigned same = 0, both_refuse = 0, wrong = 0, counts[BW_COUNT_OF(known_differences)] = {0};
    for (unsigned i = 0; i < WORDS_PER_FORMAT; i++) {
        struct difference d = {.words = make(&rng)};
        d.llvm_bytes = oracle_print(llvm, d.words.w, sizeof d.words.w, d.llvm_text, sizeof d.llvm_text);
        d.our_bytes = our_print(d.words.w, sizeof d.words.w, d.our_text);
        if (d.llvm_bytes == d.our_bytes && strcmp(d.llvm_text, d.our_text) == 0) {
            same += d.our_bytes > 0;
            both_refuse += d.our_bytes == 0;
        } else if (d.our_bytes == 0) {
            BW_EQ(bw_vec_push(&refused, d), 0);
        } else if (wrong++ < SHOWN_MAX) {
            report(&d);
        }
    }
    unsigned unknown = sort_refused(&refused, counts);
    printf("\n    %-5s seed %" PRIu64 ": %u words, %u the same instruction, %u refused by both\n", name, seed,
           WORDS_PER_FORMAT, same, both_refuse);
    for (size_t i = 0; i < BW_COUNT_OF(known_differences); i++) {
        if (counts[i])
            printf("      %6u only LLVM: %s\n", counts[i], known_differences[i].reason);
    }
    BW_EQ(wrong, 0);
    BW_EQ(unknown, 0);
    BW_TRUE(same > WORDS_PER_FORMAT / 50);
    bw_vec_free(&refused);
}

#define FUZZ(name)                \
    static void test_##name(void) \
    {                             \
        fuzz(#name, make_##name); \
    }
FUZZ(sop1)
FUZZ(sop2)
FUZZ(sopc)
FUZZ(sopk)
FUZZ(sopp)
FUZZ(smem)
FUZZ(vop1)
FUZZ(vop2)
FUZZ(vopc)
FUZZ(vop3)
FUZZ(vop3p)
FUZZ(vopd)
FUZZ(ds)
FUZZ(flat)
FUZZ(mubuf)
FUZZ(mtbuf)
FUZZ(ldsdir)
FUZZ(any)

/* --- coverage: opcodes that LLVM accepts, and that the table has --- */

struct opcode_space {
    const char *name;
    uint64_t fixed;
    unsigned shift, count;
    unsigned field_count;
    uint64_t fields[7]; /* tried in every combination: what an operation does not use must be 0 */
};

#define AT(value, bit) ((uint64_t)(value) << (bit))

static const struct opcode_space opcode_spaces[] = {
    {"SOP1", 0x17du << 23, 8, 256, 2, {AT(4, 16), 8}},
    {"SOP2", 2u << 30, 23, 96, 1, {AT(4, 16) | AT(12, 8) | 8}},
    {"SOPC", 0x17eu << 23, 16, 128, 1, {AT(12, 8) | 8}},
    {"SOPK", 0xbu << 28, 23, 29, 1, {AT(4, 16) | 0x12}},
    {"SOPP", 0x17fu << 23, 16, 128, 1, {3}},
    {"SMEM", 0x3du << 26, 18, 256, 2, {AT(4, 6) | 4, AT(0x10, 32) | AT(124, 57)}},
    {"VOP1", 0x3fu << 25, 9, 256, 2, {AT(4, 17), 0x108}},
    {"VOP2", 0, 25, 62, 1, {AT(4, 17) | AT(12, 9) | 0x108}},
    {"VOPC", 0x3eu << 25, 17, 256, 1, {AT(12, 9) | 0x108}},
    {"VOP3",
     0x35u << 26,
     16,
     1024,
     6,
     {4, AT(0x108, 32), AT(0x110, 41), AT(0x10, 41), AT(0x118, 50), AT(0x18, 50)}},
    {"VOP3P", 0xccu << 24, 16, 128, 3, {4 | AT(0x108, 32) | AT(0x110, 41), AT(0x118, 50), AT(1, 14)}},
    {"DS", 0x36u << 26, 18, 256, 5, {AT(8, 32), AT(12, 40), AT(16, 48), AT(4, 56), AT(1, 17)}},
    {"FLAT",
     0x37u << 26,
     18,
     128,
     3,
     {AT(8, 32) | AT(12, 40) | AT(4, 56) | AT(124, 48), AT(1, 16), AT(2, 16)}},
    {"MUBUF", 0x38u << 26, 18, 256, 2, {AT(8, 32) | AT(4, 40) | AT(2, 48) | AT(128, 56), AT(1, 14)}},
    {"MTBUF", 0x3au << 26, 15, 16, 1, {AT(8, 32) | AT(4, 40) | AT(2, 48) | AT(128, 56)}},
    {"LDSDIR", 0xceu << 24, 20, 4, 1, {4}},
};

static bool accepts(const struct opcode_space *space, unsigned opcode, bool ours)
{
    for (unsigned set = 0; set < 1u << space->field_count; set++) {
        uint64_t code = space->fixed | (uint64_t)opcode << space->shift;
        char text[TEXT_MAX];
        for (unsigned i = 0; i < space->field_count; i++)
            code |= set >> i & 1 ? space->fields[i] : 0;
        uint64_t words[2] = {code, 0x11};
        if (ours ? our_print(words, 12, text) != 0
                 : oracle_print(llvm, words, 12, text, sizeof text) != 0 && !strstr(text, "/*"))
            return true;
    }
    return false;
}

static void test_coverage(void)
{
    unsigned table_sum = 0, llvm_sum = 0;
    printf("\n    format  opcodes of LLVM  in the table\n");
    for (size_t i = 0; i < BW_COUNT_OF(opcode_spaces); i++) {
        const struct opcode_space *space = &opcode_spaces[i];
        unsigned in_llvm = 0, in_table = 0;
        for (unsigned opcode = 0; opcode < space->count; opcode++) {
            bool theirs = accepts(space, opcode, false), ours = accepts(space, opcode, true);
            in_llvm += theirs;
            in_table += ours;
            bool left_out =
                strcmp(space->name, "VOP1") == 0 && opcode == 28; /* v_mov_b16: see known_differences */
            left_out |= strcmp(space->name, "VOP2") == 0 && opcode == 0; /* v_illegal */
            if (theirs != ours && !left_out && !BW_EQ(ours, theirs))
                printf("      %s opcode %u\n", space->name, opcode);
        }
        printf("    %-6s  %15u  %12u\n", space->name, in_llvm, in_table);
        llvm_sum += in_llvm;
        table_sum += in_table;
    }
    printf("    all     %15u  %12u\n", llvm_sum, table_sum);
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
    if (system(LLVM_MC " --version > /dev/null 2>&1") != 0) {
        puts("skipped: " LLVM_MC " is not installed");
        return BW_TEST_SKIPPED;
    }
    if (getenv("BW_SEED"))
        seed = strtoull(getenv("BW_SEED"), NULL, 0);
    llvm = oracle_open();
    if (!llvm)
        return 1;
    int rc = bw_test_run("isa.disasm_fuzz", tests, BW_COUNT_OF(tests));
    LLVMDisasmDispose(llvm);
    return rc;
}

#else
int main(void)
{
    puts("skipped: built without LLVM");
    return BW_TEST_SKIPPED;
}
#endif
