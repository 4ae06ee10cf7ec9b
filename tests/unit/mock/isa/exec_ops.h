/* One vector operation at a time against a plain C reference: encoded from the operation table in each form
 * that it comes in (exec_ops_form.h), run on 1024 lanes whose operands lie in memory, 128 bytes a lane: a at
 * 0, b at 8, c at 16, what the destination held at 32 (16 bytes each for the last two); results come to 48,
 * VCC and EXEC to 64 and 72. */
#ifndef BW_TESTS_EXEC_OPS_H
#define BW_TESTS_EXEC_OPS_H

#include <fenv.h>
#include <math.h>
#include <string.h>

#include "tests/unit/mock/isa/exec_ops_form.h"
#include "tests/unit/mock/isa/exec_proof.h"
#include "tests/unit/mock/isa/exec_run.h"

enum { OPS_LANES = 1024, OPS_LANE_BYTES = 128, OPS_FORMS = 40 };

struct ops_values {
    uint64_t a, b, c, d;
    bool in, out;            /* the lane's bit of a mask that is read, and of one that is written */
    uint8_t neg;             /* dot products: which sources are signed */
    uint8_t lane;            /* in its wave */
    uint64_t c_high, d_high; /* 128-bit operands */
    uint64_t high;           /* and results */
    bool unsettled;          /* set by the reference: no document says */
};

/* Returns what the destination holds afterwards; a 16-bit result in the low half, whatever half it goes to.
 */
typedef uint64_t (*ops_reference)(struct ops_values *v);

enum ops_result {
    OPS_BITS,  /* exact */
    OPS_FLOAT, /* any NaN of the result's type equals any other: no document gives their payloads */
    OPS_MASK,  /* only the mask counts */
    OPS_BITS_AND_MASK,
};

struct ops_case {
    uint16_t op; /* enum bw_gfx11_op */
    ops_reference reference;
    uint8_t result;          /* enum ops_result */
    const char *values;      /* "int", "f32", "f64", "f16": what operands look like */
    uint8_t flags;           /* OPS_SELECTS and its like */
    ops_reference saturated; /* an integer result with the clamp bit */
};

/* What references round to: 0 nearest even, 1 up, 2 down, 3 toward zero; the host's mode follows it. */
static unsigned ops_rounding;
static unsigned ops_rounding_single; /* of single precision, whatever the result's type */
static bool ops_ieee;                /* MODE.IEEE */
static bool ops_keeps_denormals;     /* of results */

/* The literal of V_FMAMK and V_FMAAK. */
enum { OPS_LITERAL_F32 = 0x3fa66666, OPS_LITERAL_F16 = 0x3d33 };

/* s[4:5] = arguments' array, v20 = its offset for this lane, operands in v[1:2], v[3:4], v[5:8], old
 * v[10:13], a mask in vcc. */
static const uint32_t ops_prologue[] = {
    0xf4040100, 0xf8000000, /* s_load_b64 s[4:5], s[0:1], null */
    0x30280087,             /* v_lshlrev_b32_e32 v20, 7, v0 */
    0xbf89fc07,             /* s_waitcnt lgkmcnt(0) */
    0xdc5e0000, 0x01040014, /* global_load_b128 v[1:4], v20, s[4:5] */
    0xdc5e0010, 0x05040014, /* global_load_b128 v[5:8], v20, s[4:5] offset:16 */
    0xdc5e0020, 0x0a040014, /* global_load_b128 v[10:13], v20, s[4:5] offset:32 */
    0xbf8903f7,             /* s_waitcnt vmcnt(0) */
    0xbe8600ff, 0x3f9d3c05, /* s_mov_b32 s6, OPS_SGPR_VALUE */
    0xbe8700ff, 0xc1a3f00d, /* s_mov_b32 s7, OPS_SGPR_VALUE >> 32 */
    0xbeea00ff, 0x5a5a3c3c, /* s_mov_b32 vcc_lo, 0x5a5a3c3c */
    0xbeeb00ff, 0xc3a5963c, /* s_mov_b32 vcc_hi, 0xc3a5963c */
    0xbefe00ff, 0,          /* s_mov_b32 exec_lo, EXEC */
    0xbeff00ff, 0,          /* s_mov_b32 exec_hi, EXEC >> 32 */
};
#define OPS_VCC 0xc3a5963c5a5a3c3cull
enum { OPS_EXEC_LO_AT = sizeof ops_prologue / 4 - 3, OPS_EXEC_HI_AT = sizeof ops_prologue / 4 - 1 };

static const uint32_t ops_epilogue[] = {
    0xbe88007e,             /* s_mov_b32 s8, exec_lo */
    0xbe89007f,             /* s_mov_b32 s9, exec_hi */
    0xbefe00c1,             /* s_mov_b32 exec_lo, -1 */
    0xbeff00c1,             /* s_mov_b32 exec_hi, -1 */
    0x7e1c026a,             /* v_mov_b32_e32 v14, vcc_lo */
    0x7e1e026b,             /* v_mov_b32_e32 v15, vcc_hi */
    0x7e200208,             /* v_mov_b32_e32 v16, s8 */
    0x7e220209,             /* v_mov_b32_e32 v17, s9 */
    0xdc760030, 0x00040a14, /* global_store_b128 v20, v[10:13], s[4:5] offset:48 */
    0xdc760040, 0x00040e14, /* global_store_b128 v20, v[14:17], s[4:5] offset:64 */
    0xbfb00000,             /* s_endpgm */
};

static const struct ops_form ops_plain = {.mode = OPS_MODE_DEFAULT,
                                          .exec = ~0ull,
                                          .wave_size = 32,
                                          .op_sel_hi = 7,
                                          .row_mask = 15,
                                          .bank_mask = 15};

/* Registers of the operands: those of the prologue. */
enum { OPS_A = 1, OPS_B = 3, OPS_C = 5, OPS_D = 10 };

/* Source 0's field, and the dword that follows when lanes are selected (section 15.3.8, 15.3.9). */
static inline uint32_t ops_source0(const struct ops_form *form, uint32_t *dword)
{
    if (form->dpp == BW_DPP_8) {
        *dword = form->dpp8 << 8 | OPS_A;
        return form->fetch_inactive ? 234 : 233;
    }
    if (form->dpp == BW_DPP_16) {
        uint32_t modifiers = form->e32 ? (form->neg & 1u) | (form->abs & 1u) << 1 | (form->neg & 2u) << 1 |
                                             (form->abs & 2u) << 2
                                       : 0;
        *dword = OPS_A | (uint32_t)form->dpp_ctrl << 8 | (uint32_t)form->fetch_inactive << 18 |
                 (uint32_t)form->bound_ctrl << 19 | modifiers << 20 | (uint32_t)form->bank_mask << 24 |
                 (uint32_t)form->row_mask << 28;
        return 250;
    }
    return form->source[0] ? form->source[0] : 256 + OPS_A;
}

static inline uint32_t ops_e32_word(const struct bw_gfx11_op_row *row, uint32_t src0)
{
    switch (row->format) {
    case BW_GFX11_VOP1:
        return 0x7e000000u | OPS_D << 17 | (uint32_t)row->opcode << 9 | src0;
    case BW_GFX11_VOP2:
        return (uint32_t)row->opcode << 25 | OPS_D << 17 | OPS_B << 9 | src0;
    default:
        return 0x7c000000u | (uint32_t)row->opcode << 17 | OPS_B << 9 | src0;
    }
}

/* A VOP1, VOP2, VOPC, VOP3 or VOP3P row on those registers (RDNA3 ISA document, section 15.3). */
static inline unsigned ops_encode_form(const struct bw_gfx11_op_row *row, const struct ops_form *form,
                                       uint32_t *words)
{
    const uint32_t operands[3] = {256 + OPS_A, form->source[1] ? form->source[1] : 256 + OPS_B,
                                  form->source[2] ? form->source[2] : 256 + OPS_C};
    uint32_t opcode = row->opcode, dst = row->dst.type == BW_T_MASK ? BW_SREG_VCC_LO : OPS_D, dword = 0;
    uint32_t src0 = ops_source0(form, &dword), high = 0;
    unsigned extra = form->dpp != BW_DPP_NONE;
    for (unsigned i = 0; i < 3; i++) {
        if (row->src[i].operand_class == BW_CLASS_K) {
            dword = row->src[i].type == BW_T_F16 ? OPS_LITERAL_F16 : OPS_LITERAL_F32;
            extra = 1;
        }
        if (form->source[i] == OPS_LITERAL_CODE) {
            dword = OPS_LITERAL_VALUE;
            extra = 1;
        }
    }
    if (form->e32) {
        words[0] = ops_e32_word(row, src0);
        words[1] = dword;
        return 1 + extra;
    }
    for (unsigned i = 0; i < 3; i++) {
        if (row->src[i].type != BW_T_NONE)
            high |= (row->src[i].type == BW_T_MASK ? (uint32_t)BW_SREG_VCC_LO
                     : i == 0                      ? src0
                                                   : operands[i])
                    << (9 * i);
    }
    words[1] = high | (uint32_t)form->neg << 29;
    words[2] = dword;
    if (ops_is_vop3p(row)) {
        words[0] = 0xcc000000u | opcode << 16 | (uint32_t)(form->op_sel_hi >> 2) << 14 |
                   (uint32_t)form->op_sel << 11 | (uint32_t)form->abs << 8 | (uint32_t)form->clamp << 15 |
                   dst;
        words[1] |= (form->op_sel_hi & 3u) << 27;
        return 2 + extra;
    }
    opcode += row->format == BW_GFX11_VOP1 ? 0x180 : row->format == BW_GFX11_VOP2 ? 0x100 : 0;
    words[0] = 0xd4000000u | opcode << 16 | (uint32_t)form->clamp << 15 | dst;
    words[0] |= row->flags & BW_GFX11_F_SDST ? (uint32_t)BW_SREG_VCC_LO << 8
                                             : (uint32_t)form->op_sel << 11 | (uint32_t)form->abs << 8;
    words[1] |= (uint32_t)form->omod << 27;
    return 2 + extra;
}

static inline unsigned ops_encode(const struct bw_gfx11_op_row *row, uint32_t *words)
{
    struct ops_form form = ops_plain;
    form.e32 =
        !(row->flags & BW_GFX11_F_E64) && (row->format == BW_GFX11_VOP1 || row->format == BW_GFX11_VOP2);
    return ops_encode_form(row, &form, words);
}

static inline void ops_put_form(struct exec_machine *machine, const uint32_t *op, unsigned words,
                                const struct ops_form *form)
{
    uint32_t code[64];
    size_t prologue = sizeof ops_prologue / 4, epilogue = sizeof ops_epilogue / 4;
    memcpy(code, ops_prologue, sizeof ops_prologue);
    code[OPS_EXEC_LO_AT] = (uint32_t)form->exec;
    code[OPS_EXEC_HI_AT] = (uint32_t)(form->exec >> 32);
    memcpy(code + prologue, op, words * 4);
    memcpy(code + prologue + words, ops_epilogue, sizeof ops_epilogue);
    memcpy(machine->memory + EXEC_CODE, code, (prologue + words + epilogue) * 4);
    uint64_t array = EXEC_BASE + EXEC_DATA;
    memcpy(machine->memory + EXEC_ARGS, &array, sizeof array);
    machine->dispatch.group_size[0] = OPS_LANES;
    machine->dispatch.wave_size = form->wave_size;
    /* COMPUTE_PGM_RSRC1: FLOAT_MODE, ENABLE_DX10_CLAMP, ENABLE_IEEE_MODE, FP16_OVFL */
    machine->dispatch.rsrc1 = 7 | (form->mode & 0xff) << 12 | (form->mode >> 8 & 1) << 21 |
                              (form->mode >> 9 & 1) << 23 | (form->mode >> 23 & 1) << 26;
}

static inline void ops_put_code(struct exec_machine *machine, const uint32_t *op, unsigned words)
{
    ops_put_form(machine, op, words, &ops_plain);
}

static inline uint32_t ops_special_f32(struct bw_rng *rng)
{
    static const uint32_t values[] = {
        0x00000000, 0x80000000, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000, 0x00000001, 0x80000001,
        0x007fffff, 0x00800000, 0x80800000, 0x7f7fffff, 0xff7fffff, 0x3f000000, 0xbf000000, 0x40490fdb,
        0x4b000000, 0x4b800001, 0xcf000000, 0x4f000000, 0x4effffff, 0x33800000, 0x3fffffff, 0x7fc00000,
        0x7f800001, 0xffc12345, 0xff812345, 0x3effffff, 0x3f000001, 0x40200000, 0x40600000, 0x477fe000,
        0x477ff000, 0x38800000, 0x387fc000, 0x33000001,
    };
    return values[bw_rng_below(rng, sizeof values / sizeof values[0])];
}

static inline uint64_t ops_special_f64(struct bw_rng *rng)
{
    static const uint64_t values[] = {
        0,
        0x8000000000000000ull,
        0x3ff0000000000000ull,
        0xbff8000000000000ull,
        0x7ff0000000000000ull,
        0xfff0000000000000ull,
        1,
        0x000fffffffffffffull,
        0x0010000000000000ull,
        0x7fefffffffffffffull,
        0x41dfffffffc00000ull,
        0x41e0000000000000ull,
        0xc1e0000000200000ull,
        0x3fe0000000000000ull,
        0x4004000000000000ull,
        0x7ff8000000000000ull,
        0x7ff0000000000001ull,
        0x47efffffe0000000ull,
        0x47efffffefffffffull,
        0x36a0000000000000ull,
        0x380fffffe0000000ull,
    };
    return values[bw_rng_below(rng, sizeof values / sizeof values[0])];
}

static inline uint32_t ops_special_f16(struct bw_rng *rng)
{
    static const uint16_t values[] = {0x0000, 0x8000, 0x3c00, 0xbc00, 0x7c00, 0xfc00, 0x0001, 0x8001,
                                      0x03ff, 0x0400, 0x7bff, 0xfbff, 0x3800, 0x3555, 0x7e00, 0x7c01,
                                      0xfe55, 0xfd55, 0x4100, 0x6400, 0x5bff, 0x3801};
    return values[bw_rng_below(rng, sizeof values / sizeof values[0])];
}

static inline uint32_t ops_value_bf16(struct bw_rng *rng)
{
    uint32_t random = (uint32_t)bw_rng_next(rng);
    switch (bw_rng_below(rng, 3)) {
    case 0:
        return ops_special_f32(rng) >> 16;
    case 1:
        return (random & 0x81ff) | 0x3e00;
    default:
        return random & 0xffff;
    }
}

static inline uint32_t ops_value_f16(struct bw_rng *rng)
{
    uint32_t random = (uint32_t)bw_rng_next(rng);
    switch (bw_rng_below(rng, 3)) {
    case 0:
        return ops_special_f16(rng);
    case 1:
        return (random & 0x8fff) | 0x3000;
    default:
        return random & 0xffff;
    }
}

/* An operand: special, of moderate size, or any bits. */
static inline uint64_t ops_value(struct bw_rng *rng, const char *kind)
{
    static const uint32_t integers[] = {0,          1,          2,          31,        32,       33,
                                        63,         64,         255,        256,       0x7fff,   0x8000,
                                        0xffff,     0x10000,    0x7fffff,   0x800000,  0xffffff, 0x7fffffff,
                                        0x80000000, 0x80000001, 0xfffffffe, 0xffffffff};
    uint64_t random = bw_rng_next(rng);
    if (strcmp(kind, "f16") == 0) /* both halves, for op_sel */
        return (random & ~0xffffffffull) | ops_value_f16(rng) << 16 | ops_value_f16(rng);
    if (strcmp(kind, "bf16") == 0)
        return (random & ~0xffffffffull) | ops_value_bf16(rng) << 16 | ops_value_bf16(rng);
    unsigned choice = (unsigned)bw_rng_below(rng, 3);
    if (strcmp(kind, "f32") == 0)
        return choice == 0   ? ops_special_f32(rng)
               : choice == 1 ? (random & 0x83ffffff) | 0x3c000000
                             : random & 0xffffffff;
    if (strcmp(kind, "f64") == 0)
        return choice == 0   ? ops_special_f64(rng)
               : choice == 1 ? (random & 0x803fffffffffffffull) | 0x3fc0000000000000ull
                             : random;
    if (choice == 0)
        return integers[bw_rng_below(rng, sizeof integers / sizeof integers[0])] | (random & ~0xffffffffull);
    return choice == 1 ? (uint64_t)((int64_t)random >> (random & 63)) : random;
}

static inline bool ops_both_nan(uint64_t a, uint64_t b, unsigned type)
{
    uint64_t magnitude = ~ops_sign_bit(type), infinity = ops_exponent_bits(type);
    return (a & magnitude) > infinity && (b & magnitude) > infinity;
}

/* The same number, or both some NaN. */
static inline bool ops_same_float(uint64_t observed, uint64_t expected, unsigned type)
{
    if (type == BW_T_V2F16)
        return ops_same_float(observed & 0xffff, expected & 0xffff, BW_T_F16) &&
               ops_same_float(observed >> 16 & 0xffff, expected >> 16 & 0xffff, BW_T_F16);
    return observed == expected || (ops_is_float(type) && ops_both_nan(observed, expected, type));
}

struct ops_outcome {
    uint64_t value, high;
    bool out;       /* the lane's bit of the mask written */
    bool unsettled; /* no document says */
};

/* Infinite though no source was and nothing was divided by zero: FP16_OVFL makes it the largest number. */
static inline uint64_t ops_kept_finite(const struct ops_form *form, const struct ops_case *c, uint64_t r,
                                       const uint64_t *sources, const uint8_t *types, unsigned shift)
{
    if (!(form->mode & OPS_MODE_FP16_OVFL) || (r & 0x7fff) != 0x7c00)
        return r;
    for (unsigned i = 0; i < 4; i++) {
        if (ops_is_infinite(sources[i] >> (types[i] == BW_T_V2F16 ? shift : 0), types[i]))
            return r;
    }
    if ((c->flags & OPS_DIVIDES) && (sources[0] & 0x7fff) == 0)
        return r;
    return (r & 0x8000) | 0x7bff;
}

/* A result of the operation as modes and output modifiers leave it. */
static inline uint64_t ops_result_of(const struct ops_form *form, const struct ops_case *c, uint64_t r,
                                     const uint64_t *sources, const uint8_t *types)
{
    const struct bw_gfx11_op_row *row = &bw_gfx11_ops[c->op];
    unsigned type = row->dst.type;
    if (type == BW_T_V2F16) {
        struct ops_form packed = *form;
        uint64_t halves = 0;
        packed.omod = 0; /* packed results ignore it */
        for (unsigned shift = 0; shift < 32; shift += 16) {
            uint64_t half = ops_kept_finite(form, c, r >> shift & 0xffff, sources, types, shift);
            halves |= ops_finished(&packed, row, BW_T_F16, c->flags, half) << shift;
        }
        return halves;
    }
    if (type == BW_T_F16)
        r = ops_kept_finite(form, c, r & 0xffff, sources, types, 0);
    return type == BW_T_F32 || type == BW_T_F64 || type == BW_T_F16
               ? ops_finished(form, row, type, c->flags, r)
               : r;
}

static inline void ops_set_rounding(const struct ops_form *form, unsigned dst_type)
{
    static const int modes[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    ops_rounding = dst_type == BW_T_F32 ? form->mode & 3 : form->mode >> 2 & 3;
    fesetround(modes[ops_rounding]);
    ops_ieee = form->mode & OPS_MODE_IEEE;
    ops_keeps_denormals = ops_denormals(form, dst_type, false);
    ops_rounding_single = form->mode & 3;
}

/* What lane `lane` of the values holds after the operation. */
static inline struct ops_outcome ops_expected(const struct ops_form *form, const struct ops_case *c,
                                              const struct ops_values *values, unsigned lane)
{
    const struct bw_gfx11_op_row *row = &bw_gfx11_ops[c->op];
    unsigned in_wave = lane % form->wave_size, type = row->dst.type;
    const struct ops_values *own = &values[lane];
    struct ops_outcome outcome = {own->d, own->d_high, false, false};
    int from;
    if (!ops_takes_part(form, (int)in_wave, &from))
        return outcome;
    struct ops_values v = *own;
    uint64_t raw_a = from < 0 ? 0 : values[lane - in_wave + (unsigned)from].a;
    uint64_t *const raw[3] = {&raw_a, &v.b, &v.c};
    for (unsigned i = 0; i < 3; i++) {
        if (form->source[i])
            *raw[i] = ops_scalar_value(form->source[i], row->src[i].type);
    }
    bool high = (form->op_sel & 8) != 0 || c->op == BW_GFX11_V_FMA_MIXHI_F16;
    uint64_t raw_d = own->d;
    struct ops_form keeping = *form;
    keeping.mode |= OPS_MODE_DENORM_IN_32 | OPS_MODE_DENORM_IN_16_64;
    const struct ops_form *others = c->flags & OPS_KEEPS_SOURCES ? &keeping : form,
                          *first = c->flags & OPS_KEEPS_SOURCE_0 ? &keeping : others;
    v.a = ops_modified(first, row, 0, row->src[0].type, raw_a);
    v.b = ops_modified(others, row, 1, row->src[1].type, v.b);
    v.c = ops_modified(others, row, 2, row->src[2].type, v.c);
    v.d = ops_is_16_bit(type) ? raw_d >> (high ? 16 : 0) & 0xffff : raw_d;
    if (ops_is_float(type) && !ops_denormals(form, type, true))
        v.d = ops_flushed(v.d, type);
    v.neg = form->neg;
    v.lane = (uint8_t)in_wave;
    bool accumulates = (row->flags & BW_GFX11_F_RMW) && row->src[2].type == BW_T_NONE;
    const uint64_t sources[4] = {v.a, v.b, v.c, v.d};
    uint8_t types[4] = {row->src[0].type == BW_T_MIX ? BW_T_F32 : row->src[0].type,
                        row->src[1].type == BW_T_MIX ? BW_T_F32 : row->src[1].type,
                        row->src[2].type == BW_T_MIX ? BW_T_F32 : row->src[2].type,
                        accumulates ? type : BW_T_NONE};
    if (row->src[1].operand_class == BW_CLASS_K || row->src[2].operand_class == BW_CLASS_K)
        types[2] = BW_T_NONE; /* the register is in b, the literal is finite */
    ops_set_rounding(form, type);
    bool saturates = form->clamp && c->saturated;
    uint64_t r = saturates ? c->saturated(&v) : c->reference(&v);
    ops_set_rounding(&ops_plain, type);
    r = ops_result_of(form, c, r, sources, types);
    outcome.unsettled = v.unsettled;
    if (ops_is_16_bit(type))
        r = high ? (raw_d & 0xffff) | (r & 0xffff) << 16 : (raw_d & 0xffff0000u) | (r & 0xffff);
    outcome.value = r;
    outcome.high = v.high;
    outcome.out = v.out;
    return outcome;
}

static inline bool ops_same(const struct ops_case *c, const struct ops_form *form, uint64_t observed,
                            uint64_t expected)
{
    const struct bw_gfx11_op_row *row = &bw_gfx11_ops[c->op];
    unsigned type = row->dst.type;
    if (bw_gfx11_type_dwords((enum bw_gfx11_type)type) < 2) {
        observed = (uint32_t)observed;
        expected = (uint32_t)expected;
    }
    bool finished = form->clamp || form->omod || form->mode != OPS_MODE_DEFAULT;
    if (observed == expected || !ops_is_float(type) || (c->result != OPS_FLOAT && !finished))
        return observed == expected;
    if (type != BW_T_F16)
        return ops_same_float(observed, expected, type);
    unsigned shift = (form->op_sel & 8) || c->op == BW_GFX11_V_FMA_MIXHI_F16 ? 16 : 0;
    return (observed >> (16 - shift) & 0xffff) == (expected >> (16 - shift) & 0xffff) &&
           ops_same_float(observed >> shift & 0xffff, expected >> shift & 0xffff, BW_T_F16);
}

static inline void ops_print_form(const struct ops_form *form)
{
    static const char *const dpp[] = {"", "dpp8 ", "dpp16 "};
    printf("\n      %s%swave%u exec %llx mode %x neg %u abs %u omod %u op_sel %u %u clamp %d",
           form->e32 ? "e32 " : "e64 ", dpp[form->dpp], form->wave_size, (unsigned long long)form->exec,
           form->mode, form->neg, form->abs, form->omod, form->op_sel, form->op_sel_hi, form->clamp);
    printf(" sources %u %u %u", form->source[0], form->source[1], form->source[2]);
    if (form->dpp)
        printf(" ctrl %x sel %x masks %x %x bound_ctrl %d fi %d", form->dpp_ctrl, form->dpp8, form->row_mask,
               form->bank_mask, form->bound_ctrl, form->fetch_inactive);
}

static inline void ops_fill(struct exec_machine *machine, const struct ops_case *c, struct ops_values *values,
                            uint64_t seed)
{
    uint8_t *array = machine->memory + EXEC_DATA;
    struct bw_rng rng = {.state = seed};
    for (unsigned lane = 0; lane < OPS_LANES; lane++) {
        struct ops_values *v = &values[lane];
        *v = (struct ops_values){.a = ops_value(&rng, c->values),
                                 .b = ops_value(&rng, c->values),
                                 .c = ops_value(&rng, c->values),
                                 .d = ops_value(&rng, c->values),
                                 .c_high = bw_rng_next(&rng),
                                 .d_high = bw_rng_next(&rng)};
        if (c->flags & OPS_REPEATS_SOURCE)
            v->a = lane & 1 ? v->b : v->c;
        uint64_t stored[6] = {v->a, v->b, v->c, v->c_high, v->d, v->d_high};
        memcpy(array + lane * OPS_LANE_BYTES, stored, sizeof stored);
    }
}

static inline bool ops_check_lane(const struct exec_machine *machine, const struct ops_case *c,
                                  const struct ops_form *form, const struct ops_values *values, unsigned lane)
{
    const struct bw_gfx11_op_row *row = &bw_gfx11_ops[c->op];
    unsigned in_wave = lane % form->wave_size;
    struct ops_outcome expected = ops_expected(form, c, values, lane);
    uint64_t observed[4];
    memcpy(observed, machine->memory + EXEC_DATA + lane * OPS_LANE_BYTES + 48, sizeof observed);
    bool compares = row->dst.type == BW_T_MASK, cmpx = row->flags & BW_GFX11_F_CMPX;
    bool bit = observed[cmpx ? 3 : 2] >> in_wave & 1;
    int from;
    /* comparisons write the whole mask; of carries, what lanes that are off get is not documented */
    bool mask_counts =
        compares || (c->result == OPS_BITS_AND_MASK && ops_takes_part(form, (int)in_wave, &from));
    bool value_ok = compares || expected.unsettled ||
                    (ops_same(c, form, observed[0], expected.value) &&
                     (row->dst.type != BW_T_B128 || observed[1] == expected.high));
    if (value_ok && (!mask_counts || bit == expected.out || expected.unsettled))
        return true;
    const struct ops_values *v = &values[lane];
    printf("\n    %s lane %u: a %llx, b %llx, c %llx, d %llx, in %d: expected %llx %d, observed %llx %d",
           row->name, lane, (unsigned long long)v->a, (unsigned long long)v->b, (unsigned long long)v->c,
           (unsigned long long)v->d, v->in, (unsigned long long)expected.value, expected.out,
           (unsigned long long)observed[0], bit);
    return false;
}

/* Runs the operation in this form on fresh operands and compares. */
static inline bool ops_check_form(struct exec_machine *machine, const struct ops_case *c,
                                  const struct ops_form *form, uint64_t seed)
{
    const struct bw_gfx11_op_row *row = &bw_gfx11_ops[c->op];
    static struct ops_values values[OPS_LANES];
    uint32_t words[3];
    ops_put_form(machine, words, ops_encode_form(row, form, words), form);
    ops_fill(machine, c, values, seed);
    for (unsigned lane = 0; lane < OPS_LANES; lane++)
        values[lane].in = OPS_VCC >> (lane % form->wave_size) & 1;
    if (exec_run(machine) != BW_ISA_DONE) {
        printf("\n    %s: status %d, %s", row->name, machine->result.status, machine->result.text);
        ops_print_form(form);
        return false;
    }
    for (unsigned lane = 0; lane < OPS_LANES; lane++) {
        if (!ops_check_lane(machine, c, form, values, lane)) {
            ops_print_form(form);
            return false;
        }
    }
    return true;
}

static inline bool ops_has_e32(const struct bw_gfx11_op_row *row)
{
    return row->format == BW_GFX11_VOP1 || row->format == BW_GFX11_VOP2 || row->format == BW_GFX11_VOPC;
}

static inline void ops_draw_dpp(struct bw_rng *rng, struct ops_form *form)
{
    static const uint16_t groups[] = {0x100, 0x110, 0x120, 0x140, 0x150, 0x160};
    form->dpp = bw_rng_below(rng, 3) ? BW_DPP_16 : BW_DPP_8;
    form->dpp8 = (uint32_t)bw_rng_next(rng) & 0xffffff;
    unsigned group = (unsigned)bw_rng_below(rng, 7);
    form->dpp_ctrl = (uint16_t)bw_rng_below(rng, 256);
    if (group < 6) {
        uint16_t n = (uint16_t)(1 + bw_rng_below(rng, 15));
        form->dpp_ctrl = (uint16_t)(groups[group] + (group == 3 ? n & 1 : n));
    }
    form->bound_ctrl = bw_rng_below(rng, 2);
    form->fetch_inactive = bw_rng_below(rng, 2);
    form->row_mask = bw_rng_below(rng, 2) ? 15 : (uint8_t)bw_rng_below(rng, 16);
    form->bank_mask = bw_rng_below(rng, 2) ? 15 : (uint8_t)bw_rng_below(rng, 16);
}

static inline void ops_draw_mode(struct bw_rng *rng, const struct ops_case *c, struct ops_form *form)
{
    uint32_t random = (uint32_t)bw_rng_next(rng);
    uint32_t fields = OPS_MODE_DX10_CLAMP | OPS_MODE_IEEE;
    if (!(c->flags & OPS_DEFAULT_MODE))
        fields |= 0xf0 | (c->flags & OPS_NEAREST_ONLY ? 0 : 0xf) | OPS_MODE_FP16_OVFL;
    form->mode = (OPS_MODE_DEFAULT & ~fields) | (random & fields);
}

/* Input modifiers that the encoding has room for. */
static inline void ops_draw_modifiers(struct bw_rng *rng, const struct bw_gfx11_op_row *row,
                                      struct ops_form *form)
{
    uint8_t mods = (uint8_t)((1u << ops_mod_count(row)) - 1), random = (uint8_t)bw_rng_next(rng);
    if (ops_is_vop3p(row)) {
        uint8_t packed = 0, floats = 0, singles = 0;
        for (unsigned i = 0; i < 3; i++) {
            packed |= (uint8_t)((ops_is_packed(row->src[i].type) || row->src[i].type == BW_T_MIX) << i);
            floats |= (uint8_t)((row->src[i].type == BW_T_V2F16 || row->src[i].type == BW_T_V2BF16 ||
                                 row->src[i].type == BW_T_MIX)
                                << i);
            singles |= (uint8_t)((row->src[i].type == BW_T_F32) << i);
        }
        bool signs = strstr(row->name, "_iu") != NULL; /* neg says which sources are signed */
        form->op_sel = (uint8_t)bw_rng_next(rng) & packed;
        form->op_sel_hi = (form->op_sel_hi & (uint8_t)~packed) | ((uint8_t)bw_rng_next(rng) & packed);
        form->neg = random & (signs ? 3 : floats | singles);
        form->abs = (uint8_t)bw_rng_next(rng) & floats;
        return;
    }
    if (form->e32 && (form->dpp != BW_DPP_16 || ops_is_packed(row->src[0].type)))
        return;
    for (unsigned i = 0; i < 3; i++) /* which half is meant is not documented */
        mods &= ops_is_packed(row->src[i].type) ? (uint8_t) ~(1u << i) : 7;
    form->neg = random & mods & (form->e32 ? 3 : 7);
    form->abs = (uint8_t)bw_rng_next(rng) & mods & (form->e32 ? 3 : 7);
    if (row->flags & BW_GFX11_F_SDST)
        form->abs = 0;
    if (form->e32)
        return;
    random = (uint8_t)bw_rng_next(rng);
    for (unsigned i = 0; i < 3; i++)
        form->op_sel |= ops_is_16_bit(row->src[i].type) ? random & 1u << i : 0;
    form->op_sel |= ops_is_16_bit(row->dst.type) ? random & 8 : 0;
    if (row->flags & BW_GFX11_F_SDST)
        form->op_sel = 0;
}

static inline void ops_draw_output(struct bw_rng *rng, const struct ops_case *c, struct ops_form *form)
{
    const struct bw_gfx11_op_row *row = &bw_gfx11_ops[c->op];
    if (form->e32)
        return;
    bool clamps = ops_is_float(row->dst.type) || c->saturated || (c->flags & OPS_CLAMP_NOTHING) ||
                  row->dst.type == BW_T_MASK;
    form->clamp = (row->flags & BW_GFX11_F_CLAMP) && clamps && bw_rng_below(rng, 3) == 0;
    if ((row->flags & BW_GFX11_F_OMOD) && bw_rng_below(rng, 3) == 0) {
        form->omod = (uint8_t)bw_rng_below(rng, 4);
        if (bw_rng_below(rng, 2) && !(c->flags & OPS_DEFAULT_MODE)) /* where it counts: section 7.2.3.1 */
            form->mode &= ~(uint32_t)(OPS_MODE_IEEE | OPS_MODE_DENORM_OUT_32 | OPS_MODE_DENORM_OUT_16_64);
    }
}

/* Scalar registers and constants in place of VGPRs: two scalar values at most, one literal. */
static inline void ops_draw_sources(struct bw_rng *rng, const struct bw_gfx11_op_row *row,
                                    struct ops_form *form)
{
    unsigned scalars = 0;
    bool has_mask = row->src[2].type == BW_T_MASK || strncmp(row->name, "v_div_fmas", 10) == 0,
         has_literal = false;
    scalars += has_mask;
    for (unsigned i = 0; i < (form->e32 ? 1 : 3); i++) {
        unsigned type = row->src[i].type;
        bool takes =
            row->src[i].operand_class == BW_CLASS_ANY && type != BW_T_MASK &&
            (ops_is_vop3p(row) || !ops_is_packed(type) || /* which half of V_PK_FMAC: not documented */
             strcmp(row->name, "v_dot2acc_f32_f16") == 0);
        bool is_int = type == BW_T_B16 || type == BW_T_V2B16;
        unsigned choice = (unsigned)bw_rng_below(rng, 6);
        if (!takes || choice > 3 || row->src[1].operand_class == BW_CLASS_K ||
            row->src[2].operand_class == BW_CLASS_K)
            continue;
        if (choice == 0 && scalars < 2) {
            form->source[i] = OPS_SGPR;
            scalars++;
        } else if (choice == 1 && scalars < 2 && !has_literal) {
            form->source[i] = OPS_LITERAL_CODE;
            has_literal = true;
            scalars++;
        } else if (choice == 2) {
            form->source[i] = (uint16_t)(OPS_INLINE_INT + bw_rng_below(rng, 81));
        } else if (choice == 3 && !is_int) {
            form->source[i] = (uint16_t)(OPS_INLINE_FLOAT + bw_rng_below(rng, 9));
        }
        if (form->source[i] >= OPS_INLINE_INT) { /* they have a low half only */
            form->op_sel &= (uint8_t) ~(1u << i);
            if (ops_is_packed(type) || type == BW_T_MIX)
                form->op_sel_hi &= (uint8_t) ~(1u << i);
        }
    }
}

/* The forms that each operation is tried in: plain, both wave sizes, then what its row allows. */
static inline struct ops_form ops_draw(struct bw_rng *rng, const struct ops_case *c, unsigned number)
{
    const struct bw_gfx11_op_row *row = &bw_gfx11_ops[c->op];
    struct ops_form form = ops_plain;
    bool has_e64 = !ops_has_e32(row) || (row->flags & BW_GFX11_F_E64);
    form.e32 = !has_e64 || (ops_has_e32(row) && number % 3 == 1);
    if (number == 0)
        return form;
    form.wave_size = number & 1 ? 64 : 32;
    form.exec = bw_rng_below(rng, 3) ? bw_rng_next(rng) | (bw_rng_next(rng) & bw_rng_next(rng)) : ~0ull;
    if (number < 3)
        return form;
    if (bw_rng_below(rng, 2))
        ops_draw_mode(rng, c, &form);
    if ((row->flags & (form.e32 ? BW_GFX11_F_DPP : BW_GFX11_F_DPP64)) && bw_rng_below(rng, 2))
        ops_draw_dpp(rng, &form);
    ops_draw_modifiers(rng, row, &form);
    if (form.dpp == BW_DPP_NONE && bw_rng_below(rng, 2))
        ops_draw_sources(rng, row, &form);
    ops_draw_output(rng, c, &form);
    return form;
}

static inline bool ops_check_case(struct exec_machine *machine, const struct ops_case *c, uint64_t seed)
{
    struct bw_rng rng = {.state = seed};
    for (unsigned number = 0; number < OPS_FORMS; number++) {
        struct ops_form form = ops_draw(&rng, c, number);
        if (!ops_check_form(machine, c, &form, seed + number))
            return false;
    }
    return true;
}

/* Every case in its forms: how many fail. Those that hold count as proved, if `proves`. */
static inline unsigned ops_check_cases(struct exec_machine *machine, const struct ops_case *cases,
                                       size_t count, bool proves)
{
    unsigned failed = 0;
    for (size_t i = 0; i < count; i++) {
        bool ok = ops_check_case(machine, &cases[i], 7919 * (i + 1));
        if (ok && proves)
            ops_prove(cases[i].op);
        failed += !ok;
    }
    return failed;
}

static inline unsigned ops_check_all(struct exec_machine *machine, const struct ops_case *cases, size_t count)
{
    return ops_check_cases(machine, cases, count, true);
}

/* Operations whose reference holds a choice of ours, which no document settles. */
static inline unsigned ops_check_chosen(struct exec_machine *machine, const struct ops_case *cases,
                                        size_t count)
{
    return ops_check_cases(machine, cases, count, false);
}

#endif
