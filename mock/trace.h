/* A trace: what clients ask of the machine and what its engines do, a line each, in the order in which it
 * comes to be. Off unless a file is named: then every place costs one look at a word. */
#ifndef BW_MOCK_TRACE_H
#define BW_MOCK_TRACE_H

#include <stdint.h>

#include "mock/machine.h"

struct bw_mock_queue;
struct bw_isa_dispatch;

/* One member of an ioctl's structure. */
struct bw_mock_trace_field {
    const char *name; /* as the kernel's header has it */
    uint16_t offset, bytes;
};

static inline bool bw_mock_traces(struct bw_mock *machine)
{
    return atomic_load_explicit(&machine->trace_fd, memory_order_relaxed) >= 0;
}

/* Any thread, with any lock held: it takes none. A line that the file does not take is lost. */
void bw_mock_trace_line(struct bw_mock *machine, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* After the call: its name, its result, its structure as it is given back. fields ends with a NULL name, or
 * is NULL. */
void bw_mock_trace_ioctl(struct bw_mock *machine, const char *device, const char *name,
                         const struct bw_mock_trace_field *fields, const void *data, int result);
void bw_mock_trace_doorbell(struct bw_mock_context *context, uint64_t offset, uint64_t value);
/* Before a packet is executed; once, also when it then waits. */
void bw_mock_trace_packet(struct bw_mock_queue *queue, const char *name, const uint32_t *words,
                          uint32_t count);
/* Before the kernel runs. */
void bw_mock_trace_dispatch(struct bw_mock_queue *queue, const struct bw_isa_dispatch *dispatch);

/* The members of the KFD call with that number. */
const struct bw_mock_trace_field *bw_mock_kfd_fields(uint32_t number);

#endif
