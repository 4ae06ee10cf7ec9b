/* Goal: external data are read from files beside the model, and from nowhere else, whatever the model's file,
 * symbolic links and special files say; and never beyond a file's end. */
#include <bellwire/model.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bits.h"
#include "compiler/model_internal.h"
#include "compiler/onnx/proto.h"
#include "drivers/disk/disk.h"
#include "tests/check.h"
#include "tests/unit/compiler/onnx_writer.h"

enum { PATH_BYTES = 256 };
static const float elements[6] = {1, 2, 3, 4, 5, 6};

/* A directory with an inner one, `model`, and files in both. */
struct place {
    char root[PATH_BYTES];
};

static const char *at(const struct place *place, const char *name, char *path)
{
    snprintf(path, PATH_BYTES, "%.200s/%.50s", place->root, name);
    return path;
}

static void write_file(const struct place *place, const char *name, const void *data, size_t size_bytes)
{
    char path[PATH_BYTES];
    FILE *file = fopen(at(place, name, path), "wb");
    if (!BW_TRUE(file != NULL))
        return;
    BW_EQ(fwrite(data, 1, size_bytes, file), size_bytes);
    fclose(file);
}

static void link_to(const struct place *place, const char *target, const char *name)
{
    char path[PATH_BYTES];
    BW_EQ(symlink(target, at(place, name, path)), 0);
}

static void open_place(struct place *place)
{
    char path[PATH_BYTES];
    snprintf(place->root, sizeof place->root, "/tmp/bw_onnx_external_XXXXXX");
    BW_TRUE(mkdtemp(place->root) != NULL);
    static const char *const directories[] = {"model", "model/sub", "outside"};
    for (size_t i = 0; i < BW_COUNT_OF(directories); i++)
        BW_EQ(mkdir(at(place, directories[i], path), 0700), 0);
    write_file(place, "secret", elements, sizeof elements);
    write_file(place, "outside/secret", elements, sizeof elements);
    write_file(place, "model/w.bin", elements, sizeof elements);
    write_file(place, "model/sub/w.bin", elements, sizeof elements);
    link_to(place, "w.bin", "model/inside");
    link_to(place, "../w.bin", "model/sub/up_inside");
    link_to(place, "sub", "model/inside_dir");
    link_to(place, "../secret", "model/up");
    link_to(place, "../outside", "model/up_dir");
    link_to(place, "/proc/self", "model/proc");
    link_to(place, "loop", "model/loop");
    link_to(place, at(place, "model/w.bin", path), "model/absolute"); /* even to itself */
    BW_EQ(mkfifo(at(place, "model/fifo", path), 0600), 0);
}

static void close_place(const struct place *place)
{
    char command[PATH_BYTES];
    snprintf(command, sizeof command, "rm -r %.200s", place->root);
    BW_EQ(system(command), 0);
}

/* y = w, w [6] from a file. offset and length as text, NULL: left out. */
static int load_typed(const struct place *place, int dtype, const char *location, const char *offset,
                      const char *length, struct bw_value *output, struct bw_err *err)
{
    struct pb graph = {.size_bytes = 0}, tensor = {.size_bytes = 0};
    const char *const entries[][2] = {{"location", location}, {"offset", offset}, {"length", length}};
    char path[PATH_BYTES];
    pb_int(&tensor, 1, 6);
    pb_int(&tensor, 2, dtype);
    pb_text(&tensor, 8, "w");
    for (size_t i = 0; i < BW_COUNT_OF(entries); i++) {
        struct pb entry = {.size_bytes = 0};
        pb_text(&entry, 1, entries[i][0]);
        if (entries[i][1])
            pb_text(&entry, 2, entries[i][1]);
        if (entries[i][1])
            pb_message(&tensor, 13, &entry);
    }
    pb_int(&tensor, 14, 1);
    pb_message(&graph, 5, &tensor);
    pb_node(&graph, "Identity", "w", "y", NULL);
    pb_graph_output(&graph, "y", dtype, "6");
    struct pb file = pb_model(&graph, 23);
    struct bw_model *model = NULL;
    write_file(place, "model/m.onnx", file.data, file.size_bytes);
    int rc = bw_model_load(at(place, "model/m.onnx", path), &model, err);
    if (!rc)
        rc = bw_model_run(model, NULL, NULL, output, err);
    bw_model_destroy(model);
    return rc;
}

static int load_external(const struct place *place, const char *location, const char *offset,
                         const char *length, struct bw_value *output, struct bw_err *err)
{
    return load_typed(place, PB_FLOAT, location, offset, length, output, err);
}

static void files_beside_the_model(void)
{
    static const char *const good[] = {"w.bin",     "./w.bin",       "sub//w.bin",      "inside",
                                       "sub/w.bin", "sub/up_inside", "inside_dir/w.bin"};
    static const char *const outside[] = {
        "/etc/passwd", "../secret",     "sub/../../secret", "sub/../w.bin", "..",      "",
        "up",          "up_dir/secret", "up_dir/../secret", "proc/exe",     "absolute"};
    struct place place;
    open_place(&place);
    for (size_t i = 0; i < BW_COUNT_OF(good); i++) {
        struct bw_value output = {0};
        struct bw_err err = {0};
        if (BW_OK(load_external(&place, good[i], NULL, NULL, &output, &err), &err))
            BW_BYTES(output.array.data, elements, sizeof elements);
        bw_value_free(&output);
    }
    for (size_t i = 0; i < BW_COUNT_OF(outside); i++) {
        struct bw_value output = {0};
        struct bw_err err = {0};
        if (!BW_EQ(load_external(&place, outside[i], NULL, NULL, &output, &err), -EACCES))
            printf("      %s\n", outside[i]);
        BW_TRUE(strstr(err.what, "tensor 'w' (FLOAT): its external file lies outside") != NULL);
        bw_value_free(&output);
    }
    close_place(&place);
}

static void files_that_are_none(void)
{
    static const struct {
        const char *location;
        int code;
    } cases[] = {{"fifo", -EINVAL}, {"sub", -EINVAL}, {".", -EINVAL},
                 {"none", -ENOENT}, {"loop", -ELOOP}, {"w.bin/x", -ENOTDIR}};
    struct place place;
    open_place(&place);
    for (size_t i = 0; i < BW_COUNT_OF(cases); i++) {
        struct bw_value output = {0};
        struct bw_err err = {0};
        BW_EQ(load_external(&place, cases[i].location, NULL, NULL, &output, &err), cases[i].code);
        BW_TRUE(strstr(err.what, "tensor 'w' (FLOAT): its external file") != NULL);
        bw_value_free(&output);
    }
    close_place(&place);
}

/* The file has 24 bytes and, at 4096, 24 more. */
static void offsets_and_lengths(void)
{
    static const struct {
        const char *offset, *length;
        int code;
    } cases[] = {{"0", "24", 0},
                 {"4096", "24", 0},
                 {"4096", NULL, 0},
                 {"100", "24", 0},
                 {"4097", NULL, -EBADMSG},
                 {"4100", "24", -EBADMSG},
                 {"4120", NULL, -EBADMSG},
                 {"4121", NULL, -EBADMSG},
                 {"1000000", NULL, -EBADMSG},
                 {"18446744073709551600", NULL, -EBADMSG},
                 {"0", "20", -EBADMSG},
                 {"0", "28", -EBADMSG}};
    static uint8_t bytes[4096 + sizeof elements];
    struct place place;
    open_place(&place);
    memcpy(bytes, elements, sizeof elements);
    memcpy(bytes + 4096, elements, sizeof elements);
    write_file(&place, "model/long.bin", bytes, sizeof bytes);
    for (size_t i = 0; i < BW_COUNT_OF(cases); i++) {
        struct bw_value output = {0};
        struct bw_err err = {0};
        BW_EQ(load_external(&place, "long.bin", cases[i].offset, cases[i].length, &output, &err),
              cases[i].code);
        if (cases[i].code)
            BW_TRUE(strstr(err.what, "tensor 'w' (FLOAT)") != NULL);
        else
            BW_NEAR(((const float *)output.array.data)[5], i == 3 ? 0 : 6, 0);
        bw_value_free(&output);
    }
    close_place(&place);
}

enum { WEIGHTS = 30000, WEIGHTS_OFFSET = 12 };

static void weight_add(struct pb *graph, const char *name, uint64_t offset)
{
    struct pb tensor = {.size_bytes = 0};
    char text[24];
    const char *const entries[][2] = {{"location", "large.bin"}, {"offset", text}};
    snprintf(text, sizeof text, "%llu", (unsigned long long)offset);
    pb_int(&tensor, 1, WEIGHTS);
    pb_int(&tensor, 2, PB_FLOAT);
    pb_text(&tensor, 8, name);
    for (size_t i = 0; i < BW_COUNT_OF(entries); i++) {
        struct pb entry = {.size_bytes = 0};
        pb_text(&entry, 1, entries[i][0]);
        pb_text(&entry, 2, entries[i][1]);
        pb_message(&tensor, 13, &entry);
    }
    pb_int(&tensor, 14, 1);
    pb_message(graph, 5, &tensor);
}

/* y = x * scale + shift, whose weights are in one file. */
static struct pb weighted_model(void)
{
    struct pb graph = {.size_bytes = 0};
    weight_add(&graph, "scale", WEIGHTS_OFFSET);
    weight_add(&graph, "shift", WEIGHTS_OFFSET + 4 * WEIGHTS);
    pb_node(&graph, "Mul", "x,scale", "scaled", NULL);
    pb_node(&graph, "Add", "scaled,shift", "y", NULL);
    pb_graph_input(&graph, "x", PB_FLOAT, "30000");
    pb_graph_output(&graph, "y", PB_FLOAT, "30000");
    return pb_model(&graph, 23);
}

static void weighted_run(struct bw_model *model, struct bw_device *device, const float *weights)
{
    static float x[WEIGHTS];
    struct bw_err err = {0};
    struct bw_value output = {0},
                    input = {.kind = BW_VALUE_ARRAY,
                             .array = {.dtype = BW_F32, .rank = 1, .dims = {WEIGHTS}, .data = x}};
    for (int i = 0; i < WEIGHTS; i++)
        x[i] = (float)(i % 7);
    if (!BW_OK(bw_model_run(model, device, &input, &output, &err), &err))
        return;
    int wrong = 0;
    for (int i = 0; i < WEIGHTS; i++)
        wrong += ((const float *)output.array.data)[i] != x[i] * weights[i] + weights[WEIGHTS + i];
    BW_EQ(wrong, 0);
    bw_value_free(&output);
}

/* A device with memory of its own gets large weights from a disk; the host and the evaluator use them where
 * they are mapped. */
static void weights_come_from_a_disk(void)
{
    static const struct {
        const char *device;
        bool through_disk;
    } rows[] = {{NULL, false}, {"host:0", false}, {"mockkfd+amd@gfx1100,cu=2,vram=64M", true}};
    struct place place;
    char path[PATH_BYTES];
    float *file = calloc(WEIGHTS_OFFSET / 4 + 2 * WEIGHTS, 4), *weights = file + WEIGHTS_OFFSET / 4;
    for (int i = 0; i < 2 * WEIGHTS; i++)
        weights[i] = (float)(i % 1000 - 500);
    open_place(&place);
    write_file(&place, "model/large.bin", file, WEIGHTS_OFFSET + 8 * WEIGHTS);
    struct pb pb = weighted_model();
    write_file(&place, "model/m.onnx", pb.data, pb.size_bytes);
    for (size_t i = 0; i < BW_COUNT_OF(rows); i++) {
        struct bw_ctx *ctx = NULL;
        struct bw_device *device = NULL;
        struct bw_model *model = NULL;
        struct bw_err err = {0};
        uint64_t disk_bytes = 0;
        BW_OK(bw_ctx_create(NULL, &ctx, &err), &err);
        BW_OK(bw_model_load(at(&place, "model/m.onnx", path), &model, &err), &err);
        if (rows[i].device)
            BW_OK(bw_device_open(ctx, rows[i].device, &device, &err), &err);
        for (int run = 0; run < 2; run++) {
            weighted_run(model, device, weights);
            for (size_t k = 0; k < model->files.count; k++) {
                struct bw_device *disk = model->files.data[k].disk;
                struct bw_disk_manner manner = {0};
                if (disk)
                    manner = bw_disk_manner(((struct bw_disk_device *)disk)->disk);
                disk_bytes += manner.direct_bytes + manner.cached_bytes;
            }
            if (rows[i].through_disk) /* the second run has them, or after forgetting reads them again */
                BW_TRUE(disk_bytes >= 8 * WEIGHTS && disk_bytes < 10 * WEIGHTS);
            else
                BW_EQ(disk_bytes, 0);
            disk_bytes = 0;
            bw_model_forget(model);
        }
        bw_model_destroy(model);
        bw_device_close(device);
        bw_ctx_destroy(ctx);
    }
    free(file);
    close_place(&place);
}

/* INT4: six elements are three bytes. */
static void packed_elements(void)
{
    enum { INT4 = 22 };
    static const uint8_t bytes[] = {0x00, 0x21, 0xf8, 0x97};
    static const int8_t expected[] = {1, 2, -8, -1, 7, -7};
    static const struct {
        const char *offset, *length;
        int code;
    } cases[] = {{"1", NULL, 0}, {"1", "3", 0}, {"2", NULL, -EBADMSG}, {"0", "6", -EBADMSG}};
    struct place place;
    open_place(&place);
    write_file(&place, "model/packed.bin", bytes, sizeof bytes);
    for (size_t i = 0; i < BW_COUNT_OF(cases); i++) {
        struct bw_value output = {0};
        struct bw_err err = {0};
        BW_EQ(load_typed(&place, INT4, "packed.bin", cases[i].offset, cases[i].length, &output, &err),
              cases[i].code);
        if (cases[i].code)
            BW_TRUE(strstr(err.what, "tensor 'w' (INT4)") != NULL);
        else if (BW_EQ(output.array.dtype, BW_I4))
            BW_BYTES(output.array.data, expected, sizeof expected);
        bw_value_free(&output);
    }
    close_place(&place);
}

/* Kernels without openat2: the same files, but nothing through a symbolic link. */
static void component_by_component(void)
{
    static const struct {
        const char *location;
        int code;
    } cases[] = {{"w.bin", 0},
                 {"./w.bin", 0},
                 {"sub//w.bin", 0},
                 {"inside", -EACCES},
                 {"up", -EACCES},
                 {"inside_dir/w.bin", -EACCES},
                 {"up_dir/secret", -EACCES},
                 {"../secret", -EACCES},
                 {"/etc/passwd", -EACCES},
                 {"proc/exe", -EACCES},
                 {"loop", -EACCES},
                 {"none", -ENOENT},
                 {"none/x", -ENOENT},
                 {"fifo", -EINVAL},
                 {"sub", -EINVAL},
                 {"w.bin/x", -EACCES}};
    struct place place;
    char path[PATH_BYTES];
    open_place(&place);
    for (size_t i = 0; i < BW_COUNT_OF(cases); i++) {
        struct bw_bytes location = {(const uint8_t *)cases[i].location, strlen(cases[i].location)};
        uint64_t size_bytes = 0;
        int fd = bw_onnx_open_beneath(at(&place, "model", path), location, true, &size_bytes);
        if (!BW_EQ(fd < 0 ? fd : 0, cases[i].code))
            printf("      %s\n", cases[i].location);
        if (fd >= 0)
            BW_EQ(size_bytes, sizeof elements);
        if (fd >= 0)
            close(fd);
    }
    struct bw_bytes zero_inside = {(const uint8_t *)"w.bin\0x", 7};
    uint64_t size_bytes;
    BW_EQ(bw_onnx_open_beneath(at(&place, "model", path), zero_inside, false, &size_bytes), -EINVAL);
    close_place(&place);
}

BW_TEST_MAIN("onnx_external", {"files_beside_the_model", files_beside_the_model},
             {"files_that_are_none", files_that_are_none}, {"offsets_and_lengths", offsets_and_lengths},
             {"weights_come_from_a_disk", weights_come_from_a_disk}, {"packed_elements", packed_elements},
             {"component_by_component", component_by_component})
