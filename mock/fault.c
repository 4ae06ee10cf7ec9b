#include "mock/fault.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/bits.h"
#include "base/number.h"
#include "base/text.h"

enum { DELAY_MS_MAX = 24 * 60 * 60 * 1000 }; /* a day: longer is a slip of the keyboard */

int bw_mock_faults_init(struct bw_mock_faults *faults, uint32_t gpu_count)
{
    memset(faults, 0, sizeof *faults);
    faults->gpu_count = gpu_count;
    return -pthread_mutex_init(&faults->lock, NULL);
}

void bw_mock_faults_fini(struct bw_mock_faults *faults)
{
    bw_vec_free(&faults->list);
    bw_vec_free(&faults->sites);
    pthread_mutex_destroy(&faults->lock);
}

void bw_mock_faults_clear(struct bw_mock_faults *faults)
{
    pthread_mutex_lock(&faults->lock);
    faults->list.count = 0;
    atomic_store(&faults->count, 0);
    pthread_mutex_unlock(&faults->lock);
}

enum { ERRNO_MAX = 4095 /* Linux, include/linux/err.h: MAX_ERRNO */ };

/* A name or a number; 0: neither. */
static int parse_errno(const char *text)
{
    static const struct {
        const char *name;
        int error;
    } aliases[] = {{"ENOTSUP", ENOTSUP}, {"EWOULDBLOCK", EWOULDBLOCK}, {"EDEADLOCK", EDEADLOCK}};
    for (size_t i = 0; i < BW_COUNT_OF(aliases); i++)
        if (strcasecmp(text, aliases[i].name) == 0) /* strerrorname_np gives the other name of the number */
            return aliases[i].error;
    for (int error = 1; error <= ERRNO_MAX; error++) {
        const char *name = strerrorname_np(error);
        if (name && strcasecmp(text, name) == 0)
            return error;
    }
    uint64_t value = 0;
    return !bw_number_parse(text, &value) && value <= ERRNO_MAX ? (int)value : 0;
}

int bw_mock_faults_site(struct bw_mock_faults *faults, const char *name, uint32_t actions, bool per_gpu)
{
    struct bw_mock_fault_site site = {.actions = actions, .per_gpu = per_gpu};
    assert(strlen(name) < sizeof site.name);
    memcpy(site.name, name, strlen(name) + 1);
    return bw_vec_push(&faults->sites, site);
}

static const char ioctl_prefix[] = "ioctl.";

static bool is_ioctl(const char *name)
{
    return strncasecmp(name, ioctl_prefix, sizeof ioctl_prefix - 1) == 0;
}

/* Links are many, too: one name stands for all. */
static bool is_link(const char *name)
{
    return strncasecmp(name, "link.", 5) == 0;
}

/* Registers, BARs and firmware are behind a kernel driver, so a machine with one in front has no such site.
 */
static const struct bw_mock_fault_site *find_site(const struct bw_mock_faults *faults, const char *name)
{
    for (size_t i = 0; i < faults->sites.count; i++) {
        if (strcasecmp(faults->sites.data[i].name, name) == 0)
            return &faults->sites.data[i];
    }
    return NULL;
}

/* The ioctls are many: they are listed to whom they concern. */
static int refuse_site(const struct bw_mock_faults *faults, const char *name, struct bw_err *err)
{
    struct bw_text list = {0};
    bool ioctls = is_ioctl(name), links = false;
    for (size_t i = 0; i < faults->sites.count; i++) {
        const char *site = faults->sites.data[i].name;
        links |= is_link(site);
        if (is_ioctl(site) == ioctls && !is_link(site))
            bw_text_add(&list, "%s%s", list.length ? ", " : "",
                        ioctls ? site + sizeof ioctl_prefix - 1 : site);
    }
    bw_fail(err, -EINVAL, "mock", "fault: no site \"%s\" on this machine", name);
    bw_err_hint(err, ioctls ? "ioctls: %s" : "sites: %s, %sioctl.NAME", bw_text_string(&list),
                links ? "link.I-J, " : "");
    bw_text_free(&list);
    return -EINVAL;
}

static const struct fault_action {
    const char *name, *shown;
    enum bw_mock_fault_action action;
    bool has_value;
} actions[] = {
    {"fail", "fail=ERRNO", BW_MOCK_FAULT_FAIL, true}, {"drop", "drop", BW_MOCK_FAULT_DROP, false},
    {"delay", "delay=MS", BW_MOCK_FAULT_DELAY, true}, {"dup", "dup", BW_MOCK_FAULT_DUP, false},
    {"hang", "hang", BW_MOCK_FAULT_HANG, false},
};

/* The action that text names, its value if it has one cut off; NULL: none. */
static const struct fault_action *find_action(char *text, char **value)
{
    *value = strchr(text, '=');
    if (*value)
        *(*value)++ = 0;
    for (size_t i = 0; i < BW_COUNT_OF(actions); i++)
        if (strcmp(text, actions[i].name) == 0 && actions[i].has_value == (*value != NULL))
            return &actions[i];
    return NULL;
}

static int parse_error(const char *value, struct bw_mock_fault *fault, struct bw_err *err)
{
    fault->error = parse_errno(value);
    if (fault->error)
        return 0;
    bw_fail(err, -EINVAL, "mock", "fault: fail=\"%s\" is no errno", value);
    bw_err_hint(err,
                "a name of errno(3), such as EIO, ENOMEM, EAGAIN, EBUSY, EINVAL, ENODEV, EACCES, ENOSPC, "
                "ETIME, or a number from 1 to %d",
                ERRNO_MAX);
    return -EINVAL;
}

static int parse_delay(const char *value, struct bw_mock_fault *fault, struct bw_err *err)
{
    uint64_t milliseconds = 0;
    if (bw_number_parse(value, &milliseconds) || milliseconds > DELAY_MS_MAX) {
        bw_fail(err, -EINVAL, "mock", "fault: delay=\"%s\" is no delay", value);
        bw_err_hint(err, "milliseconds, from 0 to %d", DELAY_MS_MAX);
        return -EINVAL;
    }
    fault->delay_ns = milliseconds * 1000000;
    return 0;
}

static bool parse_option(char *text, struct bw_mock_fault *fault)
{
    char *value = strchr(text, '=');
    uint64_t number = 0;
    if (!value)
        return false;
    *value++ = 0;
    if (bw_number_parse(value, &number))
        return false;
    if (strcmp(text, "nth") == 0 && number && !fault->nth) {
        fault->nth = number;
    } else if (strcmp(text, "count") == 0 && number && !fault->count) {
        fault->count = number;
    } else if (strcmp(text, "gpu") == 0 && number < INT64_MAX && fault->gpu < 0) {
        fault->gpu = (int64_t)number;
    } else if (strcmp(text, "seed") == 0 && !fault->random) {
        fault->random = true;
        fault->rng.state = number;
    } else {
        return false;
    }
    return true;
}

static int refuse_action(const struct bw_mock_fault_site *site, const char *shown, const char *why,
                         struct bw_err *err)
{
    struct bw_text list = {0};
    for (size_t i = 0; i < BW_COUNT_OF(actions); i++) {
        if (site->actions >> actions[i].action & 1)
            bw_text_add(&list, "%s%s", list.length ? ", " : "", actions[i].shown);
    }
    bw_fail(err, -EINVAL, "mock", "fault: \"%s\" %s \"%s\"", shown, why, site->name);
    bw_err_hint(err, "actions there: %s", bw_text_string(&list));
    bw_text_free(&list);
    return -EINVAL;
}

/* What follows the action. */
static int parse_options(const struct bw_mock_faults *faults, const struct bw_mock_fault_site *site,
                         char *rest, struct bw_mock_fault *fault, struct bw_err *err)
{
    char *part;
    while ((part = strsep(&rest, ","))) {
        char shown[48];
        snprintf(shown, sizeof shown, "%s", part);
        if (!parse_option(part, fault)) {
            bw_fail(err, -EINVAL, "mock", "fault: \"%s\" is not an option, or given twice", shown);
            bw_err_hint(err, "options: nth=N and count=N, from 1, gpu=I, seed=S");
            return -EINVAL;
        }
    }
    if (fault->gpu >= 0 && !site->per_gpu)
        return bw_fail(err, -EINVAL, "mock", "fault: gpu= with site \"%s\", which is the whole machine's",
                       site->name);
    if (fault->gpu >= (int64_t)faults->gpu_count)
        return bw_fail(err, -EINVAL, "mock", "fault: gpu=%lld on a machine of %u", (long long)fault->gpu,
                       faults->gpu_count);
    if (!fault->count)
        fault->count = fault->nth ? 1 : UINT64_MAX;
    if (!fault->nth)
        fault->nth = 1;
    return 0;
}

static int parse(const struct bw_mock_faults *faults, char *text, struct bw_mock_fault *fault,
                 struct bw_err *err)
{
    *fault = (struct bw_mock_fault){.gpu = -1};
    char *colon = strchr(text, ':');
    if (!colon)
        return bw_fail(err, -EINVAL, "mock", "fault \"%s\": no ':' between site and action", text);
    *colon = 0;
    const struct bw_mock_fault_site *site = find_site(faults, text);
    if (!site)
        return refuse_site(faults, text, err);
    memcpy(fault->site, site->name, sizeof fault->site);
    char *rest = colon + 1, *part = strsep(&rest, ","), *value, shown[48];
    snprintf(shown, sizeof shown, "%s", part);
    const struct fault_action *action = find_action(part, &value);
    if (!action)
        return refuse_action(site, shown, "is not an action, at site", err);
    fault->action = action->action;
    if (!(site->actions >> fault->action & 1))
        return refuse_action(site, shown, "does not fit site", err);
    int rc = fault->action == BW_MOCK_FAULT_FAIL    ? parse_error(value, fault, err)
             : fault->action == BW_MOCK_FAULT_DELAY ? parse_delay(value, fault, err)
                                                    : 0;
    return rc ? rc : parse_options(faults, site, rest, fault, err);
}

int bw_mock_faults_add(struct bw_mock_faults *faults, const char *specification, struct bw_err *err)
{
    struct bw_mock_fault fault;
    char *text = strdup(specification);
    if (!text)
        return bw_fail(err, -ENOMEM, "mock", "fault");
    int rc = parse(faults, text, &fault, err);
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

static bool strikes(struct bw_mock_fault *fault, const char *site, int64_t gpu, uint32_t mask)
{
    if (!(mask >> fault->action & 1) || strcasecmp(fault->site, site) != 0 ||
        (fault->gpu >= 0 && gpu >= 0 && fault->gpu != gpu))
        return false;
    fault->seen++;
    if (fault->seen < fault->nth || fault->hit >= fault->count)
        return false;
    if (fault->random && bw_rng_below(&fault->rng, 2))
        return false;
    fault->hit++;
    return true;
}

enum bw_mock_fault_action bw_mock_faults_check_for(struct bw_mock_faults *faults, const char *site,
                                                   int64_t gpu, uint32_t mask, struct bw_mock_fault *fault)
{
    enum bw_mock_fault_action action = BW_MOCK_FAULT_NONE;
    if (!atomic_load_explicit(&faults->count, memory_order_acquire))
        return action;
    pthread_mutex_lock(&faults->lock);
    for (size_t i = 0; i < faults->list.count; i++) {
        if (strikes(&faults->list.data[i], site, gpu, mask) && action == BW_MOCK_FAULT_NONE) {
            *fault = faults->list.data[i];
            action = fault->action;
        }
    }
    pthread_mutex_unlock(&faults->lock);
    return action;
}

enum bw_mock_fault_action bw_mock_faults_check(struct bw_mock_faults *faults, const char *site, int64_t gpu,
                                               struct bw_mock_fault *fault)
{
    return bw_mock_faults_check_for(faults, site, gpu, UINT32_MAX, fault);
}
