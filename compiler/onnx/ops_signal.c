/* Fourier transforms as matrix products, windows, mel filters. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "compiler/onnx/ops.h"

/* The transform matrix [2 n, 2 bins] that takes (re, im) pairs to (re, im) pairs: n samples, of a period of
 * `length`. The angle's multiple is reduced first, so that long transforms keep their accuracy. */
enum { TABLE_MAX = 1 << 22 }; /* elements of a table made on the host: 2048 samples take as many */

static bw_tensor fourier_matrix(struct bw_onnx_call *c, enum bw_dtype dtype, int64_t n, int64_t length,
                                int64_t bins, bool inverse)
{
    int64_t dims[] = {2 * n, 2 * bins};
    double *m = n < TABLE_MAX && bins < TABLE_MAX && n * bins <= TABLE_MAX
                    ? bw_onnx_alloc(c, (uint64_t)(4 * n * bins), sizeof *m)
                    : NULL;
    if (!m) {
        bw_onnx_fail(c, -E2BIG, "transform of %lld samples", (long long)n);
        return (bw_tensor){0};
    }
    double scale = inverse ? 1 / (double)length : 1;
    for (int64_t t = 0; t < n; t++)
        for (int64_t k = 0; k < bins; k++) {
            double angle = 2 * M_PI * (double)(t * k % length) / (double)length * (inverse ? 1 : -1);
            double re = cos(angle) * scale, im = sin(angle) * scale;
            double *row = m + 2 * t * 2 * bins + 2 * k, *next = row + 2 * bins;
            row[0] = re, row[1] = im, next[0] = -im, next[1] = re;
        }
    return bw_tensor_cast(c->g, dtype, bw_tensor_constant(c->g, BW_F64, 2, dims, m));
}

/* [.., n, 1 or 2]: real signals get a zero imaginary part. */
static bw_tensor as_complex(struct bw_onnx_call *c, bw_tensor x)
{
    uint32_t rank = bw_tensor_rank(c->g, x);
    int64_t low[BW_TENSOR_RANK_MAX] = {0}, high[BW_TENSOR_RANK_MAX] = {0};
    if (!rank) /* what made it has failed */
        return x;
    high[rank - 1] = 2 - bw_tensor_dims(c->g, x)[rank - 1];
    return bw_tensor_pad(c->g, x, low, high, 0);
}

static void axes_swapped(uint32_t rank, uint32_t a, uint32_t b, uint32_t *axes)
{
    for (uint32_t i = 0; i < rank; i++)
        axes[i] = i == a ? b : i == b ? a : i;
}

/* The transform of x [.., n, 2] along the last but one axis: [.., bins, 2]. */
static bw_tensor transform(struct bw_onnx_call *c, bw_tensor x, int64_t length, int64_t bins, bool inverse)
{
    uint32_t rank = bw_tensor_rank(c->g, x);
    if (rank < 2) /* what made it has failed */
        return (bw_tensor){0};
    int64_t flat[BW_TENSOR_RANK_MAX], result[BW_TENSOR_RANK_MAX], n = bw_tensor_dims(c->g, x)[rank - 2];
    memcpy(flat, bw_tensor_dims(c->g, x), rank * sizeof *flat);
    memcpy(result, flat, rank * sizeof *flat);
    result[rank - 2] = bins;
    flat[rank - 2] = 2 * n;
    bw_tensor matrix = fourier_matrix(c, bw_tensor_dtype(c->g, x), n, length, bins, inverse);
    bw_tensor product = bw_tensor_matmul(c->g, bw_tensor_reshape(c->g, x, rank - 1, flat), matrix);
    return bw_tensor_reshape(c->g, product, rank, result);
}

/* The last axis is a number, or its real and imaginary part. */
static bool is_complex(struct bw_onnx_call *c, bw_tensor x)
{
    uint32_t rank = bw_tensor_rank(c->g, x);
    int64_t parts = rank ? bw_tensor_dims(c->g, x)[rank - 1] : 0;
    return parts == 1 || parts == 2;
}

/* The axis is an attribute in opset 17, input 2 since 20. */
static int dft(struct bw_onnx_call *c)
{
    bw_tensor x = bw_onnx_in(c, 0);
    uint32_t rank = bw_tensor_rank(c->g, x), swapped[BW_TENSOR_RANK_MAX];
    bool inverse = bw_onnx_int(c, "inverse", 0), onesided = bw_onnx_int(c, "onesided", 0);
    struct bw_onnx_ints length = bw_onnx_has(c, 1) ? bw_onnx_ints_in(c, 1) : (struct bw_onnx_ints){0};
    struct bw_onnx_ints axis_in = bw_onnx_has(c, 2) ? bw_onnx_ints_in(c, 2) : (struct bw_onnx_ints){0};
    if (c->rc || !is_complex(c, x) || rank < 2 || (length.given && length.count != 1))
        return bw_onnx_fail(c, -EINVAL, "the last axis must have size 1 or 2, the length be one number");
    uint32_t axis = bw_onnx_axis(
        c, axis_in.count ? axis_in.data[0] : bw_onnx_int(c, "axis", c->opset < 20 ? 1 : -2), rank);
    int64_t size = bw_tensor_dims(c->g, x)[axis], n = length.count ? length.data[0] : size;
    if (c->rc || axis == rank - 1 || n < 1)
        return bw_onnx_fail(c, -EINVAL, "axis %u, length %lld", axis, (long long)n);
    int64_t low[BW_TENSOR_RANK_MAX] = {0}, high[BW_TENSOR_RANK_MAX] = {0};
    high[axis] = n - size; /* cut or padded */
    x = as_complex(c, bw_tensor_pad(c->g, x, low, high, 0));
    axes_swapped(rank, axis, rank - 2, swapped);
    bw_tensor y = transform(c, bw_tensor_permute(c->g, x, swapped), n, onesided ? n / 2 + 1 : n, inverse);
    return c->rc ? c->rc : bw_onnx_out(c, 0, bw_tensor_permute(c->g, y, swapped));
}

/* signal [batch, length, 1 or 2], frame_step, window, frame_length: [batch, frames, bins, 2] */
static int stft(struct bw_onnx_call *c)
{
    bw_tensor x = bw_onnx_in(c, 0);
    struct bw_onnx_ints step = bw_onnx_ints_in(c, 1),
                        length = bw_onnx_has(c, 3) ? bw_onnx_ints_in(c, 3) : (struct bw_onnx_ints){0};
    bw_tensor window = bw_onnx_has(c, 2) ? bw_onnx_in(c, 2) : (bw_tensor){0};
    if (c->rc || bw_tensor_rank(c->g, x) < 2 || bw_tensor_rank(c->g, x) > 3 || step.count != 1)
        return bw_onnx_fail(c, -EINVAL, "signal of rank %u", bw_tensor_rank(c->g, x));
    if (bw_tensor_rank(c->g, x) == 2) {
        int64_t dims[] = {bw_tensor_dims(c->g, x)[0], bw_tensor_dims(c->g, x)[1], 1};
        x = bw_tensor_reshape(c->g, x, 3, dims);
    }
    int64_t n = length.count ? length.data[0]
                : window.id  ? bw_tensor_elements(c->g, window)
                             : bw_tensor_dims(c->g, x)[1];
    if (n < 1 || n > bw_tensor_dims(c->g, x)[1] || step.data[0] < 1 || !is_complex(c, x))
        return bw_onnx_fail(c, -EINVAL, "frames of %lld every %lld", (long long)n, (long long)step.data[0]);
    if (window.id && bw_tensor_elements(c->g, window) != n)
        return bw_onnx_fail(c, -EINVAL, "a window of %lld for frames of %lld",
                            (long long)bw_tensor_elements(c->g, window), (long long)n);
    static const uint32_t channels_second[] = {0, 2, 1}, samples_third[] = {0, 2, 3, 1};
    const int64_t one = 1;
    x = bw_tensor_permute(c->g, as_complex(c, x), channels_second); /* [batch, 2, length] */
    x = bw_tensor_windows(c->g, x, 1, &n, &step.data[0], &one);     /* [batch, 2, frames, n] */
    if (window.id) {
        int64_t row[] = {1, 1, 1, bw_tensor_elements(c->g, window)};
        x = bw_tensor_mul(c->g, x, bw_tensor_reshape(c->g, window, 4, row));
    }
    bool onesided = bw_onnx_int(c, "onesided", 1);
    bw_tensor y = transform(c, bw_tensor_permute(c->g, x, samples_third), n, onesided ? n / 2 + 1 : n, false);
    return c->rc ? c->rc : bw_onnx_out(c, 0, y);
}

/* a0 - a1 cos(2 pi i / n) + a2 cos(4 pi i / n); periodic, or symmetric over n - 1. */
struct window_row {
    double a0, a1, a2;
};
static const struct window_row windows[] = {{0.5, 0.5, 0}, {25.0 / 46, 1 - 25.0 / 46, 0}, {0.42, 0.5, 0.08}};
enum { HANN, HAMMING, BLACKMAN };

static int window(struct bw_onnx_call *c)
{
    struct bw_onnx_ints size = bw_onnx_ints_in(c, 0);
    enum bw_dtype dtype = bw_onnx_dtype(c, "output_datatype", bw_onnx_dtype_to(BW_F32));
    bool periodic = bw_onnx_int(c, "periodic", 1);
    if (c->rc || size.count != 1 || size.data[0] < 0 || size.data[0] > TABLE_MAX || dtype == BW_VOID)
        return bw_onnx_fail(c, -EINVAL, "size or type");
    const struct window_row *row = &windows[c->op->variant];
    int64_t n = size.data[0], period = periodic ? n : n - 1;
    uint8_t *data = calloc((size_t)n + 1, bw_dtype_bytes(dtype));
    for (int64_t i = 0; data && i < n; i++) {
        double angle = period > 0 ? 2 * M_PI * (double)i / (double)period : 0;
        bw_onnx_host_store(dtype, data, i, row->a0 - row->a1 * cos(angle) + row->a2 * cos(2 * angle));
    }
    return bw_onnx_out_array(c, 0, dtype, 1, &n, data);
}

static double number_in(struct bw_onnx_call *c, uint32_t input)
{
    uint64_t count;
    const double *values = bw_onnx_doubles_in(c, input, &count);
    if (count != 1)
        bw_onnx_fail(c, -EINVAL, "input %u is not one number", input);
    return count == 1 ? values[0] : 0;
}

/* Triangular filters that are equally wide on the mel scale (2595 log10(1 + f / 700)): [dft_length / 2 + 1,
 * bands] */
static int mel_weight_matrix(struct bw_onnx_call *c)
{
    double bands = number_in(c, 0), length = number_in(c, 1), rate = number_in(c, 2), low = number_in(c, 3),
           high = number_in(c, 4);
    enum bw_dtype dtype = bw_onnx_dtype(c, "output_datatype", bw_onnx_dtype_to(BW_F32));
    if (c->rc ||
        !(bands >= 1 && length >= 1 && length < TABLE_MAX && bands * length < TABLE_MAX && rate > 0) ||
        dtype == BW_VOID)
        return bw_onnx_fail(c, -EINVAL, "%g bands, length %g, rate %g", bands, length, rate);
    if (!(low >= 0 && high >= 0 && isfinite(low) && isfinite(high)))
        return bw_onnx_fail(c, -EINVAL, "edges at %g and %g Hz", low, high);
    int64_t n = (int64_t)bands, bins = (int64_t)length / 2 + 1, dims[] = {bins, n};
    double mel_low = 2595 * log10(1 + low / 700), mel_high = 2595 * log10(1 + high / 700),
           step = (mel_high - mel_low) / (double)(n + 2);
    int64_t *edges = bw_onnx_alloc(c, (uint64_t)n + 2, sizeof *edges);
    uint8_t *data = calloc((size_t)(bins * n) + 1, bw_dtype_bytes(dtype));
    for (int64_t i = 0; edges && i < n + 2; i++) {
        double edge = floor((length + 1) * (700 * (pow(10, ((double)i * step + mel_low) / 2595) - 1)) / rate);
        int64_t at = bw_dtype_int_from(BW_I64, edge);
        edges[i] = at < 0 ? 0 : at > bins ? bins : at;
    }
    for (int64_t band = 0; edges && data && band < n; band++) {
        int64_t a = edges[band], b = edges[band + 1], e = edges[band + 2];
        if (b == a && b < bins)
            bw_onnx_host_store(dtype, data, b * n + band, 1);
        for (int64_t i = a; b > a && i <= b && i < bins; i++)
            bw_onnx_host_store(dtype, data, i * n + band, (double)(i - a) / (double)(b - a));
        for (int64_t i = b; e > b && i < e && i < bins; i++)
            bw_onnx_host_store(dtype, data, i * n + band, (double)(e - i) / (double)(e - b));
    }
    return bw_onnx_out_array(c, 0, dtype, 2, dims, data);
}

static const struct bw_onnx_op rows[] = {
    {"BlackmanWindow", 17, .function = window, .variant = BLACKMAN},
    {"DFT", 17, .function = dft},
    {"HammingWindow", 17, .function = window, .variant = HAMMING},
    {"HannWindow", 17, .function = window, .variant = HANN},
    {"MelWeightMatrix", 17, .function = mel_weight_matrix},
    {"STFT", 17, .function = stft},
};

const struct bw_onnx_ops bw_onnx_ops_signal = {rows, BW_COUNT_OF(rows)};
