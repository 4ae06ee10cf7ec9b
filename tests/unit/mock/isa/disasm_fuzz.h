/* Random words of every format, here and in LLVM 19: the same ones are instructions, of the same length and
 * text. One program a generation, which says what it is about:
 *
 *   FUZZ_GENERATION, FUZZ_OPS, FUZZ_CPU   struct bw_generation, how many operations it has, LLVM's name
 *
 * LLVM's disassembler is lenient where its assembler is not, and so is the hardware's documentation silent;
 * each way in which the two may differ is a row of known_differences. Whatever is in no row fails. BW_SEED
 * picks other words. */
#ifndef BW_TESTS_DISASM_FUZZ_H
#define BW_TESTS_DISASM_FUZZ_H

#include "mock/isa/inst.h"

#include "base/bits.h"
#include "base/rng.h"
#include "base/text.h"
#include "base/vec.h"
#include "tests/unit/mock/isa/llvm_oracle.h"

enum { VOP3 = 0x35 }; /* bits [31:26] */
enum { WORDS_PER_FORMAT = 40000, TEXT_MAX = 512, SHOWN_MAX = 10, KNOWN_MAX = 32 };

static LLVMDisasmContextRef llvm;
static uint64_t seed = 1;

static uint32_t bits(struct bw_rng *rng, unsigned count)
{
    return (uint32_t)(bw_rng_next(rng) >> (64 - count));
}

static inline bool chance(struct bw_rng *rng, unsigned percent)
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
        const struct bw_gfx11_op_row *row = &FUZZ_GENERATION.ops[bw_rng_below(rng, FUZZ_OPS)];
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

static inline struct words make_sop1(struct bw_rng *rng)
{
    uint32_t op = pick_opcode(rng, BW_GFX11_SOP1, 8);
    return (struct words){
        {0x17du << 23 | bits(rng, 7) << 16 | op << 8 | scalar_source(rng), extra_dword(rng)}};
}

static inline struct words make_sop2(struct bw_rng *rng)
{
    uint32_t op = (uint32_t)bw_rng_below(rng, 0x60);
    return (struct words){
        {2u << 30 | op << 23 | bits(rng, 6) << 17 | scalar_source(rng) << 8 | scalar_source(rng),
         extra_dword(rng)}};
}

static inline struct words make_sopc(struct bw_rng *rng)
{
    uint32_t op = pick_opcode(rng, BW_GFX11_SOPC, 7);
    return (struct words){
        {0x17eu << 23 | op << 16 | scalar_source(rng) << 8 | scalar_source(rng), extra_dword(rng)}};
}

static inline struct words make_sopk(struct bw_rng *rng)
{
    uint32_t op = (uint32_t)bw_rng_below(rng, 29); /* above: SOP1, SOPC and SOPP */
    return (struct words){
        {0xbu << 28 | op << 23 | bits(rng, 6) << 17 | bits(rng, chance(rng, 50) ? 16 : 7), extra_dword(rng)}};
}

static inline struct words make_sopp(struct bw_rng *rng)
{
    uint32_t op = pick_opcode(rng, BW_GFX11_SOPP, 7);
    return (struct words){{0x17fu << 23 | op << 16 | rarely(rng, chance(rng, 50) ? 16 : 7, 80)}};
}

static inline struct words make_vop1(struct bw_rng *rng)
{
    uint32_t op = pick_opcode(rng, BW_GFX11_VOP1, 8);
    return (struct words){
        {0x3fu << 25 | bits(rng, 8) << 17 | op << 9 | vector_source(rng), extra_dword(rng)}};
}

static inline struct words make_vop2(struct bw_rng *rng)
{
    uint32_t op = (uint32_t)bw_rng_below(rng, 62); /* above: VOPC and VOP1 */
    return (struct words){{op << 25 | bits(rng, 16) << 9 | vector_source(rng), extra_dword(rng)}};
}

static inline struct words make_vopc(struct bw_rng *rng)
{
    return (struct words){{0x3eu << 25 | bits(rng, 16) << 9 | vector_source(rng), extra_dword(rng)}};
}

/* Sources that the operation does not have are mostly 0, modifiers mostly absent: or nearly every word is
 * refused. */
static inline struct words make_vop3(struct bw_rng *rng)
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

static inline struct words make_vop3p(struct bw_rng *rng)
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

static inline struct words make_vopd(struct bw_rng *rng)
{
    uint32_t x = (uint32_t)bw_rng_below(rng, 16), y = (uint32_t)bw_rng_below(rng, 20);
    return (struct words){{0x32u << 26 | x << 22 | y << 17 | rarely(rng, 8, 60) << 9 | vector_source(rng),
                           bits(rng, 15) << 17 | rarely(rng, 8, 60) << 9 | vector_source(rng),
                           extra_dword(rng)}};
}

static inline struct words make_ds(struct bw_rng *rng)
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

static inline struct words make_any(struct bw_rng *rng)
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
    unsigned length = bw_inst_decode(&FUZZ_GENERATION, code, code_bytes, &inst);
    if (length)
        bw_inst_print(&inst, 0, &printed);
    snprintf(text, TEXT_MAX, "%s", bw_text_string(&printed));
    bw_text_free(&printed);
    return length;
}

static inline bool starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

static bool is_marked_invalid(const struct difference *d)
{
    return strstr(d->llvm_text, "/*") != NULL;
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
struct known_difference {
    const char *reason;
    bool (*holds)(const struct difference *d);
};
extern const struct known_difference known_differences[]; /* ends with a row of nothing */

/* LLVM's slips of the pen. */
static void correct(char *llvm_text);

typedef BW_VEC(struct difference) difference_vec;

static void assemble_again(difference_vec *differences)
{
    const char **texts = calloc(differences->count + 1, sizeof *texts);
    struct oracle_encoding *encodings = calloc(differences->count + 1, sizeof *encodings);
    if (!BW_TRUE(texts && encodings))
        return;
    for (size_t i = 0; i < differences->count; i++)
        texts[i] = differences->data[i].llvm_text;
    BW_EQ(oracle_assemble(FUZZ_CPU, texts, differences->count, encodings), 0);
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
        while (known_differences[row].reason && !known_differences[row].holds(&refused->data[i]))
            row++;
        if (known_differences[row].reason)
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
    unsigned same = 0, both_refuse = 0, wrong = 0, counts[KNOWN_MAX] = {0};
    for (unsigned i = 0; i < WORDS_PER_FORMAT; i++) {
        struct difference d = {.words = make(&rng)};
        d.llvm_bytes = oracle_print(llvm, d.words.w, sizeof d.words.w, d.llvm_text, sizeof d.llvm_text);
        correct(d.llvm_text);
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
    for (size_t i = 0; known_differences[i].reason; i++) {
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

/* --- coverage: opcodes that LLVM accepts, and that the table has --- */

struct opcode_space {
    const char *name;
    uint64_t fixed;
    unsigned shift, count;
    unsigned field_count;
    uint64_t fields[7]; /* tried in every combination: what an operation does not use must be 0 */
    uint64_t third;     /* dword; 0: a literal */
};

#define AT(value, bit) ((uint64_t)(value) << (bit))

static bool accepts(const struct opcode_space *space, unsigned opcode, bool ours)
{
    for (unsigned set = 0; set < 1u << space->field_count; set++) {
        uint64_t code = space->fixed | (uint64_t)opcode << space->shift;
        char text[TEXT_MAX];
        for (unsigned i = 0; i < space->field_count; i++)
            code |= set >> i & 1 ? space->fields[i] : 0;
        uint64_t words[2] = {code, space->third ? space->third : 0x11};
        if (ours ? our_print(words, 12, text) != 0
                 : oracle_print(llvm, words, 12, text, sizeof text) != 0 && !strstr(text, "/*"))
            return true;
    }
    return false;
}

static void check_coverage(const struct opcode_space *spaces, size_t space_count,
                           bool (*is_left_out)(const struct opcode_space *space, unsigned opcode))
{
    unsigned table_sum = 0, llvm_sum = 0;
    printf("\n    format  opcodes of LLVM  in the table\n");
    for (size_t i = 0; i < space_count; i++) {
        const struct opcode_space *space = &spaces[i];
        unsigned in_llvm = 0, in_table = 0;
        for (unsigned opcode = 0; opcode < space->count; opcode++) {
            bool theirs = accepts(space, opcode, false), ours = accepts(space, opcode, true);
            in_llvm += theirs;
            in_table += ours;
            if (theirs != ours && !is_left_out(space, opcode) && !BW_EQ(ours, theirs))
                printf("      %s opcode %u\n", space->name, opcode);
        }
        printf("    %-6s  %15u  %12u\n", space->name, in_llvm, in_table);
        llvm_sum += in_llvm;
        table_sum += in_table;
    }
    printf("    all     %15u  %12u\n", llvm_sum, table_sum);
}

/* What main() does: 77 where LLVM is not there. */
static int fuzz_run(const char *suite, const struct bw_test *tests, size_t count)
{
    if (system(LLVM_MC " --version > /dev/null 2>&1") != 0) {
        puts("skipped: " LLVM_MC " is not installed");
        return BW_TEST_SKIPPED;
    }
    if (getenv("BW_SEED"))
        seed = strtoull(getenv("BW_SEED"), NULL, 0);
    llvm = oracle_open(FUZZ_CPU);
    if (!llvm)
        return 1;
    int rc = bw_test_run(suite, tests, count);
    LLVMDisasmDispose(llvm);
    return rc;
}

#endif
