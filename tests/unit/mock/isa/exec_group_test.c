/* Goal: whole kernels with LDS, barriers and every kind of memory access, those of `bellwire bench emulator`,
 * compute what plain C computes; the bits are the same for any number of threads, and in single-step mode for
 * any seed. */
#include "tests/check.h"

#include <math.h>

#include "base/rng.h"
#include "tests/unit/mock/isa/exec_kernel.h"

static const uint32_t image[] = {
#include "bench/kernels/emulator_gfx1100.inc"
};

enum {
    WORDS = 0x10000,
    ARRAY_BYTES = WORDS * 4,
    A_AT = EXEC_DATA,
    B_AT = A_AT + ARRAY_BYTES,
    C_AT = B_AT + ARRAY_BYTES
};

struct kernel {
    const char *name;
    uint32_t groups, group_y, size_x, size_y;
    int32_t n;
    bool is_float;
    uint32_t results; /* words of c that count */
    void (*reference)(const struct kernel *k, const void *a, const void *b, void *c);
    float tolerance; /* relative; 0: the same bits */
};

static void matmul(const struct kernel *k, const void *left, const void *right, void *result)
{
    const float *a = left, *b = right;
    float *c = result;
    for (int y = 0; y < k->n; y++) {
        for (int x = 0; x < k->n; x++) {
            float sum = 0;
            for (int i = 0; i < k->n; i++)
                sum = fmaf(a[y * k->n + i], b[i * k->n + x], sum);
            c[y * k->n + x] = sum;
        }
    }
}

static void silu(const struct kernel *k, const void *left, const void *right, void *result)
{
    const float *a = left, *b = right;
    float *c = result;
    for (uint32_t i = 0; i < k->results; i++) {
        float x = fmaf(a[i], 1.5f, b[i]);
        c[i] = (float)((double)x / (1 + exp(-(double)x)));
    }
}

static void softmax(const struct kernel *k, const void *left, const void *right, void *result)
{
    const float *a = left;
    float *c = result;
    for (uint32_t row = 0; row < k->groups; row++, a += k->n, c += k->n) {
        double sum = 0, top = -INFINITY;
        for (int i = 0; i < k->n; i++)
            top = fmax(top, (double)a[i]);
        for (int i = 0; i < k->n; i++)
            sum += exp((double)a[i] - top);
        for (int i = 0; i < k->n; i++)
            c[i] = (float)(exp((double)a[i] - top) / sum);
    }
}

static void scan(const struct kernel *k, const void *left, const void *right, void *result)
{
    const uint32_t *a = left;
    uint32_t *c = result, sum = 0;
    for (uint32_t i = 0; i < k->results; i++) {
        sum = i % 256 ? sum + a[i] : a[i];
        c[i] = sum;
    }
}

static void radix_sort(const struct kernel *k, const void *left, const void *right, void *result)
{
    const uint32_t *a = left;
    uint32_t *c = result;
    for (uint32_t block = 0; block < k->groups; block++, a += 256, c += 256) {
        for (unsigned i = 0; i < 256; i++) { /* insertion keeps the order of equal keys */
            unsigned at = i;
            for (; at > 0 && (c[at - 1] & 0xffff) > (a[i] & 0xffff); at--)
                c[at] = c[at - 1];
            c[at] = a[i];
        }
    }
}

static uint32_t ror(uint32_t x, int n)
{
    return x >> n | x << (32 - n);
}

static void sha256(const struct kernel *k, const void *left, const void *right, void *result)
{
    const uint32_t *a = left, *b = right;
    uint32_t *c = result;
    for (uint32_t item = 0; item < k->groups * k->size_x; item++) {
        uint32_t h[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
        for (int block = 0; block < k->n; block++) {
            uint32_t w[64], s[8];
            for (int r = 0; r < 64; r++)
                w[r] = r < 16 ? a[(item * 16 + (uint32_t)r + (uint32_t)block) & 0xffff]
                              : w[r - 16] + w[r - 7] +
                                    (ror(w[r - 15], 7) ^ ror(w[r - 15], 18) ^ w[r - 15] >> 3) +
                                    (ror(w[r - 2], 17) ^ ror(w[r - 2], 19) ^ w[r - 2] >> 10);
            memcpy(s, h, sizeof s);
            for (int r = 0; r < 64; r++) {
                uint32_t t1 = s[7] + (ror(s[4], 6) ^ ror(s[4], 11) ^ ror(s[4], 25)) +
                              ((s[4] & s[5]) ^ (~s[4] & s[6])) + b[r] + w[r];
                uint32_t t2 = (ror(s[0], 2) ^ ror(s[0], 13) ^ ror(s[0], 22)) +
                              ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
                memmove(s + 1, s, 7 * sizeof s[0]);
                s[4] += t1;
                s[0] = t1 + t2;
            }
            for (int i = 0; i < 8; i++)
                h[i] += s[i];
        }
        memcpy(c + item * 8, h, sizeof h);
    }
}

static void conv3x3(const struct kernel *k, const void *left, const void *right, void *result)
{
    const float *a = left, *b = right;
    float *c = result;
    int width = k->n + 2;
    for (int channel = 0; channel < (int)k->groups / k->n; channel++) {
        for (int y = 0; y < k->n; y++) {
            for (int x = 0; x < k->n; x++) {
                float sum = 0;
                for (int tap = 0; tap < 16 * 9; tap++)
                    sum = fmaf(a[(tap / 9 * width + y + tap % 9 / 3) * width + x + tap % 3],
                               b[channel * 144 + tap], sum);
                c[(channel * k->n + y) * k->n + x] = fmaxf(sum, 0);
            }
        }
    }
}

static void attention(const struct kernel *k, const void *left, const void *right, void *result)
{
    const float *queries = left, *keys = right, *values = keys + k->n * 64;
    float *c = result;
    for (uint32_t q = 0; q < k->groups; q++, queries += 64, c += 64) {
        double weight[256], sum = 0, out[64] = {0};
        for (int i = 0; i < k->n; i++) {
            double score = 0;
            for (int d = 0; d < 64; d++)
                score += (double)queries[d] * 0.125 * (double)keys[i * 64 + d];
            weight[i] = exp(score);
            sum += weight[i];
        }
        for (int i = 0; i < k->n; i++)
            for (int d = 0; d < 64; d++)
                out[d] += weight[i] * (double)values[i * 64 + d];
        for (int d = 0; d < 64; d++)
            c[d] = (float)(out[d] / sum);
    }
}

static const struct kernel kernels[] = {
    {"matmul_f32", 4, 4, 16, 16, 64, true, 64 * 64, matmul, 0},
    {"elementwise", 8, 1, 256, 1, 0, true, 8192, silu, 1e-5f},
    {"softmax", 16, 1, 256, 1, 300, true, 16 * 300, softmax, 1e-5f},
    {"scan", 32, 1, 256, 1, 0, false, 8192, scan, 0},
    {"radix_sort", 8, 1, 256, 1, 0, false, 2048, radix_sort, 0},
    {"sha256", 4, 1, 64, 1, 3, false, 2048, sha256, 0},
    {"conv3x3", 8 * 20, 1, 64, 1, 20, true, 8 * 400, conv3x3, 0},
    {"gemm_lds", 4, 1, 256, 1, 128, true, 128 * 128, matmul, 0},
    {"attention", 16, 1, 64, 1, 128, true, 1024, attention, 1e-4f},
};

static void fill(struct exec_machine *machine, const struct kernel *k)
{
    uint64_t arguments[4] = {EXEC_BASE + A_AT, EXEC_BASE + B_AT, EXEC_BASE + C_AT, (uint32_t)k->n};
    struct bw_rng rng = {.state = 11};
    uint32_t *words = (uint32_t *)(void *)(machine->memory + A_AT);
    float *floats = (float *)(void *)words;
    for (uint32_t i = 0; i < 2 * WORDS; i++) {
        if (k->is_float)
            floats[i] = (float)(bw_rng_unit(&rng) * 2 - 1);
        else
            words[i] = (uint32_t)bw_rng_next(&rng);
    }
    memset(machine->memory + C_AT, 0xa5, ARRAY_BYTES);
    memcpy(machine->memory + EXEC_ARGS, arguments, sizeof arguments);
    machine->dispatch.group_count[0] = k->groups;
    machine->dispatch.group_count[1] = k->group_y;
    machine->dispatch.group_size[0] = k->size_x;
    machine->dispatch.group_size[1] = k->size_y;
}

static bool matches(const struct kernel *k, const float *observed, const float *expected)
{
    if (k->tolerance == 0)
        return BW_BYTES(observed, expected, k->results * 4);
    for (uint32_t i = 0; i < k->results; i++) {
        double bound = (double)k->tolerance * fmax(fabs((double)expected[i]), 1e-3);
        if (!(fabs((double)observed[i] - (double)expected[i]) <= bound))
            return BW_NEAR(observed[i], expected[i], bound);
    }
    return true;
}

static bool run(struct exec_machine *machine, const struct kernel *k, float *result)
{
    if (exec_load_image(machine, (const uint8_t *)image, k->name))
        return BW_TRUE(!"the kernel is in the image");
    fill(machine, k);
    if (!BW_EQ(exec_run(machine), BW_ISA_DONE)) {
        printf("      %s: %s\n", k->name, machine->result.text);
        return false;
    }
    memcpy(result, machine->memory + C_AT, k->results * 4);
    /* nothing beyond the results is written */
    return BW_EQ(((uint32_t *)(void *)(machine->memory + C_AT))[k->results], 0xa5a5a5a5u);
}

static void test_kernel(const struct kernel *k)
{
    static float expected[WORDS], first[WORDS], again[WORDS];
    struct exec_machine machine;
    if (!BW_EQ(exec_machine_init(&machine, 1), 0))
        return;
    bool ok = run(&machine, k, first);
    k->reference(k, machine.memory + A_AT, machine.memory + B_AT, expected);
    if (!ok || !matches(k, first, expected))
        printf("      %s\n", k->name);
    for (uint64_t seed = 0; seed < 3 && ok; seed++) {
        machine.dispatch.single_step = true;
        machine.dispatch.seed = seed * 977;
        ok = run(&machine, k, again) && BW_BYTES(again, first, k->results * 4);
    }
    exec_machine_free(&machine);
    for (unsigned threads = 2; threads <= 5 && ok; threads++) {
        if (!BW_EQ(exec_machine_init(&machine, threads), 0))
            return;
        ok = run(&machine, k, again) && BW_BYTES(again, first, k->results * 4);
        exec_machine_free(&machine);
    }
}

static void test_kernels(void)
{
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++)
        test_kernel(&kernels[i]);
}

BW_TEST_MAIN("isa exec group", {"kernels with LDS and barriers", test_kernels})
