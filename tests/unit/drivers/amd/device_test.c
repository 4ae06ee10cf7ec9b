/* Goal: what the driver writes for launches, copies, signals and barriers is what the hardware documents say,
 * word by word, and its limits and failures are named. */
#include "drivers/amd/device.h"

#include "base/bits.h"
#include "tests/check.h"
#include "tests/unit/drivers/amd/elf_files.h"
#include "tests/unit/drivers/amd/fake_iface.h"

struct fixture {
    struct fake_iface fake;
    struct bw_device *device;
    const struct bw_driver_ops *ops;
    struct bw_queue *compute, *copy;
    struct bw_program *program;
    struct bw_kernel *add, *empty;
    struct bw_err err;
};

static bool fixture_open(struct fixture *f)
{
    memset(f, 0, sizeof *f);
    fake_init(&f->fake);
    if (!BW_OK(bw_amd_open(NULL, &f->fake.base, &f->device, &f->err), &f->err))
        return false;
    f->ops = f->device->ops;
    bool ok = BW_OK(f->ops->queue_create(f->device, BW_QUEUE_COMPUTE, 0, &f->compute, &f->err), &f->err) &&
              BW_OK(f->ops->queue_create(f->device, BW_QUEUE_COPY, 0, &f->copy, &f->err), &f->err);
    struct elf_file file = elf_file_read("kernels.rel.elf");
    ok = ok &&
         BW_OK(f->ops->program_load(f->device, file.data, file.size_bytes, &f->program, &f->err), &f->err) &&
         BW_OK(f->ops->program_kernel(f->program, "vector_add", &f->add, &f->err), &f->err) &&
         BW_OK(f->ops->program_kernel(f->program, "empty", &f->empty, &f->err), &f->err);
    free(file.data);
    return ok;
}

static void fixture_close(struct fixture *f)
{
    if (f->program)
        f->ops->program_destroy(f->program);
    f->ops->queue_destroy(f->compute);
    f->ops->queue_destroy(f->copy);
    f->ops->close(f->device);
    BW_EQ(f->fake.closed, 1);
    BW_EQ(f->fake.queues_created, f->fake.queues_destroyed);
    BW_EQ(fake_blocks_in_use(&f->fake), 0);
}

static void words_are(const struct bw_encoder *encoder, const uint32_t *expected, uint32_t count)
{
    BW_EQ(encoder->count, count);
    for (uint32_t i = 0; i < count && i < encoder->count; i++)
        if (!BW_EQ(encoder->words[i], expected[i]))
            printf("      word %u\n", i);
}

#define WORDS_ARE(encoder, ...)                                          \
    do {                                                                 \
        const uint32_t expected_words[] = {__VA_ARGS__};                 \
        words_are(encoder, expected_words, BW_COUNT_OF(expected_words)); \
        bw_encoder_free(encoder);                                        \
    } while (0)

static void unknown_chips_are_refused_by_name(void)
{
    struct fake_iface fake;
    struct bw_device *device;
    struct bw_err err;
    char line[512];
    fake_init(&fake);
    fake.base.properties.gfx_version = 110003;
    BW_EQ(bw_amd_open(NULL, &fake.base, &device, &err), -ENOTSUP);
    BW_EQ(fake.closed, 1);
    bw_err_format(&err, line, sizeof line);
    BW_STR(line, "amd: fake node 1: gfx version 11.0.3 is not in the device table (EOPNOTSUPP). known: "
                 "gfx90a, gfx942, gfx950, "
                 "gfx1100, gfx1101, gfx1102, gfx1200, gfx1201");
    fake.base.properties.gfx_version = 90402;
    BW_EQ(bw_amd_open(NULL, &fake.base, &device, &err), -ENOTSUP);
    BW_STR(err.what, "fake node 1: gfx942 is known to tools and the compiler, but not driven yet");
    BW_EQ(fake.closed, 2);
}

static void info_and_caps_follow_the_chip(void)
{
    struct fixture f;
    if (!fixture_open(&f))
        return;
    BW_STR(f.device->info.arch, "gfx1100");
    BW_STR(f.device->info.name, "fake+amd@gfx1100");
    BW_EQ(f.device->info.compute_units, 4);
    BW_EQ(f.device->caps.copy_bytes_max, 1 << 30);
    BW_EQ(f.device->caps.copy_queues, 2); /* one for each engine */
    BW_EQ(f.device->caps.command_words_max, 0xffff8);
    BW_EQ(f.add->info.argument_count, 4);
    BW_EQ(f.add->info.argument_bytes, 56);
    BW_EQ(f.empty->info.argument_bytes, 128); /* no arguments, a dispatch packet at 64 */
    BW_EQ(f.empty->info.private_bytes, 48 + 1024);
    struct bw_kernel *kernel;
    BW_EQ(f.ops->program_kernel(f.program, NULL, &kernel, &f.err), -ENOENT);
    BW_STR(f.err.hint, "it has: vector_add, empty");
    BW_EQ(f.ops->program_kernel(f.program, "vectoradd", &kernel, &f.err), -ENOENT);
    BW_STR(f.err.what, "no kernel vectoradd in the program");
    fixture_close(&f);
}

static void programs_arrive_in_vram(void)
{
    struct fixture f;
    if (!fixture_open(&f))
        return;
    struct bw_amd_program *program = (struct bw_amd_program *)f.program;
    uint64_t va = program->memory.gpu_va;
    BW_TRUE((program->memory.flags & (BW_IFACE_VRAM | BW_IFACE_EXECUTABLE)) ==
            (BW_IFACE_VRAM | BW_IFACE_EXECUTABLE));
    BW_EQ(fake_word(&f.fake, va), 0xf40c0100); /* s_load_b256 s[4:11], s[0:1], 0x0 */
    BW_EQ(fake_read64(&f.fake, va + 0x200), va + 0x21c);
    BW_EQ(f.fake.sdma_copies, 1);
    fixture_close(&f);
}

static struct bw_dispatch dispatch_of(uint64_t groups, uint32_t group_size, uint64_t block)
{
    return (struct bw_dispatch){
        .group_count = {bw_operand_constant(groups), bw_operand_constant(1), bw_operand_constant(1)},
        .group_size = {group_size, 1, 1},
        .argument_block = bw_operand_constant(block)};
}

static void launch_words(void)
{
    struct fixture f;
    if (!fixture_open(&f))
        return;
    struct bw_encoder e = {0};
    struct bw_dispatch dispatch = dispatch_of(17, 256, 0x7f55aa001100);
    dispatch.dynamic_lds_bytes = 1025; /* three granules of 512 */
    BW_OK(f.ops->encode_kernel(f.compute, &e, f.add, &dispatch, &f.err), &f.err);
    uint64_t entry = ((struct bw_amd_program *)f.program)->memory.gpu_va;
    const uint8_t *descriptor = fake_at(&f.fake, entry + 0x180, 64);
    uint32_t rsrc1, rsrc2, rsrc3;
    memcpy(&rsrc3, descriptor + 44, 4);
    memcpy(&rsrc1, descriptor + 48, 4);
    memcpy(&rsrc2, descriptor + 52, 4);
    BW_EQ(rsrc2 & 0x3f << 1, 2 << 1);
    WORDS_ARE(&e,
              /* COMPUTE_START_X..Z, NUM_THREAD_X..Z */
              0xc0067600, 0x204, 0, 0, 0, 256, 1, 1,
              /* COMPUTE_PGM_LO, HI */
              0xc0027600, 0x20c, (uint32_t)(entry >> 8), (uint32_t)(entry >> 40),
              /* COMPUTE_DISPATCH_SCRATCH_BASE_LO, HI, PGM_RSRC1, RSRC2 */
              0xc0047600, 0x210, 0, 0, rsrc1, rsrc2 | 3 << 15,
              /* COMPUTE_RESOURCE_LIMITS */
              0xc0017600, 0x215, 0,
              /* COMPUTE_TMPRING_SIZE */
              0xc0017600, 0x218, 0,
              /* COMPUTE_PGM_RSRC3 */
              0xc0017600, 0x228, rsrc3,
              /* COMPUTE_USER_DATA_0, 1: kernarg pointer */
              0xc0027600, 0x240, 0xaa001100, 0x7f55,
              /* DISPATCH_DIRECT: shader enable, start at 0, order mode, wave32 */
              0xc0031500, 17, 1, 1, 0x8045);
    bw_encoder_free(&e);
    dispatch = dispatch_of(0, 256, 0);
    BW_OK(f.ops->encode_kernel(f.compute, &e, f.add, &dispatch, &f.err), &f.err);
    BW_EQ(e.count, 0);
    BW_EQ(f.ops->encode_kernel(f.copy, &e, f.add, &dispatch, &f.err), -EINVAL);
    fixture_close(&f);
}

/* The same kernel again: its arguments and the dispatch; another one: what differs. */
static void launches_write_what_changes(void)
{
    struct fixture f;
    if (!fixture_open(&f))
        return;
    struct bw_encoder e = {0};
    struct bw_dispatch dispatch = dispatch_of(17, 256, 0);
    dispatch.argument_block = bw_operand_symbol(5, 0);
    dispatch.argument_block.shares_high = true;
    f.ops->encode_begin(f.compute, &e);
    BW_OK(f.ops->encode_kernel(f.compute, &e, f.add, &dispatch, &f.err), &f.err);
    uint32_t first = e.count, patches = e.patch_count;
    dispatch.argument_block.addend = 64;
    BW_OK(f.ops->encode_kernel(f.compute, &e, f.add, &dispatch, &f.err), &f.err);
    const uint32_t again[] = {0xc0017600, 0x240, 0, 0xc0031500, 17, 1, 1, 0x8045};
    if (BW_EQ(e.count, first + BW_COUNT_OF(again)))
        BW_BYTES(e.words + first, again, sizeof again);
    if (BW_EQ(e.patch_count, patches + 1)) {
        BW_EQ(e.patches[patches].word, first + 2);
        BW_EQ(e.patches[patches].addend, 64);
        BW_EQ(e.patches[patches].wide, false);
        BW_EQ(e.patches[patches].shift, 0);
    }
    first = e.count;
    dispatch.argument_block.addend = 128;
    dispatch.argument_block.shares_high = false; /* nothing is promised: both halves */
    dispatch.group_size[0] = 128;
    BW_OK(f.ops->encode_kernel(f.compute, &e, f.add, &dispatch, &f.err), &f.err);
    const uint32_t sized[] = {0xc0017600, 0x207, 128, 0xc0027600, 0x240, 0, 0, 0xc0031500, 17, 1, 1, 0x8045};
    if (BW_EQ(e.count, first + BW_COUNT_OF(sized)))
        BW_BYTES(e.words + first, sized, sizeof sized);
    uint32_t whole = e.count;
    f.ops->encode_begin(f.compute, &e); /* another command buffer: nothing is known */
    BW_OK(f.ops->encode_kernel(f.compute, &e, f.add, &dispatch, &f.err), &f.err);
    BW_EQ(e.count - whole, 36);
    bw_encoder_free(&e);
    fixture_close(&f);
}

static void copies_without_a_copy_engine(void)
{
    struct fixture f;
    uint64_t done_bytes;
    if (!fixture_open(&f))
        return;
    struct bw_encoder e = {0};
    BW_TRUE(f.device->caps.compute_copies);
    BW_EQ(f.ops->encode_copy(f.compute, &e, bw_operand_constant(0x100002000),
                             bw_operand_constant(0x300001000), 1ull << 32, &done_bytes),
          0);
    BW_EQ(done_bytes, (1 << 26) - 1);
    /* DMA_DATA: L2 to L2, synchronous */
    WORDS_ARE(&e, 0xc0055000, 0xe0300000, 0x1000, 3, 0x2000, 1, (1 << 26) - 1);
    fixture_close(&f);
}

static void user_sgprs_follow_the_property_bits(void)
{
    struct fixture f;
    if (!fixture_open(&f))
        return;
    struct bw_encoder e = {0};
    struct bw_dispatch dispatch = dispatch_of(3, 64, 0);
    dispatch.argument_block = bw_operand_symbol(5, 0x1000);
    dispatch.group_count[1] = bw_operand_symbol(6, 0);
    BW_OK(f.ops->encode_kernel(f.compute, &e, f.empty, &dispatch, &f.err), &f.err);
    /* dispatch pointer (symbol), queue pointer 0, dispatch id 0, private segment size */
    const uint32_t user_data[] = {0xc0077600, 0x240, 0, 0, 0, 0, 0, 0, 48 + 1024};
    uint32_t at = e.count - 5 - BW_COUNT_OF(user_data); /* the last registers before DISPATCH_DIRECT */
    BW_BYTES(e.words + at, user_data, sizeof user_data);
    if (BW_EQ(e.patch_count, 2)) {
        BW_EQ(e.patches[0].word, at + 2);
        BW_EQ(e.patches[0].symbol, 5);
        BW_EQ(e.patches[0].addend, 0x1000 + 64);
        BW_EQ(e.patches[0].wide, true);
        BW_EQ(e.patches[1].word, e.count - 3);
        BW_EQ(e.patches[1].symbol, 6);
        BW_EQ(e.patches[1].wide, false);
        BW_EQ(e.patches[1].mask, UINT32_MAX);
    }
    BW_EQ(e.words[e.count - 1], 0x45); /* wave64: CS_W32_EN clear */
    bw_encoder_free(&e);
    fixture_close(&f);
}

static uint64_t block_field(const struct bw_encoder *block, uint32_t offset, uint32_t size_bytes)
{
    uint64_t value = 0;
    memcpy(&value, (const uint8_t *)block->words + offset, size_bytes);
    return value;
}

static void argument_blocks_hold_the_hidden_arguments(void)
{
    struct fixture f;
    if (!fixture_open(&f))
        return;
    struct bw_encoder block = {0};
    bw_encoder_word(&block, 0xfeed); /* another block before it: offsets count from here */
    struct bw_dispatch dispatch = dispatch_of(17, 128, 0);
    dispatch.group_count[1] = bw_operand_symbol(9, 0);
    dispatch.group_size[1] = 2;
    dispatch.dynamic_lds_bytes = 512;
    BW_OK(f.ops->argument_block(f.add, &dispatch, &block, &f.err), &f.err);
    BW_EQ(block.count, 1 + 56 / 4);
    BW_EQ(block_field(&block, 4 + 0, 8), 0);
    BW_EQ(block_field(&block, 4 + 32, 4), 17);
    BW_EQ(block_field(&block, 4 + 36, 4), 0);
    BW_EQ(block_field(&block, 4 + 40, 4), 1);
    BW_EQ(block_field(&block, 4 + 44, 2), 128);
    BW_EQ(block_field(&block, 4 + 46, 2), 2);
    BW_EQ(block_field(&block, 4 + 48, 2), 1);
    BW_EQ(block_field(&block, 4 + 50, 2), 2); /* dimensions */
    BW_EQ(block_field(&block, 4 + 52, 4), 512);
    if (BW_EQ(block.patch_count, 1)) {
        BW_EQ(block.patches[0].word, 1 + 36 / 4);
        BW_EQ(block.patches[0].symbol, 9);
    }
    bw_encoder_free(&block);
    fixture_close(&f);
}

static void dispatch_packets_follow_the_arguments(void)
{
    struct fixture f;
    if (!fixture_open(&f))
        return;
    struct bw_encoder block = {0};
    struct bw_dispatch dispatch = dispatch_of(3, 64, 0);
    dispatch.argument_block = bw_operand_symbol(5, 0x2000);
    BW_OK(f.ops->argument_block(f.empty, &dispatch, &block, &f.err), &f.err);
    BW_EQ(block.count, 128 / 4);
    BW_EQ(block_field(&block, 64, 2), 2);      /* kernel dispatch */
    BW_EQ(block_field(&block, 66, 2), 1);      /* dimensions */
    BW_EQ(block_field(&block, 68, 2), 64);     /* group size */
    BW_EQ(block_field(&block, 76, 4), 3 * 64); /* grid size */
    BW_EQ(block_field(&block, 80, 4), 1);
    BW_EQ(block_field(&block, 88, 4), 48 + 1024);
    BW_EQ(block_field(&block, 92, 4), 1024);
    BW_EQ(block_field(&block, 96, 8), ((struct bw_amd_program *)f.program)->memory.gpu_va + 0x1c0);
    if (BW_EQ(block.patch_count, 1)) {
        BW_EQ(block.patches[0].word, 104 / 4);
        BW_EQ(block.patches[0].addend, 0x2000);
    }
    bw_encoder_free(&block);
    dispatch.group_count[0] = bw_operand_symbol(7, 0);
    BW_EQ(f.ops->argument_block(f.empty, &dispatch, &block, &f.err), -ENOTSUP);
    BW_STR(f.err.what,
           "kernel empty reads the dispatch packet, whose grid size cannot follow a variable group count");
    BW_EQ(block.count, 0);
    fixture_close(&f);
}

static void limits_are_named(void)
{
    struct fixture f;
    if (!fixture_open(&f))
        return;
    static const struct {
        uint64_t groups;
        uint32_t size[3], lds;
        int code;
        const char *line;
    } cases[] = {
        {1, {256, 1, 1}, 0, 0, ""},
        {1,
         {257, 1, 1},
         0,
         -E2BIG,
         "amd: kernel vector_add: group size: expected at most 256 (what the kernel was compiled for), "
         "observed 257 (E2BIG)"},
        {1,
         {1025, 1, 1},
         0,
         -E2BIG,
         "amd: kernel vector_add: group size in one dimension: expected at most 1024 "
         "(BW_AMD_GROUP_SIZE_MAX), observed 1025 (E2BIG)"},
        {1,
         {64, 32, 1},
         0,
         -E2BIG,
         "amd: kernel vector_add: group size: expected at most 1024 (BW_AMD_GROUP_SIZE_MAX), observed 2048 "
         "(E2BIG)"},
        {1, {1, 0, 1}, 0, -EINVAL, "amd: kernel vector_add: group size 1x0x1 (EINVAL)"},
        {1, {1, 1, 1}, 65536, 0, ""},
        {1,
         {1, 1, 1},
         65537,
         -E2BIG,
         "amd: kernel vector_add: LDS bytes, static and dynamic: expected at most 65536 (lds_bytes of the "
         "architecture), observed 65537 (E2BIG)"},
        {0x7fffffff, {2, 1, 1}, 0, 0, ""},
        {0x80000000,
         {2, 1, 1},
         0,
         -E2BIG,
         "amd: kernel vector_add: grid in one dimension, in groups: expected at most 2147483647 (2^32 - 1 "
         "work-items), observed 2147483648 (E2BIG)"},
        {UINT64_MAX,
         {1, 1, 1},
         0,
         -E2BIG,
         "amd: kernel vector_add: grid in one dimension, in groups: expected at most 4294967295 (2^32 - 1 "
         "work-items), observed 18446744073709551615 (E2BIG)"},
    };
    for (size_t i = 0; i < BW_COUNT_OF(cases); i++) {
        struct bw_encoder e = {0}, block = {0};
        struct bw_dispatch dispatch = dispatch_of(cases[i].groups, 1, 0x1000);
        char line[512] = "";
        memcpy(dispatch.group_size, cases[i].size, sizeof dispatch.group_size);
        dispatch.dynamic_lds_bytes = cases[i].lds;
        BW_EQ(f.ops->encode_kernel(f.compute, &e, f.add, &dispatch, &f.err), cases[i].code);
        if (cases[i].code)
            bw_err_format(&f.err, line, sizeof line);
        BW_STR(line, cases[i].line);
        BW_EQ(f.ops->argument_block(f.add, &dispatch, &block, &f.err), cases[i].code);
        BW_EQ(e.count == 0, cases[i].code != 0);
        bw_encoder_free(&e);
        bw_encoder_free(&block);
    }
    struct bw_encoder e = {0};
    struct bw_dispatch dispatch = dispatch_of(1, 32, 0);
    BW_EQ(f.ops->encode_kernel(f.compute, &e, f.empty, &dispatch, &f.err), -EINVAL);
    BW_STR(f.err.expected, "64x1x1 (reqd_work_group_size)");
    fixture_close(&f);
}

/* Argument blocks of exactly the limit, with and without a dispatch packet behind them. */
static void arguments_at_the_limit(void)
{
    struct fixture f;
    if (!fixture_open(&f))
        return;
    struct elf_file file = elf_file_read("kernels.rel.elf");
    uint32_t limit = BW_AMD_ARGUMENT_BYTES_MAX;
    memcpy(elf_content(&file, ".rodata") + 8, &limit, 4);
    memcpy(elf_content(&file, ".rodata") + 64 + 8, &limit, 4);
    struct bw_program *program;
    if (BW_OK(f.ops->program_load(f.device, file.data, file.size_bytes, &program, &f.err), &f.err)) {
        static const char *const names[] = {"vector_add", "empty"};
        for (uint32_t i = 0; i < 2; i++) {
            struct bw_kernel *kernel;
            struct bw_encoder block = {0};
            struct bw_dispatch dispatch = dispatch_of(1, 64, 0x1000);
            BW_OK(f.ops->program_kernel(program, names[i], &kernel, &f.err), &f.err);
            BW_EQ(kernel->info.argument_bytes, limit + 64 * i);
            BW_OK(f.ops->argument_block(kernel, &dispatch, &block, &f.err), &f.err);
            BW_EQ(block.count, (limit + 64 * i) / 4);
            bw_encoder_free(&block);
        }
        f.ops->program_destroy(program);
    }
    free(file.data);
    fixture_close(&f);
}

static void compute_synchronisation_words(void)
{
    struct fixture f;
    if (!fixture_open(&f))
        return;
    struct bw_encoder e = {0};
    uint64_t mailbox = ((struct bw_amd_device *)f.device)->mailbox_va;
    f.ops->encode_wait(f.compute, &e, bw_operand_constant(0x7f0000001230), bw_operand_constant(0x1234567890));
    WORDS_ARE(&e, 0xc0053c00, 0x15, 0x00001230, 0x7f00, 0x34567890, 0xffffffff, 4);
    f.ops->encode_signal(f.compute, &e, bw_operand_constant(0x7f0000001230),
                         bw_operand_constant(0x1234567890), true);
    /* The event's number into its mailbox, then the signal with the interrupt: nothing comes after it. */
    WORDS_ARE(&e, 0xc0064900, 0x00000514, 0x40000000, (uint32_t)mailbox, (uint32_t)(mailbox >> 32), 42, 0, 0,
              0xc0064900, 0x00601514, 0x42000000, 0x00001230, 0x7f00, 0x34567890, 0x12, 42);
    f.ops->encode_timestamp(f.compute, &e, bw_operand_constant(0x7f0000001238));
    WORDS_ARE(&e, 0xc0064900, 0x00000514, 0x60000000, 0x00001238, 0x7f00, 0, 0, 0);
    f.ops->encode_barrier(f.compute, &e, 0);
    BW_EQ(e.count, 0);
    f.ops->encode_barrier(f.compute, &e, BW_BARRIER_EXECUTION);
    BW_EQ(e.cache_operations, 1);
    /* GLK, GLV and GL1 only */
    WORDS_ARE(&e, 0xc0004600, 0x407, 0xc0065800, 0, 0xffffffff, 0xff, 0, 0, 10, 1 << 7 | 1 << 8 | 1 << 9);
    f.ops->encode_barrier(f.compute, &e, BW_BARRIER_ACQUIRE);
    WORDS_ARE(&e, 0xc0065800, 0, 0xffffffff, 0xff, 0, 0, 10, 0xc3b0);
    f.ops->encode_barrier(f.compute, &e, BW_BARRIER_RELEASE);
    WORDS_ARE(&e, 0xc0004600, 0x407, 0xc0065800, 0, 0xffffffff, 0xff, 0, 0, 10, 1 << 4 | 1 << 15);
    f.ops->encode_barrier(f.compute, &e, BW_BARRIER_CODE);
    WORDS_ARE(&e, 0xc0065800, 0, 0xffffffff, 0xff, 0, 0, 10, 1);
    bw_encoder_word(&e, 0xc0004600);
    bw_encoder_word(&e, 0x407);
    f.ops->encode_end(f.compute, &e);
    WORDS_ARE(&e, 0xc0004600, 0x407, 0xc0041000, 0, 0, 0, 0, 0);
    fixture_close(&f);
}

static void copy_synchronisation_words(void)
{
    struct fixture f;
    if (!fixture_open(&f))
        return;
    struct bw_encoder e = {0};
    uint64_t mailbox = ((struct bw_amd_device *)f.device)->mailbox_va;
    f.ops->encode_wait(f.copy, &e, bw_operand_constant(0x7f0000001230), bw_operand_constant(0x1234567890));
    WORDS_ARE(&e, 0xd0000008, 0x00001230, 0x7f00, 0x34567890, 0xffffffff, 0x0fff000a);
    f.ops->encode_signal(f.copy, &e, bw_operand_constant(0x7f0000001230), bw_operand_constant(0x1234567890),
                         true);
    /* The mailbox and the interrupt, padding, then the signal, its low half last: nothing comes after it. */
    WORDS_ARE(&e, 0x30005, (uint32_t)mailbox, (uint32_t)(mailbox >> 32), 42, 6, 42, 1 << 16, 0, 0x30005,
              0x00001234, 0x7f00, 0x12, 0x30005, 0x00001230, 0x7f00, 0x34567890);
    f.ops->encode_timestamp(f.copy, &e, bw_operand_constant(0x7f0000001238));
    WORDS_ARE(&e, 0x20d, 0x00001238, 0x7f00);
    BW_EQ(f.ops->encode_barrier(f.copy, &e, BW_BARRIER_EXECUTION | BW_BARRIER_ACQUIRE | BW_BARRIER_RELEASE),
          0);
    BW_EQ(e.count, 0);
    bw_encoder_word(&e, 6);
    bw_encoder_word(&e, 0);
    f.ops->encode_end(f.copy, &e);
    WORDS_ARE(&e, 6, 0, 5 << 16, 0, 0, 0, 0, 0);
    fixture_close(&f);
}

/* Whoever sees a signal may free the command buffer that it ends, so the engine must be done with reading it:
 * whatever came before, the signal's last packet is the buffer's last. */
static void a_signal_ends_its_command_buffer(void)
{
    struct fixture f;
    if (!fixture_open(&f))
        return;
    for (uint32_t before = 0; before < 17; before++) {
        for (int interrupt = 0; interrupt < 2; interrupt++) {
            struct bw_encoder e = {0};
            for (uint32_t i = 0; i < before; i++)
                bw_encoder_word(&e, 0xffff1000); /* a NOP of one word */
            f.ops->encode_signal(f.compute, &e, bw_operand_constant(0x7f0000001230), bw_operand_constant(7),
                                 interrupt);
            uint32_t signalled = e.count;
            f.ops->encode_end(f.compute, &e);
            BW_EQ(e.count, signalled);
            BW_EQ(e.words[e.count - 8], 0xc0064900);
            BW_EQ(e.words[e.count - 5], 0x00001230);
            bw_encoder_free(&e);
            struct bw_encoder c = {0};
            for (uint32_t i = 0; i < before; i++)
                bw_encoder_word(&c, 0);
            f.ops->encode_signal(f.copy, &c, bw_operand_constant(0x7f0000001230), bw_operand_constant(7),
                                 interrupt);
            signalled = c.count;
            f.ops->encode_end(f.copy, &c);
            BW_EQ(c.count, signalled);
            BW_EQ(c.words[c.count - 4], 0x30005);
            BW_EQ(c.words[c.count - 3], 0x00001230);
            bw_encoder_free(&c);
        }
    }
    fixture_close(&f);
}

/* Copies of every size: as many packets as it takes, none bigger than the engine's maximum. */
static void copies_are_cut_at_the_maximum(void)
{
    static const uint64_t sizes[] = {0,
                                     1,
                                     3,
                                     4095,
                                     (1ull << 30) - 1,
                                     1ull << 30,
                                     (1ull << 30) + 1,
                                     (1ull << 32) - 1,
                                     1ull << 32,
                                     (1ull << 32) + 1,
                                     (5ull << 30) + 7};
    struct fixture f;
    if (!fixture_open(&f))
        return;
    for (size_t i = 0; i < BW_COUNT_OF(sizes); i++) {
        struct bw_encoder e = {0};
        uint64_t at = 0, target = 0x7f0000000003, source = 0x6f0000000001;
        while (at < sizes[i]) {
            uint64_t done_bytes = 0;
            uint32_t first = e.count;
            BW_EQ(f.ops->encode_copy(f.copy, &e, bw_operand_constant(target + at),
                                     bw_operand_constant(source + at), sizes[i] - at, &done_bytes),
                  0);
            if (!BW_TRUE(done_bytes > 0))
                break;
            const uint32_t *words = e.words + first;
            BW_EQ(words[0], 1);
            BW_EQ((uint64_t)words[1] + 1, done_bytes);
            BW_EQ(words[3] | (uint64_t)words[4] << 32, source + at);
            BW_EQ(words[5] | (uint64_t)words[6] << 32, target + at);
            at += done_bytes;
        }
        BW_EQ(at, sizes[i]);
        BW_EQ(e.count, 7 * bw_div_up(sizes[i], 1ull << 30));
        BW_EQ(e.packets, bw_div_up(sizes[i], 1ull << 30));
        bw_encoder_free(&e);
    }
    struct bw_encoder e = {0};
    uint64_t done_bytes = 7;
    BW_EQ(f.ops->encode_copy(f.copy, &e, bw_operand_constant(0), bw_operand_constant(0), 0, &done_bytes), 0);
    BW_EQ(done_bytes, 0);
    BW_EQ(e.count, 0);
    fixture_close(&f);
}

static void scratch_grows_and_old_scratch_stays(void)
{
    struct fixture f;
    if (!fixture_open(&f))
        return;
    struct bw_amd_queue *queue = (struct bw_amd_queue *)f.compute;
    struct bw_amd_scratch first, again, grown, small;
    BW_OK(bw_amd_scratch_get(queue, "k", 100, 32, &first, &f.err), &f.err);
    /* 4 CUs of 32 slots over 2 engines: 64 waves each; 8 KiB per wave in units of 256 bytes */
    BW_EQ(first.wave_bytes, 8192);
    BW_EQ(first.tmpring_size, 64 | 32 << 12);
    BW_EQ(first.memory.size_bytes, 8192 * 64 * 2);
    BW_OK(bw_amd_scratch_get(queue, "k", 128, 64, &again, &f.err), &f.err);
    BW_EQ(again.memory.gpu_va, first.memory.gpu_va);
    BW_OK(bw_amd_scratch_get(queue, "k", 129, 64, &grown, &f.err), &f.err);
    BW_EQ(grown.wave_bytes, 16384);
    BW_TRUE(grown.memory.gpu_va != first.memory.gpu_va);
    BW_TRUE(fake_at(&f.fake, first.memory.gpu_va, first.memory.size_bytes) != NULL);
    /* What does not fit is refused, and what was there goes on. Less memory gives fewer waves first. */
    f.fake.vram_left_bytes = 20 << 20;
    BW_OK(bw_amd_scratch_get(queue, "k", 4096, 64, &small, &f.err), &f.err);
    BW_EQ(small.tmpring_size, 32 | 1024 << 12);
    BW_EQ(bw_amd_scratch_get(queue, "k", 8192, 64, &small, &f.err), -ENOMEM);
    BW_OK(bw_amd_scratch_get(queue, "k", 100, 64, &again, &f.err), &f.err);
    BW_EQ(again.wave_bytes, 262144);
    BW_EQ(bw_amd_scratch_get(queue, "kernel_name", 131070, 64, &small, &f.err), -E2BIG);
    BW_STR(f.err.what, "kernel kernel_name: 131070 bytes of scratch per work-item");
    BW_STR(f.err.expected, "at most 131068 (scratch_units_max of gfx1100)");
    fixture_close(&f);
}

/* The dynamic stack on top of a forged frame must not wrap around to little scratch. */
static void a_frame_of_4_gib_is_refused(void)
{
    struct fixture f;
    if (!fixture_open(&f))
        return;
    struct elf_file file = elf_file_read("kernels.rel.elf");
    uint32_t private_bytes = 0xffffffe0; /* of `empty`, whose descriptor is the second */
    memcpy(elf_content(&file, ".rodata") + 64 + 4, &private_bytes, sizeof private_bytes);
    struct bw_program *program;
    struct bw_kernel *kernel;
    struct bw_dispatch dispatch = dispatch_of(1, 64, 0x1000);
    if (BW_OK(f.ops->program_load(f.device, file.data, file.size_bytes, &program, &f.err), &f.err)) {
        BW_OK(f.ops->program_kernel(program, "empty", &kernel, &f.err), &f.err);
        BW_EQ(f.ops->encode_kernel(f.compute, &(struct bw_encoder){0}, kernel, &dispatch, &f.err), -E2BIG);
        BW_STR(f.err.expected, "at most 131068 (scratch_units_max of gfx1100)");
        f.ops->program_destroy(program);
    }
    free(file.data);
    fixture_close(&f);
}

static void scratch_registers(void)
{
    struct fixture f;
    if (!fixture_open(&f))
        return;
    struct bw_encoder e = {0};
    struct bw_dispatch dispatch = dispatch_of(1, 64, 0x1000);
    BW_OK(f.ops->encode_kernel(f.compute, &e, f.empty, &dispatch, &f.err), &f.err);
    struct bw_amd_queue *queue = (struct bw_amd_queue *)f.compute;
    uint64_t base = queue->scratch.data[0].memory.gpu_va;
    /* 1072 bytes for each of 64: 68608, so 128 KiB per wave */
    BW_EQ(e.words[13], 0x210); /* COMPUTE_DISPATCH_SCRATCH_BASE_LO, after geometry and program */
    BW_EQ(e.words[14], (uint32_t)(base >> 8));
    BW_EQ(e.words[15], (uint32_t)(base >> 40));
    BW_EQ(e.words[17] & 1, 1); /* SCRATCH_EN of RSRC2 */
    BW_EQ(e.words[22], 0x218); /* COMPUTE_TMPRING_SIZE, after COMPUTE_RESOURCE_LIMITS */
    BW_EQ(e.words[23], 64 | 512 << 12);
    bw_encoder_free(&e);
    fixture_close(&f);
}

static void describe(void *user, uint64_t address, char *text, uint32_t text_size)
{
    snprintf(text, text_size, "%s of 0x%llx", (const char *)user, (unsigned long long)address);
}

static void submit_words(struct fixture *f, const struct bw_encoder *e, const struct bw_memory *memory)
{
    for (uint32_t i = 0; i < e->count; i++)
        bw_wr32(&memory->cpu, i * 4, e->words[i]);
    BW_EQ(f->ops->submit(f->compute, memory->address, e->count), 0);
    BW_EQ(f->ops->flush(f->compute), 0);
}

static void faults_name_queue_kernel_and_buffer(void)
{
    struct fixture f;
    if (!fixture_open(&f))
        return;
    struct bw_memory memory, signal;
    BW_OK(f.ops->alloc(f.device, 4096, BW_BUFFER_HOST, &memory, &f.err), &f.err);
    BW_OK(f.ops->alloc(f.device, 8192, BW_BUFFER_HOST, &signal, &f.err), &f.err);
    BW_EQ(f.ops->query_fault(f.device, &f.err), 0);
    struct bw_encoder e = {0};
    struct bw_dispatch dispatch = dispatch_of(1, 64, 0x1000);
    BW_OK(f.ops->encode_kernel(f.compute, &e, f.empty, &dispatch, &f.err), &f.err);
    f.ops->encode_signal(f.compute, &e, bw_operand_constant(signal.address), bw_operand_constant(1), false);
    BW_OK(f.ops->encode_kernel(f.compute, &e, f.add, &dispatch, &f.err), &f.err);
    f.ops->encode_signal(f.compute, &e, bw_operand_constant(signal.address), bw_operand_constant(2), false);
    f.ops->encode_end(f.compute, &e);
    submit_words(&f, &e, &memory);
    f.device->describer = (struct bw_address_describer){describe, (void *)"one past the end"};
    char line[512];
    f.fake.fault = (struct bw_fault){.kind = BW_FAULT_MEMORY, .va = 0x123000, .not_present = true};
    BW_EQ(f.ops->query_fault(f.device, &f.err), -EIO);
    bw_err_format(&f.err, line, sizeof line);
    BW_STR(line, "amd fake+amd@gfx1100: compute queue 0, kernel empty or vector_add: memory fault at "
                 "0x123000 (not mapped): "
                 "observed one past the end of 0x123000 (EIO)");
    /* It stays broken until reset. */
    BW_EQ(f.ops->query_fault(f.device, NULL), -EIO);
    uint32_t created = f.fake.queues_created;
    BW_OK(f.ops->reset(f.device, &f.err), &f.err);
    BW_EQ(f.fake.queues_created, created + 3);
    BW_EQ(f.ops->query_fault(f.device, &f.err), 0);
    /* The first signal arrived: only the second kernel is left to blame. */
    submit_words(&f, &e, &memory);
    bw_wr64(&signal.cpu, 0, 1);
    f.fake.fault = (struct bw_fault){.kind = BW_FAULT_HARDWARE, .reset_type = 1, .reset_cause = 2};
    BW_EQ(f.ops->query_fault(f.device, &f.err), -EIO);
    bw_err_format(&f.err, line, sizeof line);
    BW_STR(line, "amd fake+amd@gfx1100: compute queue 0, kernel vector_add: hardware exception: observed "
                 "reset type 1, cause 2 "
                 "(EIO)");
    /* Code and apertures are no buffers that the describer knows of. */
    const struct bw_iface_memory *code = &((struct bw_amd_program *)f.program)->memory;
    f.fake.base.properties.scratch_aperture = 1ull << 49;
    const struct {
        uint64_t va;
        const char *observed;
    } places[] = {
        {code->gpu_va + 2048, "2048 bytes into the code of vector_add and others"},
        {code->gpu_va + code->size_bytes, "0 bytes past the end of the code of vector_add and others"},
        {(1ull << 49) + 100, "100 bytes into scratch"},
        {(1ull << 49) - 4, "4 bytes before scratch"},
    };
    for (size_t i = 0; i < BW_COUNT_OF(places); i++) {
        BW_OK(f.ops->reset(f.device, &f.err), &f.err);
        f.fake.fault = (struct bw_fault){.kind = BW_FAULT_MEMORY, .va = places[i].va};
        BW_EQ(f.ops->query_fault(f.device, &f.err), -EIO);
        BW_STR(f.err.observed, places[i].observed);
    }
    bw_encoder_free(&e);
    f.ops->free(f.device, &memory);
    f.ops->free(f.device, &signal);
    fixture_close(&f);
}

static void uploads_have_a_deadline(void)
{
    struct fixture f;
    if (!fixture_open(&f))
        return;
    for (int i = 0; i < FAKE_QUEUES; i++)
        f.fake.queues[i].stalled = true;
    struct elf_file file = elf_file_read("kernels.dyn.elf");
    struct bw_program *program;
    BW_EQ(f.ops->program_load(f.device, file.data, file.size_bytes, &program, &f.err), -ETIMEDOUT);
    BW_TRUE(strstr(f.err.what, "upload queue: machine code to 0x") == f.err.what);
    BW_STR(f.err.device, "fake+amd@gfx1100");
    BW_STR(f.err.expected, "signal 0x2");
    BW_STR(f.err.observed, "signal 0x1, nothing moves any more");
    BW_TRUE(strstr(f.err.hint, "copy of ") == f.err.hint);
    BW_TRUE(f.err.elapsed_ns >= 30000000000 && f.err.elapsed_ns < 31000000000);
    /* The device is broken until it is reset: whatever asks is told the same. */
    struct bw_err again;
    BW_EQ(f.ops->query_fault(f.device, &again), -EIO);
    BW_STR(again.what, f.err.what);
    BW_OK(f.ops->reset(f.device, &f.err), &f.err);
    for (int i = 0; i < FAKE_QUEUES; i++)
        f.fake.queues[i].stalled = true;
    /* The deadline is the context's. */
    ((struct bw_amd_device *)f.device)->wait_ns = 200000000;
    BW_EQ(f.ops->program_load(f.device, file.data, file.size_bytes, &program, &f.err), -ETIMEDOUT);
    BW_TRUE(f.err.elapsed_ns >= 200000000 && f.err.elapsed_ns < 300000000);
    BW_OK(f.ops->reset(f.device, &f.err), &f.err);
    for (int i = 0; i < FAKE_QUEUES; i++)
        f.fake.queues[i].stalled = true;
    /* A fault ends the wait at once. */
    f.fake.fault = (struct bw_fault){.kind = BW_FAULT_LOST};
    BW_EQ(f.ops->program_load(f.device, file.data, file.size_bytes, &program, &f.err), -EIO);
    if (!BW_TRUE(strstr(f.err.what, "upload queue, copy of ") == f.err.what) ||
        !BW_TRUE(strstr(f.err.what, "the device is gone") != NULL))
        BW_STR(f.err.what, "upload queue, copy of ...: the device is gone");
    free(file.data);
    fixture_close(&f);
}

static void memory_runs_out_by_name(void)
{
    struct fixture f;
    if (!fixture_open(&f))
        return;
    struct bw_memory memory;
    f.fake.vram_left_bytes = 1 << 20;
    BW_EQ(f.ops->alloc(f.device, 2 << 20, BW_BUFFER_DEVICE, &memory, &f.err), -ENOMEM);
    BW_STR(f.err.what, "allocation of 2097152 bytes");
    BW_STR(f.err.observed, "1048576 bytes of device memory available");
    BW_OK(f.ops->alloc(f.device, 1 << 20, BW_BUFFER_DEVICE, &memory, &f.err), &f.err);
    BW_EQ(memory.cpu.size_bytes, 0);
    f.ops->free(f.device, &memory);
    fixture_close(&f);
}

BW_TEST_MAIN("amd device", {"unknown_chips_are_refused_by_name", unknown_chips_are_refused_by_name},
             {"info_and_caps_follow_the_chip", info_and_caps_follow_the_chip},
             {"programs_arrive_in_vram", programs_arrive_in_vram}, {"launch_words", launch_words},
             {"launches_write_what_changes", launches_write_what_changes},
             {"copies_without_a_copy_engine", copies_without_a_copy_engine},
             {"user_sgprs_follow_the_property_bits", user_sgprs_follow_the_property_bits},
             {"argument_blocks_hold_the_hidden_arguments", argument_blocks_hold_the_hidden_arguments},
             {"dispatch_packets_follow_the_arguments", dispatch_packets_follow_the_arguments},
             {"limits_are_named", limits_are_named}, {"arguments_at_the_limit", arguments_at_the_limit},
             {"compute_synchronisation_words", compute_synchronisation_words},
             {"copy_synchronisation_words", copy_synchronisation_words},
             {"a_signal_ends_its_command_buffer", a_signal_ends_its_command_buffer},
             {"copies_are_cut_at_the_maximum", copies_are_cut_at_the_maximum},
             {"scratch_grows_and_old_scratch_stays", scratch_grows_and_old_scratch_stays},
             {"a_frame_of_4_gib_is_refused", a_frame_of_4_gib_is_refused},
             {"scratch_registers", scratch_registers},
             {"faults_name_queue_kernel_and_buffer", faults_name_queue_kernel_and_buffer},
             {"uploads_have_a_deadline", uploads_have_a_deadline},
             {"memory_runs_out_by_name", memory_runs_out_by_name})
