/* Reads a line of text from a picture with PaddleOCR's recognition model: on a GPU (or its mock), and beside
 * it on the host.
 *
 *     ocr MODEL.onnx KEYS.txt PICTURE.png [--device DEV]
 *
 * MODEL and KEYS: ch_PP-OCRv4_rec_infer.onnx and ppocr_keys_v1.txt (scripts/fetch-models.sh). Ends with 0
 * when both read the same text. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bellwire/device.h>
#include <bellwire/mock.h>
#include <bellwire/model.h>
#include <bellwire/picture.h>
#include <bellwire/text.h>

enum {
    HEIGHT = 48,     /* of the model's pictures */
    WIDTH_MIN = 320, /* what it was trained with */
    WIDTH_STEP = 32, /* wider pictures are padded to a multiple of this, so that few shapes are compiled */
    WIDTH_MAX = 8192,
    TEXT_BYTES_MAX = 4 * (WIDTH_MAX / 8) + 1,
    LINE_BYTES = 2048, /* of an error or a path */
};

static const double difference_max = 1e-3; /* between two devices: what onnxruntime's own tests allow */

struct line {
    char text[LINE_BYTES];
};

/* Names of files may hold anything; a terminal should not. */
static struct line escaped(const char *text)
{
    struct line line;
    bw_text_escape(text, strlen(text), line.text, sizeof line.text);
    return line;
}

static int fail(const struct bw_err *err)
{
    struct line line;
    bw_err_format(err, line.text, sizeof line.text);
    fprintf(stderr, "ocr: %s\n", line.text);
    return 1;
}

/* ---- the picture: height 48, width in proportion, (v / 255 - 0.5) / 0.5, blue first ---- */

/* One output sample along an axis: bilinear, from the two neighbours; when the picture becomes less than half
 * as large, from all that it covers, so that no stroke falls between two samples. */
static float sample_axis(const float *from, size_t stride, int length, double scale, int at)
{
    double center = (at + 0.5) * scale - 0.5, reach = scale > 2 ? scale : 1, sum = 0, weights = 0;
    for (int i = (int)ceil(center - reach); i <= (int)floor(center + reach); i++) {
        double weight = 1 - fabs(i - center) / reach;
        int inside = i < 0 ? 0 : i >= length ? length - 1 : i;
        sum += weight * (double)from[stride * (size_t)inside];
        weights += weight;
    }
    return (float)(sum / weights);
}

/* malloc'd [3][HEIGHT][width], zeros where the picture ends. */
static float *picture_tensor(const struct bw_picture *picture, int *width_out)
{
    int width = (int)picture->width, height = (int)picture->height;
    double scale = (double)height / HEIGHT;
    int scaled = (int)ceil(width / scale), padded = (scaled + WIDTH_STEP - 1) / WIDTH_STEP * WIDTH_STEP;
    if (padded < WIDTH_MIN)
        padded = WIDTH_MIN;
    *width_out = padded;
    if (scaled < 1 || padded > WIDTH_MAX)
        return NULL;
    float *squeezed = malloc((size_t)HEIGHT * picture->width * 3 * sizeof(float));
    float *tensor = calloc((size_t)3 * HEIGHT * (size_t)padded, sizeof(float));
    for (int y = 0; y < HEIGHT && squeezed && tensor; y++)
        for (int x = 0; x < 3 * width; x++)
            squeezed[(size_t)y * 3 * picture->width + (size_t)x] =
                sample_axis(picture->rgb + x, (size_t)3 * picture->width, height, scale, y);
    for (int channel = 0; channel < 3 && squeezed && tensor; channel++)
        for (int y = 0; y < HEIGHT; y++)
            for (int x = 0; x < scaled; x++)
                tensor[(channel * HEIGHT + y) * padded + x] =
                    (sample_axis(squeezed + (size_t)y * 3 * picture->width + (2 - channel), 3, width,
                                 (double)width / scaled, x) -
                     0.5f) /
                    0.5f;
    free(squeezed);
    return tensor;
}

/* ---- the dictionary: class 0 is blank, class k is line k, the one after the last line is the space ---- */

struct keys {
    char *text;
    char **lines;
    int count;
};

static int keys_read(const char *path, struct keys *keys)
{
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* a FIFO would wait for its writer */
    FILE *file = fd < 0 ? NULL : fdopen(fd, "rb");
    long size = file && !fseek(file, 0, SEEK_END) ? ftell(file) : -1;
    keys->text = size >= 0 && size < 1 << 24 ? calloc((size_t)size + 1, 1) : NULL;
    if (keys->text)
        rewind(file);
    int failed = !keys->text || fread(keys->text, 1, (size_t)size, file) != (size_t)size;
    if (file)
        fclose(file);
    keys->lines = failed ? NULL : calloc((size_t)size + 1, sizeof *keys->lines);
    for (char *at = keys->text; keys->lines && *at;) {
        size_t length = strcspn(at, "\n");
        char *next = at + length + (at[length] == '\n');
        at[length - (length && at[length - 1] == '\r')] = 0;
        keys->lines[keys->count++] = at;
        at = next;
    }
    if (!keys->lines)
        fprintf(stderr, "ocr: %s: cannot be read\n", escaped(path).text);
    else if (!keys->count)
        fprintf(stderr, "ocr: %s: no characters in it; expected one on each line\n", escaped(path).text);
    return !keys->lines || !keys->count;
}

static const char *keys_at(const struct keys *keys, int64_t class)
{
    return class >= 1 && class <= keys->count ? keys->lines[class - 1] : class == keys->count + 1 ? " " : "?";
}

/* ---- greedy CTC: the best class of each column, repetitions merged, blanks dropped ---- */

struct reading {
    char text[TEXT_BYTES_MAX];
    double confidence; /* mean of the maxima that were kept */
};

static void decode(const struct bw_array *scores, const struct keys *keys, struct reading *reading)
{
    int64_t columns = scores->dims[1], classes = scores->dims[2], last = 0;
    size_t length = 0, kept = 0;
    double sum = 0;
    for (int64_t column = 0; column < columns; column++) {
        const float *row = (const float *)scores->data + column * classes;
        int64_t best = 0;
        for (int64_t class = 1; class < classes; class ++)
            best = row[class] > row[best] ? class : best;
        if (best && best != last) {
            const char *key = keys_at(keys, best);
            size_t room = sizeof reading->text - length,
                   added = bw_text_escape(key, strlen(key), reading->text + length, room);
            length += added < room ? added : 0;
            sum += (double)row[best];
            kept++;
        }
        last = best;
    }
    reading->text[length] = 0;
    reading->confidence = kept ? sum / (double)kept : 0;
}

/* ---- one device ---- */

struct result {
    struct bw_device_info info;
    struct bw_value scores;
    struct reading reading;
    struct bw_model_stats stats;
    struct bw_mock_stats mock;
    double load_seconds, total_seconds;
};

static double seconds_now(struct bw_ctx *ctx)
{
    struct bw_sys *sys = bw_ctx_sys(ctx);
    return (double)sys->ops->clock_ns(sys) * 1e-9;
}

static int scores_check(const struct bw_array *scores, const char *model, const struct keys *keys,
                        struct bw_err *err)
{
    if (scores->dtype == BW_F32 && scores->rank == 3 && scores->dims[0] == 1 &&
        scores->dims[1] <= WIDTH_MAX / 8 && scores->dims[2] == keys->count + 2)
        return 0;
    if (scores->dtype != BW_F32 || scores->rank != 3 || scores->dims[0] != 1 ||
        scores->dims[1] > WIDTH_MAX / 8) {
        bw_fail(err, -EINVAL, "model", "%s: the output", model);
        bw_err_expected(err, "f32[1,columns,classes], of a line reader");
        return -EINVAL;
    }
    bw_fail(err, -EINVAL, "keys", "number of characters, for the %lld classes of %s",
            (long long)scores->dims[2], model);
    bw_err_expected(err, "%lld, between blank and space", (long long)scores->dims[2] - 2);
    bw_err_observed(err, "%d", keys->count);
    return -EINVAL;
}

static int read_on(struct bw_device *device, const char *path, const struct bw_value *picture,
                   const struct keys *keys, struct result *result, struct bw_err *err)
{
    struct bw_model *model = NULL;
    struct bw_ctx *ctx = bw_device_ctx(device);
    double begin = seconds_now(ctx);
    int rc = bw_model_load(path, &model, err);
    result->info = *bw_device_info(device);
    result->load_seconds = seconds_now(ctx) - begin;
    if (!rc && (bw_model_input_count(model) != 1 || bw_model_output_count(model) != 1))
        rc = bw_fail(err, -EINVAL, "model", "%s: not one input and one output", path);
    if (!rc)
        rc = bw_model_run(model, device, picture, &result->scores, err);
    if (!rc) {
        bw_model_stats(model, &result->stats);
        bw_device_mock_stats(device, &result->mock); /* zeros where there is no mock */
        rc = scores_check(&result->scores.array, path, keys, err);
    }
    if (!rc)
        decode(&result->scores.array, keys, &result->reading);
    result->total_seconds = seconds_now(ctx) - begin;
    bw_model_destroy(model);
    return rc;
}

static int open_and_read(struct bw_ctx *ctx, const char *name, const char *path,
                         const struct bw_value *picture, const struct keys *keys, struct result *result)
{
    struct bw_device *device = NULL;
    struct bw_err err = {0};
    int rc = bw_device_open(ctx, name, &device, &err);
    if (!rc)
        rc = read_on(device, path, picture, keys, result, &err);
    bw_device_close(device);
    return rc ? fail(&err) : 0;
}

/* ---- the report ---- */

static double largest_difference(const struct bw_array *a, const struct bw_array *b)
{
    double largest = 0;
    for (int64_t i = 0; i < bw_array_elements(a); i++) {
        double apart = fabs((double)((const float *)a->data)[i] - (double)((const float *)b->data)[i]);
        largest = isnan(apart) ? INFINITY : fmax(largest, apart);
    }
    return largest;
}

static void print_times(const struct result *result)
{
    const struct bw_plan_stats *plan = &result->stats.plan;
    printf("%-24s %7.3f %7.3f %8.3f %8.3f %7.3f %7.3f %7.3f\n", result->info.name, result->load_seconds,
           result->stats.import_seconds, plan->schedule_seconds, plan->compile_seconds, plan->link_seconds,
           plan->run_seconds, result->total_seconds);
}

static const char *text_shown(const struct reading *reading)
{
    return reading->text[0] ? reading->text : "(no text found)";
}

static int report(const struct result *device, const struct result *host)
{
    const struct bw_plan_stats *plan = &device->stats.plan;
    double difference = largest_difference(&device->scores.array, &host->scores.array);
    printf("text        %s\n", text_shown(&device->reading));
    printf("confidence  %.4f\n", device->reading.confidence);
    printf("device      %s %s%s\n", device->info.name, device->info.product,
           device->info.mock ? " (mock)" : "");
    printf("on %-8s %s (confidence %.4f)\n", host->info.name, text_shown(&host->reading),
           host->reading.confidence);
    printf("difference  at most %.3g between the two\n", difference);
    printf("kernels     %u launched, %u compiled now, %u from the cache\n", plan->kernels, plan->compiled,
           plan->cache_hits);
    if (device->info.mock)
        printf("executed    %llu wave-instructions in %llu waves\n",
               (unsigned long long)device->mock.wave_instructions, (unsigned long long)device->mock.waves);
    printf("%-24s %7s %7s %8s %8s %7s %7s %7s\n", "seconds", "load", "import", "schedule", "compile", "link",
           "run", "total");
    print_times(device);
    print_times(host);
    return strcmp(device->reading.text, host->reading.text) != 0 || !(difference <= difference_max);
}

static int ocr(struct bw_ctx *ctx, const char *name, char **paths)
{
    static struct result device, host; /* large texts: not on the stack */
    struct keys keys = {0};
    struct bw_picture picture = {0};
    struct bw_err err = {0};
    int width = 0, failed = keys_read(paths[1], &keys);
    if (!failed && bw_png_read(paths[2], &picture, &err))
        failed = fail(&err);
    float *tensor = failed ? NULL : picture_tensor(&picture, &width);
    if (!failed && !tensor)
        fprintf(stderr, "ocr: %s: %u x %u is no line of text\n", escaped(paths[2]).text, picture.width,
                picture.height);
    struct bw_value value = {
        .kind = BW_VALUE_ARRAY,
        .array = {.dtype = BW_F32, .rank = 4, .dims = {1, 3, HEIGHT, width}, .data = tensor}};
    if (tensor)
        printf("picture     %s, %u x %u, read as 1x3x%dx%d\n", escaped(paths[2]).text, picture.width,
               picture.height, HEIGHT, width);
    failed = !tensor || open_and_read(ctx, name, paths[0], &value, &keys, &device) ||
             open_and_read(ctx, "host:0", paths[0], &value, &keys, &host) || report(&device, &host);
    bw_value_free(&device.scores);
    bw_value_free(&host.scores);
    bw_picture_free(&picture);
    free(tensor);
    free(keys.lines);
    free(keys.text);
    return failed;
}

int main(int argc, char **argv)
{
    struct bw_ctx_config config;
    struct bw_ctx *ctx = NULL;
    struct bw_err err = {0};
    const char *device = NULL;
    char *paths[3];
    int count = 0;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--device") && i + 1 < argc)
            device = argv[++i];
        else if (argv[i][0] != '-' && count < 3)
            paths[count++] = argv[i];
        else
            count = 4;
    }
    if (count != 3) {
        fprintf(stderr, "usage: ocr MODEL.onnx KEYS.txt PICTURE.png [--device DEV]\n");
        return 2;
    }
    if (bw_ctx_config_from_environment(&config, &err) || bw_ctx_create(&config, &ctx, &err))
        return fail(&err);
    if (!device && !(device = config.device)) {
        device = "mockkfd+amd@gfx1100";
        fprintf(stderr, "ocr: no device is named (--device, BW_DEV): using the mock %s\n", device);
    }
    int failed = ocr(ctx, device, paths);
    bw_ctx_destroy(ctx);
    if (!failed && fflush(stdout)) {
        bw_fail(&err, -errno, "file", "standard output cannot be written");
        failed = fail(&err);
    }
    return failed != 0;
}
