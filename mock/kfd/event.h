/* KFD events of one process (kfd_events.c of the kernel): signal events with their mailbox page, memory and
 * hardware exceptions, and waiting with the kernel's auto-reset rule. */
#ifndef BW_MOCK_KFD_EVENT_H
#define BW_MOCK_KFD_EVENT_H

#include <stdbool.h>
#include <stdint.h>

struct bw_mock;
struct bw_mock_buffer;
struct bw_mock_events;
struct bw_mock_process;
struct bw_mock_front_ops;
struct mock_kfd_create_event_args;
struct mock_kfd_wait_events_args;

/* NULL: out of memory. */
struct bw_mock_events *bw_mock_events_create(struct bw_mock *machine);
/* Fails whoever waits, then frees. No engine of the process runs any more. */
void bw_mock_events_destroy(struct bw_mock_events *events);

/* The client's event page; NULL before there is one. */
struct bw_mock_buffer *bw_mock_events_page(struct bw_mock_events *events);

/* Ioctls. */
int bw_mock_events_create_event(struct bw_mock_process *process, struct mock_kfd_create_event_args *args);
int bw_mock_events_destroy_event(struct bw_mock_events *events, uint32_t id);
int bw_mock_events_set(struct bw_mock_events *events, uint32_t id);
int bw_mock_events_reset(struct bw_mock_events *events, uint32_t id);
/* Without any lock held. */
int bw_mock_events_wait(struct bw_mock_events *events, struct mock_kfd_wait_events_args *args);
/* Wakes and fails whoever waits: the process ends. */
void bw_mock_events_shutdown(struct bw_mock_events *events);

/* How the KFD takes what devices say: mailboxes and events. */
extern const struct bw_mock_front_ops bw_mock_kfd_front;

#endif
