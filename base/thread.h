/* Threads of the library: they run none of the program's signal handlers. */
#ifndef BW_BASE_THREAD_H
#define BW_BASE_THREAD_H

#include <pthread.h>

/* Of a thread that asks for nothing else: what main threads have by default, enough for LLVM. Named here,
 * since the system's default is whatever ulimit -s says, down to 16 KiB. */
enum { BW_THREAD_STACK_BYTES = 8 << 20 };

/* A hint where one could not be made (-EAGAIN). */
#define BW_THREAD_LIMITS                                                                          \
    "the system makes no more threads: it bounds those of a user (ulimit -u) and of a container " \
    "(pids.max), and each takes 8 MiB of address space (ulimit -v)"

/* As pthread_create, with every signal blocked in the new thread: those sent to the process are for the
 * program's own threads, which may count on that (sigwait, signalfd, handlers that longjmp). Only what a
 * thread raises by its own fault stays open (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS): blocked, it
 * would kill the process before a crash handler could tell of it. Attributes NULL: a stack of
 * BW_THREAD_STACK_BYTES. 0 or -errno of pthread_create. */
int bw_thread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*main)(void *),
                     void *argument);
#endif
