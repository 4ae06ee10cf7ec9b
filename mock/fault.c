#include "mock/fault.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/bits.h"

int bw_mock_faults_init(struct bw_mock_faults *faults)
{
    memset(faults, 0, sizeof *faults);
    return -pthread_mutex_init(&faults->lock, NULL);
}

void bw_mock_faults_fini(struct bw_mock_faults *faults)
{
    bw_vec_free(&faults->list);
    pthread_mutex_destroy(&faults->lock);
}

void bw_mock_faults_clear(struct bw_mock_faults *faults)
{
    pthread_mutex_lock(&faults->lock);
    faults->list.count = 0;
    atomic_store(&faults->count, 0);
    pthread_mutex_unlock(&faults->lock);
}

static const struct {
    const char *name;
    int value;
} errno_names[] = {
    {"EPERM", EPERM},   {"ENOENT", ENOENT},       {"ESRCH", ESRCH},         {"EINTR", EINTR},
    {"EIO", EIO},       {"ENXIO", ENXIO},         {"EBADF", EBADF},         {"EAGAIN", EAGAIN},
    {"ENOMEM", ENOMEM}, {"EACCES", EACCES},       {"EFAULT", EFAULT},       {"EBUSY", EBUSY},
    {"EEXIST", EEXIST}, {"ENODEV", ENODEV},       {"EINVAL", EINVAL},       {"EMFILE", EMFILE},
    {"ENOTTY", ENOTTY}, {"ENOSPC", ENOSPC},       {"ETIMEDOUT", ETIMEDOUT}, {"EOPNOTSUPP", EOPNOTSUPP},
    {"ENOSYS", ENOSYS}, {"ECANCELED", ECANCELED},
};

static int parse_errno(const char *text)
{
    for (size_t i = 0; i < BW_COUNT_OF(errno_names); i++) {
        if (strcasecmp(text, errno_names[i].name) == 0)
            return errno_names[i].value;
    }
    char *end;
    long value = strtol(text, &end, 10);
    return *text && !*end && value > 0 && value < 4096 ? (int)value : 0;
}

static bool parse_number(const char *text, uint64_t *value)
{
    char *end;
    errno = 0;
    *value = strtoull(text, &end, 0);
    return *text >= '0' && *text <= '9' && !*end && !errno;
}

/* Sites that a machine with a kernel driver in front has; registers, BARs and firmware are behind the kernel.
 */
static bool parse_site(const char *text, struct bw_mock_fault *fault)
{
    static const char *const plain[] = {"map", "doorbell", "irq", "mec", "kernel"};
    if (strlen(text) >= sizeof fault->site)
        return false;
    memcpy(fault->site, text, strlen(text) + 1);
    for (size_t i = 0; i < BW_COUNT_OF(plain); i++) {
        if (strcmp(text, plain[i]) == 0)
            return true;
    }
    uint64_t engine;
    if (strncmp(text, "sdma", 4) == 0)
        return parse_number(text + 4, &engine) && engine < 16;
    return strncmp(text, "ioctl.", 6) == 0 && text[6];
}

static bool parse_action(char *text, struct bw_mock_fault *fault)
{
    static const struct {
        const char *name;
        enum bw_mock_fault_action action;
        bool has_value;
    } actions[] = {
        {"fail", BW_MOCK_FAULT_FAIL, true},   {"drop", BW_MOCK_FAULT_DROP, false},
        {"delay", BW_MOCK_FAULT_DELAY, true}, {"dup", BW_MOCK_FAULT_DUP, false},
        {"hang", BW_MOCK_FAULT_HANG, false},
    };
    char *value = strchr(text, '=');
    if (value)
        *value++ = 0;
    for (size_t i = 0; i < BW_COUNT_OF(actions); i++) {
        if (strcmp(text, actions[i].name) != 0 || actions[i].has_value != (value != NULL))
            continue;
        fault->action = actions[i].action;
        uint64_t milliseconds = 0;
        if (fault->action == BW_MOCK_FAULT_FAIL)
            return (fault->error = parse_errno(value)) != 0;
        if (fault->action == BW_MOCK_FAULT_DELAY && !parse_number(value, &milliseconds))
            return false;
        fault->delay_ns = milliseconds * 1000000;
        return true;
    }
    return false;
}

static bool parse_option(char *text, struct bw_mock_fault *fault)
{
    char *value = strchr(text, '=');
    uint64_t number;
    if (!value)
        return false;
    *value++ = 0;
    if (!parse_number(value, &number))
        return false;
    if (strcmp(text, "nth") == 0 && number) {
        fault->nth = number;
    } else if (strcmp(text, "count") == 0 && number) {
        fault->count = number;
    } else if (strcmp(text, "gpu") == 0 && number < INT64_MAX) {
        fault->gpu = (int64_t)number;
    } else if (strcmp(text, "seed") == 0) {
        fault->random = true;
        fault->rng.state = number;
    } else {
        return false;
    }
    return true;
}

/* What a site can suffer; a pair outside of this would be accepted and then do nothing. */
static bool action_fits(const struct bw_mock_fault *fault)
{
    enum bw_mock_fault_action action = fault->action;
    if (strcmp(fault->site, "doorbell") == 0 || strcmp(fault->site, "irq") == 0)
        return action == BW_MOCK_FAULT_DROP || action == BW_MOCK_FAULT_DELAY || action == BW_MOCK_FAULT_DUP;
    if (strcmp(fault->site, "map") == 0 || strncmp(fault->site, "ioctl.", 6) == 0)
        return action == BW_MOCK_FAULT_FAIL || action == BW_MOCK_FAULT_DELAY;
    return action != BW_MOCK_FAULT_DUP || strcmp(fault->site, "kernel") == 0;
}

static int parse(char *text, struct bw_mock_fault *fault, struct bw_err *err)
{
    *fault = (struct bw_mock_fault){.gpu = -1};
    char *colon = strchr(text, ':');
    if (!colon)
        return bw_fail(err, -EINVAL, "mock", "fault \"%s\": no ':' between site and action", text);
    *colon = 0;
    if (!parse_site(text, fault))
        return bw_fail(err, -EINVAL, "mock", "fault: no site \"%s\" on a KFD mock", text);
    char *rest = colon + 1, *part = strsep(&rest, ",");
    char shown[48];
    strncpy(shown, part, sizeof shown - 1);
    shown[sizeof shown - 1] = 0;
    if (!parse_action(part, fault))
        return bw_fail(err, -EINVAL, "mock", "fault: \"%s\" is not an action", shown);
    if (!action_fits(fault))
        return bw_fail(err, -EINVAL, "mock", "fault: action \"%s\" does not fit site \"%s\"", shown,
                       fault->site);
    while ((part = strsep(&rest, ","))) {
        strncpy(shown, part, sizeof shown - 1);
        if (!parse_option(part, fault))
            return bw_fail(err, -EINVAL, "mock", "fault: \"%s\" is not an option", shown);
    }
    if (!fault->count)
        fault->count = fault->nth ? 1 : UINT64_MAX;
    if (!fault->nth)
        fault->nth = 1;
    return 0;
}

int bw_mock_faults_add(struct bw_mock_faults *faults, const char *specification, struct bw_err *err)
{
    struct bw_mock_fault fault;
    char *text = strdup(specification);
    if (!text)
        return bw_fail(err, -ENOMEM, "mock", "fault");
    int rc = parse(text, &fault, err);
    free(text);
    if (rc)
        return rc;
    pthread_mutex_lock(&faults->lock);
    rc = bw_vec_push(&faults->list, fault);
    if (!rc)
        atomic_fetch_add(&faults->count, 1);
    pthread_mutex_unlock(&faults->lock);
    return rc ? bw_fail(err, rc, "mock", "fault") : 0;
}

static bool strikes(struct bw_mock_fault *fault, const char *site, int64_t gpu)
{
    if (strcasecmp(fault->site, site) != 0 || (fault->gpu >= 0 && gpu >= 0 && fault->gpu != gpu))
        return false;
    fault->seen++;
    if (fault->seen < fault->nth || fault->hit >= fault->count)
        return false;
    if (fault->random && bw_rng_below(&fault->rng, 2))
        return false;
    fault->hit++;
    return true;
}

enum bw_mock_fault_action bw_mock_faults_check(struct bw_mock_faults *faults, const char *site, int64_t gpu,
                                               struct bw_mock_fault *fault)
{
    enum bw_mock_fault_action action = BW_MOCK_FAULT_NONE;
    if (!atomic_load_explicit(&faults->count, memory_order_acquire))
        return action;
    pthread_mutex_lock(&faults->lock);
    for (size_t i = 0; i < faults->list.count; i++) {
        if (strikes(&faults->list.data[i], site, gpu) && action == BW_MOCK_FAULT_NONE) {
            *fault = faults->list.data[i];
            action = fault->action;
        }
    }
    pthread_mutex_unlock(&faults->lock);
    return action;
}
