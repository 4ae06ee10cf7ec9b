/* Immediate fields with a meaning of their own: wait counters, messages, hardware registers, delays,
 * swizzles. Fields: RDNA3 Shader ISA document, sections 4 (s_waitcnt, s_delay_alu), 5.9 (hwreg), 12.15
 * (ds_swizzle); names as in LLVM's AMDGPU operand syntax for gfx11 and gfx12. */
#include "mock/isa/disasm.h"

#include "base/bits.h"

struct counter {
    const char *name;
    uint8_t low, high; /* bits */
};

/* Prints "name(value)" for each field that is not at its maximum; for all of them when every one is. */
static void print_counters(const struct counter *counters, unsigned count, unsigned value,
                           struct bw_text *text)
{
    bool all_default = true, first = true;
    for (unsigned i = 0; i < count; i++) {
        unsigned maximum = (1u << (counters[i].high - counters[i].low + 1)) - 1;
        all_default &= bw_field(value, counters[i].low, counters[i].high) == maximum;
    }
    for (unsigned i = 0; i < count; i++) {
        unsigned field = bw_field(value, counters[i].low, counters[i].high);
        unsigned maximum = (1u << (counters[i].high - counters[i].low + 1)) - 1;
        if (field == maximum && !all_default)
            continue;
        bw_text_add(text, "%s%s(%u)", first ? "" : " ", counters[i].name, field);
        first = false;
    }
}

static void print_waitcnt(unsigned value, struct bw_text *text)
{
    static const struct counter counters[] = {{"vmcnt", 10, 15}, {"expcnt", 0, 2}, {"lgkmcnt", 4, 9}};
    print_counters(counters, BW_COUNT_OF(counters), value, text);
}

static void print_depctr(unsigned value, struct bw_text *text)
{
    enum { UNUSED_BITS = 0x60 };
    static const struct counter counters[] = {
        {"depctr_hold_cnt", 7, 7}, {"depctr_sa_sdst", 0, 0}, {"depctr_va_vdst", 12, 15},
        {"depctr_va_sdst", 9, 11}, {"depctr_va_ssrc", 8, 8}, {"depctr_va_vcc", 1, 1},
        {"depctr_vm_vsrc", 2, 4},
    };
    if (value & UNUSED_BITS)
        bw_text_add(text, "0x%x", value);
    else
        print_counters(counters, BW_COUNT_OF(counters), value, text);
}

static void print_delay_id(unsigned number, unsigned id, struct bw_text *text)
{
    static const char *const names[] = {
        [1] = "VALU_DEP_1",    [2] = "VALU_DEP_2",    [3] = "VALU_DEP_3",    [4] = "VALU_DEP_4",
        [5] = "TRANS32_DEP_1", [6] = "TRANS32_DEP_2", [7] = "TRANS32_DEP_3", [8] = "FMA_ACCUM_CYCLE_1",
        [9] = "SALU_CYCLE_1",  [10] = "SALU_CYCLE_2", [11] = "SALU_CYCLE_3",
    };
    bw_text_add(text, "instid%u(%s)", number,
                id < BW_COUNT_OF(names) ? names[id] : "/* invalid instid value */");
}

static void print_delay(unsigned value, struct bw_text *text)
{
    static const char *const skips[] = {"SAME", "NEXT", "SKIP_1", "SKIP_2", "SKIP_3", "SKIP_4"};
    unsigned id0 = bw_field(value, 0, 3), skip = bw_field(value, 4, 6), id1 = bw_field(value, 7, 10);
    const char *separator = "";
    if (id0) {
        print_delay_id(0, id0, text);
        separator = " | ";
    }
    if (skip) {
        bw_text_add(text, "%sinstskip(%s)", separator,
                    skip < BW_COUNT_OF(skips) ? skips[skip] : "/* invalid instskip value */");
        separator = " | ";
    }
    if (id1) {
        bw_text_add(text, "%s", separator);
        print_delay_id(1, id1, text);
        separator = " | ";
    }
    if (!*separator)
        bw_text_add(text, "0");
}

static void print_message(const struct bw_generation *generation, unsigned value, struct bw_text *text)
{
    static const char *const names[] = {
        [1] = "MSG_INTERRUPT",           [2] = "MSG_HS_TESSFACTOR",       [3] = "MSG_DEALLOC_VGPRS",
        [5] = "MSG_STALL_WAVE_GEN",      [6] = "MSG_HALT_WAVES",          [9] = "MSG_GS_ALLOC_REQ",
        [128] = "MSG_RTN_GET_DOORBELL",  [129] = "MSG_RTN_GET_DDID",      [130] = "MSG_RTN_GET_TMA",
        [131] = "MSG_RTN_GET_REALTIME",  [132] = "MSG_RTN_SAVE_WAVE",     [133] = "MSG_RTN_GET_TBA",
        [134] = "MSG_RTN_GET_TBA_TO_PC", [135] = "MSG_RTN_GET_SE_AID_ID",
    };
    unsigned id = value & 0xff;
    bool is_gone = generation->is_gfx12 && (id == 5 || id == 6), is_new = !generation->is_gfx12 && id == 135;
    if (id < BW_COUNT_OF(names) && names[id] && !is_gone && !is_new)
        bw_text_add(text, "sendmsg(%s)", names[id]);
    else if (id == value)
        bw_text_add(text, "sendmsg(%u, 0, 0)", id);
    else
        bw_text_add(text, "%u", value);
}

enum { REGISTERS = 64 };
static const char *const registers11[REGISTERS] = {
    [1] = "HW_REG_MODE",
    [2] = "HW_REG_STATUS",
    [3] = "HW_REG_TRAPSTS",
    [5] = "HW_REG_GPR_ALLOC",
    [6] = "HW_REG_LDS_ALLOC",
    [7] = "HW_REG_IB_STS",
    [15] = "HW_REG_SH_MEM_BASES",
    [18] = "HW_REG_PERF_SNAPSHOT_PC_LO",
    [19] = "HW_REG_PERF_SNAPSHOT_PC_HI",
    [20] = "HW_REG_FLAT_SCR_LO",
    [21] = "HW_REG_FLAT_SCR_HI",
    [23] = "HW_REG_HW_ID1",
    [24] = "HW_REG_HW_ID2",
    [27] = "HW_REG_PERF_SNAPSHOT_DATA",
    [29] = "HW_REG_SHADER_CYCLES",
};
static const char *const registers12[REGISTERS] = {
    [1] = "HW_REG_MODE",
    [2] = "HW_REG_STATUS",
    [4] = "HW_REG_STATE_PRIV",
    [5] = "HW_REG_GPR_ALLOC",
    [6] = "HW_REG_LDS_ALLOC",
    [7] = "HW_REG_IB_STS",
    [10] = "HW_REG_PERF_SNAPSHOT_DATA",
    [11] = "HW_REG_PERF_SNAPSHOT_PC_LO",
    [12] = "HW_REG_PERF_SNAPSHOT_PC_HI",
    [15] = "HW_REG_PERF_SNAPSHOT_DATA1",
    [16] = "HW_REG_PERF_SNAPSHOT_DATA2",
    [17] = "HW_REG_EXCP_FLAG_PRIV",
    [18] = "HW_REG_EXCP_FLAG_USER",
    [19] = "HW_REG_TRAP_CTRL",
    [20] = "HW_REG_SCRATCH_BASE_LO",
    [21] = "HW_REG_SCRATCH_BASE_HI",
    [23] = "HW_REG_HW_ID1",
    [24] = "HW_REG_HW_ID2",
    [29] = "HW_REG_SHADER_CYCLES_LO",
    [30] = "HW_REG_SHADER_CYCLES_HI",
    [31] = "HW_REG_DVGPR_ALLOC_LO",
    [32] = "HW_REG_DVGPR_ALLOC_HI",
};

static void print_hwreg(const struct bw_generation *generation, unsigned value, struct bw_text *text)
{
    const char *const *names = generation->is_gfx12 ? registers12 : registers11;
    unsigned id = bw_field(value, 0, 5), offset = bw_field(value, 6, 10), size = bw_field(value, 11, 15) + 1;
    if (names[id])
        bw_text_add(text, "hwreg(%s", names[id]);
    else
        bw_text_add(text, "hwreg(%u", id);
    if (offset || size != 32)
        bw_text_add(text, ", %u, %u", offset, size);
    bw_text_add(text, ")");
}

/* Small numbers in decimal, as inline constants are. */
static void print_number(unsigned value, struct bw_text *text)
{
    bw_text_add(text, value <= 64 ? "%u" : "0x%x", value);
}

static void print_version(unsigned value, struct bw_text *text)
{
    enum { VERSION_MASK = 0xff, UNKNOWN_BITS = 0x1f00 };
    static const struct {
        unsigned bit;
        const char *name;
    } flags[] = {
        {0x2000, "UC_VERSION_W64_BIT"}, {0x4000, "UC_VERSION_W32_BIT"}, {0x8000, "UC_VERSION_MDP_BIT"}};
    static const char *const names[] = {[0] = "UC_VERSION_GFX7",
                                        [4] = "UC_VERSION_GFX10",
                                        [6] = "UC_VERSION_GFX11",
                                        [9] = "UC_VERSION_GFX12"};
    unsigned version = value & VERSION_MASK, count = 0;
    for (unsigned i = 0; i < BW_COUNT_OF(flags); i++)
        count += (value & flags[i].bit) != 0;
    if (value & UNKNOWN_BITS) {
        bw_text_add(text, "0x%x", value);
        return;
    }
    for (unsigned i = 1; i < count; i++) /* an expression that leans to the left */
        bw_text_add(text, "(");
    if (version < BW_COUNT_OF(names) && names[version])
        bw_text_add(text, "%s", names[version]);
    else
        bw_text_add(text, "%u", version);
    for (unsigned i = 0, printed = 0; i < BW_COUNT_OF(flags); i++) {
        if (value & flags[i].bit)
            bw_text_add(text, "|%s%s", flags[i].name, ++printed < count ? ")" : "");
    }
}

void bw_gfx11_print_imm(const struct bw_generation *generation, const struct bw_operand *operand,
                        struct bw_text *text)
{
    unsigned value = operand->index;
    switch (operand->type) {
    case BW_T_DEC:
        print_number(value, text);
        break;
    case BW_T_VERSION:
        print_version(value, text);
        break;
    case BW_T_HEX:
        bw_text_add(text, "0x%x", value);
        break;
    case BW_T_WAITCNT:
        print_waitcnt(value, text);
        break;
    case BW_T_DEPCTR:
        print_depctr(value, text);
        break;
    case BW_T_DELAY:
        print_delay(value, text);
        break;
    case BW_T_SENDMSG:
    case BW_T_MSGRTN:
        print_message(generation, value, text);
        break;
    case BW_T_HWREG:
        print_hwreg(generation, value, text);
        break;
    case BW_T_ATTRIBUTE:
        bw_text_add(text, "attr%u.%c", value >> 2, "xyzw"[value & 3]);
        break;
    default:
        bw_text_add(text, "%u", value);
    }
}

/* Each of the five bits of the lane number: cleared, set, kept or inverted. */
static void print_bitmask_perm(unsigned and_mask, unsigned or_mask, unsigned xor_mask, struct bw_text *text)
{
    bw_text_add(text, "BITMASK_PERM,\"");
    for (unsigned bit = 16; bit; bit >>= 1) {
        bool keeps = and_mask & bit && !(or_mask & bit), flips = xor_mask & bit, sets = or_mask & bit;
        bw_text_add(text, "%c", keeps ? (flips ? 'i' : 'p') : sets != flips ? '1' : '0');
    }
    bw_text_add(text, "\"");
}

void bw_gfx11_print_swizzle(unsigned offset, struct bw_text *text)
{
    enum { ALL = 31 };
    unsigned and_mask = offset & ALL, or_mask = offset >> 5 & ALL, xor_mask = offset >> 10 & ALL;
    unsigned group = ALL + 1 - and_mask;
    if (!offset)
        return;
    bw_text_add(text, " offset:");
    if (offset >> 8 == 0x80) {
        bw_text_add(text, "swizzle(QUAD_PERM,%u,%u,%u,%u)", offset & 3, offset >> 2 & 3, offset >> 4 & 3,
                    offset >> 6 & 3);
        return;
    }
    if (offset & 0x8000) {
        bw_text_add(text, "%u", offset);
        return;
    }
    bw_text_add(text, "swizzle(");
    if (and_mask == ALL && !or_mask && bw_is_pow2(xor_mask))
        bw_text_add(text, "SWAP,%u", xor_mask);
    else if (and_mask == ALL && !or_mask && xor_mask && bw_is_pow2(xor_mask + 1))
        bw_text_add(text, "REVERSE,%u", xor_mask + 1);
    else if (group > 1 && bw_is_pow2(group) && or_mask < group && !xor_mask)
        bw_text_add(text, "BROADCAST,%u,%u", group, or_mask);
    else
        print_bitmask_perm(and_mask, or_mask, xor_mask, text);
    bw_text_add(text, ")");
}
