/* Goal: typed buffer loads and stores, with the format of the descriptor and with that of the instruction:
 * every format at its limits, written out by hand, and the nearest number between; DST_SEL, D16, all or
 * nothing at the end of the buffer, misalignment. exec_ops_format_test.c has the rest. */
#include "tests/check.h"

#include "tests/unit/mock/isa/exec_memory.h"

#define OP(name) BW_GFX11_##name
#define F_ONE    0x3f800000u
#define F_MINUS  0xbf800000u
#define F_INF    0x7f800000u

enum { BUFFER_AT = 0x400, IDENTITY = 0xfac /* X, Y, Z, W */, LANE = 3 };

static struct mem_rig rig;

/* An element of memory and its registers; loaded from one, stored from the other. */
static const struct {
    uint8_t format, bytes;
    uint8_t memory[16];
    uint32_t registers[4];
} values[] = {
    {1, 1, {0}, {0}},                    /* 8_UNORM */
    {1, 1, {255}, {F_ONE}},              /* the end is 1 */
    {1, 1, {51}, {0x3e4ccccd}},          /* 51 / 255 = 0.2 */
    {2, 1, {0x7f}, {F_ONE}},             /* 8_SNORM */
    {2, 1, {0x81}, {F_MINUS}},           /* -127 / 127 */
    {3, 1, {200}, {0x43480000}},         /* 8_USCALED: 200.0 */
    {4, 1, {0x80}, {0xc3000000}},        /* 8_SSCALED: -128.0 */
    {5, 1, {0x80}, {0x80}},              /* 8_UINT */
    {6, 1, {0x80}, {0xffffff80}},        /* 8_SINT */
    {7, 2, {0xff, 0xff}, {F_ONE}},       /* 16_UNORM */
    {8, 2, {0x01, 0x80}, {F_MINUS}},     /* 16_SNORM */
    {9, 2, {0xff, 0xff}, {0x477fff00}},  /* 16_USCALED: 65535.0 */
    {10, 2, {0x00, 0x80}, {0xc7000000}}, /* 16_SSCALED: -32768.0 */
    {11, 2, {0x34, 0x92}, {0x9234}},     /* 16_UINT */
    {12, 2, {0x34, 0x92}, {0xffff9234}}, /* 16_SINT */
    {13, 2, {0x00, 0xbc}, {F_MINUS}},    /* 16_FLOAT */
    {13, 2, {0x01, 0x00}, {0x33800000}}, /* the least: 2^-24 */
    {13, 2, {0xff, 0x03}, {0x387fc000}}, /* the greatest denormal */
    {13, 2, {0xff, 0x7b}, {0x477fe000}}, /* 65504 */
    {13, 2, {0x00, 0x7c}, {F_INF}},
    {13, 2, {0x00, 0x00}, {0}},
    {13, 2, {0x00, 0x80}, {0x80000000}},                    /* -0 */
    {14, 2, {0, 255}, {0, F_ONE}},                          /* 8_8_UNORM */
    {19, 2, {0xff, 0x7f}, {0xffffffff, 0x7f}},              /* 8_8_SINT */
    {20, 4, {0x78, 0x56, 0x34, 0x92}, {0x92345678}},        /* 32_UINT */
    {21, 4, {0x78, 0x56, 0x34, 0x92}, {0x92345678}},        /* 32_SINT */
    {22, 4, {0x01, 0x00, 0xa0, 0x7f}, {0x7fa00001}},        /* 32_FLOAT, even a signaling NaN */
    {27, 4, {1, 2, 3, 0x84}, {0x201, 0x8403}},              /* 16_16_UINT */
    {29, 4, {0x00, 0x3c, 0x00, 0xc0}, {F_ONE, 0xc0000000}}, /* 16_16_FLOAT: 1, -2 */
    /* 10_11_11_FLOAT: X and Y have 11 bits, Z 10, exponent bias 15: 1, 2, 0.5 */
    {30, 4, {0xc0, 0x03, 0x20, 0x70}, {F_ONE, 0x40000000, 0x3f000000}},
    {30, 4, {0xbf, 0xff, 0xfd, 0xf7}, {0x477e0000, 0x477e0000, 0x477c0000}}, /* the greatest: 65024, 64512 */
    {30, 4, {0x01, 0x00, 0x00, 0x00}, {0x35800000, 0, 0}},                   /* the least: 2^-20 */
    /* 11_11_10_FLOAT: X has 10 bits, Y and Z 11 */
    {31, 4, {0xe0, 0x01, 0x10, 0x70}, {F_ONE, 0x40000000, 0x3f000000}},
    /* 10_10_10_2: X has two bits */
    {32, 4, {0x03, 0x00, 0xc0, 0xff}, {F_ONE, 0, 0, F_ONE}},
    {33, 4, {0x05, 0x08, 0x40, 0x80}, {F_ONE, F_MINUS, 0, F_MINUS}},
    {34, 4, {0x06, 0x00, 0x10, 0x00}, {2, 1, 0x100, 0}},
    {35, 4, {0xfe, 0x0f, 0x00, 0x80}, {0xfffffffe, 0xffffffff, 0, 0xfffffe00}},
    /* 2_10_10_10: W has two bits */
    {36, 4, {0xff, 0x03, 0x00, 0xc0}, {F_ONE, 0, 0, F_ONE}},
    {40, 4, {0x01, 0x08, 0x30, 0x80}, {1, 2, 3, 2}},
    {41, 4, {0xff, 0x07, 0x00, 0xc0}, {0xffffffff, 1, 0, 0xffffffff}},
    {42, 4, {0, 255, 51, 0}, {0, F_ONE, 0x3e4ccccd, 0}}, /* 8_8_8_8_UNORM */
    {47, 4, {1, 0xff, 0x80, 0x7f}, {1, 0xffffffff, 0xffffff80, 0x7f}},
    {48, 8, {1, 0, 0, 0, 2, 0, 0, 0}, {1, 2}},               /* 32_32_UINT */
    {55, 8, {1, 0, 2, 0, 3, 0, 4, 0x80}, {1, 2, 3, 0x8004}}, /* 16_16_16_16_UINT */
    {57, 8, {0, 0x3c, 0, 0x40, 0, 0x38, 0, 0xbc}, {F_ONE, 0x40000000, 0x3f000000, F_MINUS}},
    {58, 12, {1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0}, {1, 2, 3}},
    {60, 12, {0, 0, 0x80, 0x3f, 0, 0, 0, 0x40, 0, 0, 0x80, 0xbf}, {F_ONE, 0x40000000, F_MINUS}},
    {61, 16, {1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0x80}, {1, 2, 3, 0x80000004}},
    {63,
     16,
     {0, 0, 0x80, 0x3f, 0, 0, 0, 0x40, 0, 0, 0x80, 0xbf, 1, 0, 0, 0},
     {F_ONE, 0x40000000, F_MINUS, 1}},
};

/* What only loads see: the number below -1. */
static const struct {
    uint8_t format, bytes;
    uint8_t memory[16];
    uint32_t registers[4];
} loaded[] = {
    {2, 1, {0x80}, {F_MINUS}},
    {8, 2, {0x00, 0x80}, {F_MINUS}},
    {33, 4, {0x02, 0x08, 0x00, 0x80}, {F_MINUS, F_MINUS, 0, F_MINUS}},
};

/* What only stores do: beyond the ends, and between. */
static const struct {
    uint8_t format, bytes;
    uint32_t registers[4];
    uint8_t memory[16];
} stored[] = {
    {1, 1, {0x40000000}, {255}},  /* UNORM of 2 */
    {1, 1, {F_MINUS}, {0}},       /* of -1 */
    {1, 1, {0x7fc00000}, {0}},    /* of NaN */
    {1, 1, {0x3f000000}, {128}},  /* 127.5 to the nearest even */
    {2, 1, {0xc0000000}, {0x81}}, /* SNORM of -2 */
    {3, 1, {0x43960000}, {255}},  /* USCALED of 300 */
    {4, 1, {0xc3960000}, {0x80}}, /* SSCALED of -300 */
    {5, 1, {0x1234}, {0xff}},     /* UINT beyond what it holds */
    {6, 1, {0x1234}, {0x7f}},
    {6, 1, {0x80000000}, {0x80}},
    {13, 2, {0x477ff000}, {0x00, 0x7c}},                             /* 65520 rounds to infinity */
    {13, 2, {0x33000001}, {0x01, 0x00}},                             /* a little over half of the least */
    {30, 4, {F_MINUS, F_INF, 0x7fc00000}, {0x00, 0x00, 0x3e, 0xfc}}, /* no sign: 0, infinity, NaN */
};

static void put_descriptor(unsigned format, uint32_t select, uint32_t records)
{
    uint64_t base = EXEC_BASE + MEM_IMAGE_AT + BUFFER_AT;
    uint32_t *words = rig.arguments->descriptor;
    words[0] = (uint32_t)base;
    words[1] = (uint32_t)(base >> 32);
    words[2] = records;
    words[3] = select | format << 12 | 3u << 28; /* OOB_SELECT raw */
}

/* v[13:16] = data, no index, an offset from the register. */
static void encode(uint32_t *words, unsigned row, unsigned format)
{
    const struct bw_gfx11_op_row *r = &bw_gfx11_ops[row];
    words[0] = r->format == BW_GFX11_MTBUF ? 0xe8000000u | format << 19 | (uint32_t)r->opcode << 15
                                           : 0xe0000000u | (uint32_t)r->opcode << 18;
    words[1] = 128u << 24 | 1u << 22 | MEM_S_DESCRIPTOR / 4 << 16 | MEM_V_OLD << 8 | MEM_V_ADDRESS;
}

static bool run(unsigned row, unsigned format)
{
    uint32_t words[2];
    encode(words, row, format);
    rig.arguments->exec = 1ull << LANE;
    if (mem_run(&rig, words, 2) == BW_ISA_DONE)
        return true;
    return mem_differs(&rig, words, 2, rig.machine.result.text, rig.machine.result.va, BW_ISA_DONE,
                       rig.machine.result.status);
}

static uint8_t *element(void)
{
    return rig.image + BUFFER_AT + 16;
}

static void prepare(void)
{
    memset(rig.lanes, 0x5a, MEM_LANES * sizeof rig.lanes[0]);
    memset(rig.image, 0xc3, MEM_IMAGE_BYTES);
    rig.lanes[LANE].address[0] = 16;
}

/* With as many registers as there may be; of the descriptor, then of the instruction. */
static void check_load(unsigned format, unsigned bytes, const uint8_t *memory, const uint32_t *registers)
{
    for (unsigned i = 0; i < 8; i++) {
        bool typed = i > 3;
        unsigned given = i % 4 + 1;
        prepare();
        memcpy(element(), memory, bytes);
        put_descriptor(typed ? 20 : format, typed ? 0 : IDENTITY, 64);
        if (!BW_TRUE(run((typed ? OP(TBUFFER_LOAD_FORMAT_X) : OP(BUFFER_LOAD_FORMAT_X)) + given - 1, format)))
            continue;
        for (unsigned c = 0; c < 4; c++) {
            if (!BW_EQ(rig.lanes[LANE].result[c], c < given ? registers[c] : 0x5a5a5a5a))
                printf("      format %u, component %u of %u\n", format, c, given);
        }
    }
}

static void test_loads(void)
{
    MEM_FOR_EACH_RIG(rig)
    {
        for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
            check_load(values[i].format, values[i].bytes, values[i].memory, values[i].registers);
        for (size_t i = 0; i < sizeof loaded / sizeof loaded[0]; i++)
            check_load(loaded[i].format, loaded[i].bytes, loaded[i].memory, loaded[i].registers);
    }
}

static void check_store(unsigned format, unsigned bytes, const uint8_t *memory, const uint32_t *registers)
{
    for (unsigned typed = 0; typed < 2; typed++) {
        prepare();
        memcpy(rig.lanes[LANE].old, registers, 16);
        put_descriptor(typed ? 20 : format, typed ? 0 : IDENTITY, 64);
        if (!BW_TRUE(run(typed ? OP(TBUFFER_STORE_FORMAT_XYZW) : OP(BUFFER_STORE_FORMAT_XYZW), format)))
            continue;
        if (!BW_BYTES(element(), memory, bytes))
            printf("      format %u\n", format);
        BW_EQ(element()[-1], 0xc3);
        BW_EQ(element()[bytes], 0xc3);
    }
}

static void test_stores(void)
{
    MEM_FOR_EACH_RIG(rig)
    {
        for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
            check_store(values[i].format, values[i].bytes, values[i].memory, values[i].registers);
        for (size_t i = 0; i < sizeof stored / sizeof stored[0]; i++)
            check_store(stored[i].format, stored[i].bytes, stored[i].memory, stored[i].registers);
    }
}

/* DST_SEL: 0, 1, and components in any order; 1 comes even from outside. */
static void test_selection(void)
{
    enum { SELECT = 5 | 0 << 3 | 1 << 6 | 4 << 9 }; /* Y, 0, 1, X */
    MEM_FOR_EACH_RIG(rig)
    {
        for (unsigned is_float = 0; is_float < 2; is_float++) {
            unsigned format = is_float ? 50 : 48; /* 32_32 */
            uint32_t one = is_float ? F_ONE : 1;
            prepare();
            memcpy(element(), (const uint32_t[]){0x11, 0x22}, 8);
            put_descriptor(format, SELECT, 64);
            BW_TRUE(run(OP(BUFFER_LOAD_FORMAT_XYZW), 0));
            BW_BYTES(rig.lanes[LANE].result, ((const uint32_t[]){0x22, 0, one, 0x11}), 16);
            put_descriptor(format, SELECT, 20);
            BW_TRUE(run(OP(BUFFER_LOAD_FORMAT_XYZW), 0));
            BW_BYTES(rig.lanes[LANE].result, ((const uint32_t[]){0, 0, one, 0}), 16);
            prepare();
            memcpy(rig.lanes[LANE].old, (const uint32_t[]){1, 2, 3, 4}, 16);
            put_descriptor(format, SELECT, 64);
            BW_TRUE(run(OP(BUFFER_STORE_FORMAT_XYZW), 0));
            BW_BYTES(element(), ((const uint32_t[]){4, 1}), 8);
        }
    }
}

/* Two components to a register, single precision cut, the rest of a register as it was. */
static void test_d16(void)
{
    static const struct {
        uint16_t row;
        uint8_t format;
        uint32_t memory[4], registers[2];
    } loads[] = {
        {OP(BUFFER_LOAD_D16_FORMAT_X),
         22,
         {0x3f801fff},
         {0x5a5a3c00, 0x5a5a5a5a}}, /* 1 + almost 2^-10, cut */
        {OP(BUFFER_LOAD_D16_FORMAT_X),
         22,
         {0x7f7fffff},
         {0x5a5a7bff, 0x5a5a5a5a}}, /* the greatest stays finite */
        {OP(BUFFER_LOAD_D16_HI_FORMAT_X), 22, {0xc0000000}, {0xc0005a5a, 0x5a5a5a5a}},
        {OP(BUFFER_LOAD_D16_FORMAT_XY), 50, {0x3f800000, 0x40000000}, {0x40003c00, 0x5a5a5a5a}},
        {OP(BUFFER_LOAD_D16_FORMAT_XYZ), 60, {0x3f800000, 0x40000000, 0xbf800000}, {0x40003c00, 0x5a5abc00}},
        {OP(BUFFER_LOAD_D16_FORMAT_XYZW), 61, {0x10001, 2, 3, 4}, {0x00020001, 0x00040003}},
        {OP(TBUFFER_LOAD_D16_FORMAT_XYZW), 57, {0x40003c00, 0x7c00bc00}, {0x40003c00, 0x7c00bc00}},
        {OP(TBUFFER_LOAD_D16_FORMAT_X), 42, {0x000000ff}, {0x5a5a3c00, 0x5a5a5a5a}},
    };
    static const struct {
        uint16_t row;
        uint8_t format, bytes;
        uint32_t registers[2], memory[4];
    } stores[] = {
        {OP(BUFFER_STORE_D16_FORMAT_X), 22, 4, {0x12343c00}, {F_ONE}},
        {OP(BUFFER_STORE_D16_HI_FORMAT_X), 22, 4, {0xbc001234}, {F_MINUS}},
        {OP(BUFFER_STORE_D16_FORMAT_XYZW),
         63,
         16,
         {0x40003c00, 0x0001bc00},
         {F_ONE, 0x40000000, F_MINUS, 0x33800000}},
        {OP(BUFFER_STORE_D16_FORMAT_XY), 49, 8, {0xffff7fff}, {0x7fff, 0xffffffff}},
        {OP(BUFFER_STORE_D16_FORMAT_XY), 48, 8, {0xffff7fff}, {0x7fff, 0xffff}},
        {OP(TBUFFER_STORE_D16_FORMAT_XYZ), 58, 12, {0x00020001, 3}, {1, 2, 3}},
    };
    MEM_FOR_EACH_RIG(rig)
    {
        for (size_t i = 0; i < sizeof loads / sizeof loads[0]; i++) {
            prepare();
            memcpy(element(), loads[i].memory, 16);
            put_descriptor(loads[i].format, IDENTITY, 64);
            BW_TRUE(run(loads[i].row, loads[i].format));
            BW_BYTES(rig.lanes[LANE].result, loads[i].registers, 8);
        }
        for (size_t i = 0; i < sizeof stores / sizeof stores[0]; i++) {
            prepare();
            memcpy(rig.lanes[LANE].old, stores[i].registers, 8);
            put_descriptor(stores[i].format, IDENTITY, 64);
            BW_TRUE(run(stores[i].row, stores[i].format));
            BW_BYTES(element(), stores[i].memory, stores[i].bytes);
            BW_EQ(element()[stores[i].bytes], 0xc3);
        }
    }
}

/* An element of which the end is outside reads 0 whole and is not stored; without a format there is no
 * buffer. */
static void test_range(void)
{
    static const uint8_t untouched[16] = {0xc3, 0xc3, 0xc3, 0xc3, 0xc3, 0xc3, 0xc3, 0xc3,
                                          0xc3, 0xc3, 0xc3, 0xc3, 0xc3, 0xc3, 0xc3, 0xc3};
    static const uint32_t nothing[4] = {0};
    MEM_FOR_EACH_RIG(rig)
    {
        for (unsigned i = 0; i < 3; i++) {
            unsigned format = i < 2 ? 61 : 0;
            uint32_t records = i == 0 ? 16 + 15 : i == 1 ? 16 : 64;
            prepare();
            put_descriptor(format, IDENTITY, records);
            BW_TRUE(run(OP(BUFFER_LOAD_FORMAT_XYZW), 0));
            BW_BYTES(rig.lanes[LANE].result, nothing, 16);
            BW_TRUE(run(OP(BUFFER_STORE_FORMAT_XYZW), 0));
            BW_BYTES(element(), untouched, 16);
        }
    }
}

static void test_faults(void)
{
    uint32_t words[2];
    uint64_t at = EXEC_BASE + MEM_IMAGE_AT + BUFFER_AT;
    static const struct {
        uint8_t format, offset; /* of the bytes that its alignment wants */
    } wrong[] = {{11, 1}, {20, 2}, {61, 2}, {42, 1}, {57, 2}};
    MEM_FOR_EACH_RIG(rig)
    {
        for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
            prepare();
            put_descriptor(wrong[i].format, IDENTITY, 64);
            rig.lanes[LANE].address[0] = wrong[i].offset;
            rig.arguments->exec = 1ull << LANE;
            encode(words, OP(BUFFER_LOAD_FORMAT_X), 0);
            BW_EQ(mem_run(&rig, words, 2), BW_ISA_MISALIGNED);
            BW_EQ(rig.machine.result.va, at + wrong[i].offset);
            BW_EQ(rig.machine.result.lane, LANE);
        }
        put_descriptor(20, IDENTITY, 64);
        encode(words, OP(TBUFFER_LOAD_FORMAT_X), 77);
        BW_EQ(mem_run(&rig, words, 2), BW_ISA_UNSUPPORTED);
        BW_STR(rig.machine.result.text,
               "operand not emulated: tbuffer_load_format_x v13, v1, s[24:27], 0 format:77 offen");
        encode(words, OP(BUFFER_STORE_FORMAT_X), 0);
        words[1] |= 1u << 21;
        BW_EQ(mem_run(&rig, words, 2), BW_ISA_UNSUPPORTED);
        BW_STR(rig.machine.result.text, "modifier or mode not emulated: buffer_store_format_x v[13:14], v1, "
                                        "s[24:27], 0 offen tfe");
    }
}

BW_TEST_MAIN("isa exec format", {"loads of every format", test_loads},
             {"stores of every format", test_stores}, {"selection of components", test_selection},
             {"sixteen bits", test_d16}, {"the end of the buffer", test_range},
             {"faults are named", test_faults})
