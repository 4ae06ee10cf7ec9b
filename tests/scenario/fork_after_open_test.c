/* Goal (S9): a process that opened a GPU forks. The child gets a clear error from every call, does not even
 * see the mappings, and its exit harms nothing; the parent goes on. */
#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/kfd_fixture.h"

/* 1 when the byte can be read, without a fault when it cannot. */
static int readable(const volatile void *address)
{
    int fds[2];
    if (pipe(fds))
        return -1;
    ssize_t wrote = write(fds[1], (const void *)(uintptr_t)address, 1);
    close(fds[0]);
    close(fds[1]);
    return wrote == 1;
}

struct opened {
    struct kfd_fixture f;
    struct bw_iface_memory host;
    struct pm4_fixture queue;
};

/* Returns the number of the first check that fails, 0 when all hold. */
static int try_everything(struct opened *opened)
{
    struct bw_iface *iface = opened->f.iface, *again;
    const struct bw_iface_ops *ops = iface->ops;
    struct bw_iface_memory memory;
    struct bw_iface_queue queue;
    struct bw_iface_queue_request request = {.kind = BW_IFACE_QUEUE_SDMA, .ring = &opened->queue.ring};
    struct bw_fault fault;
    struct bw_err err = {0};
    uint64_t available;
    if (ops->alloc(iface, 4096, BW_IFACE_VRAM, 0, &memory, &err) != -ESTALE ||
        !strstr(err.hint, "forked child"))
        return 1;
    if (ops->free(iface, &opened->host, &err) != -ESTALE)
        return 2;
    if (ops->queue_create(iface, &request, &queue, &err) != -ESTALE)
        return 3;
    if (ops->queue_destroy(iface, &opened->queue.queue, &err) != -ESTALE)
        return 4;
    if (ops->wait_interrupt(iface, FIXTURE_WAIT_NS, &err) != -ESTALE)
        return 5;
    if (ops->query_fault(iface, &fault, &err) != -ESTALE)
        return 6;
    if (ops->available_memory(iface, &available, &err) != -ESTALE)
        return 7;
    if (ops->map_peer(iface, iface, &opened->host, &err) != -ESTALE)
        return 8;
    /* The KFD is one for the process, and a mock's devices live in the process that made it. */
    if (way_open(opened->f.sys, 0, &again, &err) != WAY_EITHER(-ESTALE, -ENODEV))
        return 9;
    if (readable(opened->host.cpu.base) || readable(opened->queue.ring.cpu.base))
        return 10;
    uint64_t calls = opened->f.sys->calls;
    ops->close(iface);
    return opened->f.sys->calls == calls ? 0 : 11;
}

static void child_is_told_and_parent_goes_on(void)
{
    struct opened opened;
    struct bw_err err = {0};
    if (!fixture_open(&opened.f, "gfx1100"))
        return;
    struct bw_iface *iface = opened.f.iface;
    BW_OK(iface->ops->alloc(iface, 4096, BW_IFACE_HOST | BW_IFACE_UNCACHED, 0, &opened.host, &err), &err);
    BW_OK(pm4_open(&opened.queue, iface, &err), &err);
    BW_EQ(readable(opened.host.cpu.base), 1);
    for (uint64_t round = 1; round <= 3; round++) {
        pid_t child = fork();
        if (child == 0)
            _exit(try_everything(&opened));
        int status = -1;
        bw_test_wait(child, &status);
        BW_TRUE(WIFEXITED(status));
        BW_EQ(WEXITSTATUS(status), 0);
        BW_OK(pm4_signal(&opened.queue, opened.host.gpu_va, round, &err), &err);
        for (int tries = 0; tries < 100 && bw_rd64(&opened.host.cpu, 0) != round; tries++)
            iface->ops->wait_interrupt(iface, FIXTURE_WAIT_NS / 100, &err);
        BW_EQ(bw_rd64(&opened.host.cpu, 0), round);
    }
    BW_OK(pm4_close(&opened.queue, &err), &err);
    BW_OK(iface->ops->free(iface, &opened.host, &err), &err);
    fixture_close(&opened.f);
}

BW_TEST_MAIN("scenario.fork_after_open",
             {"the child is told and the parent goes on", child_is_told_and_parent_goes_on})
