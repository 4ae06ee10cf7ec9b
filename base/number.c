/* Numbers as people type them: see number.h. */
#include "base/number.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static int take(const char **text, int base, uint64_t *value)
{
    char *end;
    errno = 0;
    unsigned long long number = strtoull(*text, &end, base);
    if (errno)
        return -ERANGE;
    *text = end;
    *value = number;
    return 0;
}

int bw_number_take(const char **text, uint64_t *value)
{
    return isdigit((unsigned char)**text) ? take(text, 10, value) : -EINVAL;
}

int bw_number_parse(const char *text, uint64_t *value)
{
    uint64_t number;
    bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X') && isxdigit((unsigned char)text[2]);
    int rc = hex ? take(&text, 16, &number) : bw_number_take(&text, &number);
    if (!rc && *text)
        rc = -EINVAL;
    if (!rc)
        *value = number;
    return rc;
}

int bw_integer_parse(const char *text, int64_t *value)
{
    uint64_t magnitude, negative = *text == '-';
    int rc = bw_number_parse(text + negative, &magnitude);
    if (!rc && magnitude > (uint64_t)INT64_MAX + negative)
        rc = -ERANGE;
    if (!rc)
        *value = (int64_t)(negative ? -magnitude : magnitude);
    return rc;
}

int bw_size_parse(const char *text, uint64_t *value)
{
    static const char units[] = "KMGT";
    uint64_t number;
    unsigned shift = 0;
    int rc = bw_number_take(&text, &number);
    if (!rc && *text) {
        const char *unit = strchr(units, toupper((unsigned char)*text));
        if (!unit || text[1])
            return -EINVAL;
        shift = 10 * (unsigned)(unit - units + 1);
    }
    if (!rc && number > UINT64_MAX >> shift)
        rc = -ERANGE;
    if (!rc)
        *value = number << shift;
    return rc;
}

int bw_real_take(const char **text, double *value)
{
    char *end;
    errno = 0;
    double number = strtod(*text, &end);
    if (isspace((unsigned char)**text) || **text == '+' || end == *text)
        return -EINVAL;
    if (errno == ERANGE && isinf(number))
        return -ERANGE;
    *text = end;
    *value = number;
    return 0;
}
