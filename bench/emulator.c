/* How fast the gfx1100 emulator runs: a VALU loop, the plain matmul, wave start, then eight kernels of real
 * shapes. One host thread first, which is what counts; then all of them. The kernels are built in
 * (kernels/emulator.cl). */
#include <elf.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cJSON.h>

#include "base/bits.h"
#include "bench/bench.h"
#include "mock/isa/isa.h"
#include "tools/print.h"

static const uint32_t kernels_image[] = {
#include "bench/kernels/emulator_gfx1100.inc"
};

static const uint32_t loop_image[] = {
#include "bench/kernels/valu_loop_gfx1100.inc"
};

/* The machine's memory: code, arguments, three arrays. */
enum {
    CODE_BYTES = 1 << 20,
    ARGUMENTS_AT = CODE_BYTES,
    ARRAY_BYTES = 8 << 20,
    ARRAYS_AT = 2 << 20,
    MEMORY_BYTES = ARRAYS_AT + 3 * ARRAY_BYTES,
    RUNS = 3, /* after one that warms up; the median counts */
};
#define MEMORY_VA 0x600000000000ull

struct emulator_case {
    const char *name;
    const uint32_t *image;
    uint64_t image_bytes;
    uint32_t groups[2], group_size[2];
    int32_t n;
    bool is_float; /* what the arrays hold */
};

#define CASE(name, groups_x, groups_y, size_x, size_y, n, is_float)                                    \
    {                                                                                                  \
        name, kernels_image, sizeof kernels_image, {groups_x, groups_y}, {size_x, size_y}, n, is_float \
    }
static const struct emulator_case cases[] = {
    {"valu_loop", loop_image, sizeof loop_image, {8, 1}, {32, 1}, 100000, false},
    CASE("matmul_f32", 16, 16, 16, 16, 256, true),
    {"wave_start", loop_image, sizeof loop_image, {65536, 1}, {256, 1}, 0, false},
    CASE("elementwise", 1024, 1, 256, 1, 0, true),
    CASE("softmax", 512, 1, 256, 1, 1024, true),
    CASE("scan", 2048, 1, 256, 1, 0, false),
    CASE("radix_sort", 128, 1, 256, 1, 0, false),
    CASE("sha256", 64, 1, 64, 1, 16, false),
    CASE("conv3x3", 16 * 64, 1, 64, 1, 64, true),
    CASE("gemm_lds", 16, 1, 256, 1, 256, true),
    CASE("attention", 128, 1, 64, 1, 256, true),
};
enum { FIRST_COUNTED = 3 }; /* the geometric mean is over the rest */

struct emulator_bench {
    uint8_t *memory;
    _Atomic uint64_t generation;
    const struct bw_isa *isa;
    struct bw_isa_pool *pool;
    unsigned threads;
    FILE *text;
    cJSON *results;
};

static void *resolve(void *user, uint64_t va, enum bw_isa_access access, uint64_t *start, uint64_t *bytes)
{
    struct emulator_bench *bench = user;
    if (va < MEMORY_VA || va - MEMORY_VA >= MEMORY_BYTES)
        return NULL;
    *start = MEMORY_VA;
    *bytes = MEMORY_BYTES - (va - MEMORY_VA);
    return bench->memory + (va - MEMORY_VA);
}

/* AMDHSA kernel descriptor, as far as it is used (LLVM AMDGPUUsage). */
struct descriptor {
    uint32_t group_bytes, private_bytes, kernarg_bytes, reserved0;
    int64_t entry_offset;
    uint8_t reserved1[20];
    uint32_t rsrc3, rsrc1, rsrc2;
    uint16_t properties;
};
enum { PROPERTY_DISPATCH_PTR = 1 << 1, PROPERTY_QUEUE_PTR = 1 << 2, PROPERTY_WAVE32 = 1 << 10 };

/* Address of a symbol of our own images; 0 when there is none. */
static uint64_t symbol_value(const uint8_t *image, const char *name)
{
    const Elf64_Ehdr *header = (const void *)image;
    const Elf64_Shdr *sections = (const void *)(image + header->e_shoff);
    for (unsigned i = 0; i < header->e_shnum; i++) {
        if (sections[i].sh_type != SHT_DYNSYM && sections[i].sh_type != SHT_SYMTAB)
            continue;
        const Elf64_Sym *symbols = (const void *)(image + sections[i].sh_offset);
        const char *names = (const char *)image + sections[sections[i].sh_link].sh_offset;
        for (uint64_t k = 0; k < sections[i].sh_size / sizeof *symbols; k++) {
            if (strcmp(names + symbols[k].st_name, name) == 0)
                return symbols[k].st_value;
        }
    }
    return 0;
}

/* Puts the image into memory and describes the launch of one of its kernels. */
static int prepare(struct emulator_bench *bench, const struct emulator_case *c,
                   struct bw_isa_dispatch *dispatch, struct bw_err *err)
{
    const uint8_t *image = (const void *)c->image;
    const Elf64_Ehdr *header = (const void *)image;
    const Elf64_Phdr *segments = (const void *)(image + header->e_phoff);
    char name[64];
    for (unsigned i = 0; i < header->e_phnum; i++) {
        if (segments[i].p_type == PT_LOAD && segments[i].p_vaddr + segments[i].p_filesz <= CODE_BYTES)
            memcpy(bench->memory + segments[i].p_vaddr, image + segments[i].p_offset, segments[i].p_filesz);
    }
    snprintf(name, sizeof name, "%s.kd", c->name);
    uint64_t at = symbol_value(image, name);
    if (!at)
        return bw_fail(err, -ENOENT, "bench", "kernel %s", c->name);
    struct descriptor d;
    memcpy(&d, bench->memory + at, sizeof d);
    unsigned kernarg_sgpr =
        (d.properties & PROPERTY_DISPATCH_PTR ? 2 : 0) + (d.properties & PROPERTY_QUEUE_PTR ? 2 : 0);
    *dispatch = (struct bw_isa_dispatch){
        .entry_va = MEMORY_VA + at + (uint64_t)d.entry_offset,
        .rsrc1 = d.rsrc1,
        .rsrc2 = d.rsrc2,
        .rsrc3 = d.rsrc3,
        .wave_size = d.properties & PROPERTY_WAVE32 ? 32 : 64,
        .group_count = {c->groups[0], c->groups[1], 1},
        .group_size = {c->group_size[0], c->group_size[1], 1},
        .lds_bytes = d.group_bytes,
        .memory = {resolve, bench, &bench->generation},
    };
    dispatch->user_sgpr[kernarg_sgpr] = (uint32_t)(MEMORY_VA + ARGUMENTS_AT);
    dispatch->user_sgpr[kernarg_sgpr + 1] = (uint32_t)((MEMORY_VA + ARGUMENTS_AT) >> 32);
    return 0;
}

/* Small numbers, the same every time. */
static void fill_arrays(struct emulator_bench *bench, const struct emulator_case *c)
{
    uint64_t arguments[4] = {MEMORY_VA + ARRAYS_AT, MEMORY_VA + ARRAYS_AT + ARRAY_BYTES,
                             MEMORY_VA + ARRAYS_AT + 2 * ARRAY_BYTES, (uint32_t)c->n};
    uint32_t *words = (uint32_t *)(void *)(bench->memory + ARRAYS_AT);
    float *floats = (float *)(void *)words;
    memcpy(bench->memory + ARGUMENTS_AT, arguments, sizeof arguments);
    for (uint32_t i = 0; i < 3 * ARRAY_BYTES / 4; i++) {
        uint32_t random = i * 2654435761u;
        random ^= random >> 15;
        if (c->is_float)
            floats[i] = (float)(random >> 8 & 0xffff) * 0x1p-15f - 1.0f;
        else
            words[i] = random;
    }
}

static double now_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static int run_case(struct emulator_bench *bench, const struct emulator_case *c, double *seconds,
                    struct bw_isa_result *result, struct bw_err *err)
{
    struct bw_isa_dispatch dispatch;
    double times[RUNS];
    int rc = prepare(bench, c, &dispatch, err);
    if (rc)
        return rc;
    fill_arrays(bench, c);
    for (int run = -1; run < RUNS; run++) {
        struct bw_isa_control control = {0};
        double begin = now_seconds();
        bw_isa_run(bench->isa, bench->pool, &dispatch, &control, result);
        if (run >= 0)
            times[run] = now_seconds() - begin;
        if (result->status != BW_ISA_DONE)
            return bw_fail(err, -EIO, "bench", "%s: %s", c->name, result->text);
    }
    qsort(times, RUNS, sizeof times[0], compare_doubles);
    *seconds = times[RUNS / 2];
    return 0;
}

static void report(struct emulator_bench *bench, const struct emulator_case *c, double seconds,
                   const struct bw_isa_result *result)
{
    cJSON *entry = cJSON_CreateObject();
    double rate = (double)result->instructions / seconds;
    bool is_start = strcmp(c->name, "wave_start") == 0;
    cJSON_AddStringToObject(entry, "case", c->name);
    cJSON_AddStringToObject(entry, "arch", "gfx1100");
    cJSON_AddNumberToObject(entry, "threads", bench->threads);
    if (is_start)
        cJSON_AddNumberToObject(entry, "nanoseconds", seconds * 1e9 / (double)result->waves);
    else
        cJSON_AddNumberToObject(entry, "wave_instructions_per_second", rate);
    if (c->n)
        cJSON_AddNumberToObject(entry, "n", c->n);
    cJSON_AddNumberToObject(entry, "milliseconds", seconds * 1e3);
    cJSON_AddItemToArray(bench->results, entry);
    if (!bench->text)
        return;
    if (is_start)
        bw_print(bench->text, "%-12s %2u thread%s %10.1f ns per wave\n", c->name, bench->threads,
                 bench->threads == 1 ? " " : "s", seconds * 1e9 / (double)result->waves);
    else
        bw_print(bench->text, "%-12s %2u thread%s %10.1f M wave-instructions/s %10.3f ms\n", c->name,
                 bench->threads, bench->threads == 1 ? " " : "s", rate * 1e-6, seconds * 1e3);
}

/* All cases on a pool of that many threads; *log_mean the mean of the logarithms of the counted rates. */
static int run_cases(struct emulator_bench *bench, unsigned threads, double *log_mean, struct bw_err *err)
{
    int rc = bw_isa_pool_create(threads, &bench->pool);
    if (rc)
        return bw_fail(err, rc, "bench", "emulator threads");
    bench->threads = threads;
    *log_mean = 0;
    for (size_t i = 0; i < BW_COUNT_OF(cases) && !rc; i++) {
        struct bw_isa_result result;
        double seconds = 1;
        rc = run_case(bench, &cases[i], &seconds, &result, err);
        if (rc)
            break;
        report(bench, &cases[i], seconds, &result);
        if (i >= FIRST_COUNTED)
            *log_mean +=
                log((double)result.instructions / seconds) / (double)(BW_COUNT_OF(cases) - FIRST_COUNTED);
    }
    bw_isa_pool_destroy(bench->pool);
    return rc;
}

int bw_bench_emulator(const struct bw_bench_options *options, struct cJSON **document, struct bw_err *err)
{
    struct emulator_bench bench = {.text = options->text};
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    double log_mean = 0, ignored;
    int rc = bw_isa_find("gfx1100", &bench.isa);
    if (rc)
        return bw_fail(err, rc, "bench", "no emulator of gfx1100");
    bench.memory = aligned_alloc(4096, MEMORY_BYTES);
    *document = cJSON_CreateObject();
    if (!bench.memory || !*document) {
        free(bench.memory);
        cJSON_Delete(*document);
        return bw_fail(err, -ENOMEM, "bench", "memory of the machine");
    }
    memset(bench.memory, 0, MEMORY_BYTES);
    bench.results = cJSON_AddArrayToObject(*document, "results");
    rc = run_cases(&bench, 1, &log_mean, err);
    if (!rc && online > 1)
        rc = run_cases(&bench, (unsigned)online, &ignored, err);
    free(bench.memory);
    if (rc) {
        cJSON_Delete(*document);
        *document = NULL;
        return rc;
    }
    cJSON_AddNumberToObject(*document, "geomean_wave_instructions_per_second", exp(log_mean));
    if (bench.text)
        bw_print(bench.text, "geometric mean of the last eight, one thread: %.1f M wave-instructions/s\n",
                 exp(log_mean) * 1e-6);
    return 0;
}
