/* What a call costs before the first replay: adding it to a graph, scheduling it (routes, queues,
 * dependencies: waits and barriers) and linking (the schedule again, command words, patches, instances). For
 * graphs of growing size, since what a call costs should not depend on how many there are. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <time.h>

#include "base/bits.h"
#include "base/rng.h"
#include "bench/bench.h"
#include "hcq/plan.h"
#include "tools/print.h"

enum {
    DEVICES_DEFAULT = 4,
    DEVICES_MAX = BW_HCQ_DEVICES_MAX,
    CALLS_DEFAULT = 100000, /* of the largest graph; the others have a tenth and a hundredth */
    CALLS_MIN = 2,          /* of fewer nothing can be said */
    SIZES = 3,
    FACTOR = 10,
    REPEATS_DEFAULT = 3,
    WORD_BYTES = sizeof(uint32_t),
    SEED = 20240607,
    /* The allocator keeps what one graph gave back for the next one: measured is the work on calls, not the
     * kernel's on fresh pages. The most that glibc takes for either. */
    KEPT_BYTES_MAX = 1 << 30,
    MAPPED_BYTES_MIN = 32 << 20,
};

struct field {
    struct bw_ctx *ctx;
    struct bw_device *devices[DEVICES_MAX];
    struct bw_bench_kernel kernels[DEVICES_MAX];
    struct bw_buffer *buffers[DEVICES_MAX]; /* a word for each call, and one more */
    uint32_t device_count;
};

/* Adds call `index` of `count`. */
typedef int (*call_add_fn)(const struct field *field, struct bw_graph *graph, uint32_t index, uint32_t count,
                           struct bw_rng *rng, struct bw_err *err);

static struct bw_range word_of(const struct field *field, uint32_t device, uint64_t word)
{
    return (struct bw_range){field->buffers[device], 0, word * WORD_BYTES, WORD_BYTES};
}

static int kernel_add(const struct field *field, struct bw_graph *graph, uint32_t device, struct bw_range to,
                      struct bw_range from, struct bw_err *err)
{
    const struct bw_bench_kernel *kernel = &field->kernels[device];
    struct bw_argument arguments[] = {
        {.source = BW_ARG_RANGE, .access = BW_ACCESS_READ, .range = from},
        {.source = BW_ARG_RANGE, .access = BW_ACCESS_WRITE, .range = to},
    };
    struct bw_launch launch = {.group_count = {{1, false}, {1, false}, {1, false}},
                               .group_size = {kernel->group_size, 1, 1},
                               .arguments = arguments,
                               .argument_count = BW_COUNT_OF(arguments)};
    return bw_graph_kernel(graph, kernel->kernel, &launch, err);
}

static int copy_add(const struct field *field, struct bw_graph *graph, uint32_t to_device, uint64_t to,
                    uint32_t from_device, uint64_t from, struct bw_err *err)
{
    return bw_graph_copy(graph, field->devices[from_device], word_of(field, to_device, to),
                         word_of(field, from_device, from), err);
}

/* Each kernel reads what the one before wrote, all on the first device. */
static int chain_add(const struct field *field, struct bw_graph *graph, uint32_t index, uint32_t count,
                     struct bw_rng *rng, struct bw_err *err)
{
    (void)count, (void)rng;
    return kernel_add(field, graph, 0, word_of(field, 0, index + 1), word_of(field, 0, index), err);
}

/* One kernel writes what all others read; the last one writes over it. */
static int fan_out_add(const struct field *field, struct bw_graph *graph, uint32_t index, uint32_t count,
                       struct bw_rng *rng, struct bw_err *err)
{
    (void)rng;
    bool last = index + 1 == count;
    return kernel_add(field, graph, 0, word_of(field, 0, index && !last ? index + 1 : 0),
                      word_of(field, 0, index && !last ? 0 : 1), err);
}

/* Half of the kernels write a word each, the others read all of those. */
static int gather_add(const struct field *field, struct bw_graph *graph, uint32_t index, uint32_t count,
                      struct bw_rng *rng, struct bw_err *err)
{
    (void)rng;
    uint32_t pieces = count / 2;
    if (index < pieces)
        return kernel_add(field, graph, 0, word_of(field, 0, index), word_of(field, 0, count), err);
    struct bw_range all = {field->buffers[0], 0, 0, pieces * (uint64_t)WORD_BYTES};
    return kernel_add(field, graph, 0, word_of(field, 0, index), all, err);
}

/* Kernels and copies of any word on any devices. */
static int random_add(const struct field *field, struct bw_graph *graph, uint32_t index, uint32_t count,
                      struct bw_rng *rng, struct bw_err *err)
{
    uint32_t device = (uint32_t)bw_rng_below(rng, field->device_count);
    uint64_t to = bw_rng_below(rng, count), from = bw_rng_below(rng, count);
    (void)index;
    from = from == to ? to + 1 : from;
    if (bw_rng_below(rng, 2))
        return kernel_add(field, graph, device, word_of(field, device, to), word_of(field, device, from),
                          err);
    return copy_add(field, graph, (uint32_t)bw_rng_below(rng, field->device_count), to, device, from, err);
}

/* Rounds of copies from each device to each other one, of what the round before brought. */
static int all_to_all_add(const struct field *field, struct bw_graph *graph, uint32_t index, uint32_t count,
                          struct bw_rng *rng, struct bw_err *err)
{
    uint32_t devices = field->device_count, from = index / devices % devices, to = index % devices;
    uint64_t round = index / (devices * devices);
    (void)count, (void)rng;
    uint64_t target = ((round + 1) * devices + from) % count, source = (round * devices + to) % count;
    return copy_add(field, graph, to, target, from, source == target ? count : source, err);
}

static const struct {
    const char *name;
    call_add_fn add;
} shapes[] = {{"chain", chain_add},
              {"fan-out", fan_out_add},
              {"gather", gather_add},
              {"random", random_add},
              {"all-to-all", all_to_all_add}};

/* ---- devices ---- */

static void field_close(struct field *field)
{
    for (uint32_t i = 0; i < field->device_count; i++) {
        bw_buffer_destroy(field->buffers[i]);
        bw_program_destroy(field->kernels[i].program);
        bw_device_close(field->devices[i]);
    }
}

static int field_open(struct field *field, const char *const *names, uint32_t count, uint32_t calls,
                      struct bw_err *err)
{
    int rc = 0;
    for (uint32_t i = 0; i < count && !rc; i++) {
        rc = bw_device_open(field->ctx, names[i], &field->devices[i], err);
        if (rc)
            return rc;
        field->device_count++;
        rc = bw_bench_kernel_load(field->devices[i], &field->kernels[i], err);
        if (!rc)
            rc = bw_buffer_create(field->devices[i], (calls + 1ull) * WORD_BYTES, BW_BUFFER_DEVICE,
                                  &field->buffers[i], err);
    }
    return rc;
}

/* ---- one graph ---- */

struct times {
    double add_ns, schedule_ns, link_ns; /* of one call */
};

/* Of this thread alone: nothing here waits for anybody, and other programs may have the processor meanwhile.
 */
static uint64_t thread_ns(void)
{
    struct timespec now = {0};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static int graph_fill(const struct field *field, call_add_fn add, uint32_t count, struct bw_graph *graph,
                      struct bw_err *err)
{
    struct bw_rng rng = {SEED};
    int rc = 0;
    for (uint32_t i = 0; i < count && !rc; i++)
        rc = add(field, graph, i, count, &rng, err);
    return rc;
}

static int graph_time(const struct field *field, struct bw_graph *graph, call_add_fn add, uint32_t count,
                      struct times *times, struct bw_err *err)
{
    struct bw_linked_graph *linked = NULL;
    struct bw_plan plan;
    uint64_t begin_ns = thread_ns();
    int rc = graph_fill(field, add, count, graph, err);
    uint64_t added_ns = thread_ns();
    if (!rc)
        rc = bw_plan_make(graph, false, &plan, err);
    uint64_t scheduled_ns = thread_ns();
    if (rc)
        return rc;
    bw_plan_free(&plan);
    uint64_t freed_ns = thread_ns();
    rc = bw_graph_link(graph, NULL, &linked, err);
    uint64_t linked_ns = thread_ns();
    bw_linked_graph_destroy(linked);
    *times = (struct times){(double)(added_ns - begin_ns) / count, (double)(scheduled_ns - added_ns) / count,
                            (double)(linked_ns - freed_ns) / count};
    return rc;
}

static double least(double a, double b)
{
    return a < b ? a : b;
}

/* The least of several, as what else the machine does only adds. */
static int graph_measure(const struct field *field, call_add_fn add, uint32_t count, uint32_t repeats,
                         struct times *best, struct bw_err *err)
{
    int rc = 0;
    for (uint32_t i = 0; i < repeats && !rc; i++) {
        struct bw_graph *graph;
        struct times times;
        rc = bw_graph_create(field->ctx, &graph, err);
        if (rc)
            return rc;
        rc = graph_time(field, graph, add, count, &times, err);
        bw_graph_destroy(graph);
        if (rc)
            return rc;
        *best = i == 0 ? times
                       : (struct times){least(best->add_ns, times.add_ns),
                                        least(best->schedule_ns, times.schedule_ns),
                                        least(best->link_ns, times.link_ns)};
    }
    return rc;
}

/* growth: of the ns per call of linking, over the size before; 1 is linear. */
static void result_report(const struct bw_bench_options *options, const char *shape, uint32_t devices,
                          uint32_t count, const struct times *times, double growth, cJSON *rows)
{
    cJSON *row = cJSON_CreateObject();
    cJSON_AddStringToObject(row, "shape", shape);
    cJSON_AddNumberToObject(row, "devices", devices);
    cJSON_AddNumberToObject(row, "calls", count);
    cJSON_AddNumberToObject(row, "schedule_seconds", times->schedule_ns * count * 1e-9);
    cJSON_AddNumberToObject(row, "link_seconds", times->link_ns * count * 1e-9);
    cJSON_AddNumberToObject(row, "add_ns_per_call", times->add_ns);
    cJSON_AddNumberToObject(row, "schedule_ns_per_call", times->schedule_ns);
    cJSON_AddNumberToObject(row, "link_ns_per_call", times->link_ns);
    if (growth > 0)
        cJSON_AddNumberToObject(row, "growth", growth);
    else
        cJSON_AddNullToObject(row, "growth");
    cJSON_AddItemToArray(rows, row);
    if (!options->text)
        return;
    bw_print(options->text, "%-10s %7u %8u %10.1f %10.1f %10.1f ", shape, devices, count, times->add_ns,
             times->schedule_ns, times->link_ns);
    if (growth > 0)
        bw_print(options->text, "%7.2f\n", growth);
    else
        bw_print(options->text, "%7s\n", "-");
}

static int shape_measure(const struct bw_bench_options *options, const struct field *field, uint32_t shape,
                         uint32_t largest, cJSON *rows, struct bw_err *err)
{
    uint32_t divisor = 1, repeats = options->repeats ? options->repeats : REPEATS_DEFAULT;
    double before = 0;
    for (int i = 1; i < SIZES; i++)
        divisor *= FACTOR;
    int rc = 0;
    for (; divisor && !rc; divisor /= FACTOR) {
        struct times times = {0};
        uint32_t count = largest / divisor;
        if (count < CALLS_MIN)
            continue;
        rc = graph_measure(field, shapes[shape].add, count, repeats, &times, err);
        if (!rc)
            result_report(options, shapes[shape].name, field->device_count, count, &times,
                          before > 0 ? times.link_ns / before : 0, rows);
        before = times.link_ns;
    }
    return rc;
}

int bw_bench_schedule(const struct bw_bench_options *options, struct cJSON **document, struct bw_err *err)
{
    static const char *const names_default[DEVICES_DEFAULT] = {"null", "null", "null", "null"};
    const char *const *names = options->device_count ? options->devices : names_default;
    uint32_t name_count = options->device_count ? options->device_count : DEVICES_DEFAULT;
    uint32_t largest = options->nodes ? options->nodes : CALLS_DEFAULT;
    struct field field = {.ctx = options->ctx};
    mallopt(M_TRIM_THRESHOLD, KEPT_BYTES_MAX);
    mallopt(M_MMAP_THRESHOLD, MAPPED_BYTES_MIN);
    if (name_count > DEVICES_MAX)
        return bw_fail(err, -EINVAL, "bench", "--devices: %u, at most %d", name_count, DEVICES_MAX);
    if (largest < CALLS_MIN)
        return bw_fail(err, -EINVAL, "bench", "--nodes %u: at least %d", largest, CALLS_MIN);
    cJSON *root = cJSON_CreateObject(), *rows = cJSON_AddArrayToObject(root, "results");
    if (options->text)
        bw_print(options->text, "%-10s %7s %8s %10s %10s %10s %7s\n", "shape", "devices", "calls", "add ns",
                 "sched ns", "link ns", "growth");
    int rc = field_open(&field, names, name_count, largest, err);
    for (uint32_t shape = 0; shape < BW_COUNT_OF(shapes) && !rc; shape++)
        rc = shape_measure(options, &field, shape, largest, rows, err);
    field_close(&field);
    if (rc)
        cJSON_Delete(root);
    else
        *document = root;
    return rc;
}
