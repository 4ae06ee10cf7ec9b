/* Goal: scalar loads, plain and through a buffer descriptor, read what the RDNA3 ISA document says (section
 * 8), for every size, offset, misalignment, limit, and across mappings. */
#include "tests/check.h"

#include "tests/unit/mock/isa/exec_memory_ops.h"

#define OP(name) BW_GFX11_##name
enum { S_RESULT = 32, RESULTS_AT = MEM_IMAGE_BYTES, S_NULL = 124, S_M0 = 125, DWORDS_MAX = 16 };

static struct mem_rig rig;

static const struct {
    uint16_t plain, buffer;
    uint8_t dwords;
} sizes[] = {
    {OP(S_LOAD_B32), OP(S_BUFFER_LOAD_B32), 1},    {OP(S_LOAD_B64), OP(S_BUFFER_LOAD_B64), 2},
    {OP(S_LOAD_B128), OP(S_BUFFER_LOAD_B128), 4},  {OP(S_LOAD_B256), OP(S_BUFFER_LOAD_B256), 8},
    {OP(S_LOAD_B512), OP(S_BUFFER_LOAD_B512), 16},
};

/* The load into s[32:47], then the registers to memory behind the image, by lane 0 (RDNA3 ISA document,
 * section 15.2). */
static unsigned encode(uint32_t *words, unsigned row, unsigned base, unsigned soffset, int32_t offset)
{
    unsigned at = 0;
    words[at++] = 0xf4000000u | (uint32_t)bw_gfx11_ops[row].opcode << 18 | S_RESULT << 6 | base / 2;
    words[at++] = ((uint32_t)offset & 0x1fffff) | soffset << 25;
    words[at++] = 0xbf89fc07; /* s_waitcnt lgkmcnt(0) */
    for (uint32_t i = 0; i < DWORDS_MAX; i++) {
        words[at++] = 0x7e2c0200 + S_RESULT + i;         /* v_mov_b32_e32 v22, s[32 + i] */
        words[at++] = 0xdc6a0000 | (RESULTS_AT + 4 * i); /* global_store_b32 v21, v22, s[18:19] offset:o */
        words[at++] = 0x00121615;
    }
    return at;
}

static uint32_t result(unsigned i)
{
    return mem_32(rig.image + RESULTS_AT + 4 * i);
}

static bool same(const uint32_t *words, const uint32_t *expected, unsigned dwords)
{
    for (unsigned i = 0; i < dwords; i++) {
        if (result(i) != expected[i])
            return mem_differs(&rig, words, 2, "dword", i, expected[i], result(i));
    }
    return true;
}

/* An offset register and what it holds: none, an SGPR, M0. */
static unsigned choose_register(uint32_t value)
{
    unsigned soffset = value == 0 ? S_NULL : bw_rng_below(&rig.rng, 2) ? S_M0 : MEM_S_OFFSET32;
    rig.arguments->soffset32 = soffset == S_M0 ? ~value : value;
    rig.arguments->m0 = soffset == S_M0 ? value : ~value;
    return soffset;
}

/* Every part of the address loses its two low bits before they are added. */
static bool check_plain(unsigned row, unsigned dwords, unsigned round)
{
    static const int32_t immediates[] = {0, 1, 2, 3, 4, 63, 64, 4095, 0xfffff, -4, -1, -64, -0x100000, -3};
    uint32_t words[64], expected[DWORDS_MAX];
    int32_t immediate = immediates[bw_rng_below(&rig.rng, sizeof immediates / sizeof immediates[0])];
    uint32_t offset = round % 3 == 0 ? 0 : (uint32_t)bw_rng_next(&rig.rng) >> bw_rng_below(&rig.rng, 32);
    if (immediate < 0 && offset < 0x100000) /* their sum must not be negative */
        offset += 0x100000;
    uint64_t place = bw_rng_below(&rig.rng, (MEM_IMAGE_BYTES - 4 * dwords) / 4) * 4;
    uint64_t parts = (offset & ~3u) + ((uint64_t)(int64_t)immediate & ~3ull);
    mem_fill(&rig, &mem_ops[0]);
    rig.arguments->exec = 1;
    rig.arguments->saddr = EXEC_BASE + MEM_IMAGE_AT + place - parts + bw_rng_below(&rig.rng, 4);
    rig.piece_bytes = round % 2 ? 20 : 0;
    rig.machine.generation++;
    memcpy(expected, rig.image + place, 4 * dwords);
    unsigned count = encode(words, row, MEM_S_ADDRESS, choose_register(offset), immediate);
    if (!BW_EQ(mem_run(&rig, words, count), BW_ISA_DONE))
        return mem_differs(&rig, words, 2, rig.machine.result.text, rig.machine.result.va, place, 0);
    return same(words, expected, dwords);
}

/* A dword is read when offset + 4 i lies below stride * num_records, or num_records when there is no stride;
 * 0 otherwise. */
static bool check_buffer(unsigned row, unsigned dwords, unsigned round)
{
    static const uint32_t strides[] = {0, 1, 4, 7, 16, 100};
    uint32_t words[64], expected[DWORDS_MAX];
    uint32_t stride = strides[bw_rng_below(&rig.rng, sizeof strides / sizeof strides[0])];
    uint32_t records = (uint32_t)bw_rng_below(&rig.rng, stride ? 1024 / stride : 1024);
    uint32_t immediate = (uint32_t)bw_rng_below(&rig.rng, 512),
             offset = (uint32_t)bw_rng_below(&rig.rng, 512);
    if (round % 4 == 0)
        offset = 0;
    if (round % 7 == 6)
        offset = 0xffffffff - (uint32_t)bw_rng_below(&rig.rng, 600); /* no wrapping around */
    uint64_t base = EXEC_BASE + MEM_IMAGE_AT + bw_rng_below(&rig.rng, 16);
    uint64_t limit = (uint64_t)records * (stride ? stride : 1), at = (uint64_t)immediate + offset;
    mem_fill(&rig, &mem_ops[0]);
    rig.arguments->exec = 1;
    rig.arguments->descriptor[0] = (uint32_t)base;
    rig.arguments->descriptor[1] = (uint32_t)(base >> 32) | stride << 16;
    rig.arguments->descriptor[2] = records;
    rig.arguments->descriptor[3] = (uint32_t)bw_rng_next(&rig.rng); /* not looked at */
    rig.piece_bytes = round % 2 ? 20 : 0;
    rig.machine.generation++;
    for (unsigned i = 0; i < dwords; i++) {
        uint64_t va = (base & ~3ull) + ((at + 4 * i) & ~3ull);
        expected[i] = at + 4 * i < limit ? mem_32(rig.image + (va - EXEC_BASE - MEM_IMAGE_AT)) : 0;
    }
    unsigned count = encode(words, row, MEM_S_DESCRIPTOR, choose_register(offset), (int32_t)immediate);
    if (!BW_EQ(mem_run(&rig, words, count), BW_ISA_DONE))
        return mem_differs(&rig, words, 2, rig.machine.result.text, rig.machine.result.va, 0, 0);
    return same(words, expected, dwords);
}

static void test_loads(void)
{
    enum { ROUNDS = 60 };
    MEM_FOR_EACH_RIG(rig)
    {
        for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            bool ok = true;
            for (unsigned round = 0; round < ROUNDS && ok; round++)
                ok = check_plain(sizes[i].plain, sizes[i].dwords, round) &&
                     check_buffer(sizes[i].buffer, sizes[i].dwords, round);
            if (!BW_TRUE(ok))
                continue;
            ops_prove(sizes[i].plain);
            ops_prove(sizes[i].buffer);
        }
    }
}

/* What is not mapped is named by the first address that is not; a buffer's negative immediate is a violation
 * even where its sum with the register is not. */
static void test_faults(void)
{
    uint32_t words[64];
    MEM_FOR_EACH_RIG(rig)
    {
        for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            uint64_t end = EXEC_BASE + EXEC_BYTES;
            rig.arguments->exec = 1;
            rig.arguments->saddr = end - 4u * sizes[i].dwords + 4;
            unsigned count = encode(words, sizes[i].plain, MEM_S_ADDRESS, S_NULL, 0);
            BW_EQ(mem_run(&rig, words, count), BW_ISA_MEMORY_FAULT);
            BW_EQ(rig.machine.result.va, end);
            BW_EQ(rig.machine.result.access, BW_ISA_READ);
            rig.arguments->saddr = end - 4u * sizes[i].dwords;
            BW_EQ(mem_run(&rig, words, count), BW_ISA_DONE);
            rig.arguments->descriptor[0] = (uint32_t)(EXEC_BASE + MEM_IMAGE_AT);
            rig.arguments->descriptor[1] = (uint32_t)((EXEC_BASE + MEM_IMAGE_AT) >> 32);
            rig.arguments->descriptor[2] = 256;
            rig.arguments->soffset32 = 16;
            count = encode(words, sizes[i].buffer, MEM_S_DESCRIPTOR, MEM_S_OFFSET32, -4);
            BW_EQ(mem_run(&rig, words, count), BW_ISA_MEMORY_FAULT);
            BW_EQ(rig.machine.result.va, EXEC_BASE + MEM_IMAGE_AT + 12);
        }
    }
}

OPS_TEST_MAIN("isa exec smem", {"loads", test_loads}, {"faults", test_faults})
