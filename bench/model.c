/* What a model of links and engines says of the schedule: one run on mock GPUs is recorded, and timed by a
 * simulation (mock/timing.h) on a topology from a file. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bellwire/mock.h>

#include "base/bits.h"
#include "bench/collective.h"
#include "iface/name.h"
#include "mock/timing.h"
#include "tools/print.h"
#include "tools/tool.h"

enum { FILE_BYTES_MAX = 1 << 20, PATH_BYTES = 4096 };

/* Where the presets lie, seen from the program: installed, in the build tree. */
static const char *const folders[] = {BW_DATA_FROM_PROGRAM "/topologies", "topologies"};

static const struct {
    const char *arch, *preset;
} presets[] = {{"gfx942", "8xMI300X"}, {"gfx950", "8xMI350X"}, {"gfx1100", "8xRX7900XTX"}};

struct model {
    const struct bw_bench_group *group;
    struct bw_topology topology;
    uint32_t gpus[BW_BENCH_RANKS_MAX]; /* by rank */
    struct bw_timing timing;
    double bound_seconds;
};

/* ---- the machine ---- */

/* The mock that all ranks live in; NULL: they do not. */
static struct bw_sys *machine_of(const struct bw_bench_group *group)
{
    struct bw_sys *sys = bw_device_mock(group->devices[0]);
    for (uint32_t i = 1; i < group->rank_count; i++)
        sys = bw_device_mock(group->devices[i]) == sys ? sys : NULL;
    return sys;
}

static int gpus_find(struct model *model, struct bw_device_name *name, struct bw_err *err)
{
    int rc = 0;
    for (uint32_t i = 0; i < model->group->rank_count && !rc; i++) {
        rc = bw_device_name_parse(bw_device_info(model->group->devices[i])->name, name, err);
        model->gpus[i] = name->index;
    }
    return rc;
}

static const char *preset_of(const struct bw_device_name *name)
{
    for (size_t i = 0; i < BW_COUNT_OF(presets); i++)
        if (!strcmp(presets[i].arch, name->arch) && !name->xgmi_engines)
            return presets[i].preset;
    return name->xgmi_engines ? presets[0].preset : NULL;
}

/* ---- the topology ---- */

static bool path_find(const char *name, char path[PATH_BYTES])
{
    char program[PATH_BYTES];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (strchr(name, '/') || (strlen(name) > 5 && !strcmp(name + strlen(name) - 5, ".json")))
        return snprintf(path, PATH_BYTES, "%s", name) < PATH_BYTES;
    if (length < 0)
        return false;
    program[length] = 0;
    *strrchr(program, '/') = 0;
    for (size_t i = 0; i < BW_COUNT_OF(folders); i++)
        if (snprintf(path, PATH_BYTES, "%s/%s/%s.json", program, folders[i], name) < PATH_BYTES &&
            access(path, R_OK) == 0)
            return true;
    return false;
}

static int topology_open(const char *name, struct bw_topology *topology, struct bw_err *err)
{
    char path[PATH_BYTES];
    void *text = NULL;
    uint64_t bytes = 0;
    if (!path_find(name, path)) {
        bw_fail(err, -ENOENT, "bench", "no topology '%s'", name);
        bw_err_hint(err, "a file with / or .json in its name, 8xMI300X, 8xMI350X or 8xRX7900XTX");
        return -ENOENT;
    }
    int rc = bw_tool_read_file(path, FILE_BYTES_MAX, &text, &bytes, err);
    if (!rc)
        rc = bw_topology_parse(name, text, bytes, topology, err);
    free(text);
    return rc;
}

/* ---- the run ---- */

static int run_record(const struct model *model, const struct bw_bench_collective *collective,
                      uint64_t size_bytes, struct bw_mock_recording *recording, struct bw_err *err)
{
    struct bw_sys *sys = machine_of(model->group);
    struct bw_linked_graph *linked = NULL;
    int rc = collective->link(model->group, size_bytes, false, &linked, err);
    if (!rc)
        rc = bw_bench_replay_once(linked, err); /* what is made at first use is no part of it */
    if (!rc)
        rc = bw_mock_record_begin(sys, err);
    if (!rc) {
        struct bw_err ignored;
        rc = bw_bench_replay_once(linked, err);
        int end_rc = bw_mock_record_end(sys, recording, rc ? &ignored : err);
        rc = rc ? rc : end_rc;
    }
    bw_linked_graph_destroy(linked);
    return rc;
}

static int bound_find(struct model *model, const struct bw_bench_collective *collective, uint64_t size_bytes,
                      struct bw_err *err)
{
    uint32_t gpus = model->topology.gpu_count, ranks = model->group->rank_count;
    uint64_t *traffic = calloc((size_t)gpus * gpus, sizeof *traffic);
    if (!traffic)
        return bw_fail(err, -ENOMEM, "bench", "traffic");
    for (uint32_t i = 0; i < ranks * ranks; i++)
        traffic[model->gpus[i / ranks] * gpus + model->gpus[i % ranks]] +=
            collective->traffic(ranks, i / ranks, i % ranks, size_bytes);
    int rc = bw_timing_bound(&model->topology, traffic, &model->bound_seconds, err);
    free(traffic);
    return rc;
}

static int model_run(struct model *model, const struct bw_bench_collective *collective, uint64_t size_bytes,
                     struct bw_err *err)
{
    struct bw_mock_recording recording = {0};
    for (uint32_t i = 0; i < model->group->rank_count; i++)
        if (model->gpus[i] >= model->topology.gpu_count)
            return bw_fail(err, -EINVAL, "bench", "topology %s has %u GPUs, and rank %u is GPU %u",
                           model->topology.name, model->topology.gpu_count, i, model->gpus[i]);
    int rc = bound_find(model, collective, size_bytes, err);
    if (!rc)
        rc = run_record(model, collective, size_bytes, &recording, err);
    if (!rc)
        rc = bw_timing_simulate(&model->topology, &recording, &model->timing, err);
    bw_mock_recording_free(&recording);
    return rc;
}

/* ---- the report ---- */

static void end_add(cJSON *link, const char *key, uint32_t end)
{
    if (end == BW_TOPOLOGY_HOST)
        cJSON_AddStringToObject(link, key, "host");
    else
        cJSON_AddNumberToObject(link, key, end);
}

static void busy_add(const struct model *model, cJSON *node)
{
    const struct bw_topology *topology = &model->topology;
    cJSON *links = cJSON_AddArrayToObject(node, "links"), *engines = cJSON_AddArrayToObject(node, "engines");
    for (uint32_t i = 0; i < topology->link_count; i++) {
        cJSON *link = cJSON_CreateObject();
        end_add(link, "from", topology->links[i].from);
        end_add(link, "to", topology->links[i].to);
        cJSON_AddNumberToObject(link, "busy", model->timing.link_busy[i]);
        cJSON_AddItemToArray(links, link);
    }
    for (uint32_t i = 0; i < topology->gpu_count * topology->engines_per_gpu; i++) {
        cJSON *engine = cJSON_CreateObject();
        cJSON_AddNumberToObject(engine, "gpu", i / topology->engines_per_gpu);
        cJSON_AddNumberToObject(engine, "engine", i % topology->engines_per_gpu);
        cJSON_AddNumberToObject(engine, "busy", model->timing.engine_busy[i]);
        cJSON_AddItemToArray(engines, engine);
    }
}

static double most_of(const double *values, uint32_t count)
{
    double most = 0;
    for (uint32_t i = 0; i < count; i++)
        most = values[i] > most ? values[i] : most;
    return most;
}

static cJSON *model_report(const struct model *model, const char *file, uint64_t size_bytes, FILE *text)
{
    const struct bw_topology *topology = &model->topology;
    double seconds = model->timing.seconds, bytes = (double)size_bytes * 1e-9;
    double bound = model->bound_seconds > 0 ? bytes / model->bound_seconds : 0,
           achieved = seconds > 0 ? bytes / seconds : 0;
    cJSON *node = cJSON_CreateObject();
    cJSON_AddStringToObject(node, "file", file);
    cJSON_AddNumberToObject(node, "bound_gb_per_s", bound);
    cJSON_AddNumberToObject(node, "achieved_gb_per_s", achieved);
    busy_add(model, node);
    if (text && bound > 0)
        bw_print(
            text,
            "# Modelled on %s, last size: algbw %.2f GB/s, %.3f of the bound of %.2f; busiest link %.3f, "
            "engine %.3f\n",
            topology->name, achieved, achieved / bound, bound,
            most_of(model->timing.link_busy, topology->link_count),
            most_of(model->timing.engine_busy, topology->gpu_count * topology->engines_per_gpu));
    return node;
}

int bw_bench_model_check(const struct bw_bench_options *options, const struct bw_bench_group *group,
                         struct bw_err *err)
{
    struct bw_topology topology;
    if (!options->model)
        return 0;
    if (!machine_of(group))
        return bw_fail(err, -EINVAL, "bench", "--model is for mock GPUs of one machine");
    int rc = topology_open(options->model, &topology, err);
    if (!rc)
        bw_topology_free(&topology);
    return rc;
}

int bw_bench_model(const struct bw_bench_options *options, const struct bw_bench_group *group,
                   const struct bw_bench_collective *collective, uint64_t size_bytes, struct cJSON **node,
                   struct bw_err *err)
{
    struct model model = {.group = group};
    struct bw_device_name name = {0};
    const char *file = options->model;
    *node = NULL;
    if (!machine_of(group))
        return 0;
    int rc = gpus_find(&model, &name, err);
    file = file ? file : preset_of(&name);
    if (rc || !file || !collective->traffic || !size_bytes)
        return rc;
    rc = topology_open(file, &model.topology, err);
    if (!rc && !options->model && name.count > model.topology.gpu_count) {
        bw_topology_free(&model.topology); /* the preset is of a smaller machine */
        return 0;
    }
    if (!rc)
        rc = model_run(&model, collective, size_bytes, err);
    if (!rc)
        *node = model_report(&model, file, size_bytes, options->text);
    bw_timing_free(&model.timing);
    bw_topology_free(&model.topology);
    return rc;
}
