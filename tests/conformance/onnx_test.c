/* Goal: the ONNX project's own backend tests (Debian's libonnx-testdata) pass, but for those that
 * expected.txt lists with a reason.
 *
 * Arguments: [-v] [-d DEVICE] [FILTER]: -d runs on a device (host, mockkfd+amd@gfx1100, ..) instead of the
 * tensor evaluator; names of cases to run (substring). BW_ONNX_DATA: another data directory. Skipped (77)
 * where there is none. A case passes when every output has the expected dtype and shape and |a - b| <= 1e-5 +
 * 1e-3 |b|; integers and strings exactly. */
#include <bellwire/model.h>

#include <bellwire/ctx.h>
#include <bellwire/device.h>

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "compiler/io.h"

enum { PATH_BYTES = 1024, OUTPUTS_MAX = 64, CASES_MAX = 4096, SKIPPED = 77 };

static const char *const suites[] = {"node", "simple", "pytorch-converted", "pytorch-operator"};

static struct bw_device *device; /* NULL: the evaluator */

struct counts {
    int run, passed, unexpected;
};

/* ---- comparing ---- */

static bool near(double a, double b)
{
    if (isnan(a) || isnan(b))
        return isnan(a) && isnan(b);
    return a == b || fabs(a - b) <= 1e-5 + 1e-3 * fabs(b);
}

static double float_at(enum bw_dtype dtype, const void *data, int64_t i)
{
    switch (dtype) {
    case BW_F32:
        return (double)((const float *)data)[i];
    case BW_F64:
        return ((const double *)data)[i];
    case BW_F16:
        return (double)bw_f16_to_f32(((const uint16_t *)data)[i]);
    default:
        return (double)bw_bf16_to_f32(((const uint16_t *)data)[i]);
    }
}

static bool arrays_differ(const struct bw_array *a, const struct bw_array *b, char *why, size_t why_bytes)
{
    if (a->dtype != b->dtype)
        return snprintf(why, why_bytes, "dtype %s instead of %s", bw_dtype_name(a->dtype),
                        bw_dtype_name(b->dtype)),
               true;
    if (a->rank != b->rank || memcmp(a->dims, b->dims, a->rank * sizeof a->dims[0]) != 0) {
        int length = snprintf(why, why_bytes, "shape ");
        for (int side = 0; side < 2; side++) {
            const struct bw_array *of = side ? b : a;
            length += snprintf(why + length, why_bytes - (size_t)length, side ? " instead of [" : "[");
            for (uint32_t i = 0; i < of->rank && (size_t)length < why_bytes - 30; i++)
                length += snprintf(why + length, why_bytes - (size_t)length, "%s%lld", i ? "," : "",
                                   (long long)of->dims[i]);
            length += snprintf(why + length, why_bytes - (size_t)length, "]");
        }
        return true;
    }
    for (int64_t i = 0; i < bw_array_elements(a); i++) {
        uint32_t bytes = bw_dtype_bytes(a->dtype);
        const uint8_t *x = (const uint8_t *)a->data + i * bytes, *y = (const uint8_t *)b->data + i * bytes;
        bool is_float = bw_dtype_is_float(a->dtype);
        if (is_float && near(float_at(a->dtype, a->data, i), float_at(b->dtype, b->data, i)))
            continue;
        if (!is_float && !memcmp(x, y, bytes))
            continue;
        if (is_float)
            snprintf(why, why_bytes, "element %lld is %g instead of %g", (long long)i,
                     float_at(a->dtype, a->data, i), float_at(b->dtype, b->data, i));
        else
            snprintf(why, why_bytes, "element %lld is 0x%02x.. instead of 0x%02x..", (long long)i, *x, *y);
        return true;
    }
    return false;
}

static bool strings_differ(const struct bw_array *a, const struct bw_array *b, char *why, size_t why_bytes)
{
    const struct bw_string *x = a->data, *y = b->data;
    if (a->rank != b->rank || memcmp(a->dims, b->dims, a->rank * sizeof a->dims[0]) != 0)
        return snprintf(why, why_bytes, "another shape"), true;
    for (int64_t i = 0; i < bw_array_elements(a); i++)
        if (x[i].size_bytes != y[i].size_bytes || memcmp(x[i].data, y[i].data, x[i].size_bytes) != 0)
            return snprintf(why, why_bytes, "string %lld is '%.*s' instead of '%.*s'", (long long)i,
                            (int)x[i].size_bytes, x[i].data, (int)y[i].size_bytes, y[i].data),
                   true;
    return false;
}

static bool values_differ(const struct bw_value *a, const struct bw_value *b, char *why, size_t why_bytes)
{
    if (a->kind != b->kind)
        return snprintf(why, why_bytes, "kind %d instead of %d", a->kind, b->kind), true;
    if (a->kind == BW_VALUE_ARRAY)
        return arrays_differ(&a->array, &b->array, why, why_bytes);
    if (a->kind == BW_VALUE_STRINGS)
        return strings_differ(&a->array, &b->array, why, why_bytes);
    if (a->item_count != b->item_count)
        return snprintf(why, why_bytes, "%llu items instead of %llu", (unsigned long long)a->item_count,
                        (unsigned long long)b->item_count),
               true;
    for (uint64_t i = 0; i < a->item_count; i++)
        if (values_differ(&a->items[i], &b->items[i], why, why_bytes))
            return true;
    return false;
}

/* ---- one case ---- */

static void path_set(char *path, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void path_set(char *path, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(path, PATH_BYTES, format, arguments);
    va_end(arguments);
    if (length >= PATH_BYTES)
        path[0] = 0; /* no such file: the case fails and says so */
}

static int read_values(const struct bw_model *model, const char *directory, bool inputs,
                       struct bw_value *values, struct bw_err *err)
{
    uint32_t count = inputs ? bw_model_input_count(model) : bw_model_output_count(model);
    for (uint32_t i = 0; i < count; i++) {
        char path[PATH_BYTES];
        struct bw_model_value declared;
        (inputs ? bw_model_input : bw_model_output)(model, i, &declared);
        path_set(path, "%s/%s_%u.pb", directory, inputs ? "input" : "output", i);
        int rc = bw_pb_read(path, declared.kind, &values[i], err);
        if (rc)
            return rc;
        if (declared.dtype == BW_BF16 &&
            values[i].array.dtype == BW_U16) /* NumPy has no bfloat16: the data set holds its bits */
            values[i].array.dtype = BW_BF16;
    }
    return 0;
}

static void free_values(struct bw_value *values)
{
    for (int i = 0; i < OUTPUTS_MAX; i++)
        bw_value_free(&values[i]);
}

/* The data set, twice: the second run must be a replay where that is possible, with the same result. */
static bool run_data_set(struct bw_model *model, const char *directory, char *why, size_t why_bytes)
{
    struct bw_value inputs[OUTPUTS_MAX] = {{0}}, expected[OUTPUTS_MAX] = {{0}};
    struct bw_err err = {0};
    int rc = read_values(model, directory, true, inputs, &err);
    if (!rc)
        rc = read_values(model, directory, false, expected, &err);
    bool fine = !rc;
    for (int round = 0; fine && round < 2; round++) {
        struct bw_value outputs[OUTPUTS_MAX] = {{0}};
        rc = bw_model_run(model, device, inputs, outputs, &err);
        fine = !rc;
        for (uint32_t i = 0; fine && i < bw_model_output_count(model); i++)
            fine = !values_differ(&outputs[i], &expected[i], why, why_bytes);
        free_values(outputs);
    }
    if (rc)
        bw_err_format(&err, why, why_bytes);
    free_values(inputs);
    free_values(expected);
    return fine;
}

static bool run_case(const char *directory, char *why, size_t why_bytes)
{
    char path[PATH_BYTES];
    struct bw_model *model = NULL;
    struct bw_err err = {0};
    path_set(path, "%s/model.onnx", directory);
    if (bw_model_load(path, &model, &err)) {
        bw_err_format(&err, why, why_bytes);
        return false;
    }
    bool fine = bw_model_input_count(model) <= OUTPUTS_MAX && bw_model_output_count(model) <= OUTPUTS_MAX;
    int sets = 0;
    for (; fine; sets++) {
        path_set(path, "%s/test_data_set_%d", directory, sets);
        if (access(path, R_OK))
            break;
        fine = run_data_set(model, path, why, why_bytes);
    }
    bw_model_destroy(model);
    if (fine && !sets)
        snprintf(why, why_bytes, "no data set");
    return fine && sets;
}

/* ---- all cases ---- */

struct expectation {
    char name[128];
    bool seen;
};

static struct expectation *known;
static int known_count, expected_passes;

/* expected.txt: "passes N", then "suite/case: reason" for each known failure. */
static bool expectations_read(void)
{
    char line[512];
    FILE *file = fopen(BW_SOURCE_DIR "/tests/conformance/expected.txt", "r");
    known = calloc(CASES_MAX, sizeof *known);
    if (!file || !known)
        return false;
    while (fgets(line, sizeof line, file) && known_count < CASES_MAX) {
        char *colon = strchr(line, ':');
        if (line[0] == '#' || line[0] == '\n')
            continue;
        if (sscanf(line, "passes %d", &expected_passes) == 1)
            continue;
        if (!colon || colon - line >= (long)sizeof known->name)
            continue;
        memcpy(known[known_count].name, line, (size_t)(colon - line));
        known_count++;
    }
    fclose(file);
    return true;
}

static struct expectation *expectation_find(const char *name)
{
    for (int i = 0; i < known_count; i++)
        if (!strcmp(known[i].name, name))
            return &known[i];
    return NULL;
}

static int has_model(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static void run_suite(const char *root, const char *suite, const char *filter, bool verbose,
                      struct counts *total)
{
    char directory[PATH_BYTES];
    struct dirent **entries = NULL;
    struct counts counts = {0};
    path_set(directory, "%s/%s", root, suite);
    int count = scandir(directory, &entries, has_model, alphasort);
    for (int i = 0; i < count; i++) {
        char path[PATH_BYTES], name[300], why[512] = "";
        path_set(path, "%s/%s", directory, entries[i]->d_name);
        snprintf(name, sizeof name, "%s/%s", suite, entries[i]->d_name);
        free(entries[i]);
        if (filter && !strstr(name, filter))
            continue;
        struct expectation *expectation = expectation_find(name);
        bool passed = run_case(path, why, sizeof why);
        counts.run++;
        counts.passed += passed;
        if (expectation)
            expectation->seen = true;
        if (passed == (expectation != NULL)) {
            counts.unexpected++;
            printf("  UNEXPECTED %s %s%s\n", passed ? "pass" : "failure", name, passed ? "" : ": ");
        }
        if (!passed && (verbose || !expectation))
            printf("  %s: %s\n", name, why);
    }
    free(entries);
    printf("%-18s %4d of %4d pass\n", suite, counts.passed, counts.run);
    total->run += counts.run;
    total->passed += counts.passed;
    total->unexpected += counts.unexpected;
}

static bool device_open(const char *name, struct bw_ctx **ctx)
{
    struct bw_ctx_config config;
    struct bw_err err = {0};
    char line[512];
    int rc = bw_ctx_config_from_environment(&config, &err);
    if (!rc)
        rc = bw_ctx_create(&config, ctx, &err);
    if (!rc)
        rc = bw_device_open(*ctx, name, &device, &err);
    bw_err_format(&err, line, sizeof line);
    if (rc)
        printf("%s\n", line);
    return !rc;
}

int main(int argc, char **argv)
{
    const char *root = getenv("BW_ONNX_DATA"), *filter = NULL;
    bool verbose = false;
    struct counts total = {0};
    setvbuf(stdout, NULL, _IOLBF, 0);
    const char *device_name = NULL;
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], "-v"))
            verbose = true;
        else if (!strcmp(argv[i], "-d") && i + 1 < argc)
            device_name = argv[++i];
        else
            filter = argv[i];
    root = root ? root : "/usr/share/libonnx-testdata/data";
    if (access(root, R_OK)) {
        printf("skipped: no %s (package libonnx-testdata)\n", root);
        return SKIPPED;
    }
    if (!expectations_read()) {
        printf("tests/conformance/expected.txt cannot be read\n");
        return 1;
    }
    struct bw_ctx *ctx = NULL;
    if (device_name && !device_open(device_name, &ctx))
        return 1;
    for (size_t i = 0; i < sizeof suites / sizeof suites[0]; i++)
        run_suite(root, suites[i], filter, verbose, &total);
    printf("%-18s %4d of %4d pass, %d known failures, %d unexpected\n", "total", total.passed, total.run,
           known_count, total.unexpected);
    bool fewer = !filter && total.passed < expected_passes;
    if (fewer)
        printf("expected at least %d passes\n", expected_passes);
    for (int i = 0; !filter && i < known_count; i++)
        if (!known[i].seen) {
            printf("known failure %s was not among the cases\n", known[i].name);
            total.unexpected++;
        }
    free(known);
    if (device)
        bw_device_close(device);
    bw_ctx_destroy(ctx);
    return total.unexpected || fewer ? 1 : 0;
}
