/* The progress line: see progress.h. */
#include "tools/progress.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <bellwire/mock.h>

#include "base/thread.h"

enum {
    FIRST_MS = 1000,
    EVERY_MS = 200,
    NS_PER_MS = 1000000,
    MS_PER_S = 1000,
};

struct bw_progress {
    const char *what;
    const struct bw_device *device;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool ended, shown; /* shown: the line stands on the terminal */
};

static struct timespec after_ms(struct timespec time, long milliseconds)
{
    time.tv_nsec += milliseconds % MS_PER_S * NS_PER_MS;
    time.tv_sec += milliseconds / MS_PER_S + time.tv_nsec / (MS_PER_S * NS_PER_MS);
    time.tv_nsec %= MS_PER_S * NS_PER_MS;
    return time;
}

static void line_print(const struct bw_progress *progress, double seconds)
{
    static const char wheel[] = "|/-\\";
    struct bw_mock_stats stats;
    fprintf(stderr, "\r%c %s %.1f s", wheel[(unsigned)(seconds * MS_PER_S / EVERY_MS) % 4], progress->what,
            seconds);
    if (progress->device && bw_device_mock_stats(progress->device, &stats) == 0)
        fprintf(stderr, ", %.0f million wave-instructions", (double)stats.wave_instructions * 1e-6);
    fflush(stderr);
}

/* The lock is held. */
static void line_clear(struct bw_progress *progress)
{
    if (progress->shown)
        fprintf(stderr, "\r\033[K");
    progress->shown = false;
}

static void *thread_run(void *user)
{
    struct bw_progress *progress = user;
    struct timespec begin, next;
    clock_gettime(CLOCK_REALTIME, &begin); /* what pthread_cond_timedwait counts in */
    next = after_ms(begin, FIRST_MS);
    pthread_mutex_lock(&progress->lock);
    while (!progress->ended) {
        if (pthread_cond_timedwait(&progress->changed, &progress->lock, &next) != ETIMEDOUT)
            continue;
        line_print(progress,
                   (double)(next.tv_sec - begin.tv_sec) + 1e-9 * (double)(next.tv_nsec - begin.tv_nsec));
        next = after_ms(next, EVERY_MS);
        progress->shown = true;
    }
    line_clear(progress);
    pthread_mutex_unlock(&progress->lock);
    return NULL;
}

struct bw_progress *bw_progress_begin(const char *what, const struct bw_device *device)
{
    struct bw_progress *progress = isatty(STDERR_FILENO) ? calloc(1, sizeof *progress) : NULL;
    if (!progress)
        return NULL;
    progress->what = what;
    progress->device = device;
    pthread_mutex_init(&progress->lock, NULL);
    pthread_cond_init(&progress->changed, NULL);
    if (bw_thread_create(&progress->thread, NULL, thread_run, progress)) {
        free(progress);
        return NULL;
    }
    return progress;
}

void bw_progress_end(struct bw_progress *progress)
{
    if (!progress)
        return;
    pthread_mutex_lock(&progress->lock);
    progress->ended = true;
    pthread_cond_signal(&progress->changed);
    pthread_mutex_unlock(&progress->lock);
    pthread_join(progress->thread, NULL);
    pthread_cond_destroy(&progress->changed);
    pthread_mutex_destroy(&progress->lock);
    free(progress);
}

static ssize_t table_write(void *cookie, const char *data, size_t size_bytes)
{
    struct bw_progress *progress = cookie;
    if (progress) {
        pthread_mutex_lock(&progress->lock);
        line_clear(progress);
    }
    size_t written = fwrite(data, 1, size_bytes, stdout);
    if (progress) {
        fflush(stdout);
        pthread_mutex_unlock(&progress->lock);
    }
    return (ssize_t)written;
}

FILE *bw_progress_table(struct bw_progress *progress)
{
    FILE *table = fopencookie(progress, "w", (cookie_io_functions_t){.write = table_write});
    if (table)
        setvbuf(table, NULL, _IOLBF, BUFSIZ);
    return table;
}
