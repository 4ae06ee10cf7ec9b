#include "base/thread.h"

#include <signal.h>
#include <stddef.h>

#include "base/bits.h"

static int create(pthread_t *thread, const pthread_attr_t *attributes, void *(*main)(void *), void *argument)
{
    pthread_attr_t own;
    if (attributes)
        return -pthread_create(thread, attributes, main, argument);
    int rc = -pthread_attr_init(&own);
    if (rc)
        return rc;
    rc = -pthread_attr_setstacksize(&own, BW_THREAD_STACK_BYTES);
    if (!rc)
        rc = -pthread_create(thread, &own, main, argument);
    pthread_attr_destroy(&own);
    return rc;
}

int bw_thread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*main)(void *),
                     void *argument)
{
    static const int own_faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
    sigset_t blocked, before;
    sigfillset(&blocked);
    for (size_t i = 0; i < BW_COUNT_OF(own_faults); i++)
        sigdelset(&blocked, own_faults[i]);
    /* The new thread inherits this mask; a signal that comes meanwhile waits for the old one. */
    pthread_sigmask(SIG_BLOCK, &blocked, &before);
    int rc = create(thread, attributes, main, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}
