/* Goal: what goes wrong in a kernel ends it with a named status, a pc, an address and a lane, never harms the
 * host; and what only looks stuck goes on. The kernels are written in assembly, as the comments show it. */
#include "tests/check.h"

#include <pthread.h>
#include <time.h>

#include "tests/unit/mock/isa/exec_run.h"

/* clang-format off */
static const uint32_t groups_wait_for_each_other[] = {
    0xf4040100, 0xf8000000, /* s_load_b64 s[4:5], s[0:1], null */
    0x7e000280,             /* v_mov_b32_e32 v0, 0 */
    0x7e040281,             /* v_mov_b32_e32 v2, 1 */
    0xbf89fc07,             /* s_waitcnt lgkmcnt(0) */
    0xbf068002,             /* s_cmp_eq_u32 s2, 0 */
    0xbfa10007,             /* s_cbranch_scc0 7 */
    0xdc524000, 0x01040000, /* global_load_b32 v1, v0, s[4:5] glc */
    0xbf8903f7,             /* s_waitcnt vmcnt(0) */
    0x7e0c0501,             /* v_readfirstlane_b32 s6, v1 */
    0xbf068006,             /* s_cmp_eq_u32 s6, 0 */
    0xbfa2fffa,             /* s_cbranch_scc1 65530 */
    0xbfb00000,             /* s_endpgm */
    0xdc6a0000, 0x00040200, /* global_store_b32 v0, v2, s[4:5] */
    0xbfb00000,             /* s_endpgm */
};

static const uint32_t waves_wait_in_lds[] = {
    0x32020085,             /* v_lshrrev_b32_e32 v1, 5, v0 */
    0x7e040280,             /* v_mov_b32_e32 v2, 0 */
    0x7e080501,             /* v_readfirstlane_b32 s4, v1 */
    0x7e060287,             /* v_mov_b32_e32 v3, 7 */
    0xbf068004,             /* s_cmp_eq_u32 s4, 0 */
    0xbfa1000d,             /* s_cbranch_scc0 13 */
    0xbf830001,             /* s_sleep 1 */
    0xd8d80000, 0x04000002, /* ds_load_b32 v4, v2 */
    0xbf89fc07,             /* s_waitcnt lgkmcnt(0) */
    0x7e0a0504,             /* v_readfirstlane_b32 s5, v4 */
    0xbf078705,             /* s_cmp_lg_u32 s5, 7 */
    0xbfa2fff9,             /* s_cbranch_scc1 65529 */
    0xf4040180, 0xf8000000, /* s_load_b64 s[6:7], s[0:1], null */
    0xbf89fc07,             /* s_waitcnt lgkmcnt(0) */
    0xdc6a0000, 0x00060402, /* global_store_b32 v2, v4, s[6:7] */
    0xbfb00000,             /* s_endpgm */
    0xd8340000, 0x00000302, /* ds_store_b32 v2, v3 */
    0xbfb00000,             /* s_endpgm */
};

static const uint32_t barrier_after_an_end[] = {
    0x7e080500,             /* v_readfirstlane_b32 s4, v0 */
    0xbf0aa004,             /* s_cmp_lt_u32 s4, 32 */
    0xbfa10008,             /* s_cbranch_scc0 8 */
    0xbfbd0000,             /* s_barrier */
    0xf4040180, 0xf8000000, /* s_load_b64 s[6:7], s[0:1], null */
    0x7e020281,             /* v_mov_b32_e32 v1, 1 */
    0x7e040280,             /* v_mov_b32_e32 v2, 0 */
    0xbf89fc07,             /* s_waitcnt lgkmcnt(0) */
    0xdc6a0000, 0x00060102, /* global_store_b32 v2, v1, s[6:7] */
    0xbfb00000,             /* s_endpgm */
};

static const uint32_t atomic_at_odd_address[] = {
    0xf4040100, 0xf8000000, /* s_load_b64 s[4:5], s[0:1], null */
    0x30020082,             /* v_lshlrev_b32_e32 v1, 2, v0 */
    0x7e040281,             /* v_mov_b32_e32 v2, 1 */
    0xbf89fc07,             /* s_waitcnt lgkmcnt(0) */
    0xdcd60002, 0x00040201, /* global_atomic_add_u32 v1, v2, s[4:5] offset:2 */
    0xbfb00000,             /* s_endpgm */
};

static const uint32_t lds_outside[] = {
    0xf4040100, 0xf8000000, /* s_load_b64 s[4:5], s[0:1], null */
    0x30020082,             /* v_lshlrev_b32_e32 v1, 2, v0 */
    0x4a040091,             /* v_add_nc_u32_e32 v2, 17, v0 */
    0xd8340000, 0x00000201, /* ds_store_b32 v1, v2 */
    0xd834003c, 0x00000201, /* ds_store_b32 v1, v2 offset:60 */
    0x7e0602c1,             /* v_mov_b32_e32 v3, -1 */
    0xd8d80000, 0x03000001, /* ds_load_b32 v3, v1 */
    0xd9d80000, 0x04000001, /* ds_load_b64 v[4:5], v1 */
    0xbf89fc07,             /* s_waitcnt lgkmcnt(0) */
    0x300c0084,             /* v_lshlrev_b32_e32 v6, 4, v0 */
    0x7e0e0280,             /* v_mov_b32_e32 v7, 0 */
    0xdc720000, 0x00040306, /* global_store_b96 v6, v[3:5], s[4:5] */
    0xbfb00000,             /* s_endpgm */
};

static const uint32_t flat_lds_outside[] = {
    0xbe8401eb,             /* s_mov_b64 s[4:5], src_shared_base */
    0x30000082,             /* v_lshlrev_b32_e32 v0, 2, v0 */
    0x7e020205,             /* v_mov_b32_e32 v1, s5 */
    0xdc500000, 0x027c0000, /* flat_load_b32 v2, v[0:1] */
    0xbf89fc07,             /* s_waitcnt lgkmcnt(0) */
    0xbfb00000,             /* s_endpgm */
};

static const uint32_t scratch_outside[] = {
    0x7e0002c0,             /* v_mov_b32_e32 v0, 64 */
    0xdc510000, 0x01fc0000, /* scratch_load_b32 v1, v0, off */
    0xbfb00000,             /* s_endpgm */
};

static const uint32_t load_null[] = {
    0x7e000280,             /* v_mov_b32_e32 v0, 0 */
    0x7e020280,             /* v_mov_b32_e32 v1, 0 */
    0xdc560008, 0x027c0000, /* global_load_b64 v[2:3], v[0:1], off offset:8 */
    0xbfb00000,             /* s_endpgm */
};

static const uint32_t store_code[] = {
    0xbe844700,             /* s_getpc_b64 s[4:5] */
    0x7e000280,             /* v_mov_b32_e32 v0, 0 */
    0xdc6a0000, 0x00040000, /* global_store_b32 v0, v0, s[4:5] */
    0xbfb00000,             /* s_endpgm */
};

static const uint32_t jump_away[] = {
    0xbe8400ff, 0x00001000, /* s_mov_b32 s4, 0x1000 */
    0xbe850080,             /* s_mov_b32 s5, 0 */
    0xbe804804,             /* s_setpc_b64 s[4:5] */
};

static const uint32_t trap[] = {
    0xbf800000, /* s_nop 0 */
    0xbf900002, /* s_trap 2 */
    0xbfb00000, /* s_endpgm */
};

static const uint32_t not_emulated[] = {
    0x7e000280,             /* v_mov_b32_e32 v0, 0 */
    0xd8760000, 0x00000000, /* ds_gws_barrier v0 gds */
    0xbfb00000,             /* s_endpgm */
};

static const uint32_t edge[] = {
    0xf4040100, 0xf8000000, /* s_load_b64 s[4:5], s[0:1], null */
    0x7e000280,             /* v_mov_b32_e32 v0, 0 */
    0xbf89fc07,             /* s_waitcnt lgkmcnt(0) */
    0xdc5e0000, 0x01040000, /* global_load_b128 v[1:4], v0, s[4:5] */
    0xbf8903f7,             /* s_waitcnt vmcnt(0) */
    0xdc760000, 0x00040100, /* global_store_b128 v0, v[1:4], s[4:5] */
    0xbfb00000,             /* s_endpgm */
};

static const uint32_t many_registers[] = {
    0x7f900280, /* v_mov_b32_e32 v200, 0 */
    0xbfb00000, /* s_endpgm */
};

static const uint32_t recursion[] = {
    0xbe860080,             /* s_mov_b32 s6, 0 */
    0xbe844700,             /* s_getpc_b64 s[4:5] */
    0x80048804,             /* s_add_u32 s4, s4, 8 */
    0x82058005,             /* s_addc_u32 s5, s5, 0 */
    0x80068106,             /* s_add_u32 s6, s6, 1 */
    0xbf0aff06, 0x00030000, /* s_cmp_lt_u32 s6, 0x30000 */
    0xbfa10001,             /* s_cbranch_scc0 1 */
    0xbe884904,             /* s_swappc_b64 s[8:9], s[4:5] */
    0xbfb00000,             /* s_endpgm */
};

/* clang-format on */

static struct exec_machine machine;

static bool begin(unsigned threads, const uint32_t *words, size_t size_bytes, uint64_t argument)
{
    if (!BW_EQ(exec_machine_init(&machine, threads), 0))
        return false;
    exec_put_code(&machine, words, size_bytes);
    memcpy(machine.memory + EXEC_ARGS, &argument, sizeof argument);
    return true;
}
#define BEGIN(threads, words, argument) begin(threads, words, sizeof words, argument)

static uint32_t word_at(uint64_t offset)
{
    uint32_t word;
    memcpy(&word, machine.memory + offset, 4);
    return word;
}

/* The pc of the word with that value. */
static uint64_t pc_of(uint32_t word)
{
    uint64_t at = 0;
    while (word_at(at) != word && at < EXEC_ARGS)
        at += 4;
    return EXEC_BASE + at;
}

static void test_groups_wait(void)
{
    for (unsigned threads = 1; threads <= 2; threads++) {
        if (!BEGIN(threads, groups_wait_for_each_other, EXEC_BASE + EXEC_DATA))
            return;
        machine.dispatch.group_count[0] = 3;
        BW_EQ(exec_run(&machine), BW_ISA_DONE);
        BW_EQ(word_at(EXEC_DATA), 1);
        exec_machine_free(&machine);
    }
}

static void test_waves_wait(void)
{
    if (!BEGIN(1, waves_wait_in_lds, EXEC_BASE + EXEC_DATA))
        return;
    machine.dispatch.group_size[0] = 64;
    machine.dispatch.lds_bytes = 512;
    BW_EQ(exec_run(&machine), BW_ISA_DONE);
    BW_EQ(word_at(EXEC_DATA), 7);
    exec_machine_free(&machine);
}

static void test_barrier_after_an_end(void)
{
    if (!BEGIN(1, barrier_after_an_end, EXEC_BASE + EXEC_DATA))
        return;
    machine.dispatch.group_size[0] = 128;
    BW_EQ(exec_run(&machine), BW_ISA_DONE);
    BW_EQ(word_at(EXEC_DATA), 1);
    exec_machine_free(&machine);
}

static void test_misaligned(void)
{
    if (!BEGIN(1, atomic_at_odd_address, EXEC_BASE + EXEC_DATA))
        return;
    BW_EQ(exec_run(&machine), BW_ISA_MISALIGNED);
    BW_EQ(machine.result.va, EXEC_BASE + EXEC_DATA + 2);
    BW_EQ(machine.result.lane, 0);
    BW_EQ(machine.result.access, BW_ISA_ATOMIC);
    BW_STR(machine.result.text, "global_atomic_add_u32 v1, v2, s[4:5] offset:2");
    exec_machine_free(&machine);
}

static void test_lds_outside(void)
{
    enum { LDS_BYTES = 100 }; /* 25 dwords: lanes 25 to 31 are outside, and of 64-bit elements lane 24 too */
    if (!BEGIN(1, lds_outside, EXEC_BASE + EXEC_DATA))
        return;
    machine.dispatch.lds_bytes = LDS_BYTES;
    BW_EQ(exec_run(&machine), BW_ISA_DONE);
    for (unsigned lane = 0; lane < 32; lane++) {
        uint64_t at = EXEC_DATA + 16 * lane;
        uint32_t mine = lane < 15 ? 0x11 + lane : 0x11 + lane - 15,
                 next = lane + 1 < 15 ? 0x12 + lane : 0x12 + lane - 15;
        BW_EQ(word_at(at), lane < 25 ? mine : 0);
        BW_EQ(word_at(at + 4), lane < 24 ? mine : 0);
        BW_EQ(word_at(at + 8), lane < 24 ? next : 0);
    }
    exec_machine_free(&machine);
}

static void test_flat_lds_outside(void)
{
    if (!BEGIN(1, flat_lds_outside, 0))
        return;
    machine.dispatch.lds_bytes = 64;
    BW_EQ(exec_run(&machine), BW_ISA_LDS_OUT_OF_RANGE);
    BW_EQ(machine.result.lane, 16);
    BW_EQ(machine.result.va, machine.dispatch.shared_aperture + 64);
    BW_STR(machine.result.text, "beyond the group's 64 bytes: flat_load_b32 v2, v[0:1]");
    exec_machine_free(&machine);
}

static void test_scratch_outside(void)
{
    if (!BEGIN(1, scratch_outside, 0))
        return;
    machine.dispatch.rsrc2 |= 1; /* SCRATCH_EN */
    machine.dispatch.scratch_base = EXEC_BASE + EXEC_SCRATCH;
    machine.dispatch.scratch_wave_bytes = 64 * 32;
    machine.dispatch.scratch_wave_slots = 1;
    BW_EQ(exec_run(&machine), BW_ISA_MEMORY_FAULT);
    BW_EQ(machine.result.va, machine.dispatch.private_aperture + 64);
    BW_STR(machine.result.text, "beyond the wave's scratch of 64 bytes a lane: scratch_load_b32 v1, v0, off");
    machine.dispatch.scratch_wave_bytes = 68 * 32;
    BW_EQ(exec_run(&machine), BW_ISA_DONE);
    exec_machine_free(&machine);
}

static void test_no_access(void)
{
    if (!BEGIN(1, load_null, 0))
        return;
    BW_EQ(exec_run(&machine), BW_ISA_MEMORY_FAULT);
    BW_EQ(machine.result.va, 8);
    BW_EQ(machine.result.access, BW_ISA_READ);
    BW_EQ(machine.result.pc, EXEC_BASE + 8);
    exec_put_code(&machine, store_code, sizeof store_code);
    BW_EQ(exec_run(&machine), BW_ISA_MEMORY_FAULT);
    BW_EQ(machine.result.va, EXEC_BASE + 4);
    BW_EQ(machine.result.access, BW_ISA_WRITE);
    exec_machine_free(&machine);
}

static void test_jump_away(void)
{
    if (!BEGIN(1, jump_away, 0))
        return;
    BW_EQ(exec_run(&machine), BW_ISA_MEMORY_FAULT);
    BW_EQ(machine.result.pc, 0x1000);
    BW_EQ(machine.result.va, 0x1000);
    BW_EQ(machine.result.access, BW_ISA_EXECUTE);
    exec_machine_free(&machine);
}

/* A jump to what is no code yet, or not all of it, then code there: the kernel at the entry stays as it is.
 */
static void test_code_written_later(void)
{
    enum { TARGET = 0x1000 };
    static const uint32_t jump[] = {
        0xbe844700,             /* s_getpc_b64 s[4:5] */
        0x8004ff04, TARGET - 4, /* s_add_u32 s4, s4, TARGET - 4 */
        0xbe804804,             /* s_setpc_b64 s[4:5] */
    };
    static const uint32_t later[] = {
        0xbe8400ff, 0x12345678, /* s_mov_b32 s4, 0x12345678 */
        0xbfb00000,             /* s_endpgm */
    };
    if (!BEGIN(1, jump, 0))
        return;
    uint8_t *target = machine.memory + TARGET;
    memset(target, 0xff, sizeof later);
    BW_EQ(exec_run(&machine), BW_ISA_ILLEGAL_INSTRUCTION);
    BW_EQ(machine.result.pc, EXEC_BASE + TARGET);
    memcpy(target, later, sizeof later);
    BW_EQ(exec_run(&machine), BW_ISA_DONE);
    memset(target + 8, 0xff, 4);
    BW_EQ(exec_run(&machine), BW_ISA_ILLEGAL_INSTRUCTION);
    BW_EQ(machine.result.pc, EXEC_BASE + TARGET + 8);
    memcpy(target, later, sizeof later);
    BW_EQ(exec_run(&machine), BW_ISA_DONE);
    exec_machine_free(&machine);
}

/* The same with code memory that ends within an instruction and is mapped further later. */
static uint64_t code_bytes;

static void *resolve_so_far(void *user, uint64_t va, enum bw_isa_access access, uint64_t *start,
                            uint64_t *bytes)
{
    void *host = exec_resolve(user, va, access, start, bytes);
    if (!(access & BW_ISA_EXECUTE) || !host)
        return host;
    *bytes = EXEC_BASE + code_bytes - va;
    return va < EXEC_BASE + code_bytes ? host : NULL;
}

static void test_code_mapped_later(void)
{
    static const uint32_t code[] = {
        0xbf800000,             /* s_nop 0 */
        0xbe8400ff, 0x12345678, /* s_mov_b32 s4, 0x12345678 */
        0xbfb00000,             /* s_endpgm */
    };
    static const struct {
        uint32_t mapped_bytes;
        enum bw_isa_status status;
        uint32_t pc;
    } steps[] = {
        {4, BW_ISA_MEMORY_FAULT, 4}, {8, BW_ISA_MEMORY_FAULT, 4},   {12, BW_ISA_MEMORY_FAULT, 12},
        {16, BW_ISA_DONE, 0},        {12, BW_ISA_MEMORY_FAULT, 12}, {0, BW_ISA_MEMORY_FAULT, 0},
    };
    if (!BEGIN(1, code, 0))
        return;
    machine.dispatch.memory.resolve = resolve_so_far;
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        code_bytes = steps[i].mapped_bytes;
        BW_EQ(exec_run(&machine), steps[i].status);
        if (steps[i].status == BW_ISA_DONE)
            continue;
        BW_EQ(machine.result.pc, EXEC_BASE + steps[i].pc);
        BW_EQ(machine.result.va, EXEC_BASE + steps[i].mapped_bytes); /* what is missing of an instruction */
        if (steps[i].mapped_bytes == 8)
            BW_STR(machine.result.text, "the rest of an instruction is not there: 0xbe8400ff");
    }
    exec_machine_free(&machine);
}

static void test_named(void)
{
    if (!BEGIN(1, trap, 0))
        return;
    BW_EQ(exec_run(&machine), BW_ISA_TRAP);
    BW_EQ(machine.result.pc, EXEC_BASE + 4);
    exec_put_code(&machine, not_emulated, sizeof not_emulated);
    BW_EQ(exec_run(&machine), BW_ISA_UNSUPPORTED);
    BW_STR(machine.result.text, "operation not emulated: ds_gws_barrier v0 gds");
    exec_put_code(&machine, many_registers, sizeof many_registers);
    BW_EQ(exec_run(&machine), BW_ISA_ILLEGAL_INSTRUCTION);
    BW_STR(machine.result.text, "VGPR beyond those allocated: v_mov_b32_e32 v200, 0");
    machine.dispatch.rsrc1 |= 63; /* 256 VGPRs */
    BW_EQ(exec_run(&machine), BW_ISA_DONE);
    exec_machine_free(&machine);
}

/* What compute never has, the GDS and what goes around registers: decoded, printed and refused, not illegal.
 */
static void test_refused_by_name(void)
{
    static const struct {
        uint32_t words[2];
        const char *text;
    } refused[] = {
        {{0xce150003}, "operation not emulated: lds_direct_load v3 wait_vdst:5"},
        {{0xce021d03}, "operation not emulated: lds_param_load v3, attr7.y wait_vdst:2"},
        {{0xd8020000, 0x00000100}, "operation not emulated: ds_add_u32 v0, v1 gds"},
        {{0xd8760000, 0x00000002}, "operation not emulated: ds_gws_barrier v2 gds"},
        {{0xd8fe0008, 0x03000004}, "operation not emulated: ds_ordered_count v3, v4 offset:8 gds"},
        {{0xe0c40000, 0x03020000}, "operation not emulated: buffer_load_lds_b32 off, s[8:11], s3"},
    };
    if (!BEGIN(1, trap, 0))
        return;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        exec_put_code(&machine, refused[i].words, sizeof refused[i].words);
        BW_EQ(exec_run(&machine), BW_ISA_UNSUPPORTED);
        BW_STR(machine.result.text, refused[i].text);
        BW_EQ(machine.result.pc, EXEC_BASE);
    }
    exec_machine_free(&machine);
}

static void test_edge(void)
{
    uint64_t end = EXEC_BASE + EXEC_BYTES;
    if (!BEGIN(1, edge, end - 16))
        return;
    machine.dispatch.group_size[0] = 1;
    BW_EQ(exec_run(&machine), BW_ISA_DONE);
    for (uint64_t past = 1; past <= 16; past += 5) {
        uint64_t argument = end - 16 + past;
        memcpy(machine.memory + EXEC_ARGS, &argument, sizeof argument);
        BW_EQ(exec_run(&machine), BW_ISA_MEMORY_FAULT);
        BW_EQ(machine.result.va, end); /* the first byte that is missing */
        BW_EQ(machine.result.pc, pc_of(0xdc5e0000));
    }
    exec_machine_free(&machine);
}

/* Calls through a register, deeper than any host stack would stand. */
static void test_many_calls(void)
{
    if (!BEGIN(1, recursion, 0))
        return;
    BW_EQ(exec_run(&machine), BW_ISA_DONE);
    BW_TRUE(machine.result.instructions > 0x30000);
    exec_machine_free(&machine);
}

static void *stop_soon(void *argument)
{
    struct bw_isa_control *control = argument;
    struct timespec wait = {.tv_nsec = 20000000};
    nanosleep(&wait, NULL);
    atomic_store(&control->stop, 1);
    return NULL;
}

static void test_stopped_from_outside(void)
{
    static const uint32_t endless[] = {0xbfa0ffff /* s_branch to itself */};
    pthread_t thread;
    if (!BEGIN(2, endless, 0))
        return;
    machine.dispatch.group_count[0] = 1000;
    memset(&machine.control, 0, sizeof machine.control);
    if (!BW_EQ(pthread_create(&thread, NULL, stop_soon, &machine.control), 0))
        return;
    bw_isa_run(machine.isa, machine.pool, &machine.dispatch, &machine.control, &machine.result);
    pthread_join(thread, NULL);
    BW_EQ(machine.result.status, BW_ISA_STOPPED);
    BW_TRUE(machine.result.instructions > 0);
    exec_machine_free(&machine);
}

/* Once a place was told, one can be read at any time, however often the waves tell theirs. */
static void *look_often(void *argument)
{
    enum { LOOKS = 200000 };
    struct bw_isa_control *control = argument;
    struct bw_isa_place place;
    struct timespec wait = {.tv_nsec = 100000};
    unsigned missed = 0;
    while (!bw_isa_place_read(control, &place))
        nanosleep(&wait, NULL);
    for (unsigned i = 0; i < LOOKS; i++)
        missed += !bw_isa_place_read(control, &place) || place.group[0] >= 3 || place.wave != 0 ||
                  place.live != 1 || place.pc < EXEC_BASE + EXEC_CODE ||
                  place.pc >= EXEC_BASE + EXEC_CODE + 8;
    atomic_store(&control->stop, 1);
    return (void *)(uintptr_t)missed;
}

static void test_place_is_told(void)
{
    static const uint32_t sleeper[] = {0xbf830001 /* s_sleep 1 */, 0xbfa0fffe /* s_branch to it */};
    pthread_t thread;
    void *missed = NULL;
    if (!BEGIN(2, sleeper, 0))
        return;
    machine.dispatch.group_count[0] = 3;
    memset(&machine.control, 0, sizeof machine.control);
    if (!BW_EQ(pthread_create(&thread, NULL, look_often, &machine.control), 0))
        return;
    bw_isa_run(machine.isa, machine.pool, &machine.dispatch, &machine.control, &machine.result);
    pthread_join(thread, &missed);
    BW_EQ((uintptr_t)missed, 0);
    BW_EQ(machine.result.status, BW_ISA_STOPPED);
    exec_machine_free(&machine);
}

/* The lowest group that fails is the one that is told of, whatever the number of threads. */
static void test_first_fault(void)
{
    for (unsigned threads = 1; threads <= 4; threads++) {
        if (!BEGIN(threads, load_null, 0))
            return;
        machine.dispatch.group_count[0] = 500;
        machine.dispatch.group_start[0] = 7;
        BW_EQ(exec_run(&machine), BW_ISA_MEMORY_FAULT);
        BW_EQ(machine.result.group[0], 7);
        exec_machine_free(&machine);
    }
}

/* A group that never ends does not hide that another one fails. */
static void test_fault_beside_an_endless_group(void)
{
    static const uint32_t spins[] = {
        0xbf068002,                         /* s_cmp_eq_u32 s2, 0 */
        0xbfa10002,                         /* s_cbranch_scc0 2 */
        0xbf800000,                         /* s_nop 0 */
        0xbfa0fffe,                         /* s_branch to it */
        0x7e000280, 0x7e020280,             /* v_mov_b32_e32 v0, 0; v_mov_b32_e32 v1, 0 */
        0xdc560008, 0x027c0000, 0xbfb00000, /* global_load_b64 v[2:3], v[0:1], off offset:8; s_endpgm */
    };
    for (unsigned threads = 1; threads <= 4; threads++) {
        if (!BEGIN(threads, spins, 0))
            return;
        machine.dispatch.group_count[0] = 500;
        for (unsigned stepped = 0; stepped < (threads == 1 ? 2 : 1); stepped++) {
            machine.dispatch.single_step = stepped;
            machine.dispatch.seed = 3; /* which does not begin with group 0 */
            for (uint32_t sleeps = 0; sleeps < 2; sleeps++) {
                uint32_t word = sleeps ? 0xbf830001 /* s_sleep 1 */ : 0xbf800000;
                memcpy(machine.memory + 8, &word, sizeof word);
                BW_EQ(exec_run(&machine), BW_ISA_MEMORY_FAULT);
                BW_EQ(machine.result.va, 8);
                BW_TRUE(machine.result.group[0] > 0);
            }
        }
        exec_machine_free(&machine);
    }
}

BW_TEST_MAIN("isa exec faults", {"a fault beside an endless group", test_fault_beside_an_endless_group},
             {"groups that wait for later ones", test_groups_wait},
             {"waves that wait for each other", test_waves_wait},
             {"a barrier that an ended wave cannot reach", test_barrier_after_an_end},
             {"a misaligned atomic", test_misaligned}, {"LDS out of range reads 0", test_lds_outside},
             {"LDS through its aperture faults", test_flat_lds_outside},
             {"scratch out of range", test_scratch_outside},
             {"memory without the right to it", test_no_access}, {"a jump to nowhere", test_jump_away},
             {"code written later", test_code_written_later}, {"code mapped later", test_code_mapped_later},
             {"trap, operation and register are named", test_named},
             {"what compute does not have is named", test_refused_by_name},
             {"the edge of a mapping", test_edge}, {"very many calls", test_many_calls},
             {"stopped from outside", test_stopped_from_outside},
             {"where a group stands is told", test_place_is_told},
             {"the first fault is told", test_first_fault})
