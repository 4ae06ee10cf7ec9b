/* Goal: scalar operations that touch EXEC, M0, MODE and the program counter, branches, and those that change
 * nothing, agree with the RDNA3 ISA document (sections 3.3.1, 3.4, 16.2, 16.3, 16.5) in both wave sizes. */
#include "tests/check.h"

#include "tests/unit/mock/isa/exec_ops.h"

/* What the code around the operation puts where: s[16:17] = a, s[18:19] = b, s[20:21] = d, SCC, EXEC, VCC, M0
 * before; d, SCC, EXEC, VCC, M0 after. */
enum { A = 16, B = 18, D = 20, RESULT_AT = 128, ROUNDS = 60, BODY_MAX = 8 };

struct state {
    uint64_t a, b, d, exec, vcc;
    uint32_t scc, m0;
};

static const uint32_t prologue[] = {
    0xf4100400, 0xf8000000, /* s_load_b512 s[16:31], s[0:1], null */
    0xbf89fc07,             /* s_waitcnt lgkmcnt(0) */
    0xbeea001a, 0xbeeb001b, /* s_mov_b32 vcc_lo, s26; vcc_hi, s27 */
    0xbefd001c,             /* s_mov_b32 m0, s28 */
    0xbefe0018, 0xbeff0019, /* s_mov_b32 exec_lo, s24; exec_hi, s25 */
    0xbf078016,             /* s_cmp_lg_u32 s22, 0 */
};
static const uint32_t epilogue[] = {
    0x98178081,             /* s_cselect_b32 s23, 1, 0 */
    0xbe88007e, 0xbe89007f, /* s_mov_b32 s8, exec_lo; s9, exec_hi */
    0xbe8a006a, 0xbe8b006b, /* s_mov_b32 s10, vcc_lo; s11, vcc_hi */
    0xbefe00c1, 0xbeff00c1, /* s_mov_b32 exec_lo, -1; exec_hi, -1 */
    0x7e000280,             /* v_mov_b32_e32 v0, 0 */
    0x7e020214, 0x7e040215, /* v_mov_b32_e32 v1, s20; v2, s21 */
    0x7e060217,             /* v_mov_b32_e32 v3, s23 */
    0x7e080208, 0x7e0a0209, /* v_mov_b32_e32 v4, s8; v5, s9 */
    0x7e0c020a, 0x7e0e020b, /* v_mov_b32_e32 v6, s10; v7, s11 */
    0x7e10027d,             /* v_mov_b32_e32 v8, m0 */
    0xdc760080, 0x00000100, /* global_store_b128 v0, v[1:4], s[0:1] offset:128 */
    0xdc760090, 0x00000500, /* global_store_b128 v0, v[5:8], s[0:1] offset:144 */
    0xbfb00000,             /* s_endpgm */
};
/* Address of the body's first word. */
#define BODY_VA (EXEC_BASE + EXEC_CODE + sizeof prologue)

static uint32_t opcode(uint16_t op)
{
    return bw_gfx11_ops[op].opcode;
}

static uint32_t sop1(uint16_t op, unsigned dst, unsigned src)
{
    return 0xbe800000u | dst << 16 | opcode(op) << 8 | src;
}

static uint32_t sopp(uint16_t op, unsigned imm)
{
    return 0xbf800000u | opcode(op) << 16 | (imm & 0xffff);
}

static uint32_t sopk(uint16_t op, unsigned dst, unsigned imm)
{
    return 0xb0000000u | opcode(op) << 23 | dst << 16 | (imm & 0xffff);
}

static bool run(struct exec_machine *machine, const uint32_t *body, unsigned words, unsigned wave_size,
                struct state *state)
{
    uint32_t input[16] = {0}, result[8];
    memcpy(machine->memory + EXEC_CODE, prologue, sizeof prologue);
    memcpy(machine->memory + EXEC_CODE + sizeof prologue, body, 4 * words);
    memcpy(machine->memory + EXEC_CODE + sizeof prologue + 4 * words, epilogue, sizeof epilogue);
    memcpy(input, &state->a, 8);
    memcpy(input + 2, &state->b, 8);
    memcpy(input + 4, &state->d, 8);
    input[6] = state->scc;
    memcpy(input + 8, &state->exec, 8);
    memcpy(input + 10, &state->vcc, 8);
    input[12] = state->m0;
    memcpy(machine->memory + EXEC_ARGS, input, sizeof input);
    machine->dispatch.wave_size = machine->dispatch.group_size[0] = wave_size;
    if (!BW_EQ(exec_run(machine), BW_ISA_DONE)) {
        printf("    %s", machine->result.text);
        return false;
    }
    memcpy(result, machine->memory + EXEC_ARGS + RESULT_AT, sizeof result);
    memcpy(&state->d, result, 8);
    state->scc = result[2];
    memcpy(&state->exec, result + 3, 8);
    memcpy(&state->vcc, result + 5, 8);
    state->m0 = result[7];
    return true;
}

static bool same(const struct state *observed, const struct state *expected)
{
    return BW_EQ(observed->d, expected->d) && BW_EQ(observed->scc, expected->scc) &&
           BW_EQ(observed->exec, expected->exec) && BW_EQ(observed->vcc, expected->vcc) &&
           BW_EQ(observed->m0, expected->m0);
}

static struct state drawn(struct bw_rng *rng)
{
    uint64_t random = bw_rng_next(rng);
    return (struct state){
        .a = ops_value(rng, "int"),
        .b = ops_value(rng, "int"),
        .d = ops_value(rng, "int"),
        .exec = random & 1   ? ops_value(rng, "int")
                : random & 2 ? ~0ull
                             : 0,
        .vcc = random & 4   ? ops_value(rng, "int")
               : random & 8 ? 1ull << 40
                            : 0,
        .scc = random >> 4 & 1,
        .m0 = (uint32_t)bw_rng_next(rng),
    };
}

/* EXEC saved and combined with a source, or written and copied: EXEC from source and EXEC. */
enum combination { C_AND, C_OR, C_XOR, C_NAND, C_NOR, C_XNOR, C_AND_NOT0, C_OR_NOT0, C_AND_NOT1, C_OR_NOT1 };
static const struct exec_case {
    uint16_t narrow, wide;
    enum combination combination;
    bool saves;
} exec_cases[] = {
#define SAVES(name)                                                                        \
    {                                                                                      \
        BW_GFX11_S_##name##_SAVEEXEC_B32, BW_GFX11_S_##name##_SAVEEXEC_B64, C_##name, true \
    }
#define WRITES(name)                                                                    \
    {                                                                                   \
        BW_GFX11_S_##name##_WREXEC_B32, BW_GFX11_S_##name##_WREXEC_B64, C_##name, false \
    }
    SAVES(AND),      SAVES(OR),      SAVES(XOR),      SAVES(NAND),    SAVES(NOR),       SAVES(XNOR),
    SAVES(AND_NOT0), SAVES(OR_NOT0), SAVES(AND_NOT1), SAVES(OR_NOT1), WRITES(AND_NOT0), WRITES(AND_NOT1),
};

static uint64_t combined(enum combination combination, uint64_t s, uint64_t exec)
{
    switch (combination) {
    case C_AND:
        return s & exec;
    case C_OR:
        return s | exec;
    case C_XOR:
        return s ^ exec;
    case C_NAND:
        return ~(s & exec);
    case C_NOR:
        return ~(s | exec);
    case C_XNOR:
        return ~(s ^ exec);
    case C_AND_NOT0:
        return ~s & exec;
    case C_OR_NOT0:
        return ~s | exec;
    case C_AND_NOT1:
        return s & ~exec;
    default:
        return s | ~exec;
    }
}

static void replace(uint64_t *was, uint64_t value, bool wide)
{
    *was = wide ? value : (*was & ~0xffffffffull) | (value & 0xffffffff);
}

static void check_exec(struct exec_machine *machine, const struct exec_case *c, bool wide)
{
    uint16_t op = wide ? c->wide : c->narrow;
    struct bw_rng rng = {.state = op};
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct state state = drawn(&rng), expected = state;
        uint32_t body = sop1(op, D, A);
        uint64_t mask = wide ? ~0ull : 0xffffffff, exec = state.exec & mask;
        uint64_t after = combined(c->combination, state.a, state.exec) & mask;
        replace(&expected.d, c->saves ? exec : after, wide);
        replace(&expected.exec, after, wide);
        expected.scc = after != 0;
        if (!run(machine, &body, 1, wide ? 64 : 32, &state) || !same(&state, &expected)) {
            printf("    %s\n", bw_gfx11_ops[op].name);
            return;
        }
    }
    ops_prove(op);
}

/* s[16:31] stand for an array: a is elements 0 and 1, b 2 and 3, d 4 and 5. Pairs have even indices. */
static void check_movrel(struct exec_machine *machine, uint16_t op, bool wide, bool from, bool to)
{
    struct bw_rng rng = {.state = op};
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct state state = drawn(&rng), expected = state;
        bool fields = from && to;
        unsigned source = from ? (unsigned)bw_rng_below(&rng, 4) & (wide ? ~1u : ~0u) : 0;
        unsigned target = to ? (wide ? 0 : (unsigned)bw_rng_below(&rng, 2)) : 0;
        unsigned base = to ? D : D, back = to ? 2 : 0; /* the destination is named two registers early */
        state.m0 = fields ? (target + back) << 16 | source : to ? target + back : source;
        expected.m0 = state.m0;
        uint32_t body = sop1(op, base - back, A);
        const uint64_t pairs[2] = {state.a, state.b};
        uint64_t element = pairs[source / 2] >> (32 * (source % 2));
        if (wide)
            expected.d = pairs[source / 2];
        else
            expected.d = (state.d & ~(0xffffffffull << (32 * target))) | (element & 0xffffffff)
                                                                             << (32 * target);
        if (!run(machine, &body, 1, 32, &state) || !same(&state, &expected)) {
            printf("    %s\n", bw_gfx11_ops[op].name);
            return;
        }
    }
    ops_prove(op);
}

/* Jumps over the second word of the body, which would change d; the address stored is that of the next one.
 */
static void check_jumps(struct exec_machine *machine)
{
    const uint64_t next = BODY_VA + 4;
    struct state state = {.a = BODY_VA + 12, .d = 7};
    const uint32_t getpc[] = {sop1(BW_GFX11_S_GETPC_B64, D, 0)};
    const uint32_t setpc[] = {sop1(BW_GFX11_S_SETPC_B64, 0, A), 0xbe940081u /* s_mov_b32 s20, 1 */,
                              0xbe950081u};
    const uint32_t swappc[] = {sop1(BW_GFX11_S_SWAPPC_B64, D, A), 0xbe940081u, 0xbe950081u};
    const uint32_t call[] = {sopk(BW_GFX11_S_CALL_B64, D, 2), 0xbe940081u, 0xbe950081u};
    if (run(machine, getpc, 1, 32, &state) && BW_EQ(state.d, next))
        ops_prove(BW_GFX11_S_GETPC_B64);
    state.d = 7;
    if (run(machine, setpc, 3, 32, &state) && BW_EQ(state.d, 7))
        ops_prove(BW_GFX11_S_SETPC_B64);
    if (run(machine, swappc, 3, 32, &state) && BW_EQ(state.d, next))
        ops_prove(BW_GFX11_S_SWAPPC_B64);
    state.d = 7;
    if (run(machine, call, 3, 32, &state) && BW_EQ(state.d, next))
        ops_prove(BW_GFX11_S_CALL_B64);
}

static bool is_taken(uint16_t op, const struct state *state, bool wide)
{
    uint64_t mask = wide ? ~0ull : 0xffffffff;
    switch (op) {
    case BW_GFX11_S_CBRANCH_SCC0:
        return !state->scc;
    case BW_GFX11_S_CBRANCH_SCC1:
        return state->scc;
    case BW_GFX11_S_CBRANCH_VCCZ:
        return !(state->vcc & mask);
    case BW_GFX11_S_CBRANCH_VCCNZ:
        return state->vcc & mask;
    case BW_GFX11_S_CBRANCH_EXECZ:
        return !(state->exec & mask);
    case BW_GFX11_S_CBRANCH_EXECNZ:
        return state->exec & mask;
    default:
        return true;
    }
}

/* Forward over a word, and backward: the body is entered at its end. */
static void check_branch(struct exec_machine *machine, uint16_t op)
{
    struct bw_rng rng = {.state = op};
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct state state = drawn(&rng), expected = state;
        bool wide = round & 1, taken = is_taken(op, &state, wide), backward = round & 2;
        const uint32_t forward_body[] = {sopp(op, 2), 0xbe940081u /* s_mov_b32 s20, 1 */, 0xbe950081u};
        const uint32_t backward_body[] = {
            sopp(BW_GFX11_S_BRANCH, 2), 0xbe940081u,            /* to the branch; s_mov_b32 s20, 1 */
            sopp(BW_GFX11_S_BRANCH, 1), sopp(op, (unsigned)-3), /* out; back to s_mov_b32 */
        };
        if (backward)
            replace(&expected.d, taken ? 1 : expected.d, false);
        else if (!taken)
            expected.d = 1 | 1ull << 32;
        if (!run(machine, backward ? backward_body : forward_body, backward ? 4 : 3, wide ? 64 : 32,
                 &state) ||
            !same(&state, &expected)) {
            printf("    %s\n", bw_gfx11_ops[op].name);
            return;
        }
    }
    ops_prove(op);
}

/* MODE, the register that user code may write: any field of it, read back whole and in part. */
static void check_registers(struct exec_machine *machine)
{
    enum { MODE = 1, FIELDS = 10 }; /* fields within the bits that change arithmetic only */
    struct bw_rng rng = {.state = 3};
    const uint32_t initial = 0xf0 | 1u << 8 | 1u << 9;
    for (unsigned round = 0; round < ROUNDS; round++) {
        unsigned offset = (unsigned)bw_rng_below(&rng, FIELDS),
                 size = 1 + (unsigned)bw_rng_below(&rng, FIELDS - offset);
        uint32_t value = (uint32_t)bw_rng_next(&rng), field = ((1u << size) - 1) << offset;
        uint32_t mode = (initial & ~field) | (value << offset & field);
        unsigned name = MODE | offset << 6 | (size - 1) << 11, whole = MODE | 31u << 11;
        struct state state = {.a = value, .scc = round & 1}, expected = state;
        const uint32_t from_register[] = {sopk(BW_GFX11_S_SETREG_B32, A, name),
                                          sopk(BW_GFX11_S_GETREG_B32, D, whole),
                                          sopk(BW_GFX11_S_GETREG_B32, D + 1, name)};
        const uint32_t from_literal[] = {sopk(BW_GFX11_S_SETREG_IMM32_B32, 0, name), value,
                                         sopk(BW_GFX11_S_GETREG_B32, D, whole),
                                         sopk(BW_GFX11_S_GETREG_B32, D + 1, name)};
        expected.d = mode | (uint64_t)((mode & field) >> offset) << 32;
        bool literal = round & 2;
        expected.exec = state.exec;
        if (!run(machine, literal ? from_literal : from_register, literal ? 4 : 3, 32, &state) ||
            !same(&state, &expected))
            return;
    }
    ops_prove(BW_GFX11_S_SETREG_B32);
    ops_prove(BW_GFX11_S_SETREG_IMM32_B32);
    ops_prove(BW_GFX11_S_GETREG_B32);
}

static void check_modes(struct exec_machine *machine)
{
    static const uint16_t ops[] = {BW_GFX11_S_ROUND_MODE, BW_GFX11_S_DENORM_MODE};
    for (unsigned i = 0; i < 2; i++) {
        for (unsigned value = 0; value < 16; value++) {
            uint32_t expected = (0x3f0u & ~(15u << (4 * i))) | value << (4 * i);
            const uint32_t body[] = {sopp(ops[i], value), sopk(BW_GFX11_S_GETREG_B32, D, 1 | 31u << 11)};
            struct state state = {.d = 0};
            if (!run(machine, body, 2, 32, &state) || !BW_EQ(state.d, expected))
                return;
        }
        ops_prove(ops[i]);
    }
}

/* Waits, hints, timing, caches that are not there: no register changes. */
static void check_nothing_long(struct exec_machine *machine, uint16_t op, const uint32_t *words,
                               unsigned count)
{
    struct bw_rng rng = {.state = op};
    for (unsigned round = 0; round < 8; round++) {
        struct state state = drawn(&rng), expected = state;
        if (!run(machine, words, count, round & 1 ? 64 : 32, &state) || !same(&state, &expected)) {
            printf("    %s\n", bw_gfx11_ops[op].name);
            return;
        }
    }
    ops_prove(op);
}

static void check_nothing(struct exec_machine *machine, uint16_t op, uint32_t word)
{
    check_nothing_long(machine, op, &word, 1);
}

static void check_nothings(struct exec_machine *machine)
{
    static const struct {
        uint16_t op;
        uint16_t imm;
    } hints[] = {
        {BW_GFX11_S_NOP, 3},
        {BW_GFX11_S_SLEEP, 1},
        {BW_GFX11_S_SET_INST_PREFETCH_DISTANCE, 2},
        {BW_GFX11_S_CLAUSE, 1},
        {BW_GFX11_S_DELAY_ALU, 1},
        {BW_GFX11_S_WAITCNT_DEPCTR, 0xffe3},
        {BW_GFX11_S_WAITCNT, 0},
        {BW_GFX11_S_WAIT_IDLE, 0},
        {BW_GFX11_S_SETPRIO, 2},
        {BW_GFX11_S_ICACHE_INV, 0},
        {BW_GFX11_S_INCPERFLEVEL, 1},
        {BW_GFX11_S_DECPERFLEVEL, 1},
        {BW_GFX11_S_TTRACEDATA_IMM, 1},
        {BW_GFX11_S_TTRACEDATA, 0},
        {BW_GFX11_S_WAKEUP, 0},
    };
    static const uint16_t waits[] = {BW_GFX11_S_WAITCNT_VSCNT, BW_GFX11_S_WAITCNT_VMCNT,
                                     BW_GFX11_S_WAITCNT_EXPCNT, BW_GFX11_S_WAITCNT_LGKMCNT};
    enum { SMEM = 0x3d, MUBUF = 0x38 };
    static const struct {
        uint16_t op;
        uint32_t base;
    } caches[] = {
        {BW_GFX11_S_GL1_INV, (uint32_t)SMEM << 26},
        {BW_GFX11_S_DCACHE_INV, (uint32_t)SMEM << 26},
        {BW_GFX11_BUFFER_GL0_INV, (uint32_t)MUBUF << 26},
        {BW_GFX11_BUFFER_GL1_INV, (uint32_t)MUBUF << 26},
    };
    for (size_t i = 0; i < sizeof hints / sizeof hints[0]; i++)
        check_nothing(machine, hints[i].op, sopp(hints[i].op, hints[i].imm));
    for (size_t i = 0; i < sizeof waits / sizeof waits[0]; i++)
        check_nothing(machine, waits[i], sopk(waits[i], 124, 0)); /* s_waitcnt_x null, 0 */
    for (size_t i = 0; i < sizeof caches / sizeof caches[0]; i++) {
        const uint32_t words[] = {caches[i].base | opcode(caches[i].op) << 18, 0};
        check_nothing_long(machine, caches[i].op, words, 2);
    }
    check_nothing(machine, BW_GFX11_S_VERSION, sopk(BW_GFX11_S_VERSION, 0, 5));
    check_nothing(machine, BW_GFX11_V_NOP, 0x7e000000u);
    check_nothing(machine, BW_GFX11_V_PIPEFLUSH, 0x7e000000u | opcode(BW_GFX11_V_PIPEFLUSH) << 9);
}

static void with_machine(void (*check)(struct exec_machine *machine))
{
    struct exec_machine machine;
    if (!BW_EQ(exec_machine_init(&machine, 1), 0))
        return;
    check(&machine);
    exec_machine_free(&machine);
}

static void check_all_exec(struct exec_machine *machine)
{
    for (size_t i = 0; i < sizeof exec_cases / sizeof exec_cases[0]; i++) {
        check_exec(machine, &exec_cases[i], false);
        check_exec(machine, &exec_cases[i], true);
    }
}

static void check_all_movrel(struct exec_machine *machine)
{
    check_movrel(machine, BW_GFX11_S_MOVRELS_B32, false, true, false);
    check_movrel(machine, BW_GFX11_S_MOVRELS_B64, true, true, false);
    check_movrel(machine, BW_GFX11_S_MOVRELD_B32, false, false, true);
    check_movrel(machine, BW_GFX11_S_MOVRELD_B64, true, false, true);
    check_movrel(machine, BW_GFX11_S_MOVRELSD_2_B32, false, true, true);
}

static void check_all_branches(struct exec_machine *machine)
{
    for (uint16_t op = BW_GFX11_S_BRANCH; op <= BW_GFX11_S_CBRANCH_EXECNZ; op++)
        check_branch(machine, op);
}

/* The end of a program: what comes behind it does not run. */
static void check_end(struct exec_machine *machine)
{
    struct state state = {.d = 3};
    const uint32_t body[] = {sopp(BW_GFX11_S_ENDPGM, 0), 0xffffffffu /* no instruction */};
    memset(machine->memory + EXEC_ARGS + RESULT_AT, 0x55, 32);
    if (run(machine, body, 2, 32, &state) && BW_EQ(state.d, 0x5555555555555555ull))
        ops_prove(BW_GFX11_S_ENDPGM);
}

static void test_exec(void)
{
    with_machine(check_all_exec);
}

static void test_movrel(void)
{
    with_machine(check_all_movrel);
}

static void test_program_counter(void)
{
    with_machine(check_jumps);
    with_machine(check_all_branches);
    with_machine(check_end);
}

static void test_registers(void)
{
    with_machine(check_registers);
    with_machine(check_modes);
}

static void test_nothing(void)
{
    with_machine(check_nothings);
}

OPS_TEST_MAIN("isa exec control", {"EXEC is saved, combined, written", test_exec},
              {"registers named through M0", test_movrel}, {"jumps, branches, the end", test_program_counter},
              {"MODE is read and written by field", test_registers},
              {"waits and hints change no register", test_nothing})
