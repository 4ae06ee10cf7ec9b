/* Goal: typed buffer loads and stores convert every format of the RDNA3 ISA document (table "Data formats";
 * sections 9.3.1 for D16, 9.3.2 for more or fewer components than the format has), in both wave sizes, with
 * lanes off, beyond the buffer's end, components selected. Bits are exact where the number is one that the
 * result can hold, and where it is an integer or a bit pattern. Else the document does not say how it is
 * rounded, except for D16; the bound is that of the Vulkan specification, "Fixed-Point Data Conversions": one
 * of the two nearest, that is below one unit. */
#include "tests/check.h"

#include "tests/unit/mock/isa/exec_memory.h"
#include "tests/unit/mock/isa/exec_ops_numbers.h"

enum kind { UNORM, SNORM, USCALED, SSCALED, UINT, SINT, FLOAT };
static const char *const kinds[] = {"UNORM", "SNORM", "USCALED", "SSCALED", "UINT", "SINT", "FLOAT"};

#define SIX(widths) \
    widths "_UNORM", widths "_SNORM", widths "_USCALED", widths "_SSCALED", widths "_UINT", widths "_SINT"
#define THREE(widths) widths "_UINT", widths "_SINT", widths "_FLOAT"
static const char *const formats[] = {
    "INVALID",           SIX("8"),           SIX("16"),
    "16_FLOAT",          SIX("8_8"),         THREE("32"),
    SIX("16_16"),        "16_16_FLOAT",      "10_11_11_FLOAT",
    "11_11_10_FLOAT",    "10_10_10_2_UNORM", "10_10_10_2_SNORM",
    "10_10_10_2_UINT",   "10_10_10_2_SINT",  SIX("2_10_10_10"),
    SIX("8_8_8_8"),      THREE("32_32"),     SIX("16_16_16_16"),
    "16_16_16_16_FLOAT", THREE("32_32_32"),  THREE("32_32_32_32"),
};
enum { FORMATS = sizeof formats / sizeof formats[0], BUFFER_AT = 0x100, ELEMENT_BYTES = 16 };
_Static_assert(FORMATS == 64, "numbers 0 to 63");

struct layout {
    enum kind kind;
    unsigned count, bytes, bits[4], at[4]; /* of X, Y, Z, W; at: the lowest bit */
};

/* The last width of a name is that of X, in the lowest bits. */
static struct layout layout_of(unsigned format)
{
    struct layout layout = {.kind = UNORM};
    const char *name = formats[format];
    unsigned widths[4], at = 0;
    while (*name >= '0' && *name <= '9') {
        char *end;
        widths[layout.count++] = (unsigned)strtoul(name, &end, 10);
        name = end + 1;
    }
    while (strcmp(kinds[layout.kind], name) != 0)
        layout.kind++;
    for (unsigned i = 0; i < layout.count; i++) {
        layout.bits[i] = widths[layout.count - 1 - i];
        layout.at[i] = at;
        at += layout.bits[i];
    }
    layout.bytes = at / 8;
    return layout;
}

static uint32_t raw_of(const struct layout *l, unsigned component, const uint8_t *element)
{
    unsigned __int128 whole = 0;
    memcpy(&whole, element, l->bytes);
    return (uint32_t)(whole >> l->at[component]) & (uint32_t)((1ull << l->bits[component]) - 1);
}

static int64_t with_sign(uint32_t raw, unsigned bits)
{
    return raw >> (bits - 1) ? (int64_t)raw - (int64_t)(1ull << bits) : (int64_t)raw;
}

static int64_t greatest(const struct layout *l, unsigned component)
{
    bool is_signed = l->kind == SNORM || l->kind == SSCALED || l->kind == SINT;
    return (int64_t)((1ull << (l->bits[component] - is_signed)) - 1);
}

/* A float with five bits of exponent: of 16 bits with a sign, of 11 or 10 without. */
static long double small_of(uint32_t raw, unsigned bits)
{
    return f16_of(bits == 16 ? raw : raw << (10 - (bits - 5)));
}

static bool has_numbers(const struct layout *l)
{
    return l->kind != UINT && l->kind != SINT;
}

/* What memory holds, exactly. */
static long double number_in(const struct layout *l, unsigned component, uint32_t raw)
{
    unsigned bits = l->bits[component];
    switch (l->kind) {
    case UNORM:
        return (long double)raw / greatest(l, component);
    case SNORM:
        return fmaxl((long double)with_sign(raw, bits) / greatest(l, component), -1);
    case USCALED:
        return raw;
    case SSCALED:
        return with_sign(raw, bits);
    default:
        return bits == 32 ? (long double)f32_of(raw) : small_of(raw, bits);
    }
}

/* Binary floats: bits behind the point, least exponent of a normal number. */
struct precision {
    int fraction, least;
    long double highest;
};
static const struct precision single = {23, -126, 0x1.fffffep127L}, half = {10, -14, 65504};

/* Distance in units of the last place; 0 or infinity where there is only one right answer. */
static double distance(const struct precision *p, long double exact, long double observed)
{
    if (isnan(exact) || isnan(observed))
        return isnan(exact) && isnan(observed) ? 0 : INFINITY;
    long double unit = ldexpl(1, (exact == 0 ? p->least : (int)fmaxl(ilogbl(exact), p->least)) - p->fraction);
    if (isinf(exact) || fabsl(exact) >= p->highest + unit / 2)
        return isinf(observed) && !signbit(exact) == !signbit(observed) ? 0 : INFINITY;
    bool holds = rintl(exact / unit) * unit == exact;
    if (holds)
        return observed == exact && !signbit(observed) == !signbit(exact) ? 0 : INFINITY;
    double units = (double)(fabsl(observed - exact) / unit);
    return units < 1 ? units : INFINITY;
}

/* Single precision in D16: cut (section 9.3.1), what is too large to the greatest. */
static double distance_of_cut(float exact, uint32_t observed)
{
    long double magnitude = fminl(fabsl((long double)exact), half.highest), r = fabsl(f16_of(observed));
    if (isnan(exact) || isinf(exact))
        return isnan(exact) ? (isnan(r) ? 0 : INFINITY) : distance(&half, exact, f16_of(observed));
    if (!signbit(exact) != !signbit(f16_of(observed)) || !(r <= magnitude))
        return INFINITY;
    double units = (double)((magnitude - r) /
                            ldexpl(1, (int)fmaxl(r == 0 ? -14 : ilogbl(r), half.least) - half.fraction));
    return units < 1 ? units : INFINITY;
}

/* A component in a register of 32 or 16 bits. */
static double load_error(const struct layout *l, unsigned component, uint32_t raw, uint32_t observed,
                         bool d16)
{
    bool word = l->bits[component] == 32;
    long double exact;
    if (!has_numbers(l)) {
        uint32_t value = l->kind == SINT ? (uint32_t)with_sign(raw, l->bits[component]) : raw;
        return (d16 ? value & 0xffff : value) == observed ? 0 : INFINITY;
    }
    if (word && !d16)
        return raw == observed ? 0 : INFINITY;
    if (word)
        return distance_of_cut(f32_of(raw), observed);
    exact = number_in(l, component, raw);
    return d16 ? distance(&half, exact, f16_of(observed))
               : distance(&single, exact, (long double)f32_of(observed));
}

static double integer_error(long double exact, int64_t observed)
{
    double error = (double)fabsl(exact - observed);
    return error < 1 && (exact != rintl(exact) || error == 0) ? error : INFINITY;
}

static double small_error(unsigned bits, float value, uint32_t observed)
{
    struct precision p = {bits == 16 ? 10 : (int)bits - 5, -14, 0};
    p.highest = ldexpl(2 - ldexpl(1, -p.fraction), 15);
    long double exact = bits != 16 && !isnan(value) && signbit(value) ? 0 : (long double)value;
    return distance(&p, exact, small_of(observed, bits));
}

/* A register, whose number or integer was widened to 32 bits, in memory: clamped to what the format has. */
static double store_error(const struct layout *l, unsigned component, uint32_t value, uint32_t observed)
{
    unsigned bits = l->bits[component];
    int64_t high = greatest(l, component), low = l->kind == UNORM || l->kind == USCALED || l->kind == UINT ? 0
                                                 : l->kind == SNORM ? -high
                                                                    : -high - 1;
    int64_t stored = low < 0 ? with_sign(observed, bits) : observed;
    long double x = (long double)f32_of(value);
    if (l->kind == FLOAT)
        return bits == 32 ? (value == observed ? 0 : INFINITY) : small_error(bits, f32_of(value), observed);
    if (l->kind == UNORM || l->kind == SNORM)
        x *= high;
    else if (!has_numbers(l))
        x = l->kind == UINT ? (long double)value : (long double)(int32_t)value;
    x = isnan(x) ? 0 : fminl(fmaxl(x, low), high);
    return integer_error(x, stored);
}

/* --- one instruction --- */

struct typed {
    uint16_t op;
    unsigned count;
    bool is_load, from_instruction, d16, high;
};

/* X, XY, XYZ, XYZW of each kind; and the two that take the high half. */
enum { KINDS = 8, OPS = 4 * KINDS + 2 };
static struct typed typed_op(unsigned i)
{
    static const struct typed first[KINDS] = {
        {BW_GFX11_BUFFER_LOAD_FORMAT_X, 0, true, false, false, false},
        {BW_GFX11_BUFFER_STORE_FORMAT_X, 0, false, false, false, false},
        {BW_GFX11_BUFFER_LOAD_D16_FORMAT_X, 0, true, false, true, false},
        {BW_GFX11_BUFFER_STORE_D16_FORMAT_X, 0, false, false, true, false},
        {BW_GFX11_TBUFFER_LOAD_FORMAT_X, 0, true, true, false, false},
        {BW_GFX11_TBUFFER_STORE_FORMAT_X, 0, false, true, false, false},
        {BW_GFX11_TBUFFER_LOAD_D16_FORMAT_X, 0, true, true, true, false},
        {BW_GFX11_TBUFFER_STORE_D16_FORMAT_X, 0, false, true, true, false},
    };
    if (i >= 4 * KINDS) {
        bool is_load = i == 4 * KINDS;
        return (struct typed){is_load ? BW_GFX11_BUFFER_LOAD_D16_HI_FORMAT_X
                                      : BW_GFX11_BUFFER_STORE_D16_HI_FORMAT_X,
                              1,
                              is_load,
                              false,
                              true,
                              true};
    }
    struct typed typed = first[i / 4];
    typed.op = (uint16_t)(typed.op + i % 4);
    typed.count = i % 4 + 1;
    return typed;
}

static struct mem_rig rig;
static struct mem_lane before[MEM_LANES];
static uint8_t image_before[MEM_IMAGE_BYTES];
enum { SELECT_0, SELECT_1, SELECT_X = 4 };

struct access {
    struct typed typed;
    struct layout layout;
    unsigned format, select[4];
    uint32_t records;
};

static uint32_t drawn_number(const struct layout *l)
{
    static const uint32_t corners[] = {0,          0x80000000, 0x3f800000, 0xbf800000, 0x7f800000,
                                       0xff800000, 0x7fc00000, 1,          0x7f7fffff, 0x477fe000,
                                       0x477ff000, 0x33800000, 0x387fc000, 0x38800000, 0x477e0000,
                                       0x3f000000, 0x437f0000, 0x477fff00};
    uint64_t random = bw_rng_next(&rig.rng);
    double unit = (double)(random >> 11) * 0x1p-53 * 2.4 - 1.2, most = (double)greatest(l, 0);
    switch (bw_rng_below(&rig.rng, 4)) {
    case 0:
        return corners[random % (sizeof corners / sizeof corners[0])];
    case 1:
        return (uint32_t)random;
    case 2: /* near a step */
        return bits_of_f32(
            (float)(rint(unit * most) / (l->kind == USCALED || l->kind == SSCALED ? 1 : most)));
    default:
        return bits_of_f32((float)(l->kind == USCALED || l->kind == SSCALED ? unit * most : unit));
    }
}

/* What a store takes: numbers or integers around the ends of the format; halves as they come. */
static uint32_t drawn_register(const struct layout *l, bool d16)
{
    uint64_t random = bw_rng_next(&rig.rng);
    if (d16 || !has_numbers(l))
        return random & 1 << 20 ? (uint32_t)random : (uint32_t)random >> (random >> 40 & 31);
    return drawn_number(l);
}

static void draw(struct access *a, unsigned round)
{
    static const unsigned selects[] = {SELECT_0, SELECT_1, 4, 5, 6, 7};
    unsigned turn = (unsigned)bw_rng_below(&rig.rng, 4);
    for (unsigned i = 0; i < 4; i++) {
        a->select[i] = SELECT_X + (a->typed.from_instruction ? i : a->typed.is_load ? i : (i + turn) % 4);
        if (a->typed.is_load && !a->typed.from_instruction && round & 1)
            a->select[i] = selects[bw_rng_below(&rig.rng, 6)];
    }
    a->records = round & 2 ? ELEMENT_BYTES * (uint32_t)bw_rng_below(&rig.rng, rig.wave_size)
                           : ELEMENT_BYTES * MEM_LANES;
    rig.arguments->exec = mem_exec(&rig, round);
    for (unsigned i = 0; i < MEM_IMAGE_BYTES; i += 4) {
        uint32_t word = has_numbers(&a->layout) && a->layout.bits[0] == 32 ? drawn_number(&a->layout)
                                                                           : (uint32_t)bw_rng_next(&rig.rng);
        memcpy(rig.image + i, &word, 4);
    }
    for (unsigned lane = 0; lane < MEM_LANES; lane++) {
        memset(&rig.lanes[lane], (int)lane, sizeof rig.lanes[lane]);
        rig.lanes[lane].address[0] = lane * ELEMENT_BYTES;
        for (unsigned i = 0; i < 4; i++)
            rig.lanes[lane].old[i] = drawn_register(&a->layout, a->typed.d16);
    }
    memcpy(before, rig.lanes, sizeof before);
    memcpy(image_before, rig.image, sizeof image_before);
}

static void encode(const struct access *a, uint32_t *words)
{
    enum { RAW = 3, OTHER_FORMAT = 20 };
    const struct bw_gfx11_op_row *row = &bw_gfx11_ops[a->typed.op];
    uint64_t base = EXEC_BASE + MEM_IMAGE_AT + BUFFER_AT;
    uint32_t *descriptor = rig.arguments->descriptor, select = 0;
    for (unsigned i = 0; i < 4 && !a->typed.from_instruction; i++)
        select |= a->select[i] << (3 * i);
    descriptor[0] = (uint32_t)base;
    descriptor[1] = (uint32_t)(base >> 32);
    descriptor[2] = a->records;
    descriptor[3] =
        select | (a->typed.from_instruction ? OTHER_FORMAT : a->format) << 12 | (uint32_t)RAW << 28;
    words[0] = a->typed.from_instruction ? 0xe8000000u | a->format << 19 | (uint32_t)row->opcode << 15
                                         : 0xe0000000u | (uint32_t)row->opcode << 18;
    words[1] = 128u << 24 | 1u << 22 | MEM_S_DESCRIPTOR / 4 << 16 | MEM_V_OLD << 8 | MEM_V_ADDRESS;
}

static bool is_inside(const struct access *a, unsigned lane)
{
    return lane * ELEMENT_BYTES + a->layout.bytes <= a->records;
}

/* The part of the lane's registers that component i has. */
static uint32_t part(const struct access *a, const uint32_t *registers, unsigned i)
{
    if (!a->typed.d16)
        return registers[i];
    return registers[i / 2] >> (a->typed.high || i % 2 ? 16 : 0) & 0xffff;
}

static double selected_error(const struct access *a, unsigned lane, unsigned i, uint32_t observed)
{
    const uint8_t *element = image_before + BUFFER_AT + lane * ELEMENT_BYTES;
    unsigned from = a->select[i] - SELECT_X;
    uint32_t one = !has_numbers(&a->layout) ? 1 : a->typed.d16 ? 0x3c00 : 0x3f800000;
    if (a->select[i] == SELECT_1)
        return observed == one ? 0 : INFINITY;
    if (a->select[i] == SELECT_0 || !is_inside(a, lane) || from >= a->layout.count)
        return observed == 0 ? 0 : INFINITY;
    return load_error(&a->layout, from, raw_of(&a->layout, from, element), observed, a->typed.d16);
}

/* Registers, or halves of them, that are not loaded keep what they held. */
static double lane_error(const struct access *a, unsigned lane)
{
    const uint32_t *after = rig.lanes[lane].result, *was = before[lane].old;
    uint32_t loaded[4] = {0};
    double worst = 0;
    for (unsigned i = 0; a->typed.is_load && mem_is_active(&rig, lane) && i < a->typed.count; i++) {
        if (a->typed.d16)
            loaded[i / 2] |= a->typed.high || i % 2 ? 0xffff0000 : 0xffff;
        else
            loaded[i] = ~0u;
        worst = fmax(worst, selected_error(a, lane, i, part(a, after, i)));
    }
    for (unsigned i = 0; i < 4; i++) {
        if ((after[i] ^ was[i]) & ~loaded[i])
            return INFINITY;
    }
    return worst;
}

/* Component c of memory comes from the register that selects it; from the first where the instruction gives
 * fewer. */
static uint32_t given(const struct access *a, unsigned lane, unsigned component)
{
    unsigned i = 0;
    while (a->select[i] != SELECT_X + component)
        i++;
    uint32_t value = part(a, before[lane].old, i < a->typed.count ? i : 0);
    if (!a->typed.d16)
        return value;
    if (has_numbers(&a->layout))
        return bits_of_f32((float)f16_of(value));
    return a->layout.kind == SINT ? (uint32_t)(int16_t)value : value;
}

static double memory_error(const struct access *a, unsigned lane)
{
    const uint8_t *element = rig.image + BUFFER_AT + lane * ELEMENT_BYTES;
    bool is_stored = !a->typed.is_load && mem_is_active(&rig, lane) && is_inside(a, lane);
    unsigned rest = is_stored ? a->layout.bytes : 0;
    double worst = 0;
    if (memcmp(element + rest, image_before + (element - rig.image) + rest, ELEMENT_BYTES - rest) != 0)
        return INFINITY;
    for (unsigned c = 0; is_stored && c < a->layout.count; c++) {
        uint32_t value = given(a, lane, c), observed = raw_of(&a->layout, c, element);
        bool is_nan =
            a->typed.d16 && a->layout.kind == FLOAT && isnan(f32_of(value)); /* widened to any NaN */
        double error = is_nan && a->layout.bits[c] == 32 ? (isnan(f32_of(observed)) ? 0 : INFINITY)
                                                         : store_error(&a->layout, c, value, observed);
        worst = fmax(worst, error);
    }
    return worst;
}

static bool check(struct access *a, unsigned round, double *seen)
{
    uint32_t words[2];
    draw(a, round);
    encode(a, words);
    if (mem_run(&rig, words, 2) != BW_ISA_DONE)
        return mem_differs(&rig, words, 2, rig.machine.result.text, 0, BW_ISA_DONE,
                           rig.machine.result.status);
    for (unsigned lane = 0; lane < rig.wave_size; lane++) {
        double error = fmax(lane_error(a, lane), memory_error(a, lane));
        *seen = fmax(*seen, error);
        if (error >= 1)
            return mem_differs(&rig, words, 2, formats[a->format], lane, before[lane].old[0],
                               rig.lanes[lane].result[0]);
    }
    return memcmp(rig.image, image_before, BUFFER_AT) == 0;
}

static bool check_all(unsigned i, double *seen)
{
    enum { ROUNDS = 6 };
    struct access access = {.typed = typed_op(i)};
    for (access.format = 1; access.format < FORMATS; access.format++) {
        access.layout = layout_of(access.format);
        for (unsigned round = 0; round < ROUNDS; round++) {
            if (!check(&access, round, seen))
                return false;
        }
    }
    return true;
}

static void test_operations(void)
{
    static double seen[OPS];
    static bool wrong[OPS];
    MEM_FOR_EACH_RIG(rig)
    {
        for (unsigned i = 0; i < OPS; i++)
            wrong[i] = !BW_TRUE(check_all(i, &seen[i])) || wrong[i];
    }
    for (unsigned i = 0; i < OPS; i++) {
        if (!wrong[i])
            ops_bound(typed_op(i).op, 1, seen[i]);
    }
}

OPS_TEST_MAIN("isa exec formats", {"every format, every operation", test_operations})
