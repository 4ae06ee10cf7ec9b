/* Goal: machine code made by others runs through this driver: assembled and linked by hand, and compiled by
 * clang at every optimisation level, with hidden arguments, the dispatch packet, LDS, scratch that grows,
 * calls; and what faults is named, after which the same process goes on. */
#include "base/bits.h"
#include "tests/scenario/amd_mock.h"
#include "tests/unit/drivers/amd/elf_files.h"

enum { ITEMS = 1024 };

struct kernels {
    struct amd_mock mock;
    struct bw_program *program;
    struct bw_memory in, out; /* ITEMS words each, host memory */
};

static bool kernels_open(struct kernels *k, struct elf_file file)
{
    memset(k, 0, sizeof *k);
    bool ok = amd_mock_open(&k->mock, 0) &&
              BW_OK(k->mock.ops->program_load(k->mock.device, file.data, file.size_bytes, &k->program,
                                              &k->mock.err),
                    &k->mock.err) &&
              BW_OK(k->mock.ops->alloc(k->mock.device, ITEMS * 4, BW_BUFFER_HOST, &k->in, &k->mock.err),
                    &k->mock.err) &&
              BW_OK(k->mock.ops->alloc(k->mock.device, ITEMS * 4, BW_BUFFER_HOST, &k->out, &k->mock.err),
                    &k->mock.err);
    free(file.data);
    for (uint32_t i = 0; ok && i < ITEMS; i++) {
        bw_wr32(&k->in.cpu, i * 4, i * 2654435761u);
        bw_wr32(&k->out.cpu, i * 4, 0xdddddddd);
    }
    return ok;
}

static void kernels_close(struct kernels *k)
{
    if (k->program)
        k->mock.ops->program_destroy(k->program);
    if (k->in.size_bytes)
        k->mock.ops->free(k->mock.device, &k->in);
    if (k->out.size_bytes)
        k->mock.ops->free(k->mock.device, &k->out);
    amd_mock_close(&k->mock);
}

static uint32_t in_word(uint32_t index)
{
    return (index & (ITEMS - 1)) * 2654435761u;
}

static uint32_t out_word(const struct kernels *k, uint32_t index)
{
    return bw_rd32(&k->out.cpu, index * 4);
}

static bool launch(struct kernels *k, const char *name, struct amd_launch launch)
{
    struct bw_kernel *kernel;
    if (!BW_OK(k->mock.ops->program_kernel(k->program, name, &kernel, &k->mock.err), &k->mock.err))
        return false;
    if (BW_OK(amd_mock_launch(&k->mock, kernel, &launch), &k->mock.err))
        return true;
    char text[512];
    bw_mock_last_error(k->mock.sys, text, sizeof text);
    printf("      %s; mock: %s\n", name, text);
    return false;
}

static float as_float(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t as_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* c = a + b over 1000 of 1024 items; a and b overlap in `in`. */
static void check_add(struct kernels *k, const char *name, bool target_first)
{
    for (uint32_t i = 0; i < ITEMS; i++) {
        bw_wr32(&k->in.cpu, i * 4, as_bits(0.25f * (float)i));
        bw_wr32(&k->out.cpu, i * 4, 0xdddddddd);
    }
    struct amd_launch add = {
        {4, 1, 1}, {256, 1, 1}, {k->in.address, k->in.address + 4, k->out.address, 1000}};
    if (target_first)
        add = (struct amd_launch){
            {4, 1, 1}, {256, 1, 1}, {k->out.address, k->in.address, k->in.address + 4, 1000}};
    if (!launch(k, name, add))
        return;
    for (uint32_t i = 0; i < 1000; i++)
        if (as_float(out_word(k, i)) != 0.25f * (float)i + 0.25f * (float)(i + 1))
            BW_NEAR(as_float(out_word(k, i)), 0.5 * i + 0.25, 0);
    BW_EQ(out_word(k, 1000), 0xdddddddd);
    for (uint32_t i = 0; i < ITEMS; i++)
        bw_wr32(&k->in.cpu, i * 4, in_word(i));
}

static void assembled_objects_add_vectors(void)
{
    static const char *const names[] = {"kernels.rel.elf", "kernels.dyn.elf"};
    for (size_t i = 0; i < BW_COUNT_OF(names); i++) {
        struct kernels k;
        if (kernels_open(&k, elf_file_read(names[i]))) {
            check_add(&k, "vector_add", false);
            /* wave64, dispatch packet, dynamic stack: it only has to run */
            launch(&k, "empty", (struct amd_launch){{3, 1, 1}, {64, 1, 1}, {0}});
        }
        kernels_close(&k);
    }
}

/* kernels.cl compiled at that level; no data when there is no compiler. */
static struct elf_file compile(int level)
{
    char command[1024], path[512];
    snprintf(path, sizeof path, "%s/amd_kernels_O%d.elf", BW_BUILD_DIR, level);
    snprintf(command, sizeof command,
             "clang-19 -x cl -cl-std=CL2.0 -target amdgcn-amd-amdhsa -mcpu=gfx1100 -nogpulib -O%d -c "
             "%s/tests/golden/amd/kernels.cl -o %s",
             level, BW_SOURCE_DIR, path);
    return system(command) == 0 ? elf_file_read_path(path) : (struct elf_file){0};
}

static void check_geometry(struct kernels *k)
{
    struct amd_launch geometry = {{3, 2, 2}, {8, 4, 1}, {k->out.address}};
    if (!launch(k, "geometry", geometry))
        return;
    for (uint32_t group = 0; group < 12; group++) {
        const uint32_t expected[] = {group % 3, group / 3 % 2, group / 6, 8, 4, 24, 8, 2};
        for (uint32_t i = 0; i < 8; i++)
            if (!BW_EQ(out_word(k, group * 8 + i), expected[i]))
                printf("      group %u, value %u\n", group, i);
    }
}

static void check_lds(struct kernels *k)
{
    if (!launch(k, "reverse", (struct amd_launch){{4, 1, 1}, {256, 1, 1}, {k->out.address, k->in.address}}))
        return;
    for (uint32_t i = 0; i < ITEMS; i++)
        if (out_word(k, i) != in_word((i & ~255u) + 255 - (i & 255)))
            BW_EQ(out_word(k, i), in_word((i & ~255u) + 255 - (i & 255)));
}

static void check_scratch(struct kernels *k)
{
    if (launch(k, "scratch_small",
               (struct amd_launch){{4, 1, 1}, {256, 1, 1}, {k->out.address, k->in.address, 5}}))
        for (uint32_t i = 0; i < ITEMS; i++)
            if (out_word(k, i) != in_word(i + ((i + 5) & 15)))
                BW_EQ(out_word(k, i), in_word(i + ((i + 5) & 15)));
    if (launch(k, "scratch_large",
               (struct amd_launch){{16, 1, 1}, {64, 1, 1}, {k->out.address, k->in.address, 3}}))
        for (uint32_t i = 0; i < ITEMS; i++)
            if (out_word(k, i) != in_word(i + 192))
                BW_EQ(out_word(k, i), in_word(i + 192));
}

static void check_calls(struct kernels *k)
{
    if (!launch(k, "calls", (struct amd_launch){{4, 1, 1}, {256, 1, 1}, {k->out.address, k->in.address}}))
        return;
    for (uint32_t i = 0; i < ITEMS; i++) {
        uint32_t expected = in_word(i) * i + 1 + in_word(i + 1) * (i + 1) + 1;
        if (out_word(k, i) != expected)
            BW_EQ(out_word(k, i), expected);
    }
}

static void compiled_kernels_run_at_every_level(void)
{
    for (int level = 0; level <= 3; level++) {
        struct kernels k;
        struct elf_file file = compile(level);
        if (BW_TRUE(file.size_bytes > 0) && kernels_open(&k, file)) {
            printf(" O%d", level);
            check_add(&k, "add", true);
            check_geometry(&k);
            check_lds(&k);
            check_scratch(&k);
            check_calls(&k);
            kernels_close(&k);
        }
    }
}

/* S10: what was encoded before scratch grew still runs right after it, although both kernels use scratch. */
static void scratch_growth_leaves_old_commands_correct(void)
{
    struct kernels k;
    if (kernels_open(&k, compile(2))) {
        struct bw_kernel *small, *large;
        struct bw_encoder e = {0}, again = {0};
        struct amd_launch old = {{4, 1, 1}, {256, 1, 1}, {k.out.address, k.in.address, 7}};
        BW_OK(k.mock.ops->program_kernel(k.program, "scratch_small", &small, &k.mock.err), &k.mock.err);
        BW_OK(k.mock.ops->program_kernel(k.program, "scratch_large", &large, &k.mock.err), &k.mock.err);
        BW_OK(amd_mock_encode_launch(&k.mock, &e, small, &old, 32768), &k.mock.err);
        check_scratch(&k); /* grows */
        for (uint64_t round = 1; round <= 3; round++) {
            for (uint32_t i = 0; i < e.count; i++)
                bw_encoder_word(&again, e.words[i]);
            k.mock.ops->encode_signal(k.mock.compute, &again, amd_mock_signal(&k.mock, 3),
                                      bw_operand_constant(round), true);
            BW_EQ(amd_mock_submit(&k.mock, k.mock.compute, &again), 0);
            amd_mock_wait(&k.mock, 3, round);
            for (uint32_t i = 0; i < ITEMS; i++)
                if (out_word(&k, i) != in_word(i + ((i + 7) & 15)))
                    BW_EQ(out_word(&k, i), in_word(i + ((i + 7) & 15)));
            check_scratch(&k);
        }
        BW_EQ(bw_amd_queue(k.mock.compute)->scratch.count, 2);
        bw_encoder_free(&e);
    }
    kernels_close(&k);
}

/* S8: a store to nowhere. The error names queue, kernel and address; after a reset the same kernel works. */
static void faults_are_named_and_survived(void)
{
    static const uint64_t places[] = {0, 0x1000, 0x7ffff0000000};
    struct kernels k;
    if (kernels_open(&k, compile(2))) {
        struct bw_kernel *kernel;
        BW_OK(k.mock.ops->program_kernel(k.program, "store_at", &kernel, &k.mock.err), &k.mock.err);
        for (size_t i = 0; i < BW_COUNT_OF(places); i++) {
            struct amd_launch nowhere = {{1, 1, 1}, {32, 1, 1}, {places[i], 1}};
            char line[512], expected[64];
            BW_EQ(amd_mock_launch(&k.mock, kernel, &nowhere), -EIO);
            bw_err_format(&k.mock.err, line, sizeof line);
            snprintf(expected, sizeof expected, "compute queue 0, kernel store_at: memory fault at 0x%llx",
                     (unsigned long long)places[i]);
            if (!BW_TRUE(strstr(line, expected) != NULL))
                printf("      %s\n", line);
            if (!BW_OK(k.mock.ops->reset(k.mock.device, &k.mock.err), &k.mock.err))
                break;
            struct amd_launch somewhere = {{1, 1, 1}, {32, 1, 1}, {k.out.address, 77 + i}};
            BW_OK(amd_mock_launch(&k.mock, kernel, &somewhere), &k.mock.err);
            BW_EQ(out_word(&k, 31), 77 + i);
        }
    }
    kernels_close(&k);
}

/* S8: a kernel that never ends gives no fault, it just does not end; a reset takes it off the queue, and the
 * next kernel runs. An illegal instruction is an exception that names the kernel. */
static void hangs_and_exceptions_are_survived(void)
{
    struct kernels k;
    if (kernels_open(&k, compile(2))) {
        struct bw_kernel *endless, *illegal;
        struct bw_encoder e = {0};
        struct amd_launch forever = {
            {1, 1, 1}, {32, 1, 1}, {k.mock.signals.address + 8 * AMD_MOCK_SIGNAL_STRIDE}};
        struct amd_launch once = {{1, 1, 1}, {32, 1, 1}, {k.out.address}};
        BW_OK(k.mock.ops->program_kernel(k.program, "endless", &endless, &k.mock.err), &k.mock.err);
        BW_OK(k.mock.ops->program_kernel(k.program, "illegal", &illegal, &k.mock.err), &k.mock.err);
        BW_OK(amd_mock_encode_launch(&k.mock, &e, endless, &forever, 0), &k.mock.err);
        k.mock.ops->encode_signal(k.mock.compute, &e, amd_mock_signal(&k.mock, 2), bw_operand_constant(1),
                                  true);
        BW_EQ(amd_mock_submit(&k.mock, k.mock.compute, &e), 0);
        for (int i = 0; i < 20; i++)
            k.mock.ops->wait_interrupt(k.mock.device, 1000000);
        BW_EQ(amd_mock_signal_read(&k.mock, 2), 0);
        BW_EQ(k.mock.ops->query_fault(k.mock.device, &k.mock.err), 0);
        BW_OK(k.mock.ops->reset(k.mock.device, &k.mock.err), &k.mock.err);
        check_lds(&k);
        BW_EQ(amd_mock_launch(&k.mock, illegal, &once), -EIO);
        BW_TRUE(strstr(k.mock.err.what, "compute queue 0, kernel illegal: ") == k.mock.err.what);
        BW_OK(k.mock.ops->reset(k.mock.device, &k.mock.err), &k.mock.err);
        check_lds(&k);
    }
    kernels_close(&k);
}

int main(void)
{
    static const struct bw_test tests[] = {
        {"assembled_objects_add_vectors", assembled_objects_add_vectors},
        {"compiled_kernels_run_at_every_level", compiled_kernels_run_at_every_level},
        {"scratch_growth_leaves_old_commands_correct", scratch_growth_leaves_old_commands_correct},
        {"faults_are_named_and_survived", faults_are_named_and_survived},
        {"hangs_and_exceptions_are_survived", hangs_and_exceptions_are_survived},
    };
    bool has_compiler = system("clang-19 --version >/dev/null 2>&1") == 0;
    int rc = bw_test_run("amd kernels", tests, has_compiler ? BW_COUNT_OF(tests) : 1);
    if (rc == 0 && !has_compiler) {
        printf("skipped in part: no clang-19 to compile tests/golden/amd/kernels.cl\n");
        return BW_TEST_SKIPPED;
    }
    return rc;
}
