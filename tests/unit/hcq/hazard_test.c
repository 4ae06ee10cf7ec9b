/* Goal: whatever the hardware does between the waits and barriers that a plan gives it, the bytes are those
 * of serial execution; and a plan gives no wait that order already gives.
 *
 * A simulator runs plans as adversarially as the rules allow: queues advance in any order, operations of one
 * queue that no barrier separates take effect in any order, and a compute queue reads stale bytes from a
 * cache of its own until it is told to invalidate it. */
#include "hcq/plan.h"

#include "tests/check.h"
#include "tests/objects.h"
#include "tests/seed.h"

enum { SPACE_BYTES = 512, BUFFERS = 5, INPUTS = 3, SPACES = BUFFERS + INPUTS, QUEUES_MAX = 16 };

struct rig {
    struct bw_ctx *ctx;
    struct bw_device *devices[2];
    struct bw_program *programs[2];
    struct bw_kernel *kernels[2];
    struct bw_buffer *buffers[BUFFERS];
    struct bw_err err;
};

static bool rig_open(struct rig *rig)
{
    uint64_t image_bytes;
    void *image = bw_test_file(BW_HOST_KERNELS_PIC, &image_bytes);
    *rig = (struct rig){0};
    bool ok = BW_TRUE(image != NULL) && BW_OK(bw_ctx_create(NULL, &rig->ctx, &rig->err), &rig->err);
    for (int i = 0; i < 2 && ok; i++)
        ok = BW_OK(bw_device_open(rig->ctx, "null", &rig->devices[i], &rig->err), &rig->err) &&
             BW_OK(bw_program_load(rig->devices[i], image, image_bytes, &rig->programs[i], &rig->err),
                   &rig->err) &&
             BW_OK(bw_program_kernel(rig->programs[i], "mix", &rig->kernels[i], &rig->err), &rig->err);
    for (int i = 0; i < BUFFERS && ok; i++)
        ok = BW_OK(bw_buffer_create(rig->devices[i % 2], SPACE_BYTES, 0, &rig->buffers[i], &rig->err),
                   &rig->err);
    free(image);
    return ok;
}

static void rig_close(struct rig *rig)
{
    for (int i = 0; i < BUFFERS; i++)
        bw_buffer_destroy(rig->buffers[i]);
    for (int i = 0; i < 2; i++) {
        bw_program_destroy(rig->programs[i]);
        bw_device_close(rig->devices[i]);
    }
    bw_ctx_destroy(rig->ctx);
}

static struct bw_range range_at(const struct rig *rig, uint32_t space, uint64_t offset, uint64_t size_bytes)
{
    return (struct bw_range){space < BUFFERS ? rig->buffers[space] : NULL, space - BUFFERS, offset,
                             size_bytes};
}

static void kernel_add(struct rig *rig, struct bw_graph *graph, int device, struct bw_range target,
                       uint32_t target_access, struct bw_range source)
{
    struct bw_argument arguments[] = {{.source = BW_ARG_RANGE, .access = target_access, .range = target},
                                      {.source = BW_ARG_RANGE, .access = BW_ACCESS_READ, .range = source},
                                      {.source = BW_ARG_VALUE, .value = target.size_bytes},
                                      {.source = BW_ARG_VALUE, .value = source.size_bytes},
                                      {.source = BW_ARG_VALUE, .value = 7}};
    struct bw_launch launch = {.group_count = {{1, false}, {1, false}, {1, false}},
                               .group_size = {1, 1, 1},
                               .arguments = arguments,
                               .argument_count = 5};
    BW_OK(bw_graph_kernel(graph, rig->kernels[device], &launch, &rig->err), &rig->err);
}

static struct bw_range range_random(const struct rig *rig, struct bw_rng *rng)
{
    /* Few places, so that ranges meet, and sizes that straddle them. */
    uint64_t offset = bw_rng_below(rng, 16) * (SPACE_BYTES / 16) + bw_rng_below(rng, 3);
    uint64_t size_bytes = 1 + bw_rng_below(rng, bw_rng_below(rng, 4) ? 40 : SPACE_BYTES);
    if (size_bytes > SPACE_BYTES - offset)
        size_bytes = SPACE_BYTES - offset;
    return range_at(rig, (uint32_t)bw_rng_below(rng, SPACES), offset, size_bytes);
}

static void graph_random(struct rig *rig, struct bw_graph *graph, struct bw_rng *rng)
{
    uint64_t calls = 1 + bw_rng_below(rng, 40);
    for (uint64_t i = 0; i < calls; i++) {
        struct bw_range target = range_random(rig, rng), source = range_random(rig, rng);
        int device = (int)bw_rng_below(rng, 2);
        if (bw_rng_below(rng, 2)) {
            kernel_add(rig, graph, device, target,
                       bw_rng_below(rng, 2) ? BW_ACCESS_WRITE : BW_ACCESS_WRITE | BW_ACCESS_READ, source);
            continue;
        }
        uint64_t size_bytes = target.size_bytes < source.size_bytes ? target.size_bytes : source.size_bytes;
        target.size_bytes = source.size_bytes = size_bytes;
        int rc = bw_graph_copy(graph, rig->devices[device], target, source, &rig->err);
        BW_TRUE(rc == 0 || rc == -EINVAL); /* -EINVAL: they overlap */
    }
}

/* ---- the machine ---- */

struct machine {
    const struct rig *rig;
    const struct bw_plan *plan;
    uint8_t memory[SPACES][SPACE_BYTES];
    uint8_t cached[QUEUES_MAX][SPACES][SPACE_BYTES];
    bool valid[QUEUES_MAX][SPACES][SPACE_BYTES];
    bool caching;
    uint32_t next[QUEUES_MAX]; /* index of the operation that a queue issues next */
    uint8_t *state;            /* per operation: 0 waiting, 1 issued, 2 done */
};

static uint32_t space_of(const struct machine *machine, const struct bw_place *place)
{
    for (uint32_t i = 0; place->block && i < BUFFERS; i++) {
        if (machine->rig->buffers[i]->block == place->block)
            return i;
    }
    return BUFFERS + place->input;
}

static bool is_compute(const struct machine *machine, uint32_t queue)
{
    return machine->plan->queues.data[queue].hcq->queue->kind == BW_QUEUE_COMPUTE;
}

static uint8_t byte_read(struct machine *machine, uint32_t queue, uint32_t space, uint64_t at)
{
    if (!machine->caching || !is_compute(machine, queue))
        return machine->memory[space][at];
    if (!machine->valid[queue][space][at]) {
        machine->valid[queue][space][at] = true;
        machine->cached[queue][space][at] = machine->memory[space][at];
    }
    return machine->cached[queue][space][at];
}

static void byte_write(struct machine *machine, uint32_t queue, uint32_t space, uint64_t at, uint8_t value)
{
    machine->memory[space][at] = value; /* written through */
    machine->cached[queue][space][at] = value;
}

/* A kernel writes a mix of all that it reads; a copy copies. */
static void operation_run(struct machine *machine, uint32_t index)
{
    const struct bw_operation *operation = &machine->plan->operations.data[index];
    const struct bw_touch *touches = machine->plan->touches.data + operation->touch_begin;
    if (operation->size_bytes) {
        uint32_t source = space_of(machine, &operation->source),
                 target = space_of(machine, &operation->target);
        for (uint64_t i = 0; i < operation->size_bytes; i++)
            byte_write(machine, operation->queue, target, operation->target.offset + i,
                       byte_read(machine, operation->queue, source, operation->source.offset + i));
        return;
    }
    uint64_t mixed = index;
    for (uint32_t t = 0; t < operation->touch_count; t++) {
        for (uint64_t i = 0; !touches[t].write && i < touches[t].size_bytes; i++)
            mixed =
                bw_hash64(mixed ^ byte_read(machine, operation->queue, space_of(machine, &touches[t].place),
                                            touches[t].place.offset + i));
    }
    for (uint32_t t = 0; t < operation->touch_count; t++) {
        for (uint64_t i = 0; touches[t].write && i < touches[t].size_bytes; i++)
            byte_write(machine, operation->queue, space_of(machine, &touches[t].place),
                       touches[t].place.offset + i, (uint8_t)bw_hash64(mixed + i));
    }
}

static bool earlier_done(const struct machine *machine, uint32_t queue, bw_position position)
{
    for (uint32_t i = 0; i < machine->plan->operations.count; i++) {
        const struct bw_operation *operation = &machine->plan->operations.data[i];
        if (operation->queue == queue && operation->position <= position && machine->state[i] != 2)
            return false;
    }
    return true;
}

static bool waits_over(const struct machine *machine, const struct bw_operation *operation, bool host)
{
    const struct bw_plan *plan = machine->plan;
    for (uint32_t i = 0; i < operation->wait_count; i++) {
        const struct bw_wait *wait = &plan->waits.data[operation->wait_begin + i];
        if ((!host || wait->kind == BW_WAIT_HOST) && (!plan->operations.data[wait->operation].signalled ||
                                                      !earlier_done(machine, wait->queue, wait->position)))
            return false;
    }
    return true;
}

/* The host waits before it submits the operation, and whatever comes after it. */
static bool is_submitted(const struct machine *machine, uint32_t operation)
{
    for (uint32_t i = 0; i <= operation; i++)
        if (!waits_over(machine, &machine->plan->operations.data[i], true))
            return false;
    return true;
}

/* Issues the queue's next operation if its waits and its barrier let it. */
static bool queue_issue(struct machine *machine, uint32_t queue)
{
    const struct bw_plan *plan = machine->plan;
    while (machine->next[queue] < plan->operations.count &&
           plan->operations.data[machine->next[queue]].queue != queue)
        machine->next[queue]++;
    if (machine->next[queue] == plan->operations.count)
        return false;
    const struct bw_operation *operation = &plan->operations.data[machine->next[queue]];
    if (!is_submitted(machine, machine->next[queue]) || !waits_over(machine, operation, false))
        return false;
    if ((operation->barrier & BW_BARRIER_EXECUTION) && !earlier_done(machine, queue, operation->position - 1))
        return false;
    if (operation->barrier)
        memset(machine->valid[queue], 0, sizeof machine->valid[queue]);
    machine->state[machine->next[queue]++] = 1;
    return true;
}

static bool issued_run(struct machine *machine, struct bw_rng *rng)
{
    uint32_t count = (uint32_t)machine->plan->operations.count, start = (uint32_t)bw_rng_below(rng, count);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t index = (start + i) % count;
        if (machine->state[index] != 1)
            continue;
        operation_run(machine, index);
        machine->state[index] = 2;
        return true;
    }
    return false;
}

/* False: nothing can move although not all is done. */
static bool machine_run(struct machine *machine, struct bw_rng *rng)
{
    uint32_t queues = (uint32_t)machine->plan->queues.count;
    for (;;) {
        bool moved = false;
        uint64_t eager = bw_rng_below(rng, 4); /* how far queues run ahead of what is executed */
        for (uint64_t i = 0; i < eager * queues; i++)
            moved |= queue_issue(machine, (uint32_t)bw_rng_below(rng, queues));
        moved |= issued_run(machine, rng);
        if (moved)
            continue;
        for (uint32_t queue = 0; queue < queues; queue++)
            moved |= queue_issue(machine, queue);
        if (!moved)
            break;
    }
    for (uint32_t i = 0; i < machine->plan->operations.count; i++) {
        if (machine->state[i] != 2)
            return false;
    }
    return true;
}

static void memory_fill(struct machine *machine)
{
    for (uint32_t space = 0; space < SPACES; space++) {
        for (uint32_t i = 0; i < SPACE_BYTES; i++)
            machine->memory[space][i] = (uint8_t)bw_hash64(space * 1000 + i);
    }
}

/* By queue: a position. */
struct positions {
    bw_position of[QUEUES_MAX];
};

static void positions_raise(struct positions *positions, const struct positions *to)
{
    for (uint32_t q = 0; q < QUEUES_MAX; q++)
        positions->of[q] = to->of[q] > positions->of[q] ? to->of[q] : positions->of[q];
}

static struct positions with_wait(struct positions positions, const struct bw_wait *wait)
{
    if (positions.of[wait->queue] < wait->position)
        positions.of[wait->queue] = wait->position;
    return positions;
}

/* `after`: operations begin after these, if only by the order of submission, that is, also when they failed.
 * `well`: they begin only if these went well, since signals say so. Of operations, queues, and the host. */
struct failures {
    struct positions *after, *well, queue_after[QUEUES_MAX], queue_well[QUEUES_MAX], host_well;
};

static bool failures_step(struct failures *f, const struct bw_plan *plan, uint32_t index)
{
    const struct bw_operation *operation = &plan->operations.data[index];
    const struct bw_wait *waits = plan->waits.data + operation->wait_begin;
    struct positions *after = &f->queue_after[operation->queue], *well = &f->queue_well[operation->queue];
    bool ok = true;
    for (uint32_t i = 0; i < operation->wait_count; i++) {
        struct positions they_after = with_wait(f->after[waits[i].operation], &waits[i]);
        struct positions they_well = with_wait(f->well[waits[i].operation], &waits[i]);
        if (waits[i].kind == BW_WAIT_SUBMISSION)
            positions_raise(after, &they_after);
        else
            positions_raise(waits[i].kind == BW_WAIT_HOST ? &f->host_well : well, &they_well);
    }
    positions_raise(well, &f->host_well);
    for (uint32_t i = 0; i < operation->wait_count; i++) {
        for (uint32_t q = 0; q < QUEUES_MAX && waits[i].kind != BW_WAIT_SUBMISSION; q++)
            ok &= f->after[waits[i].operation].of[q] <= well->of[q];
    }
    f->after[index] = *after;
    f->well[index] = *well;
    return ok;
}

/* A submission begins also when what it waits for has failed. So who waits for the signal of one waits for
 * everything that it came after, too. */
static bool failures_are_seen(const struct bw_plan *plan)
{
    struct failures failures = {.after = calloc(plan->operations.count + 1, sizeof *failures.after),
                                .well = calloc(plan->operations.count + 1, sizeof *failures.well)};
    bool ok = BW_TRUE(failures.after && failures.well && plan->queues.count <= QUEUES_MAX);
    for (uint32_t i = 0; i < plan->operations.count && ok; i++)
        ok = BW_TRUE(failures_step(&failures, plan, i));
    free(failures.after);
    free(failures.well);
    return ok;
}

static void any_schedule_equals_serial_execution(void)
{
    struct rig rig;
    struct bw_rng rng = bw_test_rng("hazards");
    struct machine *serial = malloc(sizeof *serial), *machine = malloc(sizeof *machine);
    if (!rig_open(&rig))
        return;
    bool ok = true;
    for (int round = 0; round < 400 && ok; round++) {
        struct bw_graph *graph;
        struct bw_plan plan;
        rig.devices[0]->caps.device_wait = round % 5 != 0; /* sometimes the host has to wait in its place */
        rig.devices[1]->caps.device_wait = round % 3 != 0;
        rig.devices[1]->caps.submit_wait = round % 6 == 0; /* ... or the kernel */
        BW_OK(bw_graph_create(rig.ctx, &graph, &rig.err), &rig.err);
        graph_random(&rig, graph, &rng);
        if (BW_OK(bw_plan_make(graph, false, &plan, &rig.err), &rig.err)) {
            *serial = (struct machine){.rig = &rig, .plan = &plan};
            ok = failures_are_seen(&plan);
            memory_fill(serial);
            for (uint32_t i = 0; i < plan.operations.count; i++)
                operation_run(serial, i);
            for (int schedule = 0; schedule < 5 && ok && plan.operations.count; schedule++) {
                *machine = (struct machine){.rig = &rig, .plan = &plan, .caching = true};
                machine->state = calloc(plan.operations.count, 1);
                memory_fill(machine);
                ok = BW_TRUE(machine_run(machine, &rng)) &&
                     BW_BYTES(machine->memory, serial->memory, sizeof serial->memory);
                free(machine->state);
            }
            bw_plan_free(&plan);
        }
        bw_graph_destroy(graph);
    }
    free(serial);
    free(machine);
    rig_close(&rig);
}

/* ---- economy ---- */

struct counts {
    uint32_t waits, signals, barriers; /* barriers: after those that each queue begins with */
};

static struct counts plan_counts(struct rig *rig, struct bw_graph *graph)
{
    struct bw_plan plan;
    struct counts counts = {0};
    if (!BW_OK(bw_plan_make(graph, false, &plan, &rig->err), &rig->err))
        return counts;
    counts.waits = (uint32_t)plan.waits.count;
    for (size_t i = 0; i < plan.operations.count; i++) {
        counts.signals += plan.operations.data[i].signalled;
        counts.barriers += plan.operations.data[i].barrier && plan.operations.data[i].position > 1;
    }
    bw_plan_free(&plan);
    return counts;
}

static void order_that_is_given_is_not_waited_for(void)
{
    struct rig rig;
    struct bw_graph *graph;
    if (!rig_open(&rig))
        return;

    BW_OK(bw_graph_create(rig.ctx, &graph, &rig.err), &rig.err); /* independent kernels */
    for (uint32_t i = 0; i < 100; i++)
        kernel_add(&rig, graph, 0, range_at(&rig, 0, i * 4, 4), BW_ACCESS_WRITE, range_at(&rig, 1, 0, 64));
    struct counts counts = plan_counts(&rig, graph);
    BW_EQ(counts.waits, 0);
    BW_EQ(counts.barriers, 0);
    BW_EQ(counts.signals, 2); /* the last one of each queue, for the host */
    bw_graph_destroy(graph);

    BW_OK(bw_graph_create(rig.ctx, &graph, &rig.err),
          &rig.err); /* one barrier serves all that depends on what is before it */
    for (uint32_t i = 0; i < 10; i++)
        kernel_add(&rig, graph, 0, range_at(&rig, 0, i * 4, 4), BW_ACCESS_WRITE, range_at(&rig, 1, 0, 64));
    for (uint32_t i = 0; i < 10; i++)
        kernel_add(&rig, graph, 0, range_at(&rig, 2, i * 4, 4), BW_ACCESS_WRITE, range_at(&rig, 0, i * 4, 4));
    counts = plan_counts(&rig, graph);
    BW_EQ(counts.waits, 0); /* each follows its producer */
    BW_EQ(counts.barriers, 2);
    bw_graph_destroy(graph);

    BW_OK(bw_graph_create(rig.ctx, &graph, &rig.err),
          &rig.err); /* copies, kernel, copies: one wait each way, the newest */
    for (uint32_t i = 0; i < 10; i++)
        bw_graph_copy(graph, rig.devices[0], range_at(&rig, 0, i * 4, 4), range_at(&rig, 2, i * 4, 4),
                      &rig.err);
    kernel_add(&rig, graph, 0, range_at(&rig, 4, 0, 64), BW_ACCESS_WRITE, range_at(&rig, 0, 0, 40));
    for (uint32_t i = 0; i < 10; i++)
        bw_graph_copy(graph, rig.devices[0], range_at(&rig, 2, 100 + i * 4, 4), range_at(&rig, 4, i * 4, 4),
                      &rig.err);
    counts = plan_counts(&rig, graph);
    BW_EQ(counts.waits, 2);
    BW_EQ(counts.signals, 3); /* the tenth copy, the kernel (also its queue's last), the last copy */
    bw_graph_destroy(graph);

    BW_OK(bw_graph_create(rig.ctx, &graph, &rig.err),
          &rig.err); /* through a third queue: what it waited for is not waited for again */
    kernel_add(&rig, graph, 0, range_at(&rig, 0, 0, 64), BW_ACCESS_WRITE,
               range_at(&rig, 2, 0, 64)); /* device 0 compute */
    bw_graph_copy(graph, rig.devices[0], range_at(&rig, 2, 64, 64), range_at(&rig, 0, 0, 64),
                  &rig.err); /* its copy queue waits */
    kernel_add(&rig, graph, 1, range_at(&rig, 1, 0, 64), BW_ACCESS_WRITE,
               range_at(&rig, 2, 64, 64)); /* device 1 waits for the copy */
    kernel_add(&rig, graph, 1, range_at(&rig, 0, 0, 64), BW_ACCESS_WRITE,
               range_at(&rig, 1, 0, 64)); /* needs the first kernel, too: known */
    counts = plan_counts(&rig, graph);
    BW_EQ(counts.waits, 2);
    bw_graph_destroy(graph);
    rig_close(&rig);
}

BW_TEST_MAIN("hazard", {"any_schedule_equals_serial_execution", any_schedule_equals_serial_execution},
             {"order_that_is_given_is_not_waited_for", order_that_is_given_is_not_waited_for})
