/* Goal: tensors of safetensors and .npy files are what the file says, are read only when they are used, and
 * headers that lie are refused by name. */
#include <bellwire/weights.h>

#include <unistd.h>

#include "compiler/io_npy.h"
#include "compiler/weights.h"
#include "drivers/disk/disk.h"
#include "tests/check.h"

struct fixture {
    struct bw_ctx *ctx;
    struct bw_device *disk;
    struct bw_weights *weights;
    struct bw_err err;
    char path[300];
};

static void path_make(struct fixture *f)
{
    const char *directory = getenv("TMPDIR");
    snprintf(f->path, sizeof f->path, "%s/bw_weights_test_XXXXXX",
             directory && *directory ? directory : "/tmp");
    close(mkstemp(f->path));
}

static void disk_open(struct fixture *f)
{
    char name[320];
    snprintf(name, sizeof name, "disk:%s", f->path);
    BW_OK(bw_ctx_create(NULL, &f->ctx, &f->err), &f->err);
    BW_OK(bw_device_open(f->ctx, name, &f->disk, &f->err), &f->err);
}

/* A safetensors file of that header and so many bytes behind it: 0, 1, 2, ... */
static void safetensors_write(struct fixture *f, const char *json, uint64_t data_bytes)
{
    uint64_t json_bytes = strlen(json);
    *f = (struct fixture){0};
    path_make(f);
    FILE *file = fopen(f->path, "wb");
    fwrite(&json_bytes, 8, 1, file);
    fwrite(json, 1, json_bytes, file);
    for (uint64_t i = 0; i < data_bytes; i++)
        fputc((int)(i & 255), file);
    fclose(file);
}

static void fixture_close(struct fixture *f)
{
    bw_weights_close(f->weights);
    bw_device_close(f->disk);
    bw_ctx_destroy(f->ctx);
    unlink(f->path);
}

static uint64_t read_bytes(const struct fixture *f)
{
    struct bw_disk_manner manner = bw_disk_manner(((struct bw_disk_device *)f->disk)->disk);
    return manner.direct_bytes + manner.cached_bytes;
}

#define TWO                                                                           \
    "{\"__metadata__\":{\"format\":\"pt\"},"                                          \
    "\"b\":{\"dtype\":\"F32\",\"shape\":[40000],\"data_offsets\":[12,160012]},"       \
    "\"a\":{\"dtype\":\"I32\",\"shape\":[3],\"data_offsets\":[0,12]},"                \
    "\"bits\":{\"dtype\":\"BOOL\",\"shape\":[2,2],\"data_offsets\":[160012,160016]}," \
    "\"none\":{\"dtype\":\"F16\",\"shape\":[0,7],\"data_offsets\":[160012,160012]},"  \
    "\"fp8\":{\"dtype\":\"F8_E4M3\",\"shape\":[8],\"data_offsets\":[160016,160024]}," \
    "\"fp4\":{\"dtype\":\"F4\",\"shape\":[8],\"data_offsets\":[160024,160028]}}   "
enum { TWO_DATA_BYTES = 160028 };

static uint8_t byte_at(uint64_t offset)
{
    return (uint8_t)offset;
}

static void what_the_header_says(void)
{
    static const char *const names[] = {"a", "b", "none", "bits", "fp8", "fp4"};
    struct fixture f;
    safetensors_write(&f, TWO, TWO_DATA_BYTES);
    disk_open(&f);
    if (BW_OK(bw_weights_open(f.disk, &f.weights, &f.err), &f.err)) {
        uint32_t index = 99;
        BW_EQ(bw_weights_count(f.weights), 6);
        for (uint32_t i = 0; i < 6; i++) {
            BW_STR(bw_weights_at(f.weights, i)->name, names[i]);
            BW_OK(bw_weights_find(f.weights, names[i], &index, &f.err), &f.err);
            BW_EQ(index, i);
        }
        BW_TRUE(bw_weights_at(f.weights, 6) == NULL);
        BW_EQ(bw_weights_find(f.weights, "c", &index, &f.err), -ENOENT);
        BW_TRUE(strstr(f.err.what, "no tensor 'c'") != NULL);
        const struct bw_weight *b = bw_weights_at(f.weights, 1);
        BW_EQ(b->dtype, BW_F32);
        BW_EQ(b->rank, 1);
        BW_EQ(b->dims[0], 40000);
        BW_EQ(b->size_bytes, 160000);
        BW_EQ(b->offset, 8 + strlen(TWO) + 12);
        BW_EQ(bw_weights_at(f.weights, 4)->dtype, BW_F8E4M3FN);
        BW_EQ(bw_weights_at(f.weights, 5)->dtype, BW_VOID);
        BW_EQ(read_bytes(&f), 8 + strlen(TWO)); /* nothing but the header */
    }
    fixture_close(&f);
}

/* b + b and the tensor itself, by a plan on a device and by the evaluator. */
static void tensors_compute(const char *device_name)
{
    enum { COUNT = 40000 };
    struct fixture f;
    safetensors_write(&f, TWO, TWO_DATA_BYTES);
    disk_open(&f);
    struct bw_device *device = NULL;
    struct bw_tensor_graph *g = NULL;
    struct bw_plan *plan = NULL;
    float *b = malloc(COUNT * 4), *sum = malloc(COUNT * 4), *same = malloc(COUNT * 4);
    uint8_t bits[4];
    for (uint64_t i = 0; i < COUNT * 4; i++)
        ((uint8_t *)b)[i] = byte_at(12 + i);
    BW_OK(bw_weights_open(f.disk, &f.weights, &f.err), &f.err);
    BW_OK(bw_device_open(f.ctx, device_name, &device, &f.err), &f.err);
    BW_OK(bw_tensor_graph_create(&g, &f.err), &f.err);
    bw_tensor x = bw_weights_tensor(f.weights, g, 1),
              outputs[] = {bw_tensor_abs(g, x), x, bw_weights_tensor(f.weights, g, 3)};
    uint64_t before = read_bytes(&f);
    BW_OK(bw_plan_create(g, device, outputs, 3, NULL, &plan, &f.err), &f.err);
    BW_TRUE(read_bytes(&f) >= before + 160000);
    BW_TRUE(read_bytes(&f) < before + 2 * 160000); /* once, and no other tensor */
    void *evaluated = NULL, *targets[] = {sum, same, bits};
    BW_OK(bw_tensor_evaluate(g, x, &evaluated, &f.err), &f.err);
    BW_BYTES(evaluated, b, COUNT * 4);
    free(evaluated);
    bw_tensor_graph_destroy(g); /* the plan goes on */
    bw_weights_close(f.weights);
    f.weights = NULL;
    if (plan && BW_OK(bw_plan_run(plan, NULL, targets, &f.err), &f.err)) {
        for (uint32_t i = 0; i < COUNT; i++) {
            uint32_t wanted, got;
            memcpy(&wanted, &b[i], 4);
            memcpy(&got, &sum[i], 4);
            wanted &= 0x7fffffff;
            bool nan = wanted > 0x7f800000;
            if (nan ? got <= 0x7f800000 : got != wanted) {
                BW_EQ(got, wanted);
                break;
            }
        }
        BW_BYTES(same, b, COUNT * 4);
        for (uint64_t i = 0; i < 4; i++)
            BW_EQ(bits[i], byte_at(160012 + i) != 0);
    }
    bw_plan_destroy(plan);
    bw_device_close(device);
    free(b);
    free(sum);
    free(same);
    fixture_close(&f);
}

static void tensors_compute_on_the_host(void)
{
    tensors_compute("host:0");
}

static void tensors_compute_on_a_gpu(void)
{
    tensors_compute("mockkfd+amd@gfx1100,cu=2,vram=64M");
}

/* Every value of every float of 8 bits, whose bytes are 0 to 255 in the file. */
static void small_floats_are_numbers(void)
{
    static const struct {
        const char *name;
        enum bw_dtype dtype;
        uint8_t one, nan; /* bytes of 1.0 and of a NaN */
    } rows[] = {{"F8_E4M3", BW_F8E4M3FN, 0x38, 0x7f},
                {"F8_E5M2", BW_F8E5M2, 0x3c, 0x7f},
                {"F8_E8M0", BW_F8E8M0, 0x7f, 0xff},
                {"F8_E4M3FNUZ", BW_F8E4M3FNUZ, 0x40, 0x80},
                {"F8_E5M2FNUZ", BW_F8E5M2FNUZ, 0x40, 0x80}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fixture f;
        char header[128];
        struct bw_device *device = NULL;
        struct bw_tensor_graph *g = NULL;
        struct bw_plan *plan = NULL;
        float on_device[256] = {0}, *evaluated = NULL;
        void *targets[] = {on_device};
        snprintf(header, sizeof header,
                 "{\"x\":{\"dtype\":\"%s\",\"shape\":[2,128],\"data_offsets\":[0,256]}}", rows[i].name);
        safetensors_write(&f, header, 256);
        disk_open(&f);
        BW_OK(bw_weights_open(f.disk, &f.weights, &f.err), &f.err);
        BW_EQ(bw_weights_at(f.weights, 0)->dtype, rows[i].dtype);
        BW_OK(bw_device_open(f.ctx, "mockkfd+amd@gfx1100,cu=2,vram=64M", &device, &f.err), &f.err);
        BW_OK(bw_tensor_graph_create(&g, &f.err), &f.err);
        bw_tensor x = bw_weights_tensor(f.weights, g, 0);
        BW_EQ(bw_tensor_dtype(g, x), BW_F32);
        BW_EQ(bw_tensor_rank(g, x), 2);
        uint64_t before = read_bytes(&f);
        BW_OK(bw_plan_create(g, device, &x, 1, NULL, &plan, &f.err), &f.err);
        BW_TRUE(read_bytes(&f) - before <= 4096); /* bytes, or a page of them, and no f32 */
        BW_OK(bw_plan_run(plan, NULL, targets, &f.err), &f.err);
        if (BW_OK(bw_tensor_evaluate(g, x, (void **)&evaluated, &f.err), &f.err)) {
            BW_TRUE(evaluated[rows[i].one] == 1.0f && evaluated[rows[i].nan] != evaluated[rows[i].nan]);
            for (int k = 0; k < 256; k++) {
                float wanted = (float)bw_dtype_storage_value(rows[i].dtype, (uint8_t)k);
                bool same = wanted != wanted ? evaluated[k] != evaluated[k] && on_device[k] != on_device[k]
                                             : evaluated[k] == wanted && on_device[k] == wanted;
                if (!BW_TRUE(same))
                    printf("      %s 0x%02x: %g, %g, %g\n", rows[i].name, (unsigned)k, (double)wanted,
                           (double)evaluated[k], (double)on_device[k]);
            }
        }
        free(evaluated);
        bw_plan_destroy(plan);
        bw_tensor_graph_destroy(g);
        bw_device_close(device);
        fixture_close(&f);
    }
}

static void arrays_of_numpy_in_either_order(void)
{
    /* [[0 1 2] [3 4 5]], as NumPy writes it in either order. */
    static const int16_t rows[] = {0, 1, 2, 3, 4, 5}, columns[] = {0, 3, 1, 4, 2, 5};
    for (int fortran = 0; fortran < 2; fortran++) {
        struct fixture f = {0};
        char header[128];
        int length =
            snprintf(header, sizeof header, "{'descr': '<i2', 'fortran_order': %s, 'shape': (2, 3), }\n",
                     fortran ? "True" : "False");
        path_make(&f);
        FILE *file = fopen(f.path, "wb");
        fwrite("\x93NUMPY\x01", 1, 8, file);
        fputc(length, file);
        fputc(0, file);
        fwrite(header, 1, (size_t)length, file);
        fwrite(fortran ? columns : rows, 1, sizeof rows, file);
        fclose(file);
        disk_open(&f);
        struct bw_tensor_graph *g = NULL;
        void *data = NULL;
        BW_OK(bw_tensor_graph_create(&g, &f.err), &f.err);
        if (BW_OK(bw_weights_open(f.disk, &f.weights, &f.err), &f.err)) {
            BW_EQ(bw_weights_count(f.weights), 1);
            BW_STR(bw_weights_at(f.weights, 0)->name, "");
            bw_tensor x = bw_weights_tensor(f.weights, g, 0);
            BW_EQ(bw_tensor_rank(g, x), 2);
            BW_EQ(bw_tensor_dims(g, x)[1], 3);
            BW_OK(bw_tensor_evaluate(g, x, &data, &f.err), &f.err);
            BW_BYTES(data, rows, sizeof rows);
            free(data);
        }
        bw_tensor_graph_destroy(g);
        fixture_close(&f);
    }
}

static void what_cannot_be_used_is_refused_in_the_graph(void)
{
    struct fixture f;
    int64_t dims[] = {40001};
    safetensors_write(&f, TWO, TWO_DATA_BYTES);
    disk_open(&f);
    BW_OK(bw_weights_open(f.disk, &f.weights, &f.err), &f.err);
    static const int codes[] = {-ENOTSUP, -EINVAL, -ERANGE};
    for (int i = 0; i < 3; i++) {
        struct bw_tensor_graph *g = NULL;
        struct bw_buffer *range = NULL;
        BW_OK(bw_tensor_graph_create(&g, &f.err), &f.err);
        BW_OK(bw_buffer_file(f.disk, 0, 160000, &range, &f.err), &f.err);
        bw_tensor x =
            i < 2 ? bw_weights_tensor(f.weights, g, i ? 6 : 5) : bw_tensor_file(g, BW_F32, 1, dims, range);
        BW_EQ(x.id, 0);
        BW_EQ(bw_tensor_graph_error(g, &f.err), codes[i]);
        bw_buffer_destroy(range);
        bw_tensor_graph_destroy(g);
    }
    /* A file that is cut between header and use. */
    struct bw_tensor_graph *g = NULL;
    void *data = NULL;
    BW_OK(bw_tensor_graph_create(&g, &f.err), &f.err);
    bw_tensor x = bw_weights_tensor(f.weights, g, 1);
    BW_EQ(truncate(f.path, 1000), 0);
    BW_EQ(bw_tensor_evaluate(g, x, &data, &f.err), -ENODATA);
    bw_tensor_graph_destroy(g);
    fixture_close(&f);
}

#define ONE(dtype, shape, offsets) \
    "{\"x\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}}"

static void headers_that_lie_are_refused_by_name(void)
{
    static const struct {
        const char *json;
        uint64_t data_bytes;
        int code;
        const char *part;
    } rows[] = {
        {"{}", 0, 0, ""},
        {"{}", 1, -EBADMSG, "bytes behind the last tensor"},
        {"{\"x\":{\"dtype\":\"C64\",\"shape\":[2],\"data_offsets\":[0,16]}}", 16, 0, ""},
        {"{\"x\":{\"dtype\":\"F8_E8M0\",\"shape\":[3],\"data_offsets\":[0,3]}}", 3, 0, ""},
        {"{\"x\":{\"dtype\":\"F6_E2M3\",\"shape\":[4],\"data_offsets\":[0,3]}}", 3, 0, ""},
        {"{\"x\":{\"dtype\":\"F6_E3M2\",\"shape\":[2,2],\"data_offsets\":[0,3]}}", 3, 0, ""},
        {"{\"x\":{\"dtype\":\"F4\",\"shape\":[6],\"data_offsets\":[0,3]}}", 3, 0, ""},
        {"{\"x\":{\"dtype\":\"F4\",\"shape\":[5],\"data_offsets\":[0,3]}}", 3, -EBADMSG,
         "do not fit the shape"},
        {"{\"x\":{\"dtype\":\"XYZ\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1, -EBADMSG,
         "none that is known"},
        {ONE("F32", "[2]", "[0,8]"), 8, 0, ""},
        {ONE("F32", "[]", "[0,4]") "  ", 4, 0, ""},
        {ONE("F32", "[2]", "[0,8]") "x", 8, -EBADMSG, "no JSON object"},
        {ONE("F32", "[2]", "[0,8]") "{}", 8, -EBADMSG, "no JSON object"},
        {" {}", 0, -EBADMSG, "no JSON object"},
        {"[]", 0, -EBADMSG, "no JSON object"},
        {"{\"x\"", 0, -EBADMSG, "no JSON object"},
        {"{\"a\\u0000b\":1}", 0, -EBADMSG, "no JSON object"},
        {"{\"x\":3}", 0, -EBADMSG, "tensor 'x': no object"},
        {"{\"x\":{}}", 0, -EBADMSG, "tensor 'x': expected dtype, shape and data_offsets"},
        {"{\"x\":{\"dtype\":\"F32\",\"shape\":[1],\"shape\":[1]}}", 4, -EBADMSG, "data_offsets is missing"},
        {"{\"x\":{\"dtype\":3,\"shape\":[1],\"data_offsets\":[0,4]}}", 4, -EBADMSG, "dtype is missing"},
        {ONE("F33", "[2]", "[0,8]"), 8, -EBADMSG, "tensor 'x': dtype"},
        {ONE("F32", "[2]", "[0,4]"), 4, -EBADMSG, "do not fit the shape"},
        {ONE("F32", "[2]", "[0,8]"), 7, -EBADMSG, "outside the file"},
        {ONE("F32", "[2]", "[8,0]"), 8, -EBADMSG, "outside the file"},
        {ONE("F32", "[2]", "[4,12]"), 12, -EBADMSG, "a gap"},
        {ONE("F32", "[2]", "[0,8]"), 9, -EBADMSG, "bytes behind"},
        {ONE("F32", "[2]", "[0]"), 8, -EBADMSG, "no pair"},
        {ONE("F32", "[2]", "[0,8,8]"), 8, -EBADMSG, "no pair"},
        {ONE("F32", "[2]", "[0,8.5]"), 9, -EBADMSG, "no pair"},
        {ONE("F32", "[2]", "[-1,8]"), 9, -EBADMSG, "no pair"},
        {ONE("F32", "[2]", "[0,1e300]"), 9, -EBADMSG, "no pair"},
        {ONE("F32", "[-2]", "[0,8]"), 8, -EBADMSG, "no whole number"},
        {ONE("F32", "[\"2\"]", "[0,8]"), 8, -EBADMSG, "no whole number"},
        {ONE("F32", "2", "[0,8]"), 8, -EBADMSG, "shape is missing"},
        {ONE("F32", "[4294967296,4294967296]", "[0,0]"), 0, -EBADMSG, "too large"},
        {ONE("F32", "[4294967296,4294967296,0]", "[0,0]"), 0, -EBADMSG, "too large"},
        {ONE("F64", "[2305843009213693952]", "[0,0]"), 0, -EBADMSG, "no whole number"},
        {ONE("U8", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", "[0,1]"), 1, -E2BIG, "rank above 16"},
        {"{\"__metadata__\":{\"a\":1}}", 0, -EBADMSG, "map of strings"},
        {"{\"__metadata__\":[]}", 0, -EBADMSG, "map of strings"},
        {"{\"__metadata__\":{},\"__metadata__\":{}}", 0, -EBADMSG, "twice"},
        {"{\"x\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
         "\"y\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[1,3]}}",
         3, -EBADMSG, "tensor 'y': bytes that another tensor has"},
        {"{\"x\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
         "\"x\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[2,4]}}",
         4, -EBADMSG, "tensor 'x' twice"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fixture f;
        safetensors_write(&f, rows[i].json, rows[i].data_bytes);
        disk_open(&f);
        int rc = bw_weights_open(f.disk, &f.weights, &f.err);
        if (!BW_EQ(rc, rows[i].code) || (rc && !BW_TRUE(strstr(f.err.what, rows[i].part) != NULL)))
            printf("      %s: %s\n", rows[i].json, rc ? f.err.what : "accepted");
        fixture_close(&f);
    }
}

static void sizes_that_lie_are_refused(void)
{
    static const uint64_t sizes[] = {0, 1, 100000001, 1000, UINT64_MAX, UINT64_MAX - 7};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct fixture f = {0};
        path_make(&f);
        FILE *file = fopen(f.path, "wb");
        fwrite(&sizes[i], 8, 1, file);
        fwrite("{}", 1, 2, file);
        fclose(file);
        disk_open(&f);
        BW_EQ(bw_weights_open(f.disk, &f.weights, &f.err), -EBADMSG);
        BW_TRUE(strstr(f.err.what, "neither a safetensors nor a .npy file") != NULL);
        fixture_close(&f);
    }
    static const char *const shorts[] = {"", "abc"};
    for (size_t i = 0; i < 2; i++) {
        struct fixture f = {0};
        path_make(&f);
        FILE *file = fopen(f.path, "wb");
        fputs(shorts[i], file);
        fclose(file);
        disk_open(&f);
        BW_EQ(bw_weights_open(f.disk, &f.weights, &f.err), -EBADMSG);
        fixture_close(&f);
    }
}

static void arrays_that_are_not_read_lazily(void)
{
    static const struct {
        const char *header;
        int code;
    } rows[] = {
        {"{'descr': '>i2', 'fortran_order': False, 'shape': (2,), }\n", -ENOTSUP},
        {"{'descr': '<U2', 'fortran_order': False, 'shape': (2,), }\n", -ENOTSUP},
        {"{'descr': '<i2', 'fortran_order': False, 'shape': (9,), }\n", -EBADMSG},
        {"{'descr': '<i2', 'fortran_order': Maybe, 'shape': (2,), }\n", -EBADMSG},
        {"{'descr': '>i1', 'fortran_order': False, 'shape': (2,), }\n", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fixture f = {0};
        path_make(&f);
        FILE *file = fopen(f.path, "wb");
        fwrite("\x93NUMPY\x01", 1, 8, file);
        fputc((int)strlen(rows[i].header), file);
        fputc(0, file);
        fputs(rows[i].header, file);
        fwrite("abcdefgh", 1, 8, file);
        fclose(file);
        disk_open(&f);
        BW_EQ(bw_weights_open(f.disk, &f.weights, &f.err), rows[i].code);
        fixture_close(&f);
    }
}

BW_TEST_MAIN("compiler.weights", {"what the header says", what_the_header_says},
             {"tensors compute on the host", tensors_compute_on_the_host},
             {"tensors compute on a GPU", tensors_compute_on_a_gpu},
             {"small floats are numbers", small_floats_are_numbers},
             {"arrays of NumPy in either order", arrays_of_numpy_in_either_order},
             {"what cannot be used is refused in the graph", what_cannot_be_used_is_refused_in_the_graph},
             {"headers that lie are refused by name", headers_that_lie_are_refused_by_name},
             {"sizes that lie are refused", sizes_that_lie_are_refused},
             {"arrays that are not read lazily", arrays_that_are_not_read_lazily})
