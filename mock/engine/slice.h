/* Single-step mode: work that is done a slice at a time. It runs on a thread of its own, which moves only
 * while somebody waits for it in bw_mock_slice_go, so that there is never more than one thread at work: the
 * order stays fixed, and a kernel that never ends still gives the step back. */
#ifndef BW_MOCK_ENGINE_SLICE_H
#define BW_MOCK_ENGINE_SLICE_H

#include <stdbool.h>

struct bw_mock_slice;

/* 0, -ENOMEM or what pthread_create says. */
int bw_mock_slice_create(struct bw_mock_slice **slice);
/* The work has ended. NULL is fine. */
void bw_mock_slice_destroy(struct bw_mock_slice *slice);

/* Starts work(user), or lets the work that is under way go on; returns at its next park, or at its end:
 * true. One caller at a time. */
bool bw_mock_slice_go(struct bw_mock_slice *slice, void (*work)(void *user), void *user);
/* Inside the work: gives way until the next go. */
void bw_mock_slice_park(struct bw_mock_slice *slice);

#endif
