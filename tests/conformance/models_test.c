/* Goal: real models give the same answers as onnxruntime, on the host and on the mock GPU: the angle
 * classifier and the line reader of PaddleOCR, and Silero's voice detector with its state fed back.
 *
 * The models, and onnxruntime, come from scripts/fetch-models.sh ($BW_MODELS, default build/models). Skipped
 * (77), and counted, where they or node are absent. */
#include <bellwire/err.h>

#include "tests/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bellwire/model.h>
#include <bellwire/picture.h>

#include "base/rng.h"
#include "compiler/io_npy.h"

enum { PATH_BYTES = 512, VALUES_MAX = 3, CHUNKS = 4, CHUNK_SAMPLES = 512, SAMPLE_RATE = 16000 };

static const char *const device_names[] = {"host:0", "mockkfd+amd@gfx1100"};
enum { DEVICES = 2 };

/* One model with its inputs and what onnxruntime says of them. */
struct job {
    char directory[PATH_BYTES]; /* of its files */
    char model[PATH_BYTES];
    struct bw_value inputs[VALUES_MAX], expected[VALUES_MAX];
    const char *input_names[VALUES_MAX], *output_names[VALUES_MAX];
    uint32_t input_count, output_count;
};

static const char *models(void)
{
    const char *set = getenv("BW_MODELS");
    return set && *set ? set : BW_SOURCE_DIR "/build/models";
}

static struct bw_value floats(uint32_t rank, const int64_t *dims)
{
    struct bw_value value = {.kind = BW_VALUE_ARRAY, .array = {.dtype = BW_F32, .rank = rank}};
    memcpy(value.array.dims, dims, rank * sizeof *dims);
    value.array.data = calloc((size_t)bw_array_elements(&value.array), sizeof(float));
    return value;
}

static void job_begin(struct job *job, const char *model)
{
    *job = (struct job){.directory = "/tmp/bw_models_XXXXXX"};
    BW_TRUE(mkdtemp(job->directory) != NULL);
    snprintf(job->model, sizeof job->model, "%s/%s", models(), model);
}

static void values_free(struct bw_value *values)
{
    for (int i = 0; i < VALUES_MAX; i++)
        bw_value_free(&values[i]);
}

static void job_end(struct job *job)
{
    char command[PATH_BYTES + 16];
    values_free(job->inputs);
    values_free(job->expected);
    snprintf(command, sizeof command, "rm -r %s", job->directory);
    BW_EQ(system(command), 0);
}

/* onnxruntime on the inputs, its outputs to `expected`. */
static bool job_ask(struct job *job)
{
    char command[4096], path[2 * PATH_BYTES];
    int length = snprintf(command, sizeof command, "node %s/tests/conformance/ort.mjs %s/node_modules %s %s",
                          BW_SOURCE_DIR, models(), job->model, job->directory);
    struct bw_err err = {0};
    for (uint32_t i = 0; i < job->input_count; i++) {
        snprintf(path, sizeof path, "%s/in%u.npy", job->directory, i);
        if (!BW_OK(bw_npy_write(path, &job->inputs[i], &err), &err))
            return false;
        length +=
            snprintf(command + length, sizeof command - (size_t)length, " %s=%s", job->input_names[i], path);
    }
    if (!BW_EQ(system(command), 0))
        return false;
    for (uint32_t i = 0; i < job->output_count; i++) {
        snprintf(path, sizeof path, "%s/%s.npy", job->directory, job->output_names[i]);
        for (char *at = path + strlen(job->directory) + 1; *at; at++)
            *at = *at == '/' ? '_' : *at;
        if (!BW_OK(bw_npy_read(path, &job->expected[i], &err), &err))
            return false;
    }
    return true;
}

/* |a - b| <= 1e-4 + 1e-3 |b| */
static void compare(const char *what, const struct bw_value *observed, const struct bw_value *expected)
{
    double worst = 0;
    if (!BW_EQ(observed->array.dtype, BW_F32) || !BW_EQ(observed->array.rank, expected->array.rank) ||
        !BW_BYTES(observed->array.dims, expected->array.dims, expected->array.rank * sizeof(int64_t)))
        return;
    const float *a = observed->array.data, *b = expected->array.data;
    for (int64_t i = 0; i < bw_array_elements(&expected->array); i++) {
        double difference = fabs((double)a[i] - (double)b[i]);
        worst = fmax(worst, difference);
        if (!(difference <= 1e-4 + 1e-3 * fabs((double)b[i]))) {
            printf("\n    %s, element %lld\n", what, (long long)i);
            BW_NEAR((double)a[i], (double)b[i], 1e-4 + 1e-3 * fabs((double)b[i]));
            return;
        }
    }
    CU_ASSERT_TRUE(bw_array_elements(&expected->array) > 0);
    printf("\n    %s: largest difference %.3g", what, worst);
}

struct rig {
    struct bw_ctx *ctx;
    struct bw_device *devices[DEVICES];
    struct bw_model *models[DEVICES];
};

static bool rig_open(struct rig *rig, const char *path)
{
    struct bw_ctx_config config = {.size = sizeof config, .cache_dir = BW_BUILD_DIR "/kernels-of-tests"};
    struct bw_err err = {0};
    *rig = (struct rig){0};
    if (!BW_OK(bw_ctx_create(&config, &rig->ctx, &err), &err))
        return false;
    for (int i = 0; i < DEVICES; i++)
        if (!BW_OK(bw_device_open(rig->ctx, device_names[i], &rig->devices[i], &err), &err) ||
            !BW_OK(bw_model_load(path, &rig->models[i], &err), &err))
            return false;
    return true;
}

static void rig_close(struct rig *rig)
{
    for (int i = 0; i < DEVICES; i++) {
        bw_model_destroy(rig->models[i]);
        bw_device_close(rig->devices[i]);
    }
    bw_ctx_destroy(rig->ctx);
}

/* Runs the job on every device and compares each output. */
static void job_check(struct job *job)
{
    struct rig rig;
    if (job_ask(job) && rig_open(&rig, job->model)) {
        for (int i = 0; i < DEVICES; i++) {
            struct bw_value outputs[VALUES_MAX] = {0};
            struct bw_err err = {0};
            if (BW_OK(bw_model_run(rig.models[i], rig.devices[i], job->inputs, outputs, &err), &err))
                for (uint32_t k = 0; k < job->output_count; k++)
                    compare(device_names[i], &outputs[k], &job->expected[k]);
            values_free(outputs);
        }
        rig_close(&rig);
    }
    printf("\n    ");
}

/* The pictures are about as high as the models want: cut to 48 rows, padded on the right with zeros. */
static struct bw_value picture_input(const char *name, int64_t width)
{
    char path[PATH_BYTES];
    struct bw_picture picture;
    struct bw_err err = {0};
    struct bw_value value = floats(4, (int64_t[]){1, 3, 48, width});
    snprintf(path, sizeof path, "%s/samples/ocr/%s", BW_SOURCE_DIR, name);
    if (!BW_OK(bw_png_read(path, &picture, &err), &err))
        return value;
    for (int channel = 0; channel < 3; channel++)
        for (int64_t y = 0; y < 48 && y < picture.height; y++)
            for (int64_t x = 0; x < width && x < picture.width; x++)
                ((float *)value.array.data)[(channel * 48 + y) * width + x] =
                    (picture.rgb[3 * (y * picture.width + x) + 2 - channel] - 0.5f) / 0.5f;
    bw_picture_free(&picture);
    return value;
}

static void test_angle(void)
{
    struct job job;
    job_begin(&job, "ch_ppocr_mobile_v2.0_cls_infer.onnx");
    job.input_names[job.input_count] = "x";
    job.inputs[job.input_count++] = picture_input("line-gray.png", 192);
    job.output_names[job.output_count++] = "softmax_0.tmp_0";
    job_check(&job);
    job_end(&job);
}

static void test_line(void)
{
    static const char *const pictures[] = {"line-gray.png", "line-rgba.png"};
    for (int i = 0; i < 2; i++) {
        struct job job;
        job_begin(&job, "ch_PP-OCRv4_rec_infer.onnx");
        job.input_names[job.input_count] = "x";
        job.inputs[job.input_count++] = picture_input(pictures[i], 320);
        job.output_names[job.output_count++] = "softmax_11.tmp_0";
        job_check(&job);
        job_end(&job);
    }
}

/* ---- the voice detector ---- */

/* Something like speech: a buzz with formants that swells and fades, in noise. */
static void chunk_make(float *samples, int chunk)
{
    struct bw_rng rng = {.state = 2026 + (uint64_t)chunk};
    for (int i = 0; i < CHUNK_SAMPLES; i++) {
        double t = (double)(chunk * CHUNK_SAMPLES + i) / SAMPLE_RATE, sum = 0;
        for (int harmonic = 1; harmonic <= 20; harmonic++) {
            double hz = 140.0 * harmonic,
                   formant = exp(-pow((hz - 700) / 300, 2)) + 0.4 * exp(-pow((hz - 1800) / 400, 2));
            sum += formant * sin(2 * M_PI * hz * t);
        }
        samples[i] =
            (float)(0.3 * sum * (0.5 - 0.5 * cos(2 * M_PI * 4 * t)) + 0.01 * (bw_rng_unit(&rng) - 0.5));
    }
}

static bool voice_chunk(struct job *job, struct rig *rig, struct bw_value *states, int chunk)
{
    chunk_make(job->inputs[0].array.data, chunk);
    if (!job_ask(job))
        return false;
    bool good = true;
    for (int i = 0; i < DEVICES && good; i++) {
        struct bw_value inputs[VALUES_MAX] = {job->inputs[0], states[i], job->inputs[2]},
                        outputs[VALUES_MAX] = {0};
        struct bw_err err = {0};
        good = BW_OK(bw_model_run(rig->models[i], rig->devices[i], inputs, outputs, &err), &err);
        if (good) {
            char what[64];
            snprintf(what, sizeof what, "%s, chunk %d", device_names[i], chunk);
            compare(what, &outputs[0], &job->expected[0]);
            compare(what, &outputs[1], &job->expected[1]);
            bw_value_free(&outputs[0]);
            bw_value_free(&states[i]);
            states[i] = outputs[1];
        }
    }
    bw_value_free(&job->inputs[1]); /* onnxruntime goes on from its own state */
    job->inputs[1] = job->expected[1];
    bw_value_free(&job->expected[0]);
    job->expected[1] = (struct bw_value){0};
    return good;
}

static void test_voice(void)
{
    struct job job;
    struct rig rig;
    struct bw_value states[DEVICES];
    int64_t *rate = malloc(sizeof *rate);
    *rate = SAMPLE_RATE;
    job_begin(&job, "silero_vad_v5.onnx");
    job.inputs[0] = floats(2, (int64_t[]){1, CHUNK_SAMPLES});
    job.inputs[1] = floats(3, (int64_t[]){2, 1, 128});
    job.inputs[2] = (struct bw_value){.kind = BW_VALUE_ARRAY, .array = {.dtype = BW_I64, .data = rate}};
    memcpy(job.input_names, (const char *[]){"input", "state", "sr"}, sizeof job.input_names);
    memcpy(job.output_names, (const char *[]){"output", "stateN"}, 2 * sizeof job.output_names[0]);
    job.input_count = 3;
    job.output_count = 2;
    for (int i = 0; i < DEVICES; i++)
        states[i] = floats(3, (int64_t[]){2, 1, 128});
    if (rig_open(&rig, job.model)) {
        bool good = true;
        for (int chunk = 0; chunk < CHUNKS && good; chunk++)
            good = voice_chunk(&job, &rig, states, chunk);
        rig_close(&rig);
    }
    for (int i = 0; i < DEVICES; i++)
        bw_value_free(&states[i]);
    printf("\n    ");
    job_end(&job);
}

/* ---- what there is ---- */

static bool there(const char *file)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s", models(), file);
    return access(path, R_OK) == 0;
}

int main(void)
{
    static const struct {
        const char *model;
        struct bw_test test;
    } rows[] = {
        {"ch_ppocr_mobile_v2.0_cls_infer.onnx", {"angle classifier", test_angle}},
        {"ch_PP-OCRv4_rec_infer.onnx", {"line reader", test_line}},
        {"silero_vad_v5.onnx", {"voice detector, state fed back", test_voice}},
    };
    enum { ROWS = sizeof rows / sizeof rows[0] };
    struct bw_test tests[ROWS];
    size_t count = 0;
    bool ort =
        there("node_modules/onnxruntime-node/package.json") && system("node --version >/dev/null 2>&1") == 0;
    for (size_t i = 0; i < ROWS && ort; i++)
        if (there(rows[i].model))
            tests[count++] = rows[i].test;
    printf("%zu of %d models, onnxruntime %s\n", count, ROWS, ort ? "found" : "not found");
    int status = count ? bw_test_run("conformance.models", tests, count) : 0;
    return status ? status : count < ROWS ? BW_TEST_SKIPPED : 0;
}
