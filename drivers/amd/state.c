/* Register state of a command buffer: see state.h. */
#include "drivers/amd/state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "drivers/amd/arch.h"
#include "drivers/amd/regs.h"

enum {
    FIRST = BW_AMD_COMPUTE_DISPATCH_INITIATOR,
    COUNT = BW_AMD_COMPUTE_USER_DATA_0 + BW_AMD_USER_SGPRS_MAX - FIRST,
    /* A new packet costs two words, so writing up to as many registers again is no dearer. */
    GAP_MAX = BW_AMD_PM4_WORDS_SET_SH_REG,
};

enum half { WHOLE, LOW, HIGH }; /* of the value: a register of its own, or one of a pair */

struct cell {
    struct bw_operand operand;
    uint8_t shift, half;
    bool known; /* the register holds the value */
    bool dirty; /* it is to */
};

struct bw_amd_state {
    struct cell cells[COUNT];
    uint32_t dispatches;
};

/* Without memory the encoder fails, and nobody asks what it holds. */
static struct bw_amd_state *state_of(struct bw_encoder *encoder)
{
    if (!encoder->state) {
        encoder->state = calloc(1, sizeof(struct bw_amd_state));
        if (!encoder->state)
            encoder->failed = -ENOMEM;
    }
    return encoder->state;
}

void bw_amd_state_begin(struct bw_encoder *encoder)
{
    if (encoder->state)
        memset(encoder->state, 0, sizeof(struct bw_amd_state));
}

uint32_t bw_amd_state_dispatch(struct bw_encoder *encoder)
{
    struct bw_amd_state *state = state_of(encoder);
    return state ? ++state->dispatches : 0;
}

/* Whether both give the register the same word at every replay. */
static bool cells_equal(const struct cell *a, const struct cell *b)
{
    bool constant = a->operand.symbol == BW_SYMBOL_NONE;
    if (a->operand.symbol != b->operand.symbol || a->shift != b->shift || a->half != b->half)
        return false;
    if (!constant && a->half == HIGH && a->operand.shares_high && b->operand.shares_high)
        return true;
    return a->operand.addend == b->operand.addend;
}

/* A constant pair is two registers that have nothing to do with each other. */
static struct cell cell_make(const struct bw_amd_register_value *value, enum half half)
{
    struct cell cell = {
        .operand = value->operand, .shift = value->shift, .half = (uint8_t)half, .dirty = true};
    if (value->operand.symbol == BW_SYMBOL_NONE) {
        uint64_t bits = value->operand.addend >> value->shift;
        cell.operand.addend = half == HIGH ? bw_hi32(bits) : bw_lo32(bits);
        cell.shift = 0;
        cell.half = WHOLE;
    }
    return cell;
}

static void cell_want(struct cell *cell, struct cell wanted)
{
    if (cell->known && cells_equal(cell, &wanted))
        return;
    *cell = wanted;
}

void bw_amd_state_set(struct bw_encoder *encoder, uint32_t reg, const struct bw_amd_register_value *values,
                      uint32_t count)
{
    struct bw_amd_state *state = state_of(encoder);
    for (uint32_t i = 0, at = reg - FIRST; i < count && state; i++) {
        assert(reg >= FIRST && at + (values[i].wide ? 1u : 0u) < COUNT);
        cell_want(&state->cells[at++], cell_make(&values[i], values[i].wide ? LOW : WHOLE));
        if (values[i].wide)
            cell_want(&state->cells[at++], cell_make(&values[i], HIGH));
    }
}

/* Where the run that begins at a dirty register ends. Small gaps of known registers are written again. */
static uint32_t run_end(const struct cell *cells, uint32_t begin)
{
    uint32_t end = begin + 1;
    for (uint32_t at = end; at < COUNT && at - end <= GAP_MAX && (cells[at].dirty || cells[at].known); at++) {
        if (cells[at].dirty)
            end = at + 1;
    }
    return end;
}

/* One half of a value: its own word, moved down. */
static struct bw_amd_register_value half_value(const struct cell *cell)
{
    uint8_t more = cell->half == HIGH ? 32 : 0;
    return (struct bw_amd_register_value){cell->operand, (uint8_t)(cell->shift + more), false};
}

static void run_emit(struct bw_encoder *encoder, struct cell *cells, uint32_t begin, uint32_t end)
{
    struct bw_amd_register_value values[COUNT];
    uint32_t count = 0;
    for (uint32_t at = begin; at < end; at++) {
        struct cell *cell = &cells[at];
        bool pair = cell->half == LOW && at + 1 < end && cells[at + 1].half == HIGH &&
                    cells[at + 1].operand.symbol == cell->operand.symbol &&
                    cells[at + 1].operand.addend == cell->operand.addend;
        values[count++] =
            pair ? (struct bw_amd_register_value){cell->operand, cell->shift, true} : half_value(cell);
        cell->known = true;
        cell->dirty = false;
        if (pair) {
            cells[++at].known = true;
            cells[at].dirty = false;
        }
    }
    bw_amd_pm4_set_sh_reg_operands(encoder, FIRST + begin, values, count);
}

void bw_amd_state_emit(struct bw_encoder *encoder)
{
    struct bw_amd_state *state = state_of(encoder);
    for (uint32_t at = 0; state && at < COUNT; at++) {
        if (!state->cells[at].dirty)
            continue;
        uint32_t end = run_end(state->cells, at);
        run_emit(encoder, state->cells, at, end);
        at = end - 1;
    }
}
