/* Goal: kernels as committed machine words run right on the emulator, with no LLVM at hand. */
#include "tests/check.h"

#include "tests/unit/mock/isa/exec_run.h"

/* c[i] = a[i] + b[i] for i < n, as clang 19 -O3 makes it for gfx1100 from OpenCL C, with the group size 64 as
 * a literal: arguments a, b, c, n at 0, 8, 16, 24. */
static const uint32_t vector_add[] = {
    0xbf850001,             /* s_clause 0x1 */
    0xf40000c0, 0xf8000018, /* s_load_b32 s3, s[0:1], 0x18 */
    0xbe8400ff, 0x00000040, /* s_mov_b32 s4, 64 */
    0xbf89fc07,             /* s_waitcnt lgkmcnt(0) */
    0xd6fe7c01, 0x04000802, /* v_mad_u64_u32 v[1:2], null, s2, s4, v[0:1] */
    0xbe85007e,             /* s_mov_b32 s5, exec_lo */
    0xd4c4007e, 0x00020203, /* v_cmpx_gt_i32_e64 s3, v1 */
    0xbfa5001b,             /* s_cbranch_execz to s_endpgm */
    0xf4080100, 0xf8000000, /* s_load_b128 s[4:7], s[0:1], null */
    0x3404029f,             /* v_ashrrev_i32_e32 v2, 31, v1 */
    0xf4040000, 0xf8000010, /* s_load_b64 s[0:1], s[0:1], 0x10 */
    0xbf8700a1,             /* s_delay_alu */
    0xd73c0000, 0x00020282, /* v_lshlrev_b64 v[0:1], 2, v[1:2] */
    0xbf89fc07,             /* s_waitcnt lgkmcnt(0) */
    0xd7006a02, 0x00020004, /* v_add_co_u32 v2, vcc_lo, s4, v0 */
    0xbf870002,             /* s_delay_alu */
    0x40060205,             /* v_add_co_ci_u32_e32 v3, vcc_lo, s5, v1, vcc_lo */
    0xd7006a04, 0x00020006, /* v_add_co_u32 v4, vcc_lo, s6, v0 */
    0x400a0207,             /* v_add_co_ci_u32_e32 v5, vcc_lo, s7, v1, vcc_lo */
    0xd7006a00, 0x00020000, /* v_add_co_u32 v0, vcc_lo, s0, v0 */
    0xdc520000, 0x027c0002, /* global_load_b32 v2, v[2:3], off */
    0xdc520000, 0x037c0004, /* global_load_b32 v3, v[4:5], off */
    0x40020201,             /* v_add_co_ci_u32_e32 v1, vcc_lo, s1, v1, vcc_lo */
    0xbf8903f7,             /* s_waitcnt vmcnt(0) */
    0x06040702,             /* v_add_f32_e32 v2, v2, v3 */
    0xdc6a0000, 0x007c0200, /* global_store_b32 v[0:1], v2, off */
    0xbf800000,             /* s_nop 0 */
    0xbfb60003,             /* s_sendmsg sendmsg(MSG_DEALLOC_VGPRS) */
    0xbfb00000,             /* s_endpgm */
};

enum { COUNT = 1000, GROUP = 64, B_AT = EXEC_DATA + 0x10000, C_AT = EXEC_DATA + 0x20000 };

static void put_arguments(struct exec_machine *machine, int32_t count)
{
    uint64_t pointers[3] = {EXEC_BASE + EXEC_DATA, EXEC_BASE + B_AT, EXEC_BASE + C_AT};
    memcpy(machine->memory + EXEC_ARGS, pointers, sizeof pointers);
    memcpy(machine->memory + EXEC_ARGS + 24, &count, sizeof count);
}

static void prepare_vector_add(struct exec_machine *machine)
{
    float *a = (float *)(machine->memory + EXEC_DATA), *b = (float *)(machine->memory + B_AT);
    for (int i = 0; i < COUNT; i++) {
        a[i] = (float)i * 0.25f;
        b[i] = (float)(i % 7) - 3.0f;
    }
    put_arguments(machine, COUNT);
    exec_put_code(machine, vector_add, sizeof vector_add);
    machine->dispatch.group_size[0] = GROUP;
    machine->dispatch.group_count[0] = (COUNT + GROUP - 1) / GROUP;
}

static void test_vector_add(void)
{
    for (unsigned threads = 1; threads <= 3; threads++) {
        struct exec_machine machine;
        if (!BW_EQ(exec_machine_init(&machine, threads), 0))
            return;
        prepare_vector_add(&machine);
        if (!BW_EQ(exec_run(&machine), BW_ISA_DONE))
            printf("      %s\n", machine.result.text);
        const float *c = (const float *)(machine.memory + C_AT);
        for (int i = 0; i < COUNT; i++)
            BW_NEAR(c[i], (float)i * 0.25f + (float)(i % 7) - 3.0f, 0);
        BW_NEAR(c[COUNT], 0, 0);
        BW_EQ(machine.result.waves, 32);
        BW_EQ(atomic_load(&machine.control.waves_retired), 32);
        /* s_clause, s_delay_alu and s_nop do not count; the last wave, with 8 lanes on, runs the whole kernel
         * too. */
        BW_EQ(machine.result.instructions, 32 * 25);
        BW_EQ(atomic_load(&machine.control.instructions), machine.result.instructions);
        exec_machine_free(&machine);
    }
}

static void test_store_outside(void)
{
    struct exec_machine machine;
    if (!BW_EQ(exec_machine_init(&machine, 2), 0))
        return;
    prepare_vector_add(&machine);
    uint64_t far = EXEC_BASE + EXEC_BYTES - 32 * 4; /* the second wave's first element lies beyond the end */
    memcpy(machine.memory + EXEC_ARGS + 16, &far, sizeof far);
    BW_EQ(exec_run(&machine), BW_ISA_MEMORY_FAULT);
    BW_EQ(machine.result.va, EXEC_BASE + EXEC_BYTES);
    BW_EQ(machine.result.access, BW_ISA_WRITE);
    BW_EQ(machine.result.group[0], 0);
    BW_EQ(machine.result.wave, 1);
    BW_EQ(machine.result.lane, 0);
    BW_STR(machine.result.text, "global_store_b32 v[0:1], v2, off");
    exec_machine_free(&machine);
}

static void test_changed_code_is_seen(void)
{
    struct exec_machine machine;
    if (!BW_EQ(exec_machine_init(&machine, 1), 0))
        return;
    prepare_vector_add(&machine);
    BW_EQ(exec_run(&machine), BW_ISA_DONE);
    for (size_t i = 0; i < sizeof vector_add / 4; i++) {
        uint32_t *word = (uint32_t *)(machine.memory + EXEC_CODE) + i;
        if (*word == 0x06040702)
            *word = 0x10040702; /* v_mul_f32_e32 v2, v2, v3 */
    }
    BW_EQ(exec_run(&machine), BW_ISA_DONE);
    const float *c = (const float *)(machine.memory + C_AT);
    BW_NEAR(c[10], 0, 0);
    BW_NEAR(c[11], 2.75f, 0);
    exec_machine_free(&machine);
}

static void test_illegal_instruction(void)
{
    struct exec_machine machine;
    if (!BW_EQ(exec_machine_init(&machine, 1), 0))
        return;
    static const uint32_t words[] = {0xbf800000, 0x7f800000 /* opcode 0x1ff80000: none */, 0xbfb00000};
    exec_put_code(&machine, words, sizeof words);
    BW_EQ(exec_run(&machine), BW_ISA_ILLEGAL_INSTRUCTION);
    BW_EQ(machine.result.pc, EXEC_BASE + 4);
    exec_machine_free(&machine);
}

static void test_endless_kernel_stops(void)
{
    struct exec_machine machine;
    if (!BW_EQ(exec_machine_init(&machine, 1), 0))
        return;
    static const uint32_t words[] = {0xbfa0ffff /* s_branch to itself */};
    exec_put_code(&machine, words, sizeof words);
    atomic_store(&machine.control.stop, 1);
    bw_isa_run(machine.isa, machine.pool, &machine.dispatch, &machine.control, &machine.result);
    BW_EQ(machine.result.status, BW_ISA_STOPPED);
    exec_machine_free(&machine);
}

static void test_bad_dispatch(void)
{
    struct exec_machine machine;
    if (!BW_EQ(exec_machine_init(&machine, 1), 0))
        return;
    machine.dispatch.group_size[0] = 1025;
    BW_EQ(exec_run(&machine), BW_ISA_BAD_DISPATCH);
    machine.dispatch.group_size[0] = 32;
    machine.dispatch.wave_size = 16;
    BW_EQ(exec_run(&machine), BW_ISA_BAD_DISPATCH);
    machine.dispatch.wave_size = 32;
    machine.dispatch.group_count[1] = 0;
    BW_EQ(exec_run(&machine), BW_ISA_DONE);
    BW_EQ(machine.result.waves, 0);
    exec_machine_free(&machine);
}

BW_TEST_MAIN("isa exec", {"vector add on 1, 2, 3 threads", test_vector_add},
             {"a store past the end is a fault with its lane", test_store_outside},
             {"rewritten code is not run stale", test_changed_code_is_seen},
             {"an illegal instruction has a pc", test_illegal_instruction},
             {"an endless kernel can be stopped", test_endless_kernel_stops},
             {"what hardware refuses is refused", test_bad_dispatch})
