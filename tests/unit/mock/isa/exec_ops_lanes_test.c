/* Goal: operations between lanes, registers named through M0, and every DPP selection agree with the RDNA3
 * ISA document (sections 7.2.1, 7.7, 7.8, 16.8, 16.12), in both wave sizes, whatever lanes are on. */
#include "tests/check.h"

#include "tests/unit/mock/isa/exec_ops.h"
#include "tests/unit/mock/isa/exec_ops_numbers.h"

enum { STORED_AT = 96, REGISTERS = 13 };

/* The code between prologue and epilogue. */
struct body {
    uint32_t words[24];
    unsigned count;
};

static void add(struct body *body, uint32_t word)
{
    body->words[body->count++] = word;
}

static void add_scalar(struct body *body, unsigned sgpr, uint32_t value)
{
    add(body, 0xbe8000ffu | sgpr << 16); /* s_mov_b32 sgpr, value */
    add(body, value);
}

static void add_vop1(struct body *body, uint16_t op, unsigned dst, unsigned src)
{
    add(body, 0x7e000000u | dst << 17 | (uint32_t)bw_gfx11_ops[op].opcode << 9 | src);
}

static void add_vop3(struct body *body, uint16_t op, unsigned dst, const unsigned *src, unsigned op_sel)
{
    add(body, 0xd4000000u | (uint32_t)bw_gfx11_ops[op].opcode << 16 | op_sel << 11 | dst);
    add(body, src[0] | src[1] << 9 | src[2] << 18);
}

static void add_full_exec(struct body *body)
{
    add(body, 0xbefe00c1u); /* s_mov_b32 exec_lo, -1 */
    add(body, 0xbeff00c1u); /* s_mov_b32 exec_hi, -1 */
}

/* Registers v1..v8 and v10..v13 of a lane before the operation, as the prologue loads them. */
struct wave_state {
    uint32_t before[64][REGISTERS + 1], after[64][REGISTERS + 1];
};

/* Runs the body on one group of random operands; the state of wave `wave`. after: v10..v13, and what the body
 * stored at STORED_AT as after[][0]. */
static bool run_body(struct exec_machine *machine, const struct body *body, const struct ops_form *form,
                     uint64_t seed, unsigned wave, struct wave_state *state)
{
    static struct ops_values values[OPS_LANES];
    static const struct ops_case any = {.values = "int"};
    ops_put_form(machine, body->words, body->count, form);
    ops_fill(machine, &any, values, seed);
    if (exec_run(machine) != BW_ISA_DONE) {
        printf("\n    status %d, %s", machine->result.status, machine->result.text);
        return false;
    }
    for (unsigned lane = 0; lane < form->wave_size; lane++) {
        const struct ops_values *v = &values[wave * form->wave_size + lane];
        const uint8_t *at = machine->memory + EXEC_DATA + (wave * form->wave_size + lane) * OPS_LANE_BYTES;
        memcpy(&state->before[lane][1], &v->a, 8);
        memcpy(&state->before[lane][3], &v->b, 8);
        memcpy(&state->before[lane][5], &v->c, 8);
        memcpy(&state->before[lane][7], &v->c_high, 8);
        memcpy(&state->before[lane][10], &v->d, 8);
        memcpy(&state->before[lane][12], &v->d_high, 8);
        memcpy(&state->after[lane][10], at + 48, 16);
        memcpy(&state->after[lane][0], at + STORED_AT, 4);
    }
    return true;
}

static struct ops_form drawn_form(struct bw_rng *rng, unsigned number)
{
    struct ops_form form = ops_plain;
    form.wave_size = number & 1 ? 64 : 32;
    form.exec = number < 2   ? ~0ull
                : number < 4 ? 0
                             : bw_rng_next(rng) & (bw_rng_next(rng) | bw_rng_next(rng));
    return form;
}

static bool is_on(const struct ops_form *form, unsigned lane)
{
    return form->exec >> lane & 1;
}

/* Lane numbers wrap at the wave size; EXEC counts for V_READFIRSTLANE only, which takes lane 0 of none. */
static bool check_readlane(struct exec_machine *machine, bool first)
{
    enum { NUMBERS = 60, SELECT = 7, RESULT = 6 };
    struct bw_rng rng = {.state = 11};
    struct wave_state state;
    for (unsigned number = 0; number < NUMBERS; number++) {
        struct ops_form form = drawn_form(&rng, number);
        uint32_t select = (uint32_t)bw_rng_next(&rng);
        struct body body = {.count = 0};
        add_scalar(&body, SELECT, select);
        const unsigned src[3] = {256 + OPS_A, SELECT, 0};
        if (first)
            add_vop1(&body, BW_GFX11_V_READFIRSTLANE_B32, RESULT, 256 + OPS_A);
        else
            add_vop3(&body, BW_GFX11_V_READLANE_B32, RESULT, src, 0);
        add_full_exec(&body);
        add_vop1(&body, BW_GFX11_V_MOV_B32, OPS_D, RESULT);
        if (!run_body(machine, &body, &form, number, number % 3, &state))
            return false;
        uint64_t exec = form.wave_size == 64 ? form.exec : form.exec & 0xffffffff;
        unsigned lane = !first ? select % form.wave_size : exec ? (unsigned)__builtin_ctzll(exec) : 0;
        for (unsigned i = 0; i < form.wave_size; i++) {
            if (!BW_EQ(state.after[i][OPS_D], state.before[lane][OPS_A]))
                return false;
        }
    }
    ops_prove(first ? BW_GFX11_V_READFIRSTLANE_B32 : BW_GFX11_V_READLANE_B32);
    return true;
}

static bool check_writelane(struct exec_machine *machine)
{
    enum { NUMBERS = 60, SELECT = 7, VALUE = 6 };
    struct bw_rng rng = {.state = 12};
    struct wave_state state;
    for (unsigned number = 0; number < NUMBERS; number++) {
        struct ops_form form = drawn_form(&rng, number);
        uint32_t select = (uint32_t)bw_rng_next(&rng), value = (uint32_t)bw_rng_next(&rng);
        struct body body = {.count = 0};
        const unsigned src[3] = {VALUE, SELECT, 0};
        add_scalar(&body, SELECT, select);
        add_scalar(&body, VALUE, value);
        add_vop3(&body, BW_GFX11_V_WRITELANE_B32, OPS_D, src, 0);
        if (!run_body(machine, &body, &form, number, number % 3, &state))
            return false;
        for (unsigned i = 0; i < form.wave_size; i++) {
            if (!BW_EQ(state.after[i][OPS_D], i == select % form.wave_size ? value : state.before[i][OPS_D]))
                return false;
        }
    }
    ops_prove(BW_GFX11_V_WRITELANE_B32);
    return true;
}

/* 64 bits of scalar data name a lane of the row, or of the row beside it, for each lane. */
static bool check_permlane(struct exec_machine *machine, bool other_row)
{
    enum { NUMBERS = 80, LOW = 6, HIGH = 7 };
    uint16_t op = other_row ? BW_GFX11_V_PERMLANEX16_B32 : BW_GFX11_V_PERMLANE16_B32;
    struct bw_rng rng = {.state = 13 + other_row};
    struct wave_state state;
    for (unsigned number = 0; number < NUMBERS; number++) {
        struct ops_form form = drawn_form(&rng, number);
        uint64_t select = bw_rng_next(&rng);
        unsigned fetch_invalid = number >> 1 & 1, bound_control = number >> 2 & 1;
        struct body body = {.count = 0};
        const unsigned src[3] = {256 + OPS_A, LOW, HIGH};
        add_scalar(&body, LOW, (uint32_t)select);
        add_scalar(&body, HIGH, (uint32_t)(select >> 32));
        add_vop3(&body, op, OPS_D, src, fetch_invalid | bound_control << 1);
        if (!run_body(machine, &body, &form, number, number % 3, &state))
            return false;
        for (unsigned i = 0; i < form.wave_size; i++) {
            unsigned row = other_row ? (i & ~15u) ^ 16 : i & ~15u;
            unsigned from = row + (select >> (4 * (i & 15)) & 15);
            bool valid = fetch_invalid || is_on(&form, from);
            uint32_t expected = state.before[i][OPS_D];
            if (is_on(&form, i) && (valid || bound_control))
                expected = valid ? state.before[from][OPS_A] : 0;
            if (!BW_EQ(state.after[i][OPS_D], expected))
                return false;
        }
    }
    ops_prove(op);
    return true;
}

static bool check_permlane64(struct exec_machine *machine)
{
    struct bw_rng rng = {.state = 15};
    struct wave_state state;
    for (unsigned number = 0; number < 30; number++) {
        struct ops_form form = drawn_form(&rng, number);
        struct body body = {.count = 0};
        add_vop1(&body, BW_GFX11_V_PERMLANE64_B32, OPS_D, 256 + OPS_A);
        if (!run_body(machine, &body, &form, number, number % 3, &state))
            return false;
        for (unsigned i = 0; i < form.wave_size; i++) {
            bool moves = form.wave_size == 64 && is_on(&form, i);
            if (!BW_EQ(state.after[i][OPS_D], moves ? state.before[i ^ 32][OPS_A] : state.before[i][OPS_D]))
                return false;
        }
    }
    ops_prove(BW_GFX11_V_PERMLANE64_B32);
    return true;
}

/* How far M0 moves the source and the destination of each operation. */
static void moved(uint16_t op, uint32_t m0, unsigned *from, unsigned *to)
{
    *from = *to = 0;
    switch (op) {
    case BW_GFX11_V_MOVRELS_B32:
        *from = m0;
        break;
    case BW_GFX11_V_MOVRELD_B32:
        *to = m0;
        break;
    case BW_GFX11_V_MOVRELSD_B32:
        *from = *to = m0;
        break;
    case BW_GFX11_V_MOVRELSD_2_B32:
    case BW_GFX11_V_SWAPREL_B32:
        *from = m0 & 0x3ff;
        *to = m0 >> 16 & 0x3ff;
    }
}

/* Moves and swaps: v10..v13 are the destinations, v1..v8 the sources. */
static bool check_moves(struct exec_machine *machine, uint16_t op)
{
    enum { M0 = 125 };
    bool swaps = op == BW_GFX11_V_SWAPREL_B32 || op == BW_GFX11_V_SWAP_B32;
    bool fields = op == BW_GFX11_V_SWAPREL_B32 || op == BW_GFX11_V_MOVRELSD_2_B32;
    struct bw_rng rng = {.state = op};
    struct wave_state state;
    for (unsigned number = 0; number < 60; number++) {
        struct ops_form form = drawn_form(&rng, number);
        uint32_t m0 = fields ? (uint32_t)(bw_rng_below(&rng, 4) << 16 | bw_rng_below(&rng, 8)) | 0xfc00fc00u
                             : (uint32_t)bw_rng_below(&rng, 4);
        unsigned from, to;
        struct body body = {.count = 0};
        moved(op, m0, &from, &to);
        add_scalar(&body, M0, m0);
        add_vop1(&body, op, OPS_D, 256 + OPS_A);
        add_full_exec(&body);
        add(&body, 0xdc6a0000u | STORED_AT); /* global_store_b32 v20, SOURCE, s[4:5] offset:STORED_AT */
        add(&body, 0x00040014u | (OPS_A + from) << 8);
        if (!run_body(machine, &body, &form, number, number % 3, &state))
            return false;
        for (unsigned i = 0; i < form.wave_size; i++) {
            const uint32_t *before = state.before[i], *after = state.after[i];
            for (unsigned r = 0; r < 4; r++) {
                bool written = is_on(&form, i) && r == to;
                if (!BW_EQ(after[OPS_D + r], before[written ? OPS_A + from : OPS_D + r]))
                    return false;
            }
            if (!BW_EQ(after[0], before[swaps && is_on(&form, i) ? OPS_D + to : OPS_A + from]))
                return false;
        }
    }
    ops_prove(op);
    return true;
}

static bool run_lanes(struct exec_machine *machine)
{
    static const uint16_t moves[] = {BW_GFX11_V_SWAP_B32,     BW_GFX11_V_SWAPREL_B32,
                                     BW_GFX11_V_MOVRELS_B32,  BW_GFX11_V_MOVRELD_B32,
                                     BW_GFX11_V_MOVRELSD_B32, BW_GFX11_V_MOVRELSD_2_B32};
    bool ok = true;
    for (unsigned i = 0; i < 2; i++)
        ok = check_readlane(machine, i) && check_permlane(machine, i) && ok;
    ok = check_writelane(machine) && check_permlane64(machine) && ok;
    for (size_t i = 0; i < sizeof moves / sizeof moves[0]; i++)
        ok = check_moves(machine, moves[i]) && ok;
    return ok;
}

static void test_lanes(void)
{
    BW_TRUE(each_level(run_lanes));
}

static uint64_t ref_move(struct ops_values *v)
{
    return (uint32_t)v->a;
}

static bool check_selection(struct exec_machine *machine, struct bw_rng *rng, struct ops_form *form)
{
    static const struct ops_case move = {.op = BW_GFX11_V_MOV_B32, .reference = ref_move, .values = "int"};
    form->wave_size = bw_rng_below(rng, 2) ? 64 : 32;
    form->e32 = bw_rng_below(rng, 2);
    form->exec = bw_rng_next(rng) | bw_rng_next(rng);
    return ops_check_form(machine, &move, form, bw_rng_next(rng));
}

/* Every DPP_CTRL, with all of BC and FI; all masks; DPP8. */
static bool run_selections(struct exec_machine *machine)
{
    struct bw_rng rng = {.state = 77};
    struct ops_form form = ops_plain;
    bool ok = true;
    form.dpp = BW_DPP_16;
    for (unsigned ctrl = 0; ctrl < 0x170; ctrl++) {
        unsigned group = ctrl & ~15u;
        bool shifts = group >= 0x100 && group <= 0x120, mirrors = ctrl == 0x140 || ctrl == 0x141;
        if (ctrl >= 0x100 && !(shifts && ctrl != group) && !mirrors && group < 0x150)
            continue; /* reserved */
        for (unsigned flags = 0; flags < 4; flags++) {
            form.dpp_ctrl = (uint16_t)ctrl;
            form.bound_ctrl = flags & 1;
            form.fetch_inactive = flags >> 1;
            ok = check_selection(machine, &rng, &form) && ok;
        }
    }
    for (unsigned masks = 0; masks < 256; masks++) {
        form.dpp_ctrl = 0x111; /* row_shr:1 */
        form.row_mask = masks & 15;
        form.bank_mask = (uint8_t)(masks >> 4);
        ok = check_selection(machine, &rng, &form) && ok;
    }
    form.dpp = BW_DPP_8;
    for (unsigned i = 0; i < 200; i++) {
        form.dpp8 = (uint32_t)bw_rng_next(&rng) & 0xffffff;
        form.fetch_inactive = i & 1;
        ok = check_selection(machine, &rng, &form) && ok;
    }
    return ok;
}

static void test_selections(void)
{
    BW_TRUE(each_level(run_selections));
}

OPS_TEST_MAIN("isa exec lanes", {"operations between lanes and through M0", test_lanes},
              {"every DPP selection", test_selections})
