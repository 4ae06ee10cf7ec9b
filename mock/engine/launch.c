#include "base/text.h"
#include "base/thread.h"
#include "mock/engine/dispatch.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "mock/engine/registers.h"
#include "mock/engine/slice.h"
#include "mock/trace.h"

enum {
    /* Single-step mode: what a wave-instruction, or a turn of a wave that only sleeps or waits, adds to the
     * virtual clock. A slow GPU: then a kernel that never ends is past any deadline after little work. */
    KERNEL_STEP_NS = 100,
};

enum {
    GROUP_ITEMS_MAX = 1024,
    USER_DATA_REGISTERS = 16,
    VGPRS_MAX = 256,               /* of a wave */
    VGPRS_MAX_GFX9 = 512,          /* accumulation registers among them */
    LDS_BLOCK_BYTES = 512,         /* LLVM AMDGPUUsage, GRANULATED_LDS_SIZE */
    LDS_BLOCK_BYTES_GFX950 = 1280, /* same, gfx950 */
};

/* Fields of COMPUTE_PGM_RSRC1 and 2. */
enum {
    RSRC1_VGPRS_HIGH = 5,
    RSRC1_WGP_MODE = 29,
    RSRC2_SCRATCH_EN = 0,
    RSRC2_USER_SGPR_LOW = 1,
    RSRC2_USER_SGPR_HIGH = 5,
    RSRC2_TIDIG_LOW = 11,
    RSRC2_TIDIG_HIGH = 12,
};

__attribute__((format(printf, 3, 4))) static bool refuse(char *text, size_t size, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    bw_text_fit_v(text, size, format, arguments);
    va_end(arguments);
    return true;
}

static bool refuse_group(const struct bw_mock_launch *launch, uint64_t *items, char *text, size_t size)
{
    const uint32_t *group = launch->dispatch.group_size;
    *items = (uint64_t)group[0] * group[1] * group[2];
    if (!group[0] || !group[1] || !group[2])
        return refuse(text, size, "NUM_THREAD %u x %u x %u", group[0], group[1], group[2]);
    if (group[0] > GROUP_ITEMS_MAX || group[1] > GROUP_ITEMS_MAX || group[2] > GROUP_ITEMS_MAX ||
        *items > GROUP_ITEMS_MAX)
        return refuse(text, size, "NUM_THREAD %u x %u x %u: more than %d work-items in a group", group[0],
                      group[1], group[2], GROUP_ITEMS_MAX);
    return false;
}

/* Whether the waves of one group fit the vector registers and wave slots of the SIMDs that it may use, those
 * of one CU or of two. A group that does not fit never starts, and the queue hangs. */
static bool refuse_vgprs(const struct bw_mock_gpu *gpu, const struct bw_mock_launch *launch, uint64_t items,
                         char *text, size_t size)
{
    const struct bw_isa_dispatch *dispatch = &launch->dispatch;
    bool gfx9 = bw_mock_family(gpu->chip) == BW_MOCK_GFX9;
    uint32_t scale = dispatch->wave_size == 32 ? 2 : 1, most = gfx9 ? VGPRS_MAX_GFX9 : VGPRS_MAX;
    uint32_t vgprs = (bw_field(dispatch->rsrc1, 0, RSRC1_VGPRS_HIGH) + 1) * (gfx9 ? 8 : 4) * scale;
    if (vgprs > most)
        return refuse(text, size, "RSRC1.VGPRS asks for %u registers, a wave has at most %u", vgprs, most);
    uint32_t file = gpu->chip->wave64_vgprs * scale, granule = gpu->chip->wave64_vgpr_granule * scale;
    uint32_t per_simd = file / (uint32_t)(bw_div_up(vgprs, granule) * granule);
    uint32_t simds = gpu->chip->simd_per_cu * (!gfx9 && dispatch->rsrc1 >> RSRC1_WGP_MODE & 1 ? 2 : 1);
    per_simd = per_simd < gpu->chip->waves_per_simd ? per_simd : gpu->chip->waves_per_simd;
    uint64_t waves = bw_div_up(items, dispatch->wave_size);
    if (waves > (uint64_t)per_simd * simds)
        return refuse(text, size,
                      "a group of %llu waves with %u VGPRs does not fit %u SIMDs of %u waves each",
                      (unsigned long long)waves, vgprs, simds, per_simd);
    return false;
}

static bool refuse_lds(const struct bw_mock_gpu *gpu, struct bw_mock_launch *launch, char *text, size_t size)
{
    uint32_t block = gpu->chip->target_version == 90500 ? LDS_BLOCK_BYTES_GFX950 : LDS_BLOCK_BYTES;
    uint64_t bytes = (uint64_t)launch->lds_blocks * block, most = (uint64_t)gpu->chip->lds_kib << 10;
    if (bytes > most)
        return refuse(text, size, "RSRC2.LDS_SIZE asks for %llu bytes, a group has at most %llu",
                      (unsigned long long)bytes, (unsigned long long)most);
    launch->dispatch.lds_bytes = (uint32_t)bytes;
    return false;
}

/* COMPUTE_TMPRING_SIZE: WAVES in [11:0], per shader engine since gfx11; WAVESIZE above, in units of 1 KiB or
 * 256 bytes. A group runs on one engine, and does not start before all of its waves have a slot. */
static bool refuse_scratch(const struct bw_mock_gpu *gpu, struct bw_mock_launch *launch, uint64_t items,
                           char *text, size_t size)
{
    struct bw_isa_dispatch *dispatch = &launch->dispatch;
    bool rdna = bw_mock_family(gpu->chip) != BW_MOCK_GFX9;
    uint32_t waves = bw_field(launch->tmpring, 0, 11), wave_units = launch->tmpring >> 12;
    if (!(dispatch->rsrc2 >> RSRC2_SCRATCH_EN & 1)) {
        dispatch->scratch_base = 0;
        return false;
    }
    if (!dispatch->scratch_base)
        return refuse(text, size, "RSRC2.SCRATCH_EN, but DISPATCH_SCRATCH_BASE is 0");
    if (!waves || !wave_units)
        return refuse(text, size, "RSRC2.SCRATCH_EN, but TMPRING_SIZE is 0x%08x", launch->tmpring);
    uint64_t needed = bw_div_up(items, dispatch->wave_size);
    if (needed > waves)
        return refuse(text, size, "a group of %llu waves, TMPRING_SIZE gives %u of them scratch",
                      (unsigned long long)needed, waves);
    dispatch->scratch_wave_bytes = wave_units * (rdna ? 256 : 1024);
    dispatch->scratch_wave_slots = waves * (rdna ? gpu->chip->shader_engines : 1);
    return false;
}

bool bw_mock_launch_refused(const struct bw_mock_gpu *gpu, struct bw_mock_launch *launch, char *text,
                            size_t text_size)
{
    const struct bw_isa_dispatch *dispatch = &launch->dispatch;
    uint64_t items;
    if (refuse_group(launch, &items, text, text_size))
        return true;
    if (dispatch->wave_size == 32 && bw_mock_family(gpu->chip) == BW_MOCK_GFX9)
        return refuse(text, text_size, "CS_W32_EN on %s, which has waves of 64", gpu->chip->arch);
    if (bw_field(dispatch->rsrc2, RSRC2_USER_SGPR_LOW, RSRC2_USER_SGPR_HIGH) > USER_DATA_REGISTERS)
        return refuse(text, text_size, "RSRC2.USER_SGPR is %u, there are %d user data registers",
                      bw_field(dispatch->rsrc2, RSRC2_USER_SGPR_LOW, RSRC2_USER_SGPR_HIGH),
                      USER_DATA_REGISTERS);
    if (bw_field(dispatch->rsrc2, RSRC2_TIDIG_LOW, RSRC2_TIDIG_HIGH) == 3)
        return refuse(text, text_size, "RSRC2.TIDIG_COMP_CNT is 3");
    return refuse_vgprs(gpu, launch, items, text, text_size) || refuse_lds(gpu, launch, text, text_size) ||
           refuse_scratch(gpu, launch, items, text, text_size);
}

static void *resolve(void *user, uint64_t va, enum bw_isa_access access, uint64_t *valid_start,
                     uint64_t *valid_bytes)
{
    return bw_mock_space_resolve(user, va, access, valid_start, valid_bytes);
}

static uint64_t gpu_clock(void *user)
{
    return bw_mock_gpu_clock(user);
}

/* Finds the emulator and its threads; the caller owns the GPU's compute units. */
static int open_emulator(struct bw_mock_queue *queue)
{
    struct bw_mock *machine = queue->machine;
    struct bw_mock_gpu *gpu = queue->context->gpu;
    if (gpu->isa_pool)
        return 0;
    int rc = bw_isa_find(gpu->chip->arch, &gpu->isa);
    if (!rc && machine->single_step && !gpu->slice)
        rc = bw_mock_slice_create(&gpu->slice);
    return rc ? rc : bw_isa_pool_create(machine->single_step ? 1 : machine->threads, &gpu->isa_pool);
}

static const char *status_name(enum bw_isa_status status)
{
    switch (status) {
    case BW_ISA_MISALIGNED:
        return "misaligned access";
    case BW_ISA_LDS_MISALIGNED:
        return "misaligned LDS access";
    case BW_ISA_ILLEGAL_INSTRUCTION:
        return "illegal instruction";
    case BW_ISA_LDS_OUT_OF_RANGE:
        return "LDS access out of range";
    case BW_ISA_TRAP:
        return "trap";
    case BW_ISA_BAD_DISPATCH:
        return "dispatch that hardware refuses";
    case BW_ISA_UNSUPPORTED:
        return "operation that the emulator does not have";
    case BW_ISA_DEADLOCK:
        return "deadlock within a group";
    default:
        return "failure";
    }
}

static enum bw_mock_queue_progress conclude(struct bw_mock_queue *queue,
                                            const struct bw_isa_dispatch *dispatch,
                                            const struct bw_isa_result *result)
{
    char what[320]; /* result->text, and some 100 for the place */
    struct bw_mock_mapping mapping;
    unsigned long long entry = dispatch->entry_va, pc = result->pc;
    if (result->status == BW_ISA_DONE)
        return BW_MOCK_QUEUE_MOVED;
    if (result->status == BW_ISA_STOPPED)
        return BW_MOCK_QUEUE_STOPPED;
    pthread_mutex_lock(&queue->machine->error_lock);
    queue->fault_pc = result->pc;
    queue->fault_entry_va = dispatch->entry_va;
    queue->fault_va = result->va;
    queue->faulted = result->status == BW_ISA_MISALIGNED;
    pthread_mutex_unlock(&queue->machine->error_lock);
    switch (result->status) {
    case BW_ISA_MEMORY_FAULT: {
        struct bw_mock_violation violation = {
            .va = result->va,
            .access = result->access,
            .mapped = bw_mock_space_find(&queue->context->space, result->va, &mapping),
        };
        bw_text_fit(what, sizeof what, "kernel 0x%llx at pc 0x%llx, group (%u, %u, %u) wave %u lane %u: %s",
                    entry, pc, result->group[0], result->group[1], result->group[2], result->wave,
                    result->lane, result->text);
        return bw_mock_queue_fault(queue, &violation, what);
    }
    case BW_ISA_MISALIGNED:
    case BW_ISA_LDS_MISALIGNED:
    case BW_ISA_LDS_OUT_OF_RANGE:
        return bw_mock_queue_fail(
            queue, "kernel 0x%llx at pc 0x%llx, group (%u, %u, %u) wave %u lane %u: %s at 0x%llx: %s", entry,
            pc, result->group[0], result->group[1], result->group[2], result->wave, result->lane,
            status_name(result->status), (unsigned long long)result->va, result->text);
    default:
        return bw_mock_queue_fail(queue, "kernel 0x%llx at pc 0x%llx, group (%u, %u, %u) wave %u: %s: %s",
                                  entry, pc, result->group[0], result->group[1], result->group[2],
                                  result->wave, status_name(result->status), result->text);
    }
}

static void count_run(struct bw_mock_queue *queue)
{
    const struct bw_isa_result *result = &queue->kernel.result;
    atomic_fetch_add(&queue->waves_retired, atomic_exchange(&queue->control.waves_retired, 0));
    atomic_store(&queue->control.instructions, 0);
    atomic_fetch_add(&queue->machine->stats.wave_instructions, result->instructions);
    atomic_fetch_add(&queue->machine->stats.waves, result->waves);
    atomic_fetch_add(&queue->machine->stats.dispatches, 1);
}

/* Single-step mode, on the slice's thread: how much time has passed, and a rest. */
static void pause_run(void *user, uint64_t instructions, uint64_t turns)
{
    struct bw_mock_queue *queue = user;
    atomic_fetch_add(&queue->machine->virtual_ns, (instructions + turns) * KERNEL_STEP_NS);
    bw_mock_slice_park(queue->context->gpu->slice);
}

static void run_whole(void *user)
{
    struct bw_mock_queue *queue = user;
    const struct bw_mock_gpu *gpu = queue->context->gpu;
    bw_isa_run(gpu->isa, gpu->isa_pool, &queue->kernel.dispatch, &queue->control, &queue->kernel.result);
}

/* Prepares the next run of the kernel that the queue is at. */
static void begin_run(struct bw_mock_queue *queue)
{
    struct bw_mock *machine = queue->machine;
    struct bw_isa_dispatch *dispatch = &queue->kernel.dispatch;
    dispatch->shared_aperture = queue->context->shared_aperture;
    dispatch->private_aperture = queue->context->private_aperture;
    dispatch->memory =
        (struct bw_isa_memory){resolve, &queue->context->space, &queue->context->space.generation};
    dispatch->seed = machine->single_step ? bw_rng_next(&machine->rng) : machine->seed;
    dispatch->single_step = machine->single_step;
    dispatch->clock_hz = BW_MOCK_GPU_CLOCK_HZ;
    dispatch->clock = gpu_clock;
    dispatch->clock_user = machine;
    dispatch->pause = pause_run;
    dispatch->pause_user = queue;
    atomic_store(&queue->kernel.entry_va, dispatch->entry_va);
    atomic_fetch_add(&queue->context->dispatches, 1);
}

static enum bw_mock_queue_progress end_run(struct bw_mock_queue *queue)
{
    atomic_fetch_sub(&queue->context->dispatches, 1);
    atomic_store(&queue->kernel.entry_va, 0);
    count_run(queue);
    return conclude(queue, &queue->kernel.dispatch, &queue->kernel.result);
}

/* Lets the kernel that the queue is at run on: to its end, or in single-step mode for a while. */
static enum bw_mock_queue_progress go_on(struct bw_mock_queue *queue)
{
    struct bw_mock_gpu *gpu = queue->context->gpu;
    enum bw_mock_queue_progress progress = BW_MOCK_QUEUE_MOVED;
    while (queue->kernel.times && progress == BW_MOCK_QUEUE_MOVED) {
        if (!queue->kernel.under_way)
            begin_run(queue);
        queue->kernel.under_way = true;
        if (!queue->machine->single_step)
            run_whole(queue);
        else if (!bw_mock_slice_go(gpu->slice, run_whole, queue))
            return BW_MOCK_QUEUE_RUNNING;
        queue->kernel.under_way = false;
        queue->kernel.times--;
        progress = end_run(queue);
    }
    queue->kernel.times = 0;
    atomic_store(&gpu->kernel_of, NULL);
    return progress;
}

void bw_mock_launch_abandon(struct bw_mock_queue *queue)
{
    if (!queue->kernel.under_way)
        return;
    atomic_store(&queue->control.stop, 1);
    while (go_on(queue) == BW_MOCK_QUEUE_RUNNING)
        ;
    atomic_store(&queue->control.stop, 0);
}

/* What fault injection does to a kernel; *times says how often it then runs. */
static bool injection_passes(struct bw_mock_queue *queue, enum bw_mock_queue_progress *progress)
{
    struct bw_mock_fault fault;
    queue->kernel.times = 1;
    switch (bw_mock_faults_check(&queue->machine->faults, "kernel", queue->context->gpu->index, &fault)) {
    case BW_MOCK_FAULT_HANG:
        *progress = bw_mock_queue_hang(queue, "kernel");
        return false;
    case BW_MOCK_FAULT_FAIL:
        *progress = bw_mock_queue_fail(queue, "kernel: injected failure (%s)", strerror(fault.error));
        return false;
    case BW_MOCK_FAULT_DELAY:
        bw_mock_engine_delay(queue->machine, fault.delay_ns);
        return true;
    case BW_MOCK_FAULT_DROP:
        queue->kernel.times = 0;
        return true;
    case BW_MOCK_FAULT_DUP:
        queue->kernel.times = 2;
        return true;
    default:
        return true;
    }
}

enum bw_mock_queue_progress bw_mock_launch_run(struct bw_mock_queue *queue, struct bw_mock_launch *launch)
{
    struct bw_mock_gpu *gpu = queue->context->gpu;
    struct bw_mock_queue *other = NULL;
    enum bw_mock_queue_progress progress = BW_MOCK_QUEUE_MOVED;
    if (queue->kernel.under_way)
        return go_on(queue);
    if (!atomic_compare_exchange_strong(&gpu->kernel_of, &other, queue))
        return bw_mock_queue_block(queue, "a kernel of another queue has the compute units");
    int rc = open_emulator(queue);
    if (rc == -EAGAIN) {
        progress = bw_mock_queue_fail(queue, "no threads for the emulator; " BW_THREAD_LIMITS);
    } else if (rc) {
        progress = bw_mock_queue_fail(queue, "no emulator for %s (%s)", gpu->chip->arch, strerror(-rc));
    } else if (injection_passes(queue, &progress)) {
        queue->kernel.dispatch = launch->dispatch;
        bw_mock_trace_dispatch(queue, &queue->kernel.dispatch);
        return go_on(queue);
    }
    atomic_store(&gpu->kernel_of, NULL);
    return progress;
}
