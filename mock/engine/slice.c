#include "mock/engine/slice.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/thread.h"

enum state { IDLE, AT_WORK, PARKED, QUIT };

struct bw_mock_slice {
    pthread_t thread;
    pthread_mutex_t lock; /* the rest */
    pthread_cond_t changed;
    enum state state;
    void (*work)(void *user);
    void *user;
};

/* The lock is held, here and in the next one. */
static void set_state(struct bw_mock_slice *slice, enum state state)
{
    slice->state = state;
    pthread_cond_broadcast(&slice->changed);
}

static void wait_while(struct bw_mock_slice *slice, enum state state)
{
    while (slice->state == state)
        pthread_cond_wait(&slice->changed, &slice->lock);
}

static void *slice_main(void *argument)
{
    struct bw_mock_slice *slice = argument;
    pthread_mutex_lock(&slice->lock);
    for (;;) {
        wait_while(slice, IDLE);
        if (slice->state == QUIT)
            break;
        pthread_mutex_unlock(&slice->lock);
        slice->work(slice->user);
        pthread_mutex_lock(&slice->lock);
        set_state(slice, IDLE);
    }
    pthread_mutex_unlock(&slice->lock);
    return NULL;
}

int bw_mock_slice_create(struct bw_mock_slice **out)
{
    struct bw_mock_slice *slice = calloc(1, sizeof *slice);
    if (!slice)
        return -ENOMEM;
    pthread_mutex_init(&slice->lock, NULL);
    pthread_cond_init(&slice->changed, NULL);
    int rc = bw_thread_create(&slice->thread, NULL, slice_main, slice);
    if (rc) {
        pthread_cond_destroy(&slice->changed);
        pthread_mutex_destroy(&slice->lock);
        free(slice);
        return rc;
    }
    *out = slice;
    return 0;
}

void bw_mock_slice_destroy(struct bw_mock_slice *slice)
{
    if (!slice)
        return;
    pthread_mutex_lock(&slice->lock);
    set_state(slice, QUIT);
    pthread_mutex_unlock(&slice->lock);
    pthread_join(slice->thread, NULL);
    pthread_cond_destroy(&slice->changed);
    pthread_mutex_destroy(&slice->lock);
    free(slice);
}

bool bw_mock_slice_go(struct bw_mock_slice *slice, void (*work)(void *user), void *user)
{
    pthread_mutex_lock(&slice->lock);
    if (slice->state == IDLE) {
        slice->work = work;
        slice->user = user;
    }
    set_state(slice, AT_WORK);
    wait_while(slice, AT_WORK);
    bool ended = slice->state == IDLE;
    pthread_mutex_unlock(&slice->lock);
    return ended;
}

void bw_mock_slice_park(struct bw_mock_slice *slice)
{
    pthread_mutex_lock(&slice->lock);
    set_state(slice, PARKED);
    wait_while(slice, PARKED);
    pthread_mutex_unlock(&slice->lock);
}
