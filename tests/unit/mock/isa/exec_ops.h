/* One vector operation at a time against a plain C reference: encoded from the operation table, run on 1024
 * lanes whose operands lie in memory, 64 bytes a lane: a at 0, b at 8, c at 16, what the destination held at
 * 32; results come to 48, the mask to 56. */
#ifndef BW_TESTS_EXEC_OPS_H
#define BW_TESTS_EXEC_OPS_H

#include <math.h>

#include "base/rng.h"
#include "mock/isa/inst.h"
#include "tests/unit/mock/isa/exec_proof.h"
#include "tests/unit/mock/isa/exec_run.h"

enum { OPS_LANES = 1024, OPS_LANE_BYTES = 64 };

struct ops_values {
    uint64_t a, b, c, d;
    bool in, out; /* the lane's bit of a mask that is read, and of one that is written */
};

/* Returns what the destination holds afterwards, its other bits as they were in v->d when the operation
 * leaves them. */
typedef uint64_t (*ops_reference)(struct ops_values *v);

enum ops_result {
    OPS_BITS,  /* exact */
    OPS_FLOAT, /* single precision, any NaN equals any other */
    OPS_DOUBLE,
    OPS_HALF, /* the low half is a half-precision number; the high half exact */
    OPS_MASK, /* only the mask counts */
    OPS_BITS_AND_MASK,
};

struct ops_case {
    uint16_t op; /* enum bw_gfx11_op */
    ops_reference reference;
    uint8_t result;     /* enum ops_result */
    const char *values; /* "int", "f32", "f64", "f16": what operands look like */
};

/* s[4:5] = arguments' array, v20 = its offset for this lane, operands in v[1:2], v[3:4], v[5:6], old
 * v[10:11], a mask in vcc. */
static const uint32_t ops_prologue[] = {
    0xf4040100, 0xf8000000, /* s_load_b64 s[4:5], s[0:1], null */
    0x30280086,             /* v_lshlrev_b32_e32 v20, 6, v0 */
    0xbf89fc07,             /* s_waitcnt lgkmcnt(0) */
    0xdc5e0000, 0x01040014, /* global_load_b128 v[1:4], v20, s[4:5] */
    0xdc5e0010, 0x05040014, /* global_load_b128 v[5:8], v20, s[4:5] offset:16 */
    0xdc560020, 0x0a040014, /* global_load_b64 v[10:11], v20, s[4:5] offset:32 */
    0xbf8903f7,             /* s_waitcnt vmcnt(0) */
    0xbeea00ff, 0x5a5a3c3c, /* s_mov_b32 vcc_lo, 0x5a5a3c3c */
};
enum { OPS_VCC = 0x5a5a3c3c };

static const uint32_t ops_epilogue[] = {
    0x7e18026a,             /* v_mov_b32_e32 v12, vcc_lo */
    0x7e1a0206,             /* v_mov_b32_e32 v13, s6 */
    0xdc6e0030, 0x00040a14, /* global_store_b64 v20, v[10:11], s[4:5] offset:48 */
    0xdc6e0038, 0x00040c14, /* global_store_b64 v20, v[12:13], s[4:5] offset:56 */
    0xbfb00000,             /* s_endpgm */
};

/* The 64-bit encoding of a VOP1, VOP2, VOPC, VOP3 or VOP3P row on those registers (RDNA3 ISA document,
 * section 15.3). */
static inline unsigned ops_encode(const struct bw_gfx11_op_row *row, uint32_t *words)
{
    static const uint32_t operands[3] = {256 + 1, 256 + 3, 256 + 5};
    uint32_t opcode = row->opcode, dst = row->dst.type == BW_T_MASK ? BW_SREG_VCC_LO : 10;
    uint32_t high = 0;
    for (unsigned i = 0; i < 3; i++) {
        if (row->src[i].type != BW_T_NONE)
            high |= (row->src[i].type == BW_T_MASK ? (uint32_t)BW_SREG_VCC_LO : operands[i]) << (9 * i);
    }
    if (row->format == BW_GFX11_VOP3P) { /* op_sel_hi: all ones is the plain form */
        words[0] = 0xcc000000u | opcode << 16 | 1u << 14 | dst;
        words[1] = high | 3u << 27;
        return 2;
    }
    opcode += row->format == BW_GFX11_VOP1 ? 0x180 : row->format == BW_GFX11_VOP2 ? 0x100 : 0;
    words[0] = 0xd4000000u | opcode << 16 | dst;
    if (row->flags & BW_GFX11_F_SDST)
        words[0] |= (uint32_t)BW_SREG_VCC_LO << 8;
    words[1] = high;
    return 2;
}

static inline void ops_put_code(struct exec_machine *machine, const uint32_t *op, unsigned words)
{
    uint32_t code[64];
    size_t prologue = sizeof ops_prologue / 4, epilogue = sizeof ops_epilogue / 4;
    memcpy(code, ops_prologue, sizeof ops_prologue);
    memcpy(code + prologue, op, words * 4);
    memcpy(code + prologue + words, ops_epilogue, sizeof ops_epilogue);
    exec_put_code(machine, code, (prologue + words + epilogue) * 4);
    uint64_t array = EXEC_BASE + EXEC_DATA;
    memcpy(machine->memory + EXEC_ARGS, &array, sizeof array);
    machine->dispatch.group_size[0] = OPS_LANES;
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

/* An operand: special, of moderate size, or any bits. */
static inline uint64_t ops_value(struct bw_rng *rng, const char *kind)
{
    static const uint32_t integers[] = {0,          1,          2,          31,        32,       33,
                                        63,         64,         255,        256,       0x7fff,   0x8000,
                                        0xffff,     0x10000,    0x7fffff,   0x800000,  0xffffff, 0x7fffffff,
                                        0x80000000, 0x80000001, 0xfffffffe, 0xffffffff};
    uint64_t random = bw_rng_next(rng);
    unsigned choice = (unsigned)bw_rng_below(rng, 3);
    if (strcmp(kind, "f32") == 0)
        return choice == 0   ? ops_special_f32(rng)
               : choice == 1 ? (random & 0x83ffffff) | 0x3c000000
                             : random & 0xffffffff;
    if (strcmp(kind, "f64") == 0)
        return choice == 0   ? ops_special_f64(rng)
               : choice == 1 ? (random & 0x803fffffffffffffull) | 0x3fc0000000000000ull
                             : random;
    if (strcmp(kind, "f16") == 0)
        return (random & 0xffffffffffff0000ull) | (choice == 0   ? ops_special_f16(rng)
                                                   : choice == 1 ? (uint32_t)(random & 0x8fff) | 0x3000
                                                                 : (uint32_t)random & 0xffff);
    if (choice == 0)
        return integers[bw_rng_below(rng, sizeof integers / sizeof integers[0])] | (random & ~0xffffffffull);
    return choice == 1 ? (uint64_t)((int64_t)random >> (random & 63)) : random;
}

static inline bool ops_same(uint8_t result, uint64_t observed, uint64_t expected, unsigned dwords)
{
    uint32_t o = (uint32_t)observed, e = (uint32_t)expected;
    if (dwords < 2) {
        observed = o;
        expected = e;
    }
    if (observed == expected)
        return true;
    switch (result) {
    case OPS_FLOAT:
        return (o & 0x7fffffff) > 0x7f800000 && (e & 0x7fffffff) > 0x7f800000;
    case OPS_DOUBLE:
        return (observed & ~(1ull << 63)) > 0x7ff0000000000000ull &&
               (expected & ~(1ull << 63)) > 0x7ff0000000000000ull;
    case OPS_HALF:
        return o >> 16 == e >> 16 && (o & 0x7fff) > 0x7c00 && (e & 0x7fff) > 0x7c00;
    default:
        return false;
    }
}

/* Runs the words already put (by ops_put_code) on fresh operands and compares. */
static inline bool ops_check(struct exec_machine *machine, const struct ops_case *c, const char *name,
                             uint64_t seed)
{
    const struct bw_gfx11_op_row *row = &bw_gfx11_ops[c->op];
    unsigned dwords =
        row->dst.type == BW_T_MASK ? 0 : bw_gfx11_type_dwords((enum bw_gfx11_type)row->dst.type);
    uint8_t *array = machine->memory + EXEC_DATA;
    static struct ops_values values[OPS_LANES];
    struct bw_rng rng = {.state = seed};
    for (unsigned lane = 0; lane < OPS_LANES; lane++) {
        struct ops_values *v = &values[lane];
        *v = (struct ops_values){ops_value(&rng, c->values), ops_value(&rng, c->values),
                                 ops_value(&rng, c->values), ops_value(&rng, c->values),
                                 OPS_VCC >> (lane % 32) & 1, false};
        uint64_t stored[5] = {v->a, v->b, v->c, 0, v->d};
        memcpy(array + lane * OPS_LANE_BYTES, stored, sizeof stored);
    }
    if (exec_run(machine) != BW_ISA_DONE) {
        printf("\n    %s: status %d, %s", name, machine->result.status, machine->result.text);
        return false;
    }
    for (unsigned lane = 0; lane < OPS_LANES; lane++) {
        struct ops_values v = values[lane];
        uint64_t expected = c->reference(&v), observed;
        uint32_t mask;
        memcpy(&observed, array + lane * OPS_LANE_BYTES + 48, 8);
        memcpy(&mask, array + lane * OPS_LANE_BYTES + 56, 4);
        bool bit = mask >> (lane % 32) & 1;
        bool value_ok = c->result == OPS_MASK || ops_same(c->result, observed, expected, dwords);
        bool mask_ok = (c->result != OPS_MASK && c->result != OPS_BITS_AND_MASK) || bit == v.out;
        if (value_ok && mask_ok)
            continue;
        v = values[lane];
        printf("\n    %s: a %llx, b %llx, c %llx, d %llx, in %d: expected %llx %d, observed %llx %d", name,
               (unsigned long long)v.a, (unsigned long long)v.b, (unsigned long long)v.c,
               (unsigned long long)v.d, v.in, (unsigned long long)expected, v.out,
               (unsigned long long)observed, bit);
        return false;
    }
    return true;
}

/* Every case, encoded from its row, some thousand lanes each. */
static inline unsigned ops_check_all(struct exec_machine *machine, const struct ops_case *cases, size_t count)
{
    enum { ROUNDS = 3 };
    unsigned failed = 0;
    for (size_t i = 0; i < count; i++) {
        const struct bw_gfx11_op_row *row = &bw_gfx11_ops[cases[i].op];
        uint32_t words[2];
        unsigned length = ops_encode(row, words);
        ops_put_code(machine, words, length);
        bool ok = true;
        for (unsigned round = 0; round < ROUNDS && ok; round++)
            ok = ops_check(machine, &cases[i], row->name, 7919 * (i + 1) + round);
        if (ok)
            ops_prove(cases[i].op);
        failed += !ok;
    }
    return failed;
}

#endif
