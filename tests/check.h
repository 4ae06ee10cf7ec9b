/* Checks for CUnit that print what was expected and what was observed.
 *
 * A test program is: static functions, one BW_TEST_MAIN table. Return code 0 passed, 1 failed, 77 skipped. */
#ifndef BW_TESTS_CHECK_H
#define BW_TESTS_CHECK_H

#include <CUnit/Basic.h>
#include <CUnit/CUnit.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>

static inline bool bw_check_u64(uint64_t observed, uint64_t expected, const char *text, const char *file,
                                int line)
{
    bool ok = observed == expected;
    if (!ok) {
        printf("\n    %s:%d: %s\n      expected 0x%" PRIx64 " (%" PRId64 ")\n      observed 0x%" PRIx64
               " (%" PRId64 ")\n",
               file, line, text, expected, (int64_t)expected, observed, (int64_t)observed);
    }
    CU_assertImplementation(ok, (unsigned)line, text, file, "", CU_FALSE);
    return ok;
}

static inline bool bw_check_str(const char *observed, const char *expected, const char *text,
                                const char *file, int line)
{
    bool ok = observed && expected && strcmp(observed, expected) == 0;
    if (!ok) {
        printf("\n    %s:%d: %s\n      expected \"%s\"\n      observed \"%s\"\n", file, line, text,
               expected ? expected : "(null)", observed ? observed : "(null)");
    }
    CU_assertImplementation(ok, (unsigned)line, text, file, "", CU_FALSE);
    return ok;
}

static inline bool bw_check_near(double observed, double expected, double tolerance, const char *text,
                                 const char *file, int line)
{
    double difference = observed > expected ? observed - expected : expected - observed;
    bool ok = difference <= tolerance || observed == expected;
    if (!ok) {
        printf("\n    %s:%d: %s\n      expected %.17g (+- %g)\n      observed %.17g\n", file, line, text,
               expected, tolerance, observed);
    }
    CU_assertImplementation(ok, (unsigned)line, text, file, "", CU_FALSE);
    return ok;
}

static inline bool bw_check_bytes(const void *observed, const void *expected, size_t size_bytes,
                                  const char *text, const char *file, int line)
{
    size_t at = 0;
    const uint8_t *a = observed, *b = expected;
    while (at < size_bytes && a[at] == b[at])
        at++;
    bool ok = at == size_bytes;
    if (!ok) {
        printf(
            "\n    %s:%d: %s\n      first difference at byte %zu of %zu: expected 0x%02x, observed 0x%02x\n",
            file, line, text, at, size_bytes, b[at], a[at]);
    }
    CU_assertImplementation(ok, (unsigned)line, text, file, "", CU_FALSE);
    return ok;
}

static inline bool bw_check_true(bool ok, const char *text, const char *file, int line)
{
    if (!ok)
        printf("\n    %s:%d: expected to hold: %s\n", file, line, text);
    CU_assertImplementation(ok, (unsigned)line, text, file, "", CU_FALSE);
    return ok;
}

/* Each returns whether it held, so that a test can stop early: if (!BW_EQ(rc, 0)) return; */
#define BW_EQ(observed, expected)                                                                          \
    bw_check_u64((uint64_t)(int64_t)(observed), (uint64_t)(int64_t)(expected), #observed " == " #expected, \
                 __FILE__, __LINE__)
#define BW_STR(observed, expected) bw_check_str(observed, expected, #observed, __FILE__, __LINE__)
#define BW_NEAR(observed, expected, tol) \
    bw_check_near(observed, expected, tol, #observed " ~ " #expected, __FILE__, __LINE__)
#define BW_BYTES(observed, expected, size) \
    bw_check_bytes(observed, expected, size, #observed " == " #expected, __FILE__, __LINE__)
#define BW_TRUE(condition) bw_check_true(condition, #condition, __FILE__, __LINE__)
/* For calls that fill a struct bw_err: prints the error's own line when the code differs. */
#define BW_OK(call, err) (bw_check_rc((call), 0, err, #call, __FILE__, __LINE__))

#ifdef BW_ERR_H
static inline bool bw_check_rc(int observed, int expected, const struct bw_err *err, const char *text,
                               const char *file, int line)
{
    if (observed != expected) {
        char line_text[512];
        bw_err_format(err, line_text, sizeof line_text);
        printf("\n    %s\n", line_text);
    }
    return bw_check_u64((uint64_t)(int64_t)observed, (uint64_t)(int64_t)expected, text, file, line);
}
#endif

struct bw_test {
    const char *name;
    void (*run)(void);
};

enum { BW_TEST_SKIPPED = 77 };

/* waitpid, whatever interrupts it. */
static inline pid_t bw_test_wait(pid_t child, int *status)
{
    pid_t rc;
    do {
        rc = waitpid(child, status, 0);
    } while (rc < 0 && errno == EINTR);
    return rc;
}

static inline void bw_test_tick(int number)
{
    (void)number;
}

/* With BW_TEST_TIMER set: a timer of 1 ms interrupts whatever can be interrupted, as in a program that has one
 * and does not ask for restarts. */
static inline void bw_test_timer(void)
{
    struct sigaction action = {.sa_handler = bw_test_tick};
    struct itimerval every = {{0, 1000}, {0, 1000}};
    if (!getenv("BW_TEST_TIMER"))
        return;
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &every, NULL);
}

static inline int bw_test_run(const char *suite_name, const struct bw_test *tests, size_t count)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    bw_test_timer();
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 1;
    CU_pSuite suite = CU_add_suite(suite_name, NULL, NULL);
    for (size_t i = 0; suite && i < count; i++)
        CU_add_test(suite, tests[i].name, tests[i].run);
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_basic_run_tests();
    unsigned failed = CU_get_number_of_failures() + CU_get_number_of_tests_failed();
    unsigned run = CU_get_number_of_tests_run();
    CU_cleanup_registry();
    return failed || run != count ? 1 : 0;
}

#define BW_TEST_MAIN(suite_name, ...)                                          \
    int main(void)                                                             \
    {                                                                          \
        static const struct bw_test tests[] = {__VA_ARGS__};                   \
        return bw_test_run(suite_name, tests, sizeof tests / sizeof tests[0]); \
    }

#endif
