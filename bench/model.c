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
    struct bw_timing timing;
    double bound_seconds;
    uint32_t engines; /* of a GPU that were used */
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

static int gpus_find(struct bw_bench_group *group, struct bw_device_name *name, struct bw_err *err)
{
    int rc = 0;
    for (uint32_t i = 0; i < group->rank_count && !rc; i++) {
        rc = bw_device_name_parse(bw_device_info(group->devices[i])->name, name, err);
        group->gpus[i] = name->index;
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

int bw_bench_model_open(const struct bw_bench_options *options, struct bw_bench_group *group,
                        struct bw_err *err)
{
    struct bw_device_name name = {0};
    const char *file = options->model;
    if (!machine_of(group))
        return file ? bw_fail(err, -EINVAL, "bench", "--model is for mock GPUs of one machine") : 0;
    int rc = gpus_find(group, &name, err);
    file = file ? file : preset_of(&name);
    group->topology_file = file;
    if (!rc && file)
        rc = topology_open(file, &group->topology, err);
    bool fits = true;
    for (uint32_t i = 0; i < group->rank_count; i++)
        fits &= group->gpus[i] < group->topology.gpu_count;
    if (rc || fits || !group->topology.gpu_count)
        return rc;
    if (options->model)
        return bw_fail(err, -EINVAL, "bench", "topology %s has %u GPUs: not all ranks are among them",
                       group->topology.name, group->topology.gpu_count);
    bw_topology_free(&group->topology); /* the preset is of a smaller machine */
    return 0;
}

/* ---- the run ---- */

static int run_record(const struct bw_bench_group *group, const struct bw_bench_collective *collective,
                      uint64_t size_bytes, struct bw_mock_recording *recording, struct bw_err *err)
{
    struct bw_sys *sys = machine_of(group);
    struct bw_bench_linked linked;
    int rc = bw_bench_link(group, collective, size_bytes, false, NULL, &linked, err);
    if (!rc)
        rc = bw_bench_replay_once(linked.graph, err); /* what is made at first use is no part of it */
    if (!rc)
        rc = bw_mock_record_begin(sys, err);
    if (!rc) {
        struct bw_err ignored;
        rc = bw_bench_replay_once(linked.graph, err);
        int end_rc = bw_mock_record_end(sys, recording, rc ? &ignored : err);
        rc = rc ? rc : end_rc;
    }
    bw_bench_unlink(&linked);
    return rc;
}

static int bound_find(struct model *model, const struct bw_bench_collective *collective, uint64_t size_bytes,
                      struct bw_err *err)
{
    const struct bw_bench_group *group = model->group;
    uint32_t gpus = group->topology.gpu_count, ranks = group->rank_count;
    uint64_t *traffic = calloc((size_t)gpus * gpus, sizeof *traffic);
    if (!traffic)
        return bw_fail(err, -ENOMEM, "bench", "traffic");
    if (group->transport != BW_VOID) /* fewer bytes travel */
        size_bytes = size_bytes / group->element_bytes * bw_dtype_bytes(group->transport);
    for (uint32_t i = 0; i < ranks * ranks; i++)
        traffic[group->gpus[i / ranks] * gpus + group->gpus[i % ranks]] +=
            collective->traffic(ranks, i / ranks, i % ranks, size_bytes);
    int rc = bw_timing_bound(&group->topology, traffic, &model->bound_seconds, err);
    free(traffic);
    return rc;
}

static int model_run(struct model *model, const struct bw_bench_collective *collective, uint64_t size_bytes,
                     struct bw_err *err)
{
    struct bw_mock_recording recording = {0};
    int rc = bound_find(model, collective, size_bytes, err);
    if (!rc)
        rc = run_record(model->group, collective, size_bytes, &recording, err);
    if (!rc)
        rc = bw_timing_simulate(&model->group->topology, &recording, &model->timing, err);
    for (size_t i = 0; i < recording.queues.count; i++) {
        uint32_t engine = recording.queues.data[i].engine;
        if (engine != BW_MOCK_RECORD_NO_ENGINE && engine >= model->engines)
            model->engines = engine + 1;
    }
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
    const struct bw_topology *topology = &model->group->topology;
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

static cJSON *model_report(const struct model *model, uint64_t size_bytes, FILE *text)
{
    const struct bw_topology *topology = &model->group->topology;
    double seconds = model->timing.seconds, bytes = (double)size_bytes * 1e-9;
    double bound = model->bound_seconds > 0 ? bytes / model->bound_seconds : 0,
           achieved = seconds > 0 ? bytes / seconds : 0;
    cJSON *node = cJSON_CreateObject();
    cJSON_AddStringToObject(node, "file", model->group->topology_file);
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
    if (text && model->engines < topology->engines_per_gpu)
        bw_print(text,
                 "# %u of %u engines of each GPU were used: a mock has those of its chip, and with xgmi=N in "
                 "its name N more "
                 "for links\n",
                 model->engines, topology->engines_per_gpu);
    return node;
}

int bw_bench_model(const struct bw_bench_group *group, const struct bw_bench_collective *collective,
                   uint64_t size_bytes, FILE *text, struct cJSON **node, struct bw_err *err)
{
    struct model model = {.group = group};
    *node = NULL;
    if (!group->topology.gpu_count || !size_bytes)
        return 0;
    int rc = model_run(&model, collective, size_bytes, err);
    if (!rc)
        *node = model_report(&model, size_bytes, text);
    bw_timing_free(&model.timing);
    return rc;
}
