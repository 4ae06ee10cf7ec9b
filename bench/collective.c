/* A collective over a range of sizes, out of place and in place, with the columns of nccl-tests, beside one
 * thread's memcpy measured in between. */
#include "bench/collective.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/text.h"
#include "tools/print.h"

enum {
    ROUNDS = 5,               /* the median of which is told; memcpy runs between them */
    BYTES_DEFAULT = 32 << 20, /* as nccl-tests */
    STEP_DEFAULT = 1 << 20,   /* as nccl-tests */
    PLAIN_BYTES_MAX =
        256 << 20, /* of a memcpy: far beyond any cache, and no more memory than the ranks have */
    RANKS_DEFAULT = 4,
    PAIR_BYTES_MAX = 16 << 20, /* of the matrix: what follows is as fast */
};

static const struct {
    const char *name;
    enum bw_dtype dtype;
} types[] = {
    {"float", BW_F32}, {"half", BW_F16},  {"bfloat16", BW_BF16}, {"double", BW_F64}, {"int8", BW_I8},
    {"uint8", BW_U8},  {"int32", BW_I32}, {"uint32", BW_U32},    {"int64", BW_I64},  {"uint64", BW_U64},
};

/* One way of one size. */
struct figures {
    double seconds, algbw, busbw; /* GB/s */
    uint64_t wrong;
};

struct bench {
    const struct bw_bench_options *options;
    const struct bw_bench_collective *collective;
    struct bw_bench_group group;
    bool all_types, all_reductions; /* -d all, -o all: one after the other */
    uint64_t bytes_min;
    char *memory;   /* of one rank */
    char *plain[2]; /* what memcpy copies */
    uint64_t plain_bytes;
    double plain_gb_per_s, busbw_sum;
    uint32_t busbw_count;
    uint64_t wrong, last_bytes; /* last_bytes: the last size */
    bool measured;              /* all sizes: what is said of them stands, whatever fails after that */
    cJSON *root, *rows;
};

struct names {
    char text[BW_BENCH_RANKS_MAX][sizeof((struct bw_device_info){0}.name)];
    const char *at[BW_BENCH_RANKS_MAX];
    uint32_t count;
};

/* ---- ranks ---- */

/* The number of a name among those that name_of gives; *all (unless NULL): it is the word for all of them. */
static int name_find(const char *option, const char *name, const char *(*name_of)(uint32_t number),
                     uint32_t *number, bool *all, struct bw_err *err)
{
    struct bw_text known = {0};
    const char *at;
    if (all && !strcmp(name, "all")) {
        *all = true;
        return 0;
    }
    for (*number = 0; (at = name_of(*number)); ++*number) {
        if (!strcmp(at, name))
            return bw_text_free(&known), 0;
        bw_text_add(&known, "%s%s", *number ? ", " : "", at);
    }
    bw_fail(err, -EINVAL, "bench", "%s: '%s'", option, name);
    bw_err_hint(err, "there are: %s%s", bw_text_string(&known), all ? ", all" : "");
    bw_text_free(&known);
    return -EINVAL;
}

static const char *type_at(uint32_t number)
{
    return number < BW_COUNT_OF(types) ? types[number].name : NULL;
}

static const char *reduction_at(uint32_t number)
{
    return bw_reduction_name((enum bw_reduction)number);
}

static const char *strategy_at(uint32_t number)
{
    return bw_strategy_name((enum bw_strategy)number);
}

static void type_set(struct bw_bench_group *group, uint32_t type)
{
    group->type_name = types[type].name;
    group->dtype = types[type].dtype;
    group->element_bytes = bw_dtype_bytes(group->dtype);
}

static int words_take(struct bench *bench, struct bw_err *err)
{
    struct bw_bench_group *group = &bench->group;
    const struct bw_bench_options *options = bench->options;
    uint32_t type = 0, transport = 0, reduction = BW_REDUCE_SUM, strategy = BW_STRATEGY_AUTO;
    int rc = options->type ? name_find("-d", options->type, type_at, &type, &bench->all_types, err) : 0;
    if (!rc && options->transport)
        rc = name_find("--transport", options->transport, type_at, &transport, NULL, err);
    if (!rc && options->reduction)
        rc = name_find("-o", options->reduction, reduction_at, &reduction, &bench->all_reductions, err);
    if (!rc && options->strategy)
        rc = name_find("--strategy", options->strategy, strategy_at, &strategy, NULL, err);
    if (rc)
        return rc;
    type_set(group, type);
    group->transport = options->transport ? types[transport].dtype : BW_VOID;
    group->reduction = (enum bw_reduction)reduction;
    group->strategy = (enum bw_strategy)strategy;
    return 0;
}

static int rank_open(struct bench *bench, const char *name, struct bw_err *err)
{
    struct bw_bench_group *group = &bench->group;
    uint32_t rank = group->rank_count;
    int rc = bw_device_open(group->ctx, name, &group->devices[rank], err);
    if (rc)
        return rc;
    group->rank_count++;
    rc = bw_buffer_create(group->devices[rank], group->bytes_max, BW_BUFFER_DEVICE, &group->send[rank], err);
    if (!rc)
        rc = bw_buffer_create(group->devices[rank], group->bytes_max, BW_BUFFER_DEVICE, &group->receive[rank],
                              err);
    return rc;
}

static void group_close(struct bw_bench_group *group)
{
    for (uint32_t i = 0; i < group->rank_count; i++) {
        bw_buffer_destroy(group->send[i]);
        bw_buffer_destroy(group->receive[i]);
    }
    for (uint32_t i = 0; i < group->rank_count; i++)
        bw_device_close(group->devices[i]);
}

static int memory_make(struct bench *bench, uint32_t rank_count, struct bw_err *err)
{
    uint64_t all_bytes = bench->group.bytes_max > PLAIN_BYTES_MAX / rank_count
                             ? PLAIN_BYTES_MAX
                             : bench->group.bytes_max * rank_count;
    bench->plain_bytes = all_bytes;
    bench->memory = malloc(bench->group.bytes_max);
    for (int i = 0; i < 2; i++) {
        bench->plain[i] = malloc(all_bytes);
        if (bench->plain[i])
            memset(bench->plain[i], 1 + i, all_bytes);
    }
    return bench->memory && bench->plain[0] && bench->plain[1]
               ? 0
               : bw_fail(err, -ENOMEM, "bench", "%llu bytes", (unsigned long long)all_bytes);
}

/* Sizes as typed, or as nccl-tests would have them. */
static void sizes_choose(struct bench *bench)
{
    const struct bw_bench_options *options = bench->options;
    uint64_t most = options->bytes_max, least = options->bytes_min;
    if (!most)
        most = least > BYTES_DEFAULT ? least : BYTES_DEFAULT;
    if (!least)
        least = most < BYTES_DEFAULT ? most : BYTES_DEFAULT;
    bench->bytes_min = least;
    bench->group.bytes_max = most;
}

static int gpu_note(void *user, const struct bw_device_listing *listing)
{
    struct names *names = user;
    if (listing->usable && !listing->info.mock && listing->info.vram_bytes &&
        strcmp(listing->info.iface, "drm") && /* the same GPUs once more */
        names->count < BW_BENCH_RANKS_MAX)
        snprintf(names->text[names->count++], sizeof names->text[0], "%s", listing->info.name);
    return 0;
}

/* The devices named, or the machine's GPUs, or queues of the host where there are not as many. */
static int names_choose(const struct bw_bench_options *options, struct names *names, struct bw_err *err)
{
    int rc = 0;
    for (uint32_t i = 0; i < options->device_count && i < BW_BENCH_RANKS_MAX; i++)
        names->at[i] = options->devices[i];
    names->count = options->device_count;
    if (options->device_count > BW_BENCH_RANKS_MAX)
        return bw_fail(err, -E2BIG, "bench", "%u devices, at most %d", names->count, BW_BENCH_RANKS_MAX);
    if (options->ranks > names->count && options->device_count)
        return bw_fail(err, -EINVAL, "bench", "-g %u: %u devices", options->ranks, names->count);
    if (!options->device_count)
        rc = bw_device_list(options->ctx, gpu_note, names, err);
    bool host = !options->device_count && names->count < (options->ranks ? options->ranks : 2);
    if (host)
        names->count = options->ranks ? options->ranks : RANKS_DEFAULT;
    for (uint32_t i = 0; i < names->count && !options->device_count; i++) {
        if (host)
            snprintf(names->text[i], sizeof names->text[i], "host:%u", i);
        names->at[i] = names->text[i];
    }
    names->count = options->ranks ? options->ranks : names->count;
    return rc;
}

static int ranks_open(struct bench *bench, const struct names *names, struct bw_err *err)
{
    int rc = words_take(bench, err);
    if (!rc) {
        sizes_choose(bench);
        rc = memory_make(bench, names->count, err);
    }
    for (uint32_t i = 0; i < names->count && !rc; i++)
        rc = rank_open(bench, names->at[i], err);
    return rc;
}

static int bench_open(struct bench *bench, struct bw_err *err)
{
    struct names *names = calloc(1, sizeof *names);
    if (!names)
        return bw_fail(err, -ENOMEM, "bench", "names");
    int rc = names_choose(bench->options, names, err);
    if (!rc)
        rc = ranks_open(bench, names, err);
    free(names);
    return rc;
}
static void bench_close(struct bench *bench)
{
    group_close(&bench->group);
    bw_topology_free(&bench->group.topology);
    free(bench->memory);
    free(bench->plain[0]);
    free(bench->plain[1]);
}

/* ---- one size ---- */

/* Fresh inputs, other bytes where the results go, one run, every element compared. */
static int data_check(struct bench *bench, struct bw_linked_graph *linked, uint64_t size_bytes, bool in_place,
                      uint64_t *wrong, struct bw_err *err)
{
    const struct bw_bench_group *group = &bench->group;
    int rc = 0;
    if (!size_bytes)
        return 0;
    for (uint32_t rank = 0; rank < group->rank_count && !rc; rank++) {
        bench->collective->fill(group, rank, size_bytes, bench->memory);
        rc = bw_buffer_write(in_place ? group->receive[rank] : group->send[rank], 0, bench->memory,
                             size_bytes, err);
        memset(bench->memory, 0xa5, size_bytes);
        if (!rc && !in_place)
            rc = bw_buffer_write(group->receive[rank], 0, bench->memory, size_bytes, err);
    }
    if (!rc)
        rc = bw_bench_replay_once(linked, err);
    for (uint32_t rank = 0; rank < group->rank_count && !rc; rank++) {
        rc = bw_buffer_read(group->receive[rank], 0, bench->memory, size_bytes, err);
        if (!rc)
            *wrong += bench->collective->wrong(group, rank, size_bytes, bench->memory);
    }
    return rc;
}

static double plain_copy(struct bench *bench, uint64_t size_bytes)
{
    struct bw_sys *sys = bw_ctx_sys(bench->group.ctx);
    uint64_t all_bytes = size_bytes * bench->group.rank_count;
    if (all_bytes > bench->plain_bytes)
        all_bytes = bench->plain_bytes;
    uint64_t begin_ns = sys->ops->clock_ns(sys);
    memcpy(bench->plain[0], bench->plain[1], all_bytes);
    uint64_t elapsed_ns = sys->ops->clock_ns(sys) - begin_ns;
    return (double)all_bytes / (double)(elapsed_ns ? elapsed_ns : 1);
}

static int rounds_run(struct bench *bench, struct bw_linked_graph *linked, uint64_t size_bytes,
                      struct figures *figures, struct bw_err *err)
{
    struct bw_sys *sys = bw_ctx_sys(bench->group.ctx);
    const struct bw_bench_options *options = bench->options;
    uint32_t rounds = options->iterations < ROUNDS ? options->iterations : ROUNDS;
    double seconds[ROUNDS], plain[ROUNDS], ignored;
    int rc = options->warm_up ? bw_bench_replay_many(sys, linked, options->warm_up, &ignored, err) : 0;
    for (uint32_t round = 0; round < rounds && !rc; round++) {
        uint32_t count = options->iterations / rounds + (round < options->iterations % rounds);
        rc = bw_bench_replay_many(sys, linked, count, &seconds[round], err);
        plain[round] = plain_copy(bench, size_bytes);
    }
    if (rc)
        return rc;
    figures->seconds = bw_bench_median(seconds, rounds);
    bench->plain_gb_per_s = bw_bench_median(plain, rounds);
    return 0;
}

/* Checked before and after it is timed. */
static int way_run(struct bench *bench, uint64_t size_bytes, bool in_place, struct figures *figures,
                   struct bw_err *err)
{
    struct bw_bench_linked linked;
    *figures = (struct figures){0};
    int rc = bw_bench_link(&bench->group, bench->collective, size_bytes, in_place, NULL, &linked, err);
    if (!rc)
        rc = data_check(bench, linked.graph, size_bytes, in_place, &figures->wrong, err);
    if (!rc)
        rc = rounds_run(bench, linked.graph, size_bytes, figures, err);
    if (!rc)
        rc = data_check(bench, linked.graph, size_bytes, in_place, &figures->wrong, err);
    bw_bench_unlink(&linked);
    if (rc)
        return rc;
    figures->algbw = (double)size_bytes * 1e-9 / figures->seconds;
    figures->busbw = figures->algbw * bench->collective->bus_factor(bench->group.rank_count);
    bench->busbw_sum += figures->busbw;
    bench->busbw_count++;
    bench->wrong += figures->wrong;
    return 0;
}

static void way_add(cJSON *row, const char *name, const struct figures *figures)
{
    cJSON *way = cJSON_AddObjectToObject(row, name);
    cJSON_AddNumberToObject(way, "seconds", figures->seconds);
    cJSON_AddNumberToObject(way, "algbw_gb_per_s", figures->algbw);
    cJSON_AddNumberToObject(way, "busbw_gb_per_s", figures->busbw);
    cJSON_AddNumberToObject(way, "wrong", (double)figures->wrong);
}

static const char *redop_of(const struct bench *bench)
{
    return bench->collective->reduces ? bw_reduction_name(bench->group.reduction) : "none";
}

static void row_report(struct bench *bench, uint64_t size_bytes, uint64_t count, const struct figures *ways)
{
    const struct bw_bench_collective *collective = bench->collective;
    cJSON *row = cJSON_CreateObject();
    cJSON_AddNumberToObject(row, "size_bytes", (double)size_bytes);
    cJSON_AddNumberToObject(row, "count", (double)count);
    cJSON_AddStringToObject(row, "type", bench->group.type_name);
    cJSON_AddStringToObject(row, "redop", redop_of(bench));
    cJSON_AddNumberToObject(row, "root", collective->root);
    way_add(row, "out_of_place", &ways[0]);
    way_add(row, "in_place", &ways[1]);
    cJSON_AddItemToArray(bench->rows, row);
    if (!bench->options->text)
        return;
    bw_print(bench->options->text, "%12llu %13llu %9s %7s %7d", (unsigned long long)size_bytes,
             (unsigned long long)count, bench->group.type_name, redop_of(bench), collective->root);
    for (int way = 0; way < 2; way++)
        bw_print(bench->options->text, " %8.1f %7.2f %7.2f %6llu", ways[way].seconds * 1e6, ways[way].algbw,
                 ways[way].busbw, (unsigned long long)ways[way].wrong);
    bw_print(bench->options->text, "\n");
}

static int size_run(struct bench *bench, uint64_t typed_bytes, struct bw_err *err)
{
    struct figures ways[2];
    uint64_t size_bytes = typed_bytes, count = bench->collective->count(&bench->group, &size_bytes);
    bench->last_bytes = size_bytes;
    int rc = way_run(bench, size_bytes, true, &ways[1], err);
    if (!rc) /* last, so that its memcpy is what is told */
        rc = way_run(bench, size_bytes, false, &ways[0], err);
    if (!rc)
        row_report(bench, size_bytes, count, ways);
    return rc;
}

/* ---- all sizes ---- */

static void head_print(const struct bench *bench)
{
    FILE *text = bench->options->text;
    if (!text)
        return;
    for (uint32_t i = 0; i < bench->group.rank_count; i++)
        bw_print(text, "# rank %2u: %s\n", i, bw_device_info(bench->group.devices[i])->name);
    bw_print(text, "# %50s %32s %31s\n", "", "out-of-place", "in-place");
    bw_print(text, "# %10s %13s %9s %7s %7s", "size", "count", "type", "redop", "root");
    for (int way = 0; way < 2; way++)
        bw_print(text, " %8s %7s %7s %6s", "time", "algbw", "busbw", "#wrong");
    bw_print(text, "\n");
    bw_print(text, "# %10s %13s %9s %7s %7s", "(B)", "(elements)", "", "", "");
    for (int way = 0; way < 2; way++)
        bw_print(text, " %8s %7s %7s %6s", "(us)", "(GB/s)", "(GB/s)", "");
    bw_print(text, "\n");
}

static int sizes_run(struct bench *bench, struct bw_err *err)
{
    const struct bw_bench_options *options = bench->options;
    uint64_t step = options->step_bytes ? options->step_bytes : STEP_DEFAULT;
    int rc = 0;
    for (uint64_t bytes = bench->bytes_min; bytes <= bench->group.bytes_max && !rc;) {
        rc = size_run(bench, bytes, err);
        uint64_t next = options->factor > 1 ? bytes * options->factor : bytes + step;
        if (next <= bytes || (options->factor > 1 && next / options->factor != bytes))
            break;
        bytes = next;
    }
    return rc;
}

/* Of all types or all reductions: one that the collective does not do is told and passed over. */
static int refused_report(struct bench *bench, int rc, struct bw_err *err)
{
    if (rc != -ENOTSUP || strcmp(err->subsystem, "collective") != 0)
        return rc;
    if (bench->options->text)
        bw_print(bench->options->text, "# %s %s: %s\n", bench->group.type_name, redop_of(bench), err->what);
    return 0;
}

/* The sizes for each type and each reduction that is asked for; the group is left at the last that was done.
 */
static int kinds_run(struct bench *bench, struct bw_err *err)
{
    struct bw_bench_group *group = &bench->group, *last = malloc(sizeof *last);
    int rc = last ? 0 : bw_fail(err, -ENOMEM, "bench", "types");
    for (uint32_t type = 0; !rc && type < (bench->all_types ? BW_COUNT_OF(types) : 1); type++)
        for (uint32_t op = 0; !rc && (bench->all_reductions ? reduction_at(op) != NULL : !op); op++) {
            if (bench->all_types)
                type_set(group, type);
            if (bench->all_reductions)
                group->reduction = (enum bw_reduction)op;
            rc = sizes_run(bench, err);
            if (!rc)
                *last = *group;
            else if (bench->all_types || bench->all_reductions)
                rc = refused_report(bench, rc, err);
        }
    if (!rc && !bench->busbw_count)
        rc = err->code; /* the last refusal: nothing was done */
    else if (!rc)
        *group = *last;
    free(last);
    return rc;
}

static int matrix_report(struct bench *bench, struct bw_err *err)
{
    const struct bw_bench_options *options = bench->options;
    uint32_t count = bench->group.rank_count;
    uint64_t pair_bytes =
        bench->group.bytes_max < PAIR_BYTES_MAX ? bench->group.bytes_max : (uint64_t)PAIR_BYTES_MAX;
    double *gb_per_s = calloc((size_t)count * count, sizeof *gb_per_s);
    if (!gb_per_s)
        return bw_fail(err, -ENOMEM, "bench", "matrix");
    int rc = bw_bench_matrix(&bench->group, pair_bytes, gb_per_s, err);
    cJSON *matrix = cJSON_AddArrayToObject(bench->root, "matrix_gb_per_s");
    for (uint32_t from = 0; from < count && !rc; from++)
        cJSON_AddItemToArray(matrix, cJSON_CreateDoubleArray(&gb_per_s[from * count], (int)count));
    if (!rc && options->text)
        bw_bench_matrix_print(&bench->group, pair_bytes, gb_per_s, options->text);
    if (!rc && options->plot)
        rc = bw_bench_matrix_plot(&bench->group, pair_bytes, gb_per_s, options->plot, err);
    free(gb_per_s);
    return rc;
}

static void end_report(struct bench *bench)
{
    FILE *text = bench->options->text;
    cJSON_AddNumberToObject(bench->root, "memcpy_gb_per_s", bench->plain_gb_per_s);
    if (!text)
        return;
    bw_print(text, "# Wrong elements: %llu%s\n", (unsigned long long)bench->wrong, bench->wrong ? "" : " OK");
    bw_print(text, "# Average bus bandwidth: %.3f GB/s\n", bench->busbw_sum / bench->busbw_count);
}

/* Bytes over the wire are one thing, bytes that memory sees another: what all ranks together copied, out of
 * place, beside one thread that copies as much. */
static void moved_report(struct bench *bench)
{
    const cJSON *last = cJSON_GetArrayItem(bench->rows, cJSON_GetArraySize(bench->rows) - 1);
    const cJSON *rate = cJSON_GetObjectItem(cJSON_GetObjectItem(last, "out_of_place"), "algbw_gb_per_s");
    double moved = rate->valuedouble * bench->group.rank_count;
    if (!bench->collective->copies_all || moved <= 0)
        return;
    cJSON_AddNumberToObject(bench->root, "moved_gb_per_s", moved);
    if (bench->options->text)
        bw_print(
            bench->options->text,
            "# Moved by all ranks, last size: %.3f GB/s; memcpy, one thread, in between: %.3f GB/s; ratio "
            "%.2f\n",
            moved, bench->plain_gb_per_s, moved / bench->plain_gb_per_s);
}

static int model_report(struct bench *bench, struct bw_err *err)
{
    cJSON *model;
    int rc = bw_bench_model(&bench->group, bench->collective, bench->last_bytes, bench->options->text, &model,
                            err);
    if (!rc)
        cJSON_AddItemToObject(bench->root, "model", model ? model : cJSON_CreateNull());
    return rc;
}

static int bench_run(struct bench *bench, struct bw_err *err)
{
    int rc = bench_open(bench, err);
    if (!rc)
        rc = bw_bench_model_open(bench->options, &bench->group, err);
    if (rc)
        return rc;
    cJSON *names = cJSON_AddArrayToObject(bench->root, "devices");
    for (uint32_t i = 0; i < bench->group.rank_count; i++)
        cJSON_AddItemToArray(names, cJSON_CreateString(bw_device_info(bench->group.devices[i])->name));
    bench->rows = cJSON_AddArrayToObject(bench->root, "results");
    head_print(bench);
    rc = kinds_run(bench, err);
    if (rc)
        return rc;
    bench->measured = true;
    end_report(bench);
    moved_report(bench);
    rc = model_report(bench, err);
    if (!rc)
        rc = matrix_report(bench, err);
    if (!rc && bench->options->profile)
        rc = bw_bench_profile(&bench->group, bench->collective, bench->last_bytes, bench->options,
                              bench->root, err);
    if (!rc && bench->wrong)
        rc = bw_fail(err, -EBADMSG, "bench", "%llu elements are wrong", (unsigned long long)bench->wrong);
    return rc;
}

int bw_bench_collective_run(const struct bw_bench_options *options,
                            const struct bw_bench_collective *collective, struct cJSON **document,
                            struct bw_err *err)
{
    struct bench bench = {.options = options,
                          .collective = collective,
                          .group = {.ctx = options->ctx},
                          .root = cJSON_CreateObject()};
    int rc = bench_run(&bench, err);
    bench_close(&bench);
    if (bench.measured)
        *document = bench.root;
    else
        cJSON_Delete(bench.root);
    return rc;
}
