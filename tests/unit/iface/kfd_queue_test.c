/* Goal: queues of each kind on every chip that the mock knows, the doorbells, the interrupts and the faults
 * of the KFD interface. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>

#include "base/bits.h"
#include "iface/kfd.h"
#include "tests/kfd_fixture.h"

static const char *const chips[] = {"gfx1100", "gfx1101", "gfx1102", "gfx1200",
                                    "gfx1201", "gfx942",  "gfx950",  "gfx90a"};

/* The mock computes the sizes on its own from the same kernel file and refuses what differs. */
static void queues_of_each_kind_on_each_chip(void)
{
    for (size_t chip = 0; chip < BW_COUNT_OF(chips); chip++) {
        struct kfd_fixture f;
        struct bw_err err = {0};
        struct bw_iface_memory rings[3], pointers;
        struct bw_iface_queue queues[3];
        if (!fixture_open(&f, chips[chip]))
            continue;
        BW_OK(f.iface->ops->alloc(f.iface, 4096, BW_IFACE_HOST | BW_IFACE_UNCACHED, 0, &pointers, &err),
              &err);
        for (int kind = 0; kind < 3; kind++) {
            BW_OK(f.iface->ops->alloc(f.iface, 1 << 16, BW_IFACE_HOST | BW_IFACE_UNCACHED, 0, &rings[kind],
                                      &err),
                  &err);
            struct bw_iface_queue_request request = {.kind = (enum bw_iface_queue_kind)kind,
                                                     .ring = &rings[kind],
                                                     .read_pointer_va = pointers.gpu_va + (uint64_t)kind * 64,
                                                     .write_pointer_va =
                                                         pointers.gpu_va + 2048 + (uint64_t)kind * 64,
                                                     .priority = 7};
            if (!BW_OK(f.iface->ops->queue_create(f.iface, &request, &queues[kind], &err), &err))
                printf("      %s, kind %d\n", chips[chip], kind);
            BW_EQ(queues[kind].doorbell.size_bytes, 8);
            for (int other = 0; other < kind; other++)
                BW_TRUE(queues[other].id != queues[kind].id);
        }
        for (int kind = 0; kind < 3; kind++) {
            BW_OK(f.iface->ops->queue_destroy(f.iface, &queues[kind], &err), &err);
            BW_OK(f.iface->ops->free(f.iface, &rings[kind], &err), &err);
        }
        BW_OK(f.iface->ops->free(f.iface, &pointers, &err), &err);
        fixture_close(&f);
    }
}

static void doorbells_are_mapped_once(void)
{
    struct kfd_fixture f;
    struct pm4_fixture a, b;
    struct bw_err err = {0};
    if (!fixture_open(&f, "gfx1100"))
        return;
    uint64_t start = bw_sys_wrap_calls(f.sys, BW_SYS_CALL_MAP);
    BW_OK(pm4_open(&a, f.iface, &err), &err);
    uint64_t first = bw_sys_wrap_calls(f.sys, BW_SYS_CALL_MAP) - start;
    BW_OK(pm4_open(&b, f.iface, &err), &err);
    BW_EQ(bw_sys_wrap_calls(f.sys, BW_SYS_CALL_MAP) - start, 2 * first - 1);
    BW_OK(pm4_close(&a, &err), &err);
    BW_OK(pm4_close(&b, &err), &err);
    fixture_close(&f);
}

/* What the kernel refuses with a bare EINVAL has a reason here. */
static void bad_queues_are_refused_in_words(void)
{
    struct kfd_fixture f;
    struct bw_iface_memory ring, odd, pointers, large, vram;
    struct bw_iface_queue queue, second;
    struct bw_err err = {0};
    if (!fixture_open(&f, "gfx1100"))
        return;
    const struct bw_iface_ops *ops = f.iface->ops;
    BW_OK(ops->alloc(f.iface, 8192, BW_IFACE_HOST, 0, &ring, &err), &err);
    BW_OK(ops->alloc(f.iface, 12288, BW_IFACE_HOST, 0, &odd, &err), &err);
    BW_OK(ops->alloc(f.iface, 64, BW_IFACE_HOST, 0, &pointers, &err), &err);
    BW_OK(ops->alloc(f.iface, 8192, BW_IFACE_HOST, 0, &large, &err), &err);
    BW_OK(ops->alloc(f.iface, 4096, BW_IFACE_VRAM, 0, &vram, &err), &err);
    const uint64_t good = pointers.gpu_va;
    const struct {
        struct bw_iface_queue_request request;
        const char *what;
    } cases[] = {
        {{BW_IFACE_QUEUE_SDMA, &odd, good, good + 8, 7}, "ring size"},
        {{BW_IFACE_QUEUE_SDMA, &ring, large.gpu_va, good, 7}, "read pointer"},
        {{BW_IFACE_QUEUE_SDMA, &ring, good, vram.gpu_va, 7}, "write pointer"},
        {{BW_IFACE_QUEUE_SDMA, &ring, good, good + 4, 7}, "write pointer"},
        {{BW_IFACE_QUEUE_SDMA, &ring, 64, good, 7}, "read pointer"},
        {{BW_IFACE_QUEUE_SDMA, &ring, good, good + 8, 16}, "priority 16"},
    };
    uint64_t ioctls = bw_sys_wrap_calls(f.sys, BW_SYS_CALL_IOCTL);
    for (size_t i = 0; i < BW_COUNT_OF(cases); i++) {
        BW_EQ(ops->queue_create(f.iface, &cases[i].request, &queue, &err), -EINVAL);
        BW_TRUE(strstr(err.what, cases[i].what) != NULL);
    }
    BW_EQ(bw_sys_wrap_calls(f.sys, BW_SYS_CALL_IOCTL), ioctls);
    struct bw_iface_queue_request request = {BW_IFACE_QUEUE_SDMA, &ring, good, good + 8, 15};
    BW_OK(ops->queue_create(f.iface, &request, &queue, &err), &err);
    BW_EQ(ops->queue_create(f.iface, &request, &second, &err), -EBUSY);
    BW_EQ(ops->free(f.iface, &ring, &err), -EBUSY);
    BW_OK(ops->queue_destroy(f.iface, &queue, &err), &err);
    BW_EQ(ops->queue_destroy(f.iface, &(struct bw_iface_queue){.id = 77}, &err), -EINVAL);
    BW_OK(ops->free(f.iface, &ring, &err), &err);
    BW_OK(ops->free(f.iface, &odd, &err), &err);
    BW_OK(ops->free(f.iface, &pointers, &err), &err);
    BW_OK(ops->free(f.iface, &large, &err), &err);
    BW_OK(ops->free(f.iface, &vram, &err), &err);
    fixture_close(&f);
}

static void too_many_sdma_queues_are_refused_with_a_hint(void)
{
    enum { MANY = 64 };
    struct kfd_fixture f;
    struct bw_iface_memory rings[MANY], pointers;
    struct bw_iface_queue queues[MANY];
    struct bw_err err = {0};
    int count = 0;
    if (!fixture_open(&f, "gfx1100"))
        return;
    BW_OK(f.iface->ops->alloc(f.iface, 8, BW_IFACE_HOST, 0, &pointers, &err), &err);
    for (; count < MANY; count++) {
        BW_OK(f.iface->ops->alloc(f.iface, 4096, BW_IFACE_HOST, 0, &rings[count], &err), &err);
        struct bw_iface_queue_request request = {BW_IFACE_QUEUE_SDMA, &rings[count], pointers.gpu_va,
                                                 pointers.gpu_va + 8, 7};
        if (f.iface->ops->queue_create(f.iface, &request, &queues[count], &err))
            break;
    }
    BW_EQ(count, f.iface->properties.sdma_engines * f.iface->properties.sdma_queues_per_engine);
    BW_EQ(err.code, -ENOMEM);
    BW_TRUE(strstr(err.hint, "all SDMA queues") != NULL);
    BW_OK(f.iface->ops->free(f.iface, &rings[count], &err), &err);
    while (count-- > 0) {
        BW_OK(f.iface->ops->queue_destroy(f.iface, &queues[count], &err), &err);
        BW_OK(f.iface->ops->free(f.iface, &rings[count], &err), &err);
    }
    BW_OK(f.iface->ops->free(f.iface, &pointers, &err), &err);
    fixture_close(&f);
}

struct gpu {
    struct kfd_fixture f;
    struct pm4_fixture q;
    struct bw_iface_memory word; /* what the queue writes */
    struct bw_err err;
};

static bool gpu_open(struct gpu *gpu)
{
    memset(gpu, 0, sizeof *gpu);
    return fixture_open(&gpu->f, "gfx1100") && BW_OK(pm4_open(&gpu->q, gpu->f.iface, &gpu->err), &gpu->err) &&
           BW_OK(gpu->f.iface->ops->alloc(gpu->f.iface, 4096, BW_IFACE_HOST | BW_IFACE_UNCACHED, 0,
                                          &gpu->word, &gpu->err),
                 &gpu->err);
}

static void gpu_close(struct gpu *gpu)
{
    BW_OK(pm4_close(&gpu->q, &gpu->err), &gpu->err);
    BW_OK(gpu->f.iface->ops->free(gpu->f.iface, &gpu->word, &gpu->err), &gpu->err);
    fixture_close(&gpu->f);
}

/* Waits for interrupts until the word has the value; false after a second. */
static bool wait_value(struct gpu *gpu, uint64_t value)
{
    struct bw_iface *iface = gpu->f.iface;
    for (int tries = 0; tries < 100 && bw_rd64(&gpu->word.cpu, 0) != value; tries++)
        if (!BW_TRUE(iface->ops->wait_interrupt(iface, FIXTURE_WAIT_NS / 100, &gpu->err) >= 0))
            return false;
    return BW_EQ(bw_rd64(&gpu->word.cpu, 0), value);
}

static void an_interrupt_ends_the_wait(void)
{
    struct gpu gpu;
    if (!gpu_open(&gpu))
        return;
    struct bw_iface *iface = gpu.f.iface;
    for (uint64_t i = 1; i <= 50; i++) {
        pm4_signal(&gpu.q, gpu.word.gpu_va, i, NULL);
        if (!wait_value(&gpu, i))
            break;
    }
    /* All of them have been seen by now: at most one is kept, then there is nothing. */
    iface->ops->wait_interrupt(iface, 20000000, &gpu.err);
    uint64_t start = iface->sys->ops->clock_ns(iface->sys);
    BW_EQ(iface->ops->wait_interrupt(iface, 20000000, &gpu.err), 0);
    BW_TRUE(iface->sys->ops->clock_ns(iface->sys) - start >= 20000000);
    BW_EQ(iface->ops->wait_interrupt(iface, 0, &gpu.err), 0);
    gpu_close(&gpu);
}

static void an_interrupt_before_the_wait_is_kept(void)
{
    struct gpu gpu;
    if (!gpu_open(&gpu))
        return;
    struct bw_iface *iface = gpu.f.iface;
    pm4_signal(&gpu.q, gpu.word.gpu_va, 1, NULL);
    while (bw_rd64(&gpu.q.pointers.cpu, 0) != gpu.q.write_words)
        iface->sys->ops->sleep_ns(iface->sys, 1000000);
    BW_EQ(iface->ops->wait_interrupt(iface, FIXTURE_WAIT_NS, &gpu.err), 1);
    BW_EQ(bw_rd64(&gpu.word.cpu, 0), 1);
    BW_EQ(iface->ops->wait_interrupt(iface, 0, &gpu.err), 0);
    gpu_close(&gpu);
}

static void interrupts_of_one_gpu_do_not_go_to_another(void)
{
    struct kfd_fixture f;
    struct bw_iface *other = NULL;
    struct pm4_fixture q;
    struct bw_iface_memory word;
    struct bw_err err = {0};
    uint64_t mailbox, other_mailbox;
    uint32_t event, other_event;
    if (!fixture_machine(&f, "gfx1100", 2, 0))
        return;
    BW_OK(bw_kfd_open(f.sys, 0, &f.iface, &err), &err);
    BW_OK(bw_kfd_open(f.sys, 1, &other, &err), &err);
    f.iface->ops->interrupt_target(f.iface, &mailbox, &event);
    other->ops->interrupt_target(other, &other_mailbox, &other_event);
    BW_TRUE(mailbox && other_mailbox && mailbox != other_mailbox && event != other_event);
    BW_OK(pm4_open(&q, other, &err), &err);
    BW_OK(other->ops->alloc(other, 4096, BW_IFACE_HOST, 0, &word, &err), &err);
    pm4_signal(&q, word.gpu_va, 9, NULL);
    BW_EQ(other->ops->wait_interrupt(other, FIXTURE_WAIT_NS, &err), 1);
    BW_EQ(bw_rd64(&word.cpu, 0), 9);
    BW_EQ(f.iface->ops->wait_interrupt(f.iface, 0, &err), 0);
    BW_OK(pm4_close(&q, &err), &err);
    BW_OK(other->ops->free(other, &word, &err), &err);
    other->ops->close(other);
    fixture_close(&f);
}

static void a_memory_fault_is_told_once_and_to_its_gpu(void)
{
    struct kfd_fixture f;
    struct bw_iface *other = NULL;
    struct pm4_fixture q;
    struct bw_err err = {0};
    struct bw_fault fault;
    if (!fixture_machine(&f, "gfx1100", 2, 0))
        return;
    BW_OK(bw_kfd_open(f.sys, 0, &f.iface, &err), &err);
    BW_OK(bw_kfd_open(f.sys, 1, &other, &err), &err);
    BW_OK(f.iface->ops->query_fault(f.iface, &fault, &err), &err);
    BW_EQ(fault.kind, BW_FAULT_NONE);
    BW_OK(pm4_open(&q, f.iface, &err), &err);
    struct bw_encoder encoder = {0};
    bw_amd_pm4_write_data(&encoder, bw_operand_constant(0x700000001234), &(uint32_t){1}, 1);
    pm4_submit(&q, &encoder, NULL);
    BW_EQ(f.iface->ops->wait_interrupt(f.iface, FIXTURE_WAIT_NS, &err), 1);
    BW_OK(f.iface->ops->query_fault(f.iface, &fault, &err), &err);
    BW_EQ(fault.kind, BW_FAULT_MEMORY);
    BW_EQ(fault.va, 0x700000001000);
    BW_TRUE(fault.not_present && !fault.no_execute);
    BW_TRUE(strstr(fault.text, "0x700000001000: page not present") != NULL);
    BW_OK(f.iface->ops->query_fault(f.iface, &fault, &err), &err);
    BW_EQ(fault.kind, BW_FAULT_NONE);
    other->ops->wait_interrupt(other, 0, &err); /* may wake: the kernel tells every waiter of the process */
    BW_OK(other->ops->query_fault(other, &fault, &err), &err);
    BW_EQ(fault.kind, BW_FAULT_NONE);
    BW_OK(pm4_close(&q, &err), &err);
    other->ops->close(other);
    fixture_close(&f);
}

static void a_hardware_exception_is_told_and_then_cleared(void)
{
    struct gpu gpu;
    struct bw_fault fault;
    if (!gpu_open(&gpu))
        return;
    struct bw_iface *iface = gpu.f.iface;
    struct bw_encoder encoder = {0};
    bw_encoder_word(&encoder, 0xc000ff00); /* no such opcode */
    bw_encoder_word(&encoder, 0);
    pm4_submit(&gpu.q, &encoder, NULL);
    BW_EQ(iface->ops->wait_interrupt(iface, FIXTURE_WAIT_NS, &gpu.err), 1);
    BW_OK(iface->ops->query_fault(iface, &fault, &gpu.err), &gpu.err);
    BW_EQ(fault.kind, BW_FAULT_HARDWARE);
    BW_TRUE(strstr(fault.text, "hardware exception") != NULL);
    for (int i = 0; i < 2; i++) {
        BW_OK(iface->ops->query_fault(iface, &fault, &gpu.err), &gpu.err);
        BW_EQ(fault.kind, BW_FAULT_NONE);
        BW_EQ(iface->ops->wait_interrupt(iface, 0, &gpu.err), 0);
    }
    /* A new queue works again, and a second exception is told again. */
    BW_OK(pm4_close(&gpu.q, &gpu.err), &gpu.err);
    BW_OK(pm4_open(&gpu.q, iface, &gpu.err), &gpu.err);
    pm4_signal(&gpu.q, gpu.word.gpu_va, 3, NULL);
    wait_value(&gpu, 3);
    bw_encoder_word(&encoder, 0xc000ff00);
    bw_encoder_word(&encoder, 0);
    pm4_submit(&gpu.q, &encoder, NULL);
    for (int tries = 0; tries < 1000 && fault.kind == BW_FAULT_NONE; tries++) {
        iface->sys->ops->sleep_ns(iface->sys, 1000000);
        BW_OK(iface->ops->query_fault(iface, &fault, &gpu.err), &gpu.err);
    }
    BW_EQ(fault.kind, BW_FAULT_HARDWARE);
    gpu_close(&gpu);
}

static void a_gpu_that_is_gone_is_lost(void)
{
    struct gpu gpu;
    struct bw_fault fault;
    if (!gpu_open(&gpu))
        return;
    struct bw_iface *iface = gpu.f.iface;
    BW_OK(bw_mock_fault_add(gpu.f.mock, "ioctl.WAIT_EVENTS:fail=EIO,count=100", &gpu.err), &gpu.err);
    BW_EQ(iface->ops->wait_interrupt(iface, FIXTURE_WAIT_NS, &gpu.err), -EIO);
    BW_OK(iface->ops->query_fault(iface, &fault, &gpu.err), &gpu.err);
    BW_EQ(fault.kind, BW_FAULT_LOST);
    bw_mock_fault_clear(gpu.f.mock);
    BW_OK(iface->ops->query_fault(iface, &fault, &gpu.err), &gpu.err);
    BW_EQ(fault.kind, BW_FAULT_NONE);
    gpu_close(&gpu);
}

struct waiter {
    struct gpu *gpu;
    int result;
};

static void *wait_long(void *argument)
{
    struct waiter *waiter = argument;
    struct bw_iface *iface = waiter->gpu->f.iface;
    waiter->result = iface->ops->wait_interrupt(iface, 10ull * FIXTURE_WAIT_NS, &(struct bw_err){0});
    return NULL;
}

/* Reporting a hardware exception makes its event anew; threads that wait on the old one must neither fail nor
 * be forgotten. */
static void waiters_survive_the_report_of_an_exception(void)
{
    enum { WAITERS = 4 };
    struct gpu gpu;
    struct waiter waiters[WAITERS];
    pthread_t threads[WAITERS];
    struct bw_fault fault = {0};
    if (!gpu_open(&gpu))
        return;
    struct bw_iface *iface = gpu.f.iface;
    struct bw_mock_stats before, now;
    bw_mock_stats(gpu.f.mock, &before);
    for (int i = 0; i < WAITERS; i++) {
        waiters[i] = (struct waiter){&gpu, -1};
        pthread_create(&threads[i], NULL, wait_long, &waiters[i]);
    }
    for (int tries = 0; tries < 1000;
         tries++) { /* until all have called WAIT_EVENTS, however late they start */
        bw_mock_stats(gpu.f.mock, &now);
        if (now.ioctls >= before.ioctls + WAITERS)
            break;
        iface->sys->ops->sleep_ns(iface->sys, 1000000);
    }
    iface->sys->ops->sleep_ns(iface->sys, 20000000);
    struct bw_encoder encoder = {0};
    bw_encoder_word(&encoder, 0xc000ff00);
    bw_encoder_word(&encoder, 0);
    pm4_submit(&gpu.q, &encoder, NULL);
    for (int i = 0; i < WAITERS; i++) {
        pthread_join(threads[i], NULL);
        BW_EQ(waiters[i].result, 1);
    }
    BW_OK(iface->ops->query_fault(iface, &fault, &gpu.err), &gpu.err);
    BW_EQ(fault.kind, BW_FAULT_HARDWARE);
    gpu_close(&gpu);
}

BW_TEST_MAIN("iface.kfd_queue", {"queues of each kind on each chip", queues_of_each_kind_on_each_chip},
             {"doorbells are mapped once", doorbells_are_mapped_once},
             {"bad queues are refused in words", bad_queues_are_refused_in_words},
             {"too many SDMA queues are refused with a hint", too_many_sdma_queues_are_refused_with_a_hint},
             {"an interrupt ends the wait", an_interrupt_ends_the_wait},
             {"an interrupt before the wait is kept", an_interrupt_before_the_wait_is_kept},
             {"interrupts of one GPU do not go to another", interrupts_of_one_gpu_do_not_go_to_another},
             {"a memory fault is told once, and to its GPU", a_memory_fault_is_told_once_and_to_its_gpu},
             {"a hardware exception is told and then cleared", a_hardware_exception_is_told_and_then_cleared},
             {"a GPU that is gone is lost", a_gpu_that_is_gone_is_lost},
             {"waiters survive the report of an exception", waiters_survive_the_report_of_an_exception})
