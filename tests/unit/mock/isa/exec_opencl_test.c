/* Goal: OpenCL C kernels compiled by clang 19 for gfx1100, with and without optimisation, in wave32 and
 * wave64, give on the emulator the very bytes that the same source gives on the host. */
#include "tests/check.h"

#include "base/rng.h"
#include "mock/isa/pool.h"
#include "tests/unit/mock/isa/exec_kernel.h"

enum {
    ITEMS = 4096,
    BUFFER_BYTES = ITEMS * 16,
    A_AT = EXEC_DATA,
    B_AT = A_AT + BUFFER_BYTES,
    C_AT = B_AT + BUFFER_BYTES,
    GROUP_ITEMS = 64,
};

/* Each kernel is k(const void *a, const void *b, void *c) and stands in a file of its own once its name is
 * put for k; I is the work-item's number. */
struct kernel {
    const char *name, *source;
};

#define BINARY(type, expression)                                             \
    "KERNEL k(G const " type "*a, G const " type "*b, G " type "*c) { " type \
    " x = a[I], y = b[I]; c[I] = " expression "; }"

static const struct kernel kernels[] = {
    {"add_i32", BINARY("int", "x + y * 3 - (x ^ y)")},
    {"mul_i64", BINARY("long", "x * y + (x >> 3) - (y << 7)")},
    {"mulhi", BINARY("uint", "(uint)(((ulong)x * y) >> 32) ^ (uint)((((long)(int)x) * (int)y) >> 32)")},
    {"div_i32", BINARY("int", "y == 0 || (y == -1) ? x : x / y * 3 + x % y")},
    {"div_u32", BINARY("uint", "y == 0 ? x : x / y * 3 + x % y")},
    {"div_u64", BINARY("ulong", "y == 0 ? x : x / (y >> 20 | 1) * 3 + x % (y >> 9 | 1)")},
    {"div_i64", BINARY("long", "x / (y >> 13 | 1) + x % (y >> 30 | 3)")},
    {"div_i16", BINARY("short", "y == 0 || y == -1 ? x : (short)(x / y + x % y)")},
    {"div_u8", BINARY("uchar", "y == 0 ? x : (uchar)(x / y + x % y)")},
    {"shift_i16", BINARY("short", "(short)((x << (y & 15)) ^ (x >> (y & 7)) ^ ((ushort)x >> (y & 11)))")},
    {"shift_i64", BINARY("long", "(x << (y & 63)) ^ (x >> (y & 31)) ^ (long)((ulong)x >> ((y >> 8) & 63))")},
    {"minmax_i32",
     BINARY("int", "(x < y ? x : y) ^ ((uint)x > (uint)y ? x : y) ^ (x > 5 ? (x < 1000 ? x : 1000) : 5)")},
    {"minmax_i16", BINARY("short", "(x < y ? x : y) + ((ushort)x > (ushort)y ? x : y)")},
    {"bits", BINARY("uint", "__builtin_popcount(x) + __builtin_clz(y | 1) + __builtin_ctz(x | 0x80000000u) + "
                            "__builtin_bitreverse32(y) + __builtin_bswap32(x)")},
    {"bits64", BINARY("ulong", "__builtin_popcountl(x) + __builtin_clzl(y | 1) + __builtin_bitreverse64(x) + "
                               "__builtin_bswap64(y)")},
    {"rotate",
     BINARY("uint", "__builtin_rotateleft32(x, y) ^ __builtin_rotateright32(y, x) ^ (x << 13 | y >> 19)")},
    {"saturate", BINARY("uint", "__builtin_elementwise_add_sat(x, y) ^ __builtin_elementwise_sub_sat(x, y)")},
    {"saturate_i",
     BINARY("int", "__builtin_elementwise_add_sat(x, y) ^ __builtin_elementwise_sub_sat(x, y)")},
    {"saturate_16",
     BINARY("short", "__builtin_elementwise_add_sat(x, y) ^ __builtin_elementwise_sub_sat(x, y)")},
    {"mul24",
     BINARY("int", "((x << 8) >> 8) * ((y << 8) >> 8) + (int)((x & 0xffffff) * (uint)(y & 0xffffff))")},
    {"add_f32", BINARY("float", "x + y")},
    {"mul_f32", BINARY("float", "x * y - x")},
    {"fma_f32", BINARY("float", "__builtin_fmaf(x, y, -x)")},
    {"div_f32", BINARY("float", "x / y")},
    {"sqrt_f32", BINARY("float", "__builtin_sqrtf(x)")},
    {"round_f32",
     BINARY("float",
            "__builtin_floorf(x) + __builtin_ceilf(y) * 2 + __builtin_truncf(x) - __builtin_rintf(y)")},
    {"minmax_f32", BINARY("float", "x < y ? __builtin_fminf(x, 3.0f) : __builtin_fmaxf(y, -1.0f)")},
    {"compare_f32",
     BINARY("int", "(*(float *)&x < *(float *)&y) | (*(float *)&x == *(float *)&y) << 1 | "
                   "(*(float *)&x != *(float *)&y) << 2 | (*(float *)&x >= *(float *)&y) << 3 | "
                   "__builtin_isunordered(*(float *)&x, *(float *)&y) << 4")},
    {"class_f32",
     "KERNEL k(G const float *a, G const float *b, G int *c) { float x = a[I]; c[I] = __builtin_isnan(x) | "
     "__builtin_isinf(x) << 1 | __builtin_isnormal(x) << 2 | (__builtin_fabsf(x) < 1.0f) << 3; }"},
    {"ldexp_f32",
     "KERNEL k(G const float *a, G const int *b, G float *c) { c[I] = __builtin_ldexpf(a[I], b[I] % 300); }"},
    {"convert_f32",
     "KERNEL k(G const float *a, G const int *b, G float *c) { float x = a[I]; x = x > 1e9f ? 1e9f : x < "
     "-1e9f ? "
     "-1e9f : x; x = x == x ? x : 0; c[I] = (float)(int)x + (float)b[I] + (float)(uint)b[I]; }"},
    {"convert_i64",
     "KERNEL k(G const float *a, G const long *b, G float *c) { c[I] = (float)b[I] + (float)(ulong)b[I]; }"},
    {"add_f64", BINARY("double", "x + y * 2.5 - x * y")},
    {"div_f64", BINARY("double", "x / y")},
    {"sqrt_f64", BINARY("double", "__builtin_sqrt(x)")},
    {"fma_f64", BINARY("double", "__builtin_fma(x, y, -y)")},
    {"round_f64",
     BINARY("double", "__builtin_floor(x) + __builtin_ceil(y) + __builtin_trunc(x) - __builtin_rint(y)")},
    {"minmax_f64", BINARY("double", "__builtin_fmin(x, 7.0) + (x > y ? x : y)")},
    {"convert_f64",
     "KERNEL k(G const float *a, G const int *b, G double *c) { c[I] = (double)a[I] * 3 + (double)b[I] - "
     "(double)(uint)b[I] + (double)(float)((double)a[I] / 3); }"},
    {"convert_f64_i64",
     "KERNEL k(G const long *a, G const ulong *b, G double *c) { c[I] = (double)a[I] + (double)b[I]; }"},
    {"ldexp_f64", "KERNEL k(G const double *a, G const int *b, G double *c) { c[I] = __builtin_ldexp(a[I], "
                  "b[I] % 2000); }"},
    {"add_f16", BINARY("half", "x + y * x")},
    {"mul_f16", BINARY("half", "x * y - y")},
    {"fma_f16", BINARY("half", "__builtin_fmaf16(x, y, -x)")},
    {"minmax_f16", BINARY("half", "x < y ? x : y + (half)1")},
    {"convert_f16",
     "KERNEL k(G const float *a, G const half *b, G float *c) { c[I] = (float)(half)a[I] + (float)b[I]; }"},
    {"convert_f16_i",
     "KERNEL k(G const short *a, G const ushort *b, G half *c) { c[I] = (half)a[I] + (half)b[I]; }"},
    {"packed_f16", "KERNEL k(G const half2 *a, G const half2 *b, G half2 *c) { half2 x = a[I], y = b[I]; "
                   "c[I] = x * y + x.yx - (half2)(1.5h, -2.0h); }"},
    {"packed_i16", "KERNEL k(G const short2 *a, G const short2 *b, G short2 *c) { short2 x = a[I], y = b[I]; "
                   "c[I] = x * y + x.yx - (y >> (short2)3) + (x < y ? x : y); }"},
    {"vectors", ""
                "KERNEL k(G const float4 *a, G const float4 *b, G float4 *c) { float4 x = a[I], y = b[I]; "
                "c[I] = x.wzyx * y + x; }"},
    {"vectors3", ""
                 "KERNEL k(G const int *a, G const int *b, G int *c) { int i = I; int3 x = (int3)(a[3*i], "
                 "a[3*i+1], a[3*i+2]); "
                 "x = x * 3 + (int3)(b[i]); c[3*i] = x.x; c[3*i+1] = x.y; c[3*i+2] = x.z; }"},
    {"bytes", "KERNEL k(G const uchar *a, G const char *b, G short *c) { int i = I; c[i] = a[i] * 3 + b[i] + "
              "a[(i * 7) & 4095]; }"},
    {"halfwords", "KERNEL k(G const ushort *a, G const short *b, G uchar *c) { int i = I; c[i] = "
                  "(uchar)(a[i] + b[(i * 5) & 4095]); }"},
    {"gather", "KERNEL k(G const int *a, G const int *b, G int *c) { int i = I; c[i] = a[b[i] & 4095] + a[(i "
               "* 33) & 4095]; }"},
    {"scatter", "KERNEL k(G const int *a, G const int *b, G int *c) { int i = I; c[(i * 2731) & 4095] = a[i] "
                "- b[4095 - i]; }"},
    {"divergent", "KERNEL k(G const int *a, G const int *b, G int *c) { int i = I, x = a[i], n = 0; "
                  "while (x != 1 && n < 200) { if (x & 1) x = x * 3 + 1; else x = (int)((uint)x >> 1); n++; "
                  "if (x == b[i]) break; } "
                  "c[i] = n * 1000 + (x & 255); }"},
    {"switch",
     "KERNEL k(G const int *a, G const int *b, G int *c) { int i = I, x = a[i], r; switch (x & 15) { case 0: "
     "r = x; break; "
     "case 1: r = x * 3; break; case 3: r = x ^ b[i]; break; case 7: r = x / 3; case 8: r = x + 11; break; "
     "case 12: return; default: r = -x; } c[i] = r; }"},
    {"private",
     "KERNEL k(G const int *a, G const int *b, G int *c) { int i = I; int t[32]; for (int j = 0; j < 32; "
     "j++) "
     "t[j] = a[(i + j) & 4095] * j; int s = 0; for (int j = 0; j < 64; j++) { s += t[(b[i] + j * 3) & 31]; "
     "t[(s ^ j) & 31] += s; } c[i] = s; }"},
    {"private_bytes",
     "KERNEL k(G const uchar *a, G const uchar *b, G int *c) { int i = I; uchar t[64]; ushort u[16]; "
     "for (int j = 0; j < 64; j++) t[j] = a[(i * 3 + j) & 4095]; for (int j = 0; j < 16; j++) u[j] = t[j * "
     "4] * 257; "
     "int s = 0; for (int j = 0; j < 100; j++) { s += t[(b[i] + j) & 63] + u[(s + j) & 15]; t[s & 63] ^= "
     "(uchar)j; } "
     "c[i] = s; }"},
    {"calls", "__attribute__((noinline)) int f(int x, int y) { return x < y ? x * 3 : y - x; }\n"
              "__attribute__((noinline)) int g(int x, int n) { int r = x; for (int j = 0; j < n; j++) r = "
              "f(r, j * 77) ^ j; return r; }\n"
              "KERNEL k(G const int *a, G const int *b, G int *c) { int i = I; c[i] = g(a[i], b[i] & 15) + "
              "f(b[i], a[i]); }"},
    {"sha_round", "static uint ror(uint x, int n) { return x >> n | x << (32 - n); }\n"
                  "KERNEL k(G const uint *a, G const uint *b, G uint *c) { int i = I; uint s[8]; for (int j "
                  "= 0; j < 8; j++) "
                  "s[j] = a[(i + j) & 4095]; for (int r = 0; r < 64; r++) { uint t1 = s[7] + (ror(s[4], 6) ^ "
                  "ror(s[4], 11) ^ ror(s[4], 25)) "
                  "+ ((s[4] & s[5]) ^ (~s[4] & s[6])) + b[(i + r) & 4095]; uint t2 = (ror(s[0], 2) ^ "
                  "ror(s[0], 13) ^ ror(s[0], 22)) + "
                  "((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2])); s[7] = s[6]; s[6] = s[5]; s[5] = s[4]; "
                  "s[4] = s[3] + t1; s[3] = s[2]; "
                  "s[2] = s[1]; s[1] = s[0]; s[0] = t1 + t2; } c[i] = s[0] ^ s[1] ^ s[2] ^ s[3] ^ s[4] ^ "
                  "s[5] ^ s[6] ^ s[7]; }"},
    {"matrix_row",
     "KERNEL k(G const float *a, G const float *b, G float *c) { int i = I, y = i >> 6, x = i & 63; float s "
     "= 0; "
     "for (int j = 0; j < 64; j++) s = __builtin_fmaf(a[y * 64 + j], b[j * 64 + x], s); c[i] = s; }"},
};

static uint32_t special_float(struct bw_rng *rng)
{
    static const uint32_t values[] = {0,          0x80000000, 0x3f800000, 0xbf800000, 0x7f800000,
                                      0xff800000, 0x00000001, 0x80000001, 0x007fffff, 0x00800000,
                                      0x7f7fffff, 0xff7fffff, 0x3f000000, 0x40490fdb, 0x4b000000,
                                      0x4b800001, 0xcf000000, 0x4f000000, 0x33800000, 0x3fffffff};
    return values[bw_rng_below(rng, sizeof values / sizeof values[0])];
}

/* Bits of every kind: whole range, small integers, floats of moderate size, special floats; no NaN, whose
 * payload the ISA leaves open. */
static void fill(uint32_t *words, size_t count, uint64_t seed, const char *name)
{
    struct bw_rng rng = {.state = seed};
    bool f64 = strstr(name, "f64") != NULL, f16 = strstr(name, "f16") != NULL;
    for (size_t i = 0; i < count; i++) {
        uint32_t r = (uint32_t)bw_rng_next(&rng);
        switch (bw_rng_below(&rng, 4)) {
        case 0:
            words[i] = r;
            break;
        case 1:
            words[i] = (uint32_t)((int32_t)r >> 20);
            break;
        case 2: /* exponents near 0 */
            words[i] = (r & 0x83ffffff) | 0x3c000000;
            break;
        default:
            words[i] = special_float(&rng);
        }
        if ((words[i] & 0x7fffffff) > 0x7f800000)
            words[i] &= ~0x00400000u ^ 0x01000000u;
        if (f64 && (i & 1) && (words[i] & 0x7ff00000) == 0x7ff00000)
            words[i] ^= 0x00100000;
        for (unsigned shift = 0; f16 && shift < 32; shift += 16) {
            if ((words[i] >> shift & 0x7c00) == 0x7c00)
                words[i] ^= 0x400u << shift;
        }
    }
}

static bool is_nan_element(const char *name, const uint8_t *bytes, size_t at)
{
    if (strstr(name, "f64")) {
        uint64_t v;
        memcpy(&v, bytes + (at & ~(size_t)7), 8);
        return (v & 0x7fffffffffffffffull) > 0x7ff0000000000000ull;
    }
    if (strstr(name, "f16")) {
        uint16_t v;
        memcpy(&v, bytes + (at & ~(size_t)1), 2);
        if ((v & 0x7fff) > 0x7c00)
            return true;
    }
    if (strstr(name, "f32") || strstr(name, "f16") || strstr(name, "vectors") || strstr(name, "matrix")) {
        uint32_t v;
        memcpy(&v, bytes + (at & ~(size_t)3), 4);
        return (v & 0x7fffffff) > 0x7f800000;
    }
    return false;
}

/* Equal bytes, except that any NaN is as good as another. */
static bool same(const char *name, const char *variant, const uint8_t *observed, const uint8_t *expected)
{
    for (size_t at = 0; at < BUFFER_BYTES; at++) {
        if (observed[at] == expected[at] ||
            (is_nan_element(name, observed, at) && is_nan_element(name, expected, at)))
            continue;
        size_t word = at / 8 * 8;
        uint64_t o, e;
        memcpy(&o, observed + word, 8);
        memcpy(&e, expected + word, 8);
        printf("\n    %s %s: first difference at byte %zu: expected %016llx, observed %016llx", name, variant,
               at, (unsigned long long)e, (unsigned long long)o);
        return false;
    }
    return true;
}

struct host_library {
    void *handle;
    int *local, *group;
};

static bool run_on_host(const struct host_library *host, const char *symbol, const uint8_t *a,
                        const uint8_t *b, uint8_t *c)
{
    void (*kernel)(const void *, const void *, void *);
    *(void **)&kernel = dlsym(host->handle, symbol);
    for (int i = 0; kernel && i < ITEMS; i++) {
        *host->group = i / GROUP_ITEMS;
        *host->local = i % GROUP_ITEMS;
        kernel(a, b, c);
    }
    return kernel != NULL;
}

static bool run_on_emulator(struct exec_machine *machine, const char *directory, const char *symbol,
                            const char *variant)
{
    uint64_t arguments[3] = {EXEC_BASE + A_AT, EXEC_BASE + B_AT, EXEC_BASE + C_AT};
    if (exec_load(machine, directory, "all", variant, symbol))
        return false;
    memcpy(machine->memory + EXEC_ARGS, arguments, sizeof arguments);
    memset(machine->memory + C_AT, 0, BUFFER_BYTES);
    exec_set_size(machine, ITEMS / GROUP_ITEMS, GROUP_ITEMS);
    if (exec_run(machine) == BW_ISA_DONE)
        return true;
    printf("\n    %s %s: status %d at 0x%llx (va 0x%llx): %s", symbol, variant, machine->result.status,
           (unsigned long long)(machine->result.pc - EXEC_BASE), (unsigned long long)machine->result.va,
           machine->result.text);
    return false;
}

static const struct {
    const char *variant, *options;
} variants[] = {{"O3", "-O3"}, {"O0", "-O0"}, {"w64", "-O3 -mwavefrontsize64"}};

static void run_kernel(struct exec_machine *machine, const struct host_library *host, const char *directory,
                       const struct kernel *kernel)
{
    static uint8_t expected[BUFFER_BYTES];
    char symbol[80];
    uint8_t *a = machine->memory + A_AT, *b = machine->memory + B_AT;
    snprintf(symbol, sizeof symbol, "k_%s", kernel->name);
    fill((uint32_t *)(void *)a, BUFFER_BYTES / 4, 1, kernel->name);
    fill((uint32_t *)(void *)b, BUFFER_BYTES / 4, 2, kernel->name);
    memset(expected, 0, sizeof expected);
    if (!BW_TRUE(run_on_host(host, symbol, a, b, expected)))
        return;
    for (size_t v = 0; v < sizeof variants / sizeof variants[0]; v++) {
        if (BW_TRUE(run_on_emulator(machine, directory, symbol, variants[v].variant)))
            BW_TRUE(same(kernel->name, variants[v].variant, machine->memory + C_AT, expected));
    }
}

static const char *only; /* a kernel's name from the command line */

static bool is_wanted(const struct kernel *kernel)
{
    return !only || strcmp(only, kernel->name) == 0;
}

/* All kernels in one file, each under its own name. */
static bool compile_all(const char *directory)
{
    FILE *file = exec_open_source(directory, "all");
    if (!file)
        return false;
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++) {
        const char *at = strstr(kernels[i].source, "KERNEL k(");
        if (is_wanted(&kernels[i]) && at)
            fprintf(file, "%.*sKERNEL k_%s(%s\n", (int)(at - kernels[i].source), kernels[i].source,
                    kernels[i].name, at + 9);
    }
    fclose(file);
    bool ok = exec_compile_host(directory, "all") == 0;
    for (size_t v = 0; v < sizeof variants / sizeof variants[0]; v++)
        ok = exec_compile_gpu(directory, "all", variants[v].variant, variants[v].options) == 0 && ok;
    return ok;
}

static void run_all(struct exec_machine *machine, const char *directory)
{
    char path[512];
    snprintf(path, sizeof path, "%s/all.so", directory);
    struct host_library host = {.handle = dlopen(path, RTLD_NOW | RTLD_LOCAL)};
    if (!BW_TRUE(host.handle != NULL))
        return;
    host.local = dlsym(host.handle, "bw_host_local");
    host.group = dlsym(host.handle, "bw_host_group");
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0] && BW_TRUE(host.local && host.group); i++) {
        if (is_wanted(&kernels[i]))
            run_kernel(machine, &host, directory, &kernels[i]);
    }
    dlclose(host.handle);
}

/* With the handlers of every instruction set that this host has. */
static void run_levels(const char *directory)
{
    for (int level = (int)bw_isa_host_level(); level >= BW_ISA_LEVEL_BASE; level--) {
        struct exec_machine machine;
        printf("\n    level %d", level);
        if (!BW_EQ(exec_machine_init(&machine, 1), 0))
            return;
        bw_isa_pool_destroy(machine.pool);
        if (BW_EQ(bw_isa_pool_create_level(2, (enum bw_isa_level)level, &machine.pool), 0))
            run_all(&machine, directory);
        exec_machine_free(&machine);
    }
}

static void test_kernels(void)
{
    char directory[] = BW_BUILD_DIR "/exec-opencl-XXXXXX", command[600];
    if (!BW_TRUE(mkdtemp(directory) != NULL))
        return;
    if (BW_TRUE(compile_all(directory)))
        run_levels(directory);
    snprintf(command, sizeof command, "rm -rf '%s'", directory);
    if (!getenv("BW_KEEP"))
        BW_EQ(system(command), 0);
}

int main(int argc, char **argv)
{
    static const struct bw_test tests[] = {{"kernels agree with the host", test_kernels}};
    if (!exec_have_compiler()) {
        printf("skipped: no clang-19 with lld\n");
        return BW_TEST_SKIPPED;
    }
    only = argc > 1 ? argv[1] : NULL;
    return bw_test_run("isa exec opencl", tests, 1);
}
