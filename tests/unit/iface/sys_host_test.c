/* Goal: the real OS seam does what its contract says, under an interval timer without SA_RESTART too, and
 * leaks nothing. */
#include <bellwire/sys.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "iface/sys_util.h"
#include "tests/check.h"
#include "tests/seed.h"

static struct bw_sys *new_sys(void)
{
    struct bw_sys *sys = NULL;
    BW_EQ(bw_sys_host_create(&sys), 0);
    return sys;
}

static void ignore_alarm(int number)
{
}

/* A signal every millisecond that interrupts system calls. */
static void timer_set(long period_us)
{
    struct sigaction action = {.sa_handler = ignore_alarm};
    sigaction(SIGALRM, &action, NULL);
    struct itimerval timer = {{0, period_us}, {0, period_us}};
    setitimer(ITIMER_REAL, &timer, NULL);
}

static int temporary_file(char *path)
{
    strcpy(path, "/tmp/bw_sys_test_XXXXXX");
    return mkstemp(path);
}

static void files_read_back_and_close_on_exec(void)
{
    struct bw_sys *sys = new_sys();
    char path[64], back[8] = {0};
    close(temporary_file(path));
    int fd = sys->ops->open(sys, path, O_RDWR);
    BW_TRUE(fd >= 0);
    BW_TRUE(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    BW_EQ(sys->ops->write(sys, fd, "ring", 4), 4);
    BW_EQ(sys->ops->pwrite(sys, fd, "bell", 4, 2), 4);
    BW_EQ(sys->ops->pread(sys, fd, back, 8, 0), 6);
    BW_BYTES(back, "ribell", 6);
    BW_EQ(sys->ops->read(sys, fd, back, 8), 2);
    uint64_t calls = sys->calls;
    BW_EQ(sys->ops->close(sys, fd), 0);
    BW_EQ(sys->calls, calls + 1);
    BW_EQ(sys->ops->close(sys, fd), -EBADF);
    BW_EQ(sys->ops->read(sys, fd, back, 8), -EBADF);
    BW_EQ(sys->ops->open(sys, "/nowhere/at/all", O_RDONLY), -ENOENT);
    char *text;
    BW_EQ(bw_sys_read_text(sys, path, 100, &text), 0);
    BW_STR(text, "ribell");
    free(text);
    BW_EQ(bw_sys_read_text(sys, path, 5, &text), -EFBIG);
    BW_TRUE(text == NULL);
    unlink(path);
    bw_sys_destroy(sys);
}

struct names {
    char text[256];
    int stop_after, seen;
};

static int add_name(void *user, const char *name)
{
    struct names *names = user;
    snprintf(names->text + strlen(names->text), sizeof names->text - strlen(names->text), "%s,", name);
    return ++names->seen == names->stop_after ? 7 : 0;
}

static void lists_are_sorted_and_stop_when_told(void)
{
    struct bw_sys *sys = new_sys();
    char directory[] = "/tmp/bw_sys_test_XXXXXX", path[128];
    BW_TRUE(mkdtemp(directory) != NULL);
    const char *const files[] = {"b", "a", "10", "9", "c"};
    for (size_t i = 0; i < 5; i++) {
        snprintf(path, sizeof path, "%s/%s", directory, files[i]);
        close(open(path, O_CREAT | O_WRONLY, 0600));
    }
    struct names all = {0}, some = {.stop_after = 2};
    BW_EQ(sys->ops->list(sys, directory, add_name, &all), 0);
    BW_STR(all.text, "10,9,a,b,c,");
    BW_EQ(sys->ops->list(sys, directory, add_name, &some), 7);
    BW_STR(some.text, "10,9,");
    for (size_t i = 0; i < 5; i++) {
        snprintf(path, sizeof path, "%s/%s", directory, files[i]);
        unlink(path);
    }
    rmdir(directory);
    BW_EQ(sys->ops->list(sys, directory, add_name, &all), -ENOENT);
    bw_sys_destroy(sys);
}

static void waits_keep_their_deadline_under_a_timer(void)
{
    struct bw_sys *sys = new_sys();
    int pipe_fds[2];
    BW_EQ(pipe(pipe_fds), 0);
    timer_set(1000);
    struct bw_poll_request request = {.fd = pipe_fds[0], .events = POLLIN};
    uint64_t start = sys->ops->clock_ns(sys);
    BW_EQ(sys->ops->poll(sys, &request, 1, 30000000), 0);
    BW_TRUE(sys->ops->clock_ns(sys) - start >= 30000000);
    start = sys->ops->clock_ns(sys);
    sys->ops->sleep_ns(sys, 30000000);
    BW_TRUE(sys->ops->clock_ns(sys) - start >= 30000000);
    /* A read that has nothing to read yet is not ended by the signals. */
    pid_t child = fork();
    if (child == 0) {
        timer_set(0);
        usleep(20000);
        _exit(write(pipe_fds[1], "x", 1) == 1 ? 0 : 1);
    }
    char byte = 0;
    BW_EQ(sys->ops->read(sys, pipe_fds[0], &byte, 1), 1);
    BW_EQ(byte, 'x');
    BW_EQ(sys->ops->poll(sys, &request, 1, 0), 0);
    BW_EQ(write(pipe_fds[1], "y", 1), 1);
    BW_EQ(sys->ops->poll(sys, &request, 1, UINT64_MAX), 1);
    BW_EQ(request.revents, POLLIN);
    timer_set(0);
    int status = 0;
    bw_test_wait(child, &status);
    BW_EQ(status, 0);
    close(pipe_fds[0]);
    close(pipe_fds[1]);
    bw_sys_destroy(sys);
}

static void lock_names_its_holder_and_dies_with_it(void)
{
    struct bw_sys *sys = new_sys();
    char path[64];
    int fd = temporary_file(path), ready[2], pid = -1;
    BW_EQ(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        int mine = sys->ops->open(sys, path, O_RDWR), holder;
        char ok = sys->ops->lock(sys, mine, &holder) == 0;
        if (write(ready[1], &ok, 1) == 1)
            pause();
        _exit(1);
    }
    char ok = 0;
    BW_EQ(read(ready[0], &ok, 1), 1);
    BW_EQ(ok, 1);
    BW_EQ(sys->ops->lock(sys, fd, &pid), -EAGAIN);
    BW_EQ(pid, child);
    kill(child, SIGKILL);
    bw_test_wait(child, NULL);
    BW_EQ(sys->ops->lock(sys, fd, &pid), 0);
    BW_EQ(pid, 0);
    close(fd);
    close(ready[0]);
    close(ready[1]);
    unlink(path);
    bw_sys_destroy(sys);
}

/* Whether the mapping at address carries the flag in /proc/self/smaps (proc(5), VmFlags). */
static bool has_vm_flag(const volatile void *address, const char *flag)
{
    FILE *maps = fopen("/proc/self/smaps", "r");
    char line[512];
    bool inside = false, found = false;
    while (maps && fgets(line, sizeof line, maps)) {
        unsigned long low, high;
        if (sscanf(line, "%lx-%lx ", &low, &high) == 2)
            inside = (unsigned long)address >= low && (unsigned long)address < high;
        else if (inside && !strncmp(line, "VmFlags:", 8))
            found = strstr(line, flag) != NULL;
    }
    if (maps)
        fclose(maps);
    return found;
}

static void reservations_take_mappings_and_take_them_back(void)
{
    struct bw_sys *sys = new_sys();
    struct bw_region reserve, fixed, again;
    struct bw_map_request request = {.fd = -1, .size_bytes = 64ull << 30, .reserve = true};
    if (!BW_EQ(sys->ops->map(sys, &request, &reserve), 0))
        return;
    BW_TRUE(has_vm_flag(reserve.base, " nr"));
    uint64_t at = (uint64_t)(uintptr_t)reserve.base + (1u << 20);
    struct bw_map_request inner = {
        .fd = -1, .size_bytes = 8192, .fixed_address = at, .writable = true, .dont_fork = true};
    BW_EQ(sys->ops->map(sys, &inner, &fixed), 0);
    BW_EQ((uint64_t)(uintptr_t)fixed.base, at);
    BW_TRUE(has_vm_flag(fixed.base, " dc"));
    bw_wr64(&fixed, 8184, 0x1122334455667788);
    BW_EQ(bw_rd32(&fixed, 8188), 0x11223344);
    struct bw_map_request back = {.fd = -1, .size_bytes = 8192, .fixed_address = at, .reserve = true};
    BW_EQ(sys->ops->map(sys, &back, &again), 0);
    BW_TRUE(!has_vm_flag(fixed.base, " dc"));
    struct bw_map_request none = {.fd = -1, .size_bytes = 0};
    BW_EQ(sys->ops->map(sys, &none, &again), -EINVAL);
    struct bw_map_request bad = {.fd = -1, .size_bytes = 1ull << 60, .reserve = true};
    BW_EQ(sys->ops->map(sys, &bad, &again), -ENOMEM);
    BW_EQ(sys->ops->unmap(sys, &reserve), 0);
    BW_EQ(reserve.size_bytes, 0);
    bw_sys_destroy(sys);
}

/* Code memory is written, then made executable, never both; a child of fork sees zeros where it was asked
 * for. */
static void memory_is_writable_or_executable_and_wiped_in_a_child(void)
{
    struct bw_sys *sys = new_sys();
    struct bw_region code, mark;
    struct bw_map_request request = {.fd = -1, .size_bytes = 4096, .writable = true};
    BW_EQ(sys->ops->map(sys, &request, &code), 0);
    request.wipe_on_fork = true;
    BW_EQ(sys->ops->map(sys, &request, &mark), 0);
    BW_EQ(sys->ops->protect(sys, &code, true, true), -EINVAL);
    BW_EQ(sys->ops->protect(sys, &code, false, true), 0);
    BW_TRUE(has_vm_flag(code.base, " ex") && !has_vm_flag(code.base, " wr"));
    BW_EQ(sys->ops->protect(sys, &code, true, false), 0);
    BW_TRUE(!has_vm_flag(code.base, " ex") && has_vm_flag(code.base, " wr"));
    bw_wr32(&mark, 0, 42);
    bw_wr32(&code, 0, 43);
    pid_t child = fork();
    if (child == 0)
        _exit(bw_rd32(&mark, 0) == 0 && bw_rd32(&code, 0) == 43 ? 0 : 1);
    int status = -1;
    bw_test_wait(child, &status);
    BW_EQ(status, 0);
    BW_EQ(bw_rd32(&mark, 0), 42);
    BW_EQ(sys->ops->unmap(sys, &code), 0);
    BW_EQ(sys->ops->unmap(sys, &mark), 0);
    bw_sys_destroy(sys);
}

/* Reads of every shape, some into memory that the ring knows, against the file's known bytes. What is cut
 * short here is at the end of the file: the kernel gives the rest of a local file at once. */
static void check_ring(struct bw_sys *sys, const char *kind)
{
    enum { FILE_BYTES = 3000001, READS = 300, BUFFER_BYTES = 6000000, ENTRIES = 16, KNOWN_BYTES = 2000000 };
    char path[64];
    int fd = temporary_file(path);
    unlink(path);
    uint8_t *file = malloc(FILE_BYTES), *data = malloc(BUFFER_BYTES);
    for (size_t i = 0; i < FILE_BYTES; i++)
        file[i] = (uint8_t)bw_hash64(i);
    BW_EQ(write(fd, file, FILE_BYTES), FILE_BYTES);
    struct bw_rng rng = bw_test_rng("ring");
    static struct bw_ring_read reads[READS];
    static bool ended[READS];
    memset(ended, 0, sizeof ended);
    uint64_t used = 0;
    for (uint32_t i = 0; i < READS; i++) {
        uint32_t size = i == 3 ? 2000000 : 1 + (uint32_t)bw_rng_below(&rng, 5000);
        reads[i] = (struct bw_ring_read){i == 7 ? -1 : fd, i, data + used,
                                         bw_rng_below(&rng, FILE_BYTES + 3000), size};
        used += size;
    }
    struct bw_ring *ring = NULL;
    if (!BW_EQ(sys->ops->ring_open(sys, ENTRIES, &ring), 0))
        return;
    BW_TRUE(strstr(ring->kind, kind) != NULL);
    int known = ring->ops->memory_add(ring, data, KNOWN_BYTES);
    BW_TRUE(strcmp(kind, "io_uring") || known == 0 || known == -ENOMEM || known == -ENOTSUP);
    struct bw_ring_done done[ENTRIES];
    BW_EQ(ring->ops->finish(ring, done, ENTRIES, 1000000000), 0); /* nothing is under way: at once */
    for (uint32_t started = 0, finished = 0; finished < READS;) {
        int rc = ring->ops->start(ring, reads + started, READS - started);
        if (!BW_TRUE(rc >= 0 && rc <= ENTRIES))
            break;
        started += (uint32_t)rc;
        rc = ring->ops->finish(ring, done, ENTRIES, 1000000000);
        if (!BW_TRUE(rc >= 0 && rc <= ENTRIES))
            break;
        for (int i = 0; i < rc; i++, finished++) {
            const struct bw_ring_read *read = &reads[done[i].tag];
            uint64_t left = read->offset < FILE_BYTES ? FILE_BYTES - read->offset : 0;
            uint64_t expected = read->size_bytes < left ? read->size_bytes : left;
            BW_TRUE(!ended[done[i].tag]);
            ended[done[i].tag] = true;
            if (done[i].tag == 7)
                BW_EQ(done[i].result, -EBADF);
            else if (BW_EQ(done[i].result, expected))
                BW_BYTES(read->data, file + read->offset, expected);
        }
    }
    ring->ops->memory_remove(ring, data);
    ring->ops->memory_remove(ring, data + 1); /* never added */
    ring->ops->close(ring);
    free(file);
    free(data);
    close(fd);
}

/* A setup without its parameters fails, but in other ways where it is not refused. */
static const char *expected_kind(void)
{
    bool there = syscall(SYS_io_uring_setup, 1, NULL) < 0 && errno != ENOSYS && errno != EPERM;
    return there ? "io_uring" : "threads";
}

static void rings_give_the_files_bytes(void)
{
    struct bw_sys *sys = new_sys();
    check_ring(sys, expected_kind());
    timer_set(1000);
    check_ring(sys, expected_kind());
    timer_set(0);
    bw_sys_destroy(sys);
}

static void sizes_are_of_files_only(void)
{
    struct bw_sys *sys = new_sys();
    char path[64];
    int fd = temporary_file(path), pipes[2], directory = open("/", O_RDONLY | O_DIRECTORY);
    BW_EQ(unlink(path), 0);
    BW_EQ(sys->ops->size(sys, fd), 0);
    BW_EQ(ftruncate(fd, 5000000001), 0);
    BW_EQ(sys->ops->size(sys, fd), 5000000001);
    BW_EQ(pipe(pipes), 0);
    BW_EQ(sys->ops->size(sys, pipes[0]), -ESPIPE);
    BW_EQ(sys->ops->size(sys, directory), -EISDIR);
    BW_EQ(sys->ops->size(sys, -1), -EBADF);
    close(pipes[0]);
    close(pipes[1]);
    close(directory);
    close(fd);
    bw_sys_destroy(sys);
}

/* Makes io_uring_setup fail with error in this process, as container runtimes do. */
static bool refuse_io_uring(int error)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};
    return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) && !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* By two names, by a descriptor's copy, and not by another file; ended by its second owner. */
static void files_are_the_same_whatever_their_name(void)
{
    struct bw_sys *sys = new_sys();
    char path[] = "/tmp/bw_sys_test_XXXXXX", link[64], other[] = "/tmp/bw_sys_test_XXXXXX";
    int fds[3] = {mkstemp(path), -1, mkstemp(other)}, ends[2];
    snprintf(link, sizeof link, "%.40s.link", path);
    BW_EQ(symlink(path, link), 0);
    fds[1] = sys->ops->open(sys, link, O_RDONLY);
    BW_EQ(sys->ops->same_file(sys, fds[0], fds[1]), 1);
    BW_EQ(sys->ops->same_file(sys, fds[0], fds[2]), 0);
    BW_EQ(pipe(ends), 0);
    BW_EQ(sys->ops->same_file(sys, ends[0], ends[1]), 1);
    BW_EQ(sys->ops->same_file(sys, ends[0], fds[0]), 0);
    close(ends[0]);
    close(ends[1]);
    BW_EQ(sys->ops->same_file(sys, fds[0], ends[1]), -EBADF);
    bw_sys_retain(sys);
    bw_sys_destroy(sys);
    BW_EQ(sys->ops->same_file(sys, fds[1], fds[0]), 1);
    for (int i = 0; i < 3; i++)
        BW_EQ(sys->ops->close(sys, fds[i]), 0);
    unlink(path);
    unlink(link);
    unlink(other);
    bw_sys_destroy(sys);
}

static void rings_work_where_io_uring_is_refused(void)
{
    static const int errors[] = {ENOSYS, EPERM};
    for (int variant = 0; variant < 2; variant++) {
        struct bw_sys *sys = new_sys();
        pid_t child = fork();
        if (child == 0) {
            if (!refuse_io_uring(errors[variant]))
                _exit(2);
            unsigned before = CU_get_number_of_failures();
            check_ring(sys, "threads");
            timer_set(1000);
            check_ring(sys, "threads");
            _exit(CU_get_number_of_failures() == before ? 0 : 1);
        }
        int status = -1;
        bw_test_wait(child, &status);
        BW_EQ(status, 0);
        bw_sys_destroy(sys);
    }
}

struct devices {
    uint64_t last;
    int count;
    bool sorted;
};

static int add_device(void *user, const struct bw_pci_id *id)
{
    struct devices *devices = user;
    uint64_t position = (uint64_t)id->domain << 24 | (uint64_t)id->bus << 16 | (uint64_t)id->device << 8 |
                        (uint64_t)id->function;
    devices->sorted &= devices->count == 0 || position > devices->last;
    devices->sorted &= id->class_code < 1u << 24 && id->vendor_id != 0xffff;
    devices->last = position;
    devices->count++;
    return 0;
}

static int count_name(void *user, const char *name)
{
    ++*(int *)user;
    return 0;
}

static void pci_scan_sees_what_sysfs_has(void)
{
    struct bw_sys *sys = new_sys();
    struct devices devices = {.sorted = true};
    int listed = 0;
    if (sys->ops->list(sys, "/sys/bus/pci/devices", count_name, &listed) == 0) {
        BW_EQ(sys->ops->pci_scan(sys, add_device, &devices), 0);
        BW_EQ(devices.count, listed);
        BW_TRUE(devices.sorted);
    }
    bw_sys_destroy(sys);
}

/* A machine with no /sys and no /proc: libpci's "error" must neither end the process nor be taken for "no
 * devices". */
static void pci_scan_without_sys_is_an_error_not_an_exit(void)
{
    if (geteuid() != 0) {
        printf("(needs root for chroot, not run) ");
        return;
    }
    char directory[] = "/tmp/bw_sys_test_XXXXXX";
    BW_TRUE(mkdtemp(directory) != NULL);
    pid_t child = fork();
    if (child == 0) {
        struct bw_sys *sys = NULL;
        struct devices devices = {0};
        if (bw_sys_host_create(&sys) || chroot(directory) || chdir("/"))
            _exit(2);
        int rc = sys->ops->pci_scan(sys, add_device, &devices);
        bw_sys_destroy(sys);
        _exit(rc == -ENODEV && devices.count == 0 ? 0 : 1);
    }
    int status = -1;
    bw_test_wait(child, &status);
    BW_EQ(status, 0);
    rmdir(directory);
}

/* Node 0 is there on every machine whose kernel has nodes; a container may refuse all of it. */
static void memory_policies_are_the_kernels(void)
{
    struct bw_sys *sys = new_sys();
    struct bw_node_request ask = {.operation = BW_NODE_ASK},
                           thread = {.operation = BW_NODE_THREAD, .node = 0},
                           range = {.operation = BW_NODE_RANGE, .node = 0};
    struct bw_map_request map = {.fd = -1, .size_bytes = 3 << 20, .writable = true};
    struct bw_region region;
    int rc = sys->ops->node(sys, &ask);
    if (rc < 0) {
        printf("(the kernel refuses: %d, not run) ", rc);
        BW_TRUE(rc == -EPERM || rc == -ENOSYS);
        BW_TRUE(sys->ops->node(sys, &thread) < 0);
        bw_sys_destroy(sys);
        return;
    }
    BW_EQ(rc, 0);
    BW_EQ(sys->ops->node(sys, &thread), 0);
    BW_EQ(sys->ops->node(sys, &ask), 1);
    thread.node = BW_NODE_DEFAULT;
    BW_EQ(sys->ops->node(sys, &thread), 0);
    BW_EQ(sys->ops->node(sys, &ask), 0);
    BW_EQ(sys->ops->map(sys, &map, &region), 0);
    range.address = (uintptr_t)region.base;
    range.size_bytes = region.size_bytes;
    BW_EQ(sys->ops->node(sys, &range), 0);
    memset((void *)(uintptr_t)region.base, 1, region.size_bytes);
    range.address += 1;
    BW_EQ(sys->ops->node(sys, &range), -EINVAL);
    BW_EQ(sys->ops->unmap(sys, &region), 0);
    for (int32_t node = BW_SYS_NODES_MAX - 1; node <= BW_SYS_NODES_MAX; node++) {
        thread.node = node;
        BW_EQ(sys->ops->node(sys, &thread), -EINVAL); /* no machine has so many */
    }
    BW_EQ(sys->ops->node(sys, &ask), 0);
    bw_sys_destroy(sys);
}

BW_TEST_MAIN("iface.sys_host", {"files read back and close on exec", files_read_back_and_close_on_exec},
             {"lists are sorted and stop when told", lists_are_sorted_and_stop_when_told},
             {"waits keep their deadline under a timer", waits_keep_their_deadline_under_a_timer},
             {"lock names its holder and dies with it", lock_names_its_holder_and_dies_with_it},
             {"reservations take mappings and take them back", reservations_take_mappings_and_take_them_back},
             {"memory is writable or executable, and wiped in a child",
              memory_is_writable_or_executable_and_wiped_in_a_child},
             {"rings give the file's bytes", rings_give_the_files_bytes},
             {"rings work where io_uring is refused", rings_work_where_io_uring_is_refused},
             {"sizes are of files only", sizes_are_of_files_only},
             {"files are the same whatever their name", files_are_the_same_whatever_their_name},
             {"memory policies are the kernel's", memory_policies_are_the_kernels},
             {"pci scan sees what sysfs has", pci_scan_sees_what_sysfs_has},
             {"pci scan without /sys is an error, not an exit", pci_scan_without_sys_is_an_error_not_an_exit})
