/* The decoders on words whose meaning is written down: golden text, fields of chosen instructions,
 * refusals. */
#include "mock/isa/inst.h"

#include "base/bits.h"
#include "base/rng.h"
#include "base/text.h"
#include "tests/check.h"

static unsigned decode_words(struct bw_inst *inst, const uint32_t *words, unsigned count)
{
    return bw_gfx11_decode(words, count * sizeof *words, inst);
}

#define DECODE(inst, ...)                               \
    decode_words(inst, (const uint32_t[]){__VA_ARGS__}, \
                 sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

/* Every line of the golden file: "word [word [word]] | text". */
static void check_golden_words(const struct bw_generation *generation, const char *path)
{
    FILE *file = fopen(path, "r");
    char line[512];
    unsigned count = 0;
    if (!BW_TRUE(file != NULL))
        return;
    while (fgets(line, sizeof line, file)) {
        uint32_t words[3];
        char *bar = strchr(line, '|');
        if (line[0] == '#' || !bar)
            continue;
        line[strcspn(line, "\n")] = 0;
        int parsed = sscanf(line, "%" SCNx32 " %" SCNx32 " %" SCNx32, &words[0], &words[1], &words[2]);
        struct bw_inst inst;
        struct bw_text text = {0};
        if (BW_TRUE(parsed >= 1) &&
            BW_EQ(bw_inst_decode(generation, words, 4 * (uint64_t)parsed, &inst), parsed * 4))
            bw_inst_print(&inst, 0, &text);
        if (!BW_STR(bw_text_string(&text), bar + 2))
            printf("      at: %s\n", line);
        bw_text_free(&text);
        count++;
    }
    fclose(file);
    BW_TRUE(count > 2000);
}

static void test_golden_words(void)
{
    check_golden_words(&bw_gfx11, BW_SOURCE_DIR "/tests/golden/isa/gfx1100.txt");
    check_golden_words(&bw_gfx12, BW_SOURCE_DIR "/tests/golden/isa/gfx1201.txt");
}

/* v_fma_f32 v4, -|v1|, s2, 0x40490fdb clamp mul:2 */
static void test_vop3_fields(void)
{
    struct bw_inst inst;
    if (!BW_EQ(DECODE(&inst, 0xd6138104, 0x2bfc0501, 0x40490fdb), 12))
        return;
    BW_EQ(inst.op, BW_GFX11_V_FMA_F32);
    BW_EQ(inst.format, BW_GFX11_VOP3);
    BW_EQ(inst.dst.kind, BW_OPERAND_VGPR);
    BW_EQ(inst.dst.index, 4);
    BW_EQ(inst.src[0].kind, BW_OPERAND_VGPR);
    BW_EQ(inst.src[0].index, 1);
    BW_EQ(inst.src[1].kind, BW_OPERAND_SREG);
    BW_EQ(inst.src[1].index, 2);
    BW_EQ(inst.src[2].kind, BW_OPERAND_LITERAL);
    BW_EQ(bw_gfx11_constant(&inst, &inst.src[2]), 0x40490fdb);
    BW_EQ(inst.neg, 1);
    BW_EQ(inst.abs, 1);
    BW_EQ(inst.omod, 1);
    BW_EQ(inst.clamp, 1);
}

/* Operands that the encoding implies are there for the executor. */
static void test_implied_operands(void)
{
    struct bw_inst inst;
    BW_EQ(DECODE(&inst, 0x40081908), 4); /* v_add_co_ci_u32_e32 v4, vcc_lo, v8, v12, vcc_lo */
    BW_EQ(inst.sdst.kind, BW_OPERAND_SREG);
    BW_EQ(inst.sdst.index, BW_SREG_VCC_LO);
    BW_EQ(inst.src[2].index, BW_SREG_VCC_LO);
    BW_EQ(inst.src[2].type, BW_T_MASK);
    BW_EQ(DECODE(&inst, 0x7d821908), 4); /* v_cmpx_lt_i32... writes EXEC */
    BW_EQ(inst.dst.kind, BW_OPERAND_SREG);
    BW_EQ(inst.dst.index, BW_SREG_EXEC_LO);
    BW_EQ(DECODE(&inst, 0x7c221908), 4); /* v_cmp_lt_f32_e32 vcc_lo */
    BW_EQ(inst.dst.index, BW_SREG_VCC_LO);
}

/* v_dual_mul_f32 v8, v9, v10 :: v_dual_cndmask_b32 v5, v6, v7: the lowest bit of the second destination is
 * implied. */
static void test_vopd_halves(void)
{
    struct bw_inst inst;
    if (!BW_EQ(DECODE(&inst, 0xc8d21509, 0x08040f06), 8))
        return;
    BW_EQ(inst.format, BW_GFX11_VOPD);
    BW_EQ(inst.op, BW_GFX11_V_MUL_F32);
    BW_EQ(inst.dst.index, 8);
    BW_EQ(inst.src[1].index, 10);
    BW_EQ(inst.y.op, BW_GFX11_V_CNDMASK_B32);
    BW_EQ(inst.y.dst.index, 5);
    BW_EQ(inst.y.src[0].index, 6);
    BW_EQ(inst.y.src[2].index, BW_SREG_VCC_LO);
}

static void test_memory_fields(void)
{
    struct bw_inst inst;
    BW_EQ(DECODE(&inst, 0xdc521ffc, 0x04060008), 8); /* global_load_b32 v4, v8, s[6:7] offset:-4 */
    BW_EQ(inst.op, BW_GFX11_FLAT_LOAD_B32);
    BW_EQ(inst.segment, BW_SEGMENT_GLOBAL);
    BW_EQ(inst.offset, -4);
    BW_EQ(inst.src[0].dwords, 1);
    BW_EQ(inst.src[2].dwords, 2);
    BW_EQ(DECODE(&inst, 0xdc520000, 0x047c0008), 8); /* global_load_b32 v4, v[8:9], off */
    BW_EQ(inst.src[0].dwords, 2);
    BW_EQ(inst.src[2].kind, BW_OPERAND_NONE);
    BW_EQ(DECODE(&inst, 0xdcd60000, 0x047c0c08), 8); /* global_atomic_add_u32 without return */
    BW_EQ(inst.dst.kind, BW_OPERAND_NONE);
    BW_EQ(DECODE(&inst, 0xdcd64000, 0x047c0c08), 8); /* ... and with */
    BW_EQ(inst.dst.kind, BW_OPERAND_VGPR);
    BW_EQ(DECODE(&inst, 0xf4000104, 0xf81ffffc), 8); /* s_load_b32 s4, s[8:9], -0x4 */
    BW_EQ(inst.offset, -4);
    BW_EQ(inst.src[1].index, BW_SREG_NULL);
    BW_EQ(DECODE(&inst, 0xd8dc0804, 0x04000008), 8); /* ds_load_2addr_b32 v[4:5], v8 offset0:4 offset1:8 */
    BW_EQ(inst.dst.dwords, 2);
    BW_EQ(inst.offset & 0xff, 4);
    BW_EQ(inst.offset >> 8, 8);
}

static void test_constants(void)
{
    struct bw_inst inst;
    BW_EQ(DECODE(&inst, 0xbe8401c1), 4); /* s_mov_b64 s[4:5], -1 */
    BW_EQ(bw_gfx11_constant(&inst, &inst.src[0]), ~(uint64_t)0);
    BW_EQ(DECODE(&inst, 0xbe8401ff, 0xffffffff), 8); /* a literal of a B64 is zero-extended */
    BW_EQ(bw_gfx11_constant(&inst, &inst.src[0]), 0xffffffff);
    BW_EQ(DECODE(&inst, 0x868485ff, 0xfffffff0), 8); /* s_ashr_i64: sign-extended */
    BW_EQ(bw_gfx11_constant(&inst, &inst.src[0]), 0xfffffffffffffff0);
    BW_EQ(DECODE(&inst, 0x7e0806ff, 0x40080000), 8); /* v_cvt_i32_f64 of 3.0: the literal is the high half */
    BW_EQ(bw_gfx11_constant(&inst, &inst.src[0]), 0x4008000000000000);
    BW_EQ(DECODE(&inst, 0x7e0802f8), 4); /* v_mov_b32 v4, 1/(2 pi) */
    BW_EQ(bw_gfx11_constant(&inst, &inst.src[0]), 0x3e22f983);
    BW_EQ(DECODE(&inst, 0x7e08a8f2), 4); /* v_rcp_f16 v4, 1.0 */
    BW_EQ(bw_gfx11_constant(&inst, &inst.src[0]), 0x3c00);
}

/* What is no instruction is refused: reserved opcodes, fields that must be 0, operands that do not exist. */
static void test_refusals(void)
{
    static const struct {
        const char *why;
        uint32_t words[3];
        unsigned count;
    } cases[] = {
        {"SOP2 opcode 7 is reserved", {0x83840c08}, 1},
        {"SOP1 opcode 6 is reserved", {0xbe840608}, 1},
        {"source code 209 is reserved", {0x7e0802d1}, 1},
        {"v_nop with a destination", {0x7e020000}, 1},
        {"a pair of SGPRs that starts odd", {0xbe850108}, 1},
        {"a pair that starts at vcc_hi", {0xbe84016b}, 1},
        {"four SGPRs from s102", {0xf4081984, 0xf8000000}, 2},
        {"VGPR pair from v255", {0x7ffe2f08}, 1},
        {"lds_direct", {0x7e0802fe}, 1},
        {"vccz as a source", {0x7e0802fb}, 1},
        {"negated integer", {0xd6250004, 0x22020501}, 2},
        {"v_bfi_b32 with clamp", {0xd6128004, 0x040e0501}, 2},
        {"DPP shift by 0", {0x7e0802fa, 0xff010008}, 2},
        {"DPP wave shift", {0x7e0802fa, 0xff013008}, 2},
        {"v_readfirstlane with DPP", {0x7e0804fa, 0xff00e408}, 2},
        {"v_mov_b32 to v0 with a missing literal", {0x7e0002ff}, 1},
        {"VOP3 cut short", {0xd6130004}, 1},
        {"ds_load_b32 with data", {0xd8d80000, 0x04000c08}, 2},
        {"flat with a scalar base", {0xdc500000, 0x04060008}, 2},
        {"flat with a negative offset", {0xdc501ffc, 0x047c0008}, 2},
        {"MUBUF with a literal offset", {0xe0500000, 0xff020400, 4}, 3},
        {"image instruction", {0xf0000f00, 0x00000000, 0}, 3},
    };
    for (unsigned i = 0; i < BW_COUNT_OF(cases); i++) {
        struct bw_inst inst;
        if (!BW_EQ(decode_words(&inst, cases[i].words, cases[i].count), 0))
            printf("      accepted: %s\n", cases[i].why);
    }
}

/* Whatever the words are: no crash, never more bytes than there are, and the printer takes what the decoder
 * gives. */
static void test_random_words_are_safe(void)
{
    struct bw_rng rng = {.state = 11};
    unsigned accepted = 0;
    for (unsigned i = 0; i < 600000; i++) {
        uint32_t words[3] = {(uint32_t)bw_rng_next(&rng), (uint32_t)bw_rng_next(&rng),
                             (uint32_t)bw_rng_next(&rng)};
        uint64_t bytes = bw_rng_below(&rng, sizeof words + 1);
        struct bw_inst inst;
        struct bw_text text = {0};
        unsigned length = bw_inst_decode(i % 2 ? &bw_gfx12 : &bw_gfx11, words, bytes, &inst);
        if (length > bytes || length % 4)
            BW_EQ(length, 0);
        if (length) {
            bw_inst_print(&inst, 0, &text);
            accepted++;
            if (!text.length)
                BW_TRUE(text.length > 0);
        }
        bw_text_free(&text);
    }
    BW_TRUE(accepted > 10000);
}

/* Rows of one format do not share an opcode, and a mnemonic names one row. */
static void check_table(const struct bw_gfx11_op_row *rows, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        const struct bw_gfx11_op_row *row = &rows[i];
        BW_TRUE(row->name && row->name[0]);
        for (unsigned j = 0; j < i; j++) {
            const struct bw_gfx11_op_row *other = &rows[j];
            unsigned vop3 = row->format == BW_GFX11_VOP3SD ? BW_GFX11_VOP3 : row->format;
            unsigned other_vop3 = other->format == BW_GFX11_VOP3SD ? BW_GFX11_VOP3 : other->format;
            if ((vop3 == other_vop3 && row->opcode == other->opcode) || strcmp(row->name, other->name) == 0)
                BW_STR(row->name, "a row of its own");
        }
    }
}

static void test_tables_are_consistent(void)
{
    check_table(bw_gfx11_ops, BW_GFX11_OP_COUNT);
    check_table(bw_gfx12_ops, BW_GFX12_OP_COUNT);
}

BW_TEST_MAIN("isa.decode", {"golden words", test_golden_words}, {"VOP3 fields", test_vop3_fields},
             {"implied operands", test_implied_operands}, {"VOPD halves", test_vopd_halves},
             {"memory fields", test_memory_fields}, {"constants", test_constants},
             {"refusals", test_refusals}, {"random words are safe", test_random_words_are_safe},
             {"the tables are consistent", test_tables_are_consistent})
