/* Threads of the library: they run none of the program's signal handlers. */
#ifndef BW_BASE_THREAD_H
#define BW_BASE_THREAD_H

#include <pthread.h>

/* As pthread_create, with every signal blocked in the new thread: those sent to the process are for the
 * program's own threads, which may count on that (sigwait, signalfd, handlers that longjmp). Only what a
 * thread raises by its own fault stays open (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS): blocked, it
 * would kill the process before a crash handler could tell of it. 0 or -errno of pthread_create. */
int bw_thread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*main)(void *),
                     void *argument);

#endif
