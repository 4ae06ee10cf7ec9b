/* Waiting on the CPU for memory that another thread writes. */
#ifndef BW_DRIVERS_HOST_SPIN_H
#define BW_DRIVERS_HOST_SPIN_H

/* How often a waiter looks before it sleeps: about 30 us of PAUSE, which is more than a futex wake-up costs
 * and less than a scheduler tick, so that a chain of short kernels never sleeps and an idle device costs
 * nothing. */
enum { BW_HOST_SPINS = 1000 };

static inline void bw_host_pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

#endif
