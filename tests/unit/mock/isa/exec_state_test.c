/* Goal: MODE decides rounding and denormals from the instruction that writes it on; a wave starts with the
 * registers that LLVM AMDGPUUsage says, partial groups and both wave sizes included. */
#include "tests/check.h"

#include "tests/unit/mock/isa/exec_run.h"

/* clang-format off */
static const uint32_t rounding[] = {
    0xf4040100, 0xf8000000, /* s_load_b64 s[4:5], s[0:1], null */
    0x7e0202f2,             /* v_mov_b32_e32 v1, 1.0 */
    0x7e0402ff, 0x33000000, /* v_mov_b32_e32 v2, 0x33000000 */
    0x7e000280,             /* v_mov_b32_e32 v0, 0 */
    0x06060501,             /* v_add_f32_e32 v3, v1, v2 */
    0xbf910001,             /* s_round_mode 0x1 */
    0x06080501,             /* v_add_f32_e32 v4, v1, v2 */
    0xbf910002,             /* s_round_mode 0x2 */
    0xd5030005, 0x60020501, /* v_add_f32_e64 v5, -v1, -v2 */
    0xbf910003,             /* s_round_mode 0x3 */
    0xd5030006, 0x60020501, /* v_add_f32_e64 v6, -v1, -v2 */
    0xbf910000,             /* s_round_mode 0x0 */
    0xd5030007, 0x60020501, /* v_add_f32_e64 v7, -v1, -v2 */
    0xb8863801,             /* s_getreg_b32 s6, hwreg(HW_REG_MODE, 0, 8) */
    0x7e100206,             /* v_mov_b32_e32 v8, s6 */
    0xbf89fc07,             /* s_waitcnt lgkmcnt(0) */
    0xdc760000, 0x00040300, /* global_store_b128 v0, v[3:6], s[4:5] */
    0xdc6e0010, 0x00040700, /* global_store_b64 v0, v[7:8], s[4:5] offset:16 */
    0xbfb00000,             /* s_endpgm */
};

static const uint32_t denormals[] = {
    0xf4040100, 0xf8000000, /* s_load_b64 s[4:5], s[0:1], null */
    0x7e0202ff, 0x00400000, /* v_mov_b32_e32 v1, 0x400000 */
    0x7e0402ff, 0x80200000, /* v_mov_b32_e32 v2, 0x80200000 */
    0x7e1202ff, 0x00800000, /* v_mov_b32_e32 v9, 0x800000 */
    0x7e000280,             /* v_mov_b32_e32 v0, 0 */
    0x06060301,             /* v_add_f32_e32 v3, v1, v1 */
    0xbf92000c,             /* s_denorm_mode 12 */
    0x06080301,             /* v_add_f32_e32 v4, v1, v1 */
    0x100a12f0,             /* v_mul_f32_e32 v5, 0.5, v9 */
    0xbf92000d,             /* s_denorm_mode 13 */
    0x060c0501,             /* v_add_f32_e32 v6, v1, v2 */
    0x060e0309,             /* v_add_f32_e32 v7, v9, v1 */
    0xbf92000e,             /* s_denorm_mode 14 */
    0x101012f0,             /* v_mul_f32_e32 v8, 0.5, v9 */
    0x20140501,             /* v_max_f32_e32 v10, v1, v2 */
    0xbf92000f,             /* s_denorm_mode 15 */
    0x101612f0,             /* v_mul_f32_e32 v11, 0.5, v9 */
    0xbf89fc07,             /* s_waitcnt lgkmcnt(0) */
    0xdc760000, 0x00040300, /* global_store_b128 v0, v[3:6], s[4:5] */
    0xdc6e0010, 0x00040700, /* global_store_b64 v0, v[7:8], s[4:5] offset:16 */
    0xdc6e0018, 0x00040a00, /* global_store_b64 v0, v[10:11], s[4:5] offset:24 */
    0xbfb00000,             /* s_endpgm */
};

static const uint32_t initial[] = {
    0xf4040280, 0xf8000000, /* s_load_b64 s[10:11], s[0:1], null */
    0x30020082,             /* v_lshlrev_b32_e32 v1, 2, v0 */
    0x7e040202,             /* v_mov_b32_e32 v2, s2 */
    0x7e060203,             /* v_mov_b32_e32 v3, s3 */
    0x7e080204,             /* v_mov_b32_e32 v4, s4 */
    0x7e0a0205,             /* v_mov_b32_e32 v5, s5 */
    0xd6100006, 0x02290100, /* v_bfe_u32 v6, v0, 0, 10 */
    0xd6100007, 0x02291500, /* v_bfe_u32 v7, v0, 10, 10 */
    0xd6100008, 0x02292900, /* v_bfe_u32 v8, v0, 20, 10 */
    0xd6460009, 0x04190507, /* v_lshl_add_u32 v9, v7, 2, v6 */
    0xd6460009, 0x04250708, /* v_lshl_add_u32 v9, v8, 3, v9 */
    0x30121285,             /* v_lshlrev_b32_e32 v9, 5, v9 */
    0x9606ff02, 0x00000400, /* s_mul_i32 s6, s2, 0x400 */
    0x4a121206,             /* v_add_nc_u32_e32 v9, s6, v9 */
    0xbf89fc07,             /* s_waitcnt lgkmcnt(0) */
    0xdc760000, 0x000a0209, /* global_store_b128 v9, v[2:5], s[10:11] */
    0xdc720010, 0x000a0609, /* global_store_b96 v9, v[6:8], s[10:11] offset:16 */
    0xbfb00000,             /* s_endpgm */
};

/* clang-format on */

static struct exec_machine machine;

static bool begin(const uint32_t *words, size_t size_bytes)
{
    uint64_t argument = EXEC_BASE + EXEC_DATA;
    if (!BW_EQ(exec_machine_init(&machine, 1), 0))
        return false;
    exec_put_code(&machine, words, size_bytes);
    memcpy(machine.memory + EXEC_ARGS, &argument, sizeof argument);
    return true;
}

static uint32_t result(unsigned index)
{
    uint32_t word;
    memcpy(&word, machine.memory + EXEC_DATA + 4 * index, 4);
    return word;
}

static void test_rounding(void)
{
    if (!begin(rounding, sizeof rounding))
        return;
    BW_EQ(exec_run(&machine), BW_ISA_DONE);
    BW_EQ(result(0), 0x3f800000); /* nearest even */
    BW_EQ(result(1), 0x3f800001); /* up */
    BW_EQ(result(2), 0xbf800001); /* down */
    BW_EQ(result(3), 0xbf800000); /* toward zero */
    BW_EQ(result(4), 0xbf800000); /* nearest again */
    BW_EQ(result(5), 0xf0);       /* what S_GETREG reads: denormals kept, nearest */
    exec_machine_free(&machine);
}

static void test_denormals(void)
{
    if (!begin(denormals, sizeof denormals))
        return;
    BW_EQ(exec_run(&machine), BW_ISA_DONE);
    BW_EQ(result(0), 0x00800000); /* kept on both sides */
    BW_EQ(result(1), 0);          /* sources flushed */
    BW_EQ(result(2), 0);          /* result flushed */
    BW_EQ(result(3), 0);          /* sources kept, result flushed */
    BW_EQ(result(4), 0x00c00000);
    BW_EQ(result(5), 0x00400000); /* sources flushed, result kept */
    BW_EQ(result(6), 0);          /* max(+0, -0) */
    BW_EQ(result(7), 0x00400000);
    exec_machine_free(&machine);
}

/* Every work-item stores s2..s5 and its ids at 32 bytes of its own. */
static void check_items(const uint32_t group_size[3], uint32_t group, uint32_t waves)
{
    for (uint32_t z = 0; z < group_size[2]; z++) {
        for (uint32_t y = 0; y < group_size[1]; y++) {
            for (uint32_t x = 0; x < group_size[0]; x++) {
                unsigned at = (group * 0x400 + ((z << 3) + (y << 2) + x) * 32) / 4;
                uint32_t wave = (x + group_size[0] * (y + group_size[1] * z)) / machine.dispatch.wave_size;
                BW_EQ(result(at), group);
                BW_EQ(result(at + 1), 5); /* group id y, from group_start */
                BW_EQ(result(at + 2), 0);
                BW_EQ(result(at + 3), (wave == 0 ? 0x80000000u : 0) | waves);
                BW_EQ(result(at + 4), x);
                BW_EQ(result(at + 5), y);
                BW_EQ(result(at + 6), z);
            }
        }
    }
}

static void test_initial_state(void)
{
    static const uint32_t whole[3] = {4, 2, 3}, last[3] = {3, 2, 3};
    for (uint32_t wave_size = 32; wave_size <= 64; wave_size *= 2) {
        if (!begin(initial, sizeof initial))
            return;
        machine.dispatch.wave_size = wave_size;
        machine.dispatch.rsrc1 |= 63;
        machine.dispatch.rsrc2 |= 1 << 10; /* TG_SIZE_EN */
        memcpy(machine.dispatch.group_size, whole, sizeof whole);
        machine.dispatch.group_count[0] = 3;
        machine.dispatch.group_start[1] = 5;
        machine.dispatch.last_group_size[0] = last[0];
        machine.dispatch.seed = 99; /* registers hold junk otherwise */
        memset(machine.memory + EXEC_DATA, 0xee, 0x4000);
        BW_EQ(exec_run(&machine), BW_ISA_DONE);
        check_items(whole, 0, 1);
        check_items(whole, 1, 1);
        check_items(last, 2, 1);
        BW_EQ(result((2 * 0x400 + 3 * 32) / 4), 0xeeeeeeee); /* the last group has no item 3 */
        exec_machine_free(&machine);
    }
}

BW_TEST_MAIN("isa exec state", {"rounding by MODE", test_rounding}, {"denormals by MODE", test_denormals},
             {"initial registers", test_initial_state})
