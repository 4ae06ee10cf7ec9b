/* Traces: see trace.h. A line is one write to a file that appends, so that lines of engines, clients and
 * machines do not mix, and all that happened before a process is killed is in the file. */
#include "mock/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "mock/engine/queue.h"

enum {
    LINE_BYTES = 4096, /* longer ones end with dots */
    WORDS_MAX = 32,    /* of a packet: more is data, not command */
    WORD_TEXT = 12,    /* " 0x12345678" */
};

/* Standard output or error where fd is what that is redirected to: lines appended by another descriptor would
 * be overwritten by what goes on there. Else fd. */
static int stream_of(struct bw_sys *host, int fd)
{
    for (int stream = STDOUT_FILENO; stream <= STDERR_FILENO && host->ops->same_file; stream++)
        if (fd > STDERR_FILENO && host->ops->same_file(host, fd, stream) == 1)
            return stream;
    return fd;
}

int bw_mock_trace(struct bw_sys *sys, const char *path, struct bw_err *err)
{
    struct bw_mock *machine = bw_mock_of(sys);
    int fd = machine->host->ops->open(machine->host, path, O_WRONLY | O_APPEND);
    if (fd < 0)
        return bw_fail(err, fd, "mock", "trace '%s'", path);
    int none = -1, stream = stream_of(machine->host, fd);
    bool begun = atomic_compare_exchange_strong(&machine->trace_fd, &none, stream);
    if (begun)
        machine->trace_shared = stream != fd;
    if (!begun || stream != fd)
        machine->host->ops->close(machine->host, fd);
    if (!begun)
        return bw_fail(err, -EALREADY, "mock", "the machine is traced already");
    bw_mock_trace_line(machine, "machine: %u x %s", machine->gpu_count, machine->gpus[0].chip->arch);
    return 0;
}

static void line_write(struct bw_mock *machine, const char *format, va_list arguments)
{
    char line[LINE_BYTES];
    uint64_t now_ns = bw_mock_clock_ns(machine);
    int begin = snprintf(line, sizeof line, "%llu.%09llu ", (unsigned long long)(now_ns / 1000000000),
                         (unsigned long long)(now_ns % 1000000000));
    bw_text_fit_v(line + begin, sizeof line - (size_t)begin - 1, format, arguments); /* room for the end */
    size_t size = strlen(line);
    line[size++] = '\n';
    (void)machine->host->ops->write(machine->host, atomic_load(&machine->trace_fd), line, size);
}

void bw_mock_trace_line(struct bw_mock *machine, const char *format, ...)
{
    if (!bw_mock_traces(machine))
        return;
    va_list arguments;
    va_start(arguments, format);
    line_write(machine, format, arguments);
    va_end(arguments);
}

static unsigned long long member(const void *data, const struct bw_mock_trace_field *field)
{
    uint64_t value = 0;
    memcpy(&value, (const char *)data + field->offset, field->bytes);
    return value;
}

void bw_mock_trace_ioctl(struct bw_mock *machine, const char *device, const char *name,
                         const struct bw_mock_trace_field *fields, const void *data, int result)
{
    char text[1024] = "";
    size_t at = 0;
    if (!bw_mock_traces(machine))
        return;
    for (; fields && fields->name && at < sizeof text; fields++)
        at += (size_t)snprintf(text + at, sizeof text - at, " %s=0x%llx", fields->name, member(data, fields));
    if (result < 0)
        bw_mock_trace_line(machine, "%s ioctl %s = %s:%s", device, name, strerrorname_np(-result), text);
    else
        bw_mock_trace_line(machine, "%s ioctl %s = %d:%s", device, name, result, text);
}

void bw_mock_trace_doorbell(struct bw_mock_context *context, uint64_t offset, uint64_t value)
{
    bw_mock_trace_line(context->process->machine, "gpu%u doorbell 0x%llx: 0x%llx", context->gpu->index,
                       (unsigned long long)offset, (unsigned long long)value);
}

void bw_mock_trace_packet(struct bw_mock_queue *queue, const char *name, const uint32_t *words,
                          uint32_t count)
{
    char text[WORDS_MAX * WORD_TEXT + sizeof "..."] = "";
    size_t at = 0;
    if (!bw_mock_traces(queue->machine) || queue->again)
        return;
    for (uint32_t i = 0; i < count && i < WORDS_MAX; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, " 0x%x", words[i]);
    if (count > WORDS_MAX)
        snprintf(text + at, sizeof text - at, "...");
    bw_mock_trace_line(queue->machine, "gpu%u %s: %s%s", queue->context->gpu->index, queue->name, name, text);
}

void bw_mock_trace_dispatch(struct bw_mock_queue *queue, const struct bw_isa_dispatch *dispatch)
{
    const uint32_t *groups = dispatch->group_count, *size = dispatch->group_size;
    bw_mock_trace_line(
        queue->machine,
        "gpu%u %s: kernel at 0x%llx, %u x %u x %u groups of %u x %u x %u, wave%u, rsrc1 0x%08x, "
        "rsrc2 0x%08x, %u bytes of LDS, %u of scratch per wave",
        queue->context->gpu->index, queue->name, (unsigned long long)dispatch->entry_va, groups[0], groups[1],
        groups[2], size[0], size[1], size[2], dispatch->wave_size, dispatch->rsrc1, dispatch->rsrc2,
        dispatch->lds_bytes, dispatch->scratch_wave_bytes);
}
