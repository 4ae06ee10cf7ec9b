#include "mock/machine.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/text.h"
#include "mock/drm/client.h"
#include "mock/drm/drm.h"
#include "mock/engine/queue.h"
#include "mock/engine/slice.h"
#include "mock/isa/isa.h"
#include "mock/kfd/kfd.h"
#include "mock/link.h"
#include "mock/record.h"
#include "mock/trace.h"

/* Where things lie in the memfd: system memory from 0, GPU i at i + 1. */
#define POOL_STRIDE ((uint64_t)1 << 40)
/* What the kernel lets GPUs have of system memory on a machine of common size. */
#define SYSTEM_BYTES ((uint64_t)16 << 30)

enum { FIRST_RENDER_MINOR = 128, FIRST_BUS = 3, FIRST_GPU_ID = 0x4d1b, GPU_ID_STEP = 0x0917, STEP_NS = 1000 };
enum { XGMI_MB_PER_S = 64000 /* of links that a chip does not have: as those of gfx942 */ };

int bw_mock_refuse(struct bw_mock *machine, int code, const char *format, ...)
{
    char text[BW_MOCK_ERROR_BYTES];
    va_list arguments;
    va_start(arguments, format);
    bw_text_fit_v(text, sizeof text, format, arguments);
    va_end(arguments);
    bw_mock_error_set(machine, "%s", text);
    return code;
}

void bw_mock_error_set(struct bw_mock *machine, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char text[BW_MOCK_ERROR_BYTES];
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    bw_mock_trace_line(machine, "error: %s", text);
    pthread_mutex_lock(&machine->error_lock);
    memcpy(machine->last_error, text, sizeof text);
    pthread_mutex_unlock(&machine->error_lock);
}

void bw_mock_last_error(struct bw_sys *sys, char *text, uint32_t text_size)
{
    struct bw_mock *machine = bw_mock_of(sys);
    pthread_mutex_lock(&machine->error_lock);
    snprintf(text, text_size, "%s", machine->last_error);
    pthread_mutex_unlock(&machine->error_lock);
}

uint64_t bw_mock_clock_ns(struct bw_mock *machine)
{
    if (machine->single_step)
        return atomic_load(&machine->virtual_ns);
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

uint64_t bw_mock_gpu_clock(struct bw_mock *machine)
{
    return bw_mock_clock_ns(machine) / (1000000000 / BW_MOCK_GPU_CLOCK_HZ);
}

/* Single-step: whoever sleeps drives the engines, since nothing else would, until they rest or the time is
 * over. */
static void sleep_stepping(struct bw_mock *machine, uint64_t duration_ns)
{
    uint64_t end = bw_mock_clock_ns(machine) + duration_ns;
    while (bw_mock_clock_ns(machine) < end && bw_mock_step(&machine->sys))
        ;
    uint64_t now = bw_mock_clock_ns(machine);
    if (now < end)
        atomic_fetch_add(&machine->virtual_ns, end - now);
}

static void sleep_really(uint64_t duration_ns)
{
    struct timespec left = {.tv_sec = (time_t)(duration_ns / 1000000000),
                            .tv_nsec = (long)(duration_ns % 1000000000)};
    while (clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR)
        ;
}

void bw_mock_sleep_ns(struct bw_mock *machine, uint64_t duration_ns)
{
    if (machine->single_step)
        sleep_stepping(machine, duration_ns);
    else
        sleep_really(duration_ns);
}

void bw_mock_engine_delay(struct bw_mock *machine, uint64_t duration_ns)
{
    if (machine->single_step)
        atomic_fetch_add(&machine->virtual_ns, duration_ns);
    else
        sleep_really(duration_ns);
}

struct bw_mock_gpu *bw_mock_gpu_by_id(struct bw_mock *machine, uint32_t gpu_id)
{
    for (uint32_t i = 0; i < machine->gpu_count; i++) {
        if (machine->gpus[i].gpu_id == gpu_id)
            return &machine->gpus[i];
    }
    return NULL;
}

void bw_mock_stats(struct bw_sys *sys, struct bw_mock_stats *stats)
{
    struct bw_mock *machine = bw_mock_of(sys);
    *stats = (struct bw_mock_stats){
        .wave_instructions = atomic_load(&machine->stats.wave_instructions),
        .waves = atomic_load(&machine->stats.waves),
        .dispatches = atomic_load(&machine->stats.dispatches),
        .packets = atomic_load(&machine->stats.packets),
        .sdma_packets = atomic_load(&machine->stats.sdma_packets),
        .doorbells = atomic_load(&machine->stats.doorbells),
        .interrupts = atomic_load(&machine->stats.interrupts),
        .ioctls = atomic_load(&machine->stats.ioctls),
    };
    /* What runs now counts too, so that a watcher sees a long kernel move. */
    pthread_mutex_lock(&machine->lock);
    for (size_t p = 0; p < machine->processes.count; p++) {
        struct bw_mock_process *process = machine->processes.data[p];
        for (size_t i = 0; i < process->queues.count; i++) {
            stats->wave_instructions += atomic_load(&process->queues.data[i]->control.instructions);
            stats->waves += atomic_load(&process->queues.data[i]->control.waves_retired);
        }
    }
    pthread_mutex_unlock(&machine->lock);
}

const char *bw_mock_arch_at(uint32_t index)
{
    const struct bw_isa *isa;
    const struct bw_mock_chip *chip;
    for (size_t i = 0; (chip = bw_mock_chip_at(i)); i++) {
        if (bw_isa_find(chip->arch, &isa) == 0 && !index--)
            return chip->arch;
    }
    return NULL;
}

uint64_t bw_mock_packets_executed(struct bw_sys *sys, enum bw_mock_packets kind, uint8_t opcode)
{
    return atomic_load(&bw_mock_of(sys)->stats.executed[kind][opcode]);
}

int bw_mock_fault_add(struct bw_sys *sys, const char *specification, struct bw_err *err)
{
    return bw_mock_faults_add(&bw_mock_of(sys)->faults, specification, err);
}

void bw_mock_fault_clear(struct bw_sys *sys)
{
    bw_mock_faults_clear(&bw_mock_of(sys)->faults);
}

/* Queues that exist now; the list is a copy, the queues stay valid while step_lock is held (destroying one
 * takes it). */
typedef BW_VEC(struct bw_mock_queue *) queue_list;

static void collect_queues(struct bw_mock *machine, queue_list *queues)
{
    pthread_mutex_lock(&machine->lock);
    for (size_t i = 0; i < machine->processes.count; i++) {
        struct bw_mock_process *process = machine->processes.data[i];
        for (size_t j = 0; j < process->queues.count; j++)
            (void)bw_vec_push(queues, process->queues.data[j]);
    }
    pthread_mutex_unlock(&machine->lock);
}

int bw_mock_step(struct bw_sys *sys)
{
    struct bw_mock *machine = bw_mock_of(sys);
    if (!machine->single_step)
        return 0;
    int moved = 0;
    queue_list queues = {0};
    pthread_mutex_lock(&machine->step_lock);
    collect_queues(machine, &queues);
    while (queues.count && !moved) {
        size_t pick = (size_t)bw_rng_below(&machine->rng, queues.count);
        enum bw_mock_queue_progress progress = bw_mock_queue_step(queues.data[pick]);
        moved = progress == BW_MOCK_QUEUE_MOVED || progress == BW_MOCK_QUEUE_RUNNING;
        queues.data[pick] = queues.data[--queues.count];
    }
    if (moved)
        atomic_fetch_add(&machine->virtual_ns, STEP_NS);
    pthread_mutex_unlock(&machine->step_lock);
    bw_vec_free(&queues);
    return moved;
}

/* Addresses, not memory: what nobody writes to takes none. */
static int fail_space(int rc, const char *what, uint64_t bytes, struct bw_err *err)
{
    bw_fail(err, rc, "mock", "%s: %.1f GiB of address space", what, (double)bytes / (1 << 30));
    bw_err_hint(err, "what bounds it: ulimit -v, vm.overcommit_memory = 2");
    return rc;
}

static int gpu_open(struct bw_mock *machine, uint32_t index, const struct bw_mock_chip *chip,
                    const struct bw_mock_config *config, struct bw_err *err)
{
    struct bw_mock_gpu *gpu = &machine->gpus[index];
    gpu->index = index;
    gpu->chip = chip;
    /* The kernel hashes bus address and size to 16 bits; any numbers that differ and are not zero will do
     * (the step is odd, so that 64 GPUs get 64 numbers). */
    gpu->gpu_id = (FIRST_GPU_ID + index * GPU_ID_STEP) & 0xffff;
    gpu->render_minor = FIRST_RENDER_MINOR + index;
    gpu->bus = FIRST_BUS + index;
    gpu->node = index * machine->node_count / machine->gpu_count;
    gpu->cu_count = config->cu_count ? config->cu_count : chip->cu_count;
    gpu->save = bw_mock_chip_save_sizes(chip, gpu->cu_count);
    gpu->render_fd = memfd_create("bellwire-mock-render", MFD_CLOEXEC);
    if (gpu->render_fd < 0)
        return bw_fail(err, -errno, "mock", "render node of GPU %u", index);
    uint64_t vram = bw_align_up(config->vram_bytes ? config->vram_bytes : chip->vram_bytes, BW_MOCK_PAGE);
    gpu->visible_bytes = config->bar_bytes && config->bar_bytes < vram ? config->bar_bytes : vram;
    int rc = bw_mock_pool_open(&gpu->vram, machine->memory_fd, (index + 1) * POOL_STRIDE, vram * 2, vram);
    char what[32];
    snprintf(what, sizeof what, "memory of GPU %u", index);
    return rc ? fail_space(rc, what, vram * 2, err) : 0;
}

static void gpu_close(struct bw_mock_gpu *gpu)
{
    bw_mock_pool_close(&gpu->vram);
    bw_mock_slice_destroy(gpu->slice);
    if (gpu->isa_pool)
        bw_isa_pool_destroy(gpu->isa_pool);
    if (gpu->render_fd > 0)
        close(gpu->render_fd);
}

/* What can be struck on a machine with amdgpu in front, KFD and DRM. */
static int sites_open(struct bw_mock_faults *faults, const struct bw_mock_chip *chip, bool kfd)
{
    enum {
        FAIL = 1 << BW_MOCK_FAULT_FAIL,
        DROP = 1 << BW_MOCK_FAULT_DROP,
        DELAY = 1 << BW_MOCK_FAULT_DELAY,
        DUP = 1 << BW_MOCK_FAULT_DUP,
        HANG = 1 << BW_MOCK_FAULT_HANG,
    };
    char name[48];
    const char *ioctl;
    int rc = bw_mock_faults_site(faults, "map", FAIL | DELAY, false) ||
             bw_mock_faults_site(faults, "node", FAIL | DELAY, false);
    if (!rc && kfd)
        rc = bw_mock_faults_site(faults, "doorbell", DROP | DELAY | DUP, true) ||
             bw_mock_faults_site(faults, "irq", DROP | DELAY | DUP, true);
    if (!rc)
        rc = bw_mock_faults_site(faults, "mec", FAIL | DROP | DELAY | HANG, true) ||
             bw_mock_faults_site(faults, "kernel", FAIL | DROP | DELAY | DUP | HANG, true);
    for (uint32_t i = 0; !rc && i < chip->sdma_engines + chip->sdma_xgmi_engines; i++) {
        snprintf(name, sizeof name, "sdma%u", i);
        rc = bw_mock_faults_site(faults, name, FAIL | DROP | DELAY | HANG, true);
    }
    for (uint32_t i = 0; !rc && kfd && (ioctl = bw_mock_kfd_ioctl_name(i)); i++) {
        snprintf(name, sizeof name, "ioctl.%s", ioctl);
        rc = bw_mock_faults_site(faults, name, FAIL | DELAY, false);
    }
    for (uint32_t i = 0; !rc && (ioctl = bw_mock_drm_ioctl_name(i)); i++) {
        snprintf(name, sizeof name, "ioctl.%s", ioctl);
        rc = bw_mock_faults_site(faults, name, FAIL | DELAY, true);
    }
    return rc ? -ENOMEM : 0;
}

static int machine_open(struct bw_mock *machine, const struct bw_mock_chip *chip,
                        const struct bw_mock_config *config, struct bw_err *err)
{
    int rc = bw_sys_host_create(&machine->host);
    if (rc)
        return bw_fail(err, rc, "mock", "host calls");
    rc = sites_open(&machine->faults, chip, !machine->kfd_absent);
    if (!rc)
        rc = bw_mock_link_sites(machine);
    if (rc)
        return bw_fail(err, rc, "mock", "sites of fault injection");
    machine->memory_fd = memfd_create("bellwire-mock-memory", MFD_CLOEXEC);
    if (machine->memory_fd < 0)
        return bw_fail(err, -errno, "mock", "memfd_create");
    if (ftruncate(machine->memory_fd, (off_t)(POOL_STRIDE * (machine->gpu_count + 1))))
        return bw_fail(err, -errno, "mock", "size of the memory file");
    rc = bw_mock_pool_open(&machine->system, machine->memory_fd, 0, SYSTEM_BYTES * 2, SYSTEM_BYTES);
    if (rc)
        return fail_space(rc, "system memory", SYSTEM_BYTES * 2, err);
    for (uint32_t i = 0; i < machine->gpu_count; i++) {
        rc = gpu_open(machine, i, chip, config, err);
        if (rc)
            return rc;
    }
    rc = bw_mock_topology_build(machine);
    if (!rc)
        rc = bw_mock_drm_machine_open(machine);
    return rc ? bw_fail(err, rc, "mock", "topology") : 0;
}

/* The caller has ended every process. */
static void machine_free(struct bw_mock *machine)
{
    for (uint32_t i = 0; i < machine->gpu_count; i++)
        gpu_close(&machine->gpus[i]);
    bw_mock_drm_machine_close(machine);
    bw_mock_pool_close(&machine->system);
    if (machine->memory_fd > 0)
        close(machine->memory_fd);
    if (bw_mock_traces(machine) && !machine->trace_shared)
        machine->host->ops->close(machine->host, atomic_load(&machine->trace_fd));
    if (machine->host)
        bw_sys_destroy(machine->host);
    bw_mock_tree_free(&machine->tree);
    bw_mock_faults_fini(&machine->faults);
    bw_vec_free(&machine->files);
    bw_vec_free(&machine->processes);
    bw_vec_free(&machine->cpu_maps);
    bw_mock_policies_free(&machine->policies);
    pthread_mutex_destroy(&machine->lock);
    pthread_mutex_destroy(&machine->step_lock);
    bw_mock_record_drop(machine);
    pthread_mutex_destroy(&machine->error_lock);
    pthread_mutex_destroy(&machine->record_lock);
    free(machine->gpus);
    free(machine);
}

static int refuse_arch(const char *arch, struct bw_err *err)
{
    struct bw_text text = {0};
    const struct bw_mock_chip *chip;
    for (size_t i = 0; (chip = bw_mock_chip_at(i)); i++)
        bw_text_add(&text, "%s%s", i ? ", " : "", chip->arch);
    bw_fail(err, -ENODEV, "mock", "arch \"%s\" is not modelled", arch);
    bw_err_hint(err, "known: %s", bw_text_string(&text));
    bw_text_free(&text);
    return -ENODEV;
}

static int check_config(const struct bw_mock_config *config, const struct bw_mock_chip **chip,
                        struct bw_err *err)
{
    if (!config || config->size < sizeof *config || !config->arch)
        return bw_fail(err, -EINVAL, "mock", "configuration: size or arch missing");
    *chip = bw_mock_chip_find(config->arch);
    if (!*chip)
        return refuse_arch(config->arch, err);
    if (config->gpu_count > BW_MOCK_GPUS_MAX)
        return bw_fail(err, -EINVAL, "mock", "%u GPUs, at most %d", config->gpu_count, BW_MOCK_GPUS_MAX);
    if (config->xgmi_engines > BW_MOCK_XGMI_ENGINES_MAX)
        return bw_fail(err, -EINVAL, "mock", "%u engines for links, at most %d", config->xgmi_engines,
                       BW_MOCK_XGMI_ENGINES_MAX);
    if (config->nodes > BW_MOCK_NODES_MAX)
        return bw_fail(err, -EINVAL, "mock", "%u nodes of memory, at most %d", config->nodes,
                       BW_MOCK_NODES_MAX);
    uint32_t cus = config->cu_count ? config->cu_count : (*chip)->cu_count;
    if (cus > (*chip)->cu_count || cus % (*chip)->xcc_count)
        return bw_fail(err, -EINVAL, "mock", "%u compute units: %s has %u, in steps of %u", cus, config->arch,
                       (*chip)->cu_count, (*chip)->xcc_count);
    if (config->vram_bytes > POOL_STRIDE / 2)
        return bw_fail(err, -EINVAL, "mock", "VRAM of more than 512 GiB");
    return 0;
}

int bw_mock_kfd_create(const struct bw_mock_config *config, struct bw_sys **sys, struct bw_err *err)
{
    const struct bw_mock_chip *chip = NULL;
    *sys = NULL;
    int rc = check_config(config, &chip, err);
    if (rc)
        return rc;
    uint32_t count = config->gpu_count ? config->gpu_count : 1;
    struct bw_mock *machine = calloc(1, sizeof *machine);
    struct bw_mock_gpu *gpus = calloc(count, sizeof *gpus);
    if (!machine || !gpus) {
        free(machine);
        free(gpus);
        return bw_fail(err, -ENOMEM, "mock", "machine");
    }
    machine->sys.ops = &bw_mock_sys_ops;
    machine->gpus = gpus;
    machine->gpu_count = count;
    machine->pid = getpid();
    machine->seed = config->seed;
    machine->jitter = config->jitter;
    machine->single_step = config->single_step;
    machine->node_count = config->nodes ? config->nodes : 1;
    machine->node_unknown = config->node_unknown;
    machine->kfd_absent = config->kfd_absent;
    machine->threads = config->threads;
    machine->rng.state = config->seed;
    atomic_store(&machine->virtual_ns, 1000000000);
    pthread_mutex_init(&machine->lock, NULL);
    pthread_mutex_init(&machine->step_lock, NULL);
    pthread_mutex_init(&machine->error_lock, NULL);
    pthread_mutex_init(&machine->record_lock, NULL);
    atomic_store(&machine->trace_fd, -1);
    machine->chip = *chip;
    if (config->xgmi_engines)
        machine->chip.sdma_xgmi_engines = config->xgmi_engines;
    if (config->xgmi_engines && !chip->xgmi_mb_per_s)
        machine->chip.xgmi_mb_per_s = XGMI_MB_PER_S;
    bw_mock_faults_init(&machine->faults, count);
    rc = machine_open(machine, &machine->chip, config, err);
    if (rc) {
        machine_free(machine);
        return rc;
    }
    *sys = &machine->sys;
    return 0;
}

void bw_mock_machine_free(struct bw_mock *machine)
{
    machine_free(machine);
}
