/* Kernels that `bellwire bench emulator` runs: the shapes of work that real models and libraries give a GPU. clang builtins
 * only; kernels/build.sh makes emulator_gfx1100.inc of it. Group sizes are fixed, grids are one-dimensional. */
#define G __global
#define L __local
typedef unsigned int uint;

static inline int item(void)
{
    return __builtin_amdgcn_workitem_id_x();
}

static inline int group(void)
{
    return __builtin_amdgcn_workgroup_id_x();
}

static inline void barrier(void)
{
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

static inline float exp_fast(float x)
{
    return __builtin_amdgcn_exp2f(x * 1.44269504f);
}

#define SIZE(n) __attribute__((reqd_work_group_size(n, 1, 1))) __kernel void

/* One work-item per output, groups of 16 x 16: the plain loop. */
__attribute__((reqd_work_group_size(16, 16, 1))) __kernel void matmul_f32(G const float *restrict a, G const float *restrict b,
                                                                          G float *restrict c, int n)
{
    int x = group() * 16 + item();
    int y = __builtin_amdgcn_workgroup_id_y() * 16 + __builtin_amdgcn_workitem_id_y();
    float sum = 0;
    for (int k = 0; k < n; k++)
        sum = __builtin_fmaf(a[y * n + k], b[k * n + x], sum);
    c[y * n + x] = sum;
}

/* y = silu(a * x + b), four elements each. */
SIZE(256) elementwise(G const float *restrict a, G const float *restrict b, G float *restrict c, int n)
{
    int i = (group() * 256 + item()) * 4;
    for (int k = 0; k < 4; k++) {
        float x = __builtin_fmaf(a[i + k], 1.5f, b[i + k]);
        c[i + k] = x * __builtin_amdgcn_rcpf(1.0f + exp_fast(-x));
    }
}

/* One group per row of n columns. */
SIZE(256) softmax(G const float *restrict a, G const float *restrict unused, G float *restrict c, int n)
{
    L float part[256];
    G const float *row = a + group() * n;
    float top = -1e30f, sum = 0;
    for (int i = item(); i < n; i += 256)
        top = __builtin_fmaxf(top, row[i]);
    part[item()] = top;
    barrier();
    for (int step = 128; step > 0; step >>= 1) {
        if (item() < step)
            part[item()] = __builtin_fmaxf(part[item()], part[item() + step]);
        barrier();
    }
    top = part[0];
    barrier();
    for (int i = item(); i < n; i += 256)
        sum += exp_fast(row[i] - top);
    part[item()] = sum;
    barrier();
    for (int step = 128; step > 0; step >>= 1) {
        if (item() < step)
            part[item()] += part[item() + step];
        barrier();
    }
    float scale = 1.0f / part[0];
    for (int i = item(); i < n; i += 256)
        c[group() * n + i] = exp_fast(row[i] - top) * scale;
}

/* Inclusive sums inside each block of 256. */
SIZE(256) scan(G const uint *restrict a, G const uint *restrict unused, G uint *restrict c, int n)
{
    L uint part[256];
    int i = group() * 256 + item();
    uint value = a[i];
    part[item()] = value;
    barrier();
    for (int step = 1; step < 256; step <<= 1) {
        uint other = item() >= step ? part[item() - step] : 0;
        barrier();
        value += other;
        part[item()] = value;
        barrier();
    }
    c[i] = value;
}

/* Each block of 256 keys sorted by its low 16 bits, one bit a pass. */
SIZE(256) radix_sort(G const uint *restrict a, G const uint *restrict unused, G uint *restrict c, int n)
{
    L uint keys[256], part[256];
    int i = group() * 256 + item();
    uint key = a[i];
    for (int bit = 0; bit < 16; bit++) {
        uint zero = ~key >> bit & 1, before = zero;
        part[item()] = zero;
        barrier();
        for (int step = 1; step < 256; step <<= 1) {
            uint other = item() >= step ? part[item() - step] : 0;
            barrier();
            before += other;
            part[item()] = before;
            barrier();
        }
        uint zeros = part[255];
        keys[zero ? before - 1 : zeros + item() - before] = key;
        barrier();
        key = keys[item()];
        barrier();
    }
    c[i] = key;
}

static inline uint rotated(uint x, int n)
{
    return __builtin_rotateright32(x, n);
}

/* n compressions of one block of 16 words per work-item; b holds the round constants. */
SIZE(64) sha256(G const uint *restrict a, G const uint *restrict b, G uint *restrict c, int n)
{
    int i = group() * 64 + item();
    uint h[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    for (int block = 0; block < n; block++) {
        uint w[16], s[8];
        for (int k = 0; k < 16; k++)
            w[k] = a[(i * 16 + k + block) & 0xffff];
        for (int k = 0; k < 8; k++)
            s[k] = h[k];
#pragma unroll 16
        for (int r = 0; r < 64; r++) {
            uint word = w[r & 15];
            if (r >= 16) {
                uint w15 = w[(r + 1) & 15], w2 = w[(r + 14) & 15];
                word += w[(r + 9) & 15] + (rotated(w15, 7) ^ rotated(w15, 18) ^ w15 >> 3) +
                        (rotated(w2, 17) ^ rotated(w2, 19) ^ w2 >> 10);
                w[r & 15] = word;
            }
            uint t1 = s[7] + (rotated(s[4], 6) ^ rotated(s[4], 11) ^ rotated(s[4], 25)) +
                      ((s[4] & s[5]) ^ (~s[4] & s[6])) + b[r] + word;
            uint t2 = (rotated(s[0], 2) ^ rotated(s[0], 13) ^ rotated(s[0], 22)) +
                      ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
            s[7] = s[6];
            s[6] = s[5];
            s[5] = s[4];
            s[4] = s[3] + t1;
            s[3] = s[2];
            s[2] = s[1];
            s[1] = s[0];
            s[0] = t1 + t2;
        }
        for (int k = 0; k < 8; k++)
            h[k] += s[k];
    }
    for (int k = 0; k < 8; k++)
        c[i * 8 + k] = h[k];
}

/* 16 channels in and out, n x n image with a border of one: a is 16 x (n + 2) x (n + 2), b the weights. One group per output
 * channel and row. */
SIZE(64) conv3x3(G const float *restrict a, G const float *restrict b, G float *restrict c, int n)
{
    int channel = group() / n, y = group() % n, width = n + 2;
    for (int x = item(); x < n; x += 64) {
        float sum = 0;
        for (int in = 0; in < 16; in++) {
            G const float *image = a + (in * width + y) * width + x, *weights = b + (channel * 16 + in) * 9;
#pragma unroll
            for (int ky = 0; ky < 3; ky++)
#pragma unroll
                for (int kx = 0; kx < 3; kx++)
                    sum = __builtin_fmaf(image[ky * width + kx], weights[ky * 3 + kx], sum);
        }
        c[(channel * n + y) * n + x] = __builtin_fmaxf(sum, 0);
    }
}

/* 64 x 64 of the result per group of 256, 4 x 4 per work-item, panels of 16 staged in LDS. */
SIZE(256) gemm_lds(G const float *restrict a, G const float *restrict b, G float *restrict c, int n)
{
    L float left[16][64], right[16][64];
    int tiles = n / 64, row = group() / tiles * 64, column = group() % tiles * 64;
    int x = item() & 15, y = item() >> 4;
    float sum[4][4] = {{0}};
    for (int k = 0; k < n; k += 16) {
        for (int i = item(); i < 1024; i += 256) {
            left[i & 15][i >> 4] = a[(row + (i >> 4)) * n + k + (i & 15)];
            right[i >> 6][i & 63] = b[(k + (i >> 6)) * n + column + (i & 63)];
        }
        barrier();
#pragma unroll
        for (int j = 0; j < 16; j++)
#pragma unroll
            for (int u = 0; u < 4; u++)
#pragma unroll
                for (int v = 0; v < 4; v++)
                    sum[u][v] = __builtin_fmaf(left[j][y * 4 + u], right[j][x * 4 + v], sum[u][v]);
        barrier();
    }
    for (int u = 0; u < 4; u++)
        for (int v = 0; v < 4; v++)
            c[(row + y * 4 + u) * n + column + x * 4 + v] = sum[u][v];
}

/* One group of 64 per query of 64 dimensions; a: queries, b: n keys and then n values. */
SIZE(64) attention(G const float *restrict a, G const float *restrict b, G float *restrict c, int n)
{
    L float query[64], weight[64];
    int d = item();
    float top = -1e30f, sum = 0, out = 0;
    query[d] = a[group() * 64 + d] * 0.125f;
    barrier();
    for (int start = 0; start < n; start += 64) {
        float score = 0;
        for (int k = 0; k < 64; k++)
            score = __builtin_fmaf(query[k], b[(start + d) * 64 + k], score);
        weight[d] = score;
        barrier();
        float new_top = top;
        for (int k = 0; k < 64; k++)
            new_top = __builtin_fmaxf(new_top, weight[k]);
        float scale = exp_fast(top - new_top);
        out *= scale;
        sum *= scale;
        for (int k = 0; k < 64; k++) {
            float p = exp_fast(weight[k] - new_top);
            sum += p;
            out = __builtin_fmaf(p, b[(n + start + k) * 64 + d], out);
        }
        top = new_top;
        barrier();
    }
    c[group() * 64 + d] = out * (1.0f / sum);
}
