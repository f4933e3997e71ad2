/* SPDX-License-Identifier: Apache-2.0 */
/*
 * date.c - days of the civil calendar: see date.h.
 *
 * Years of 365.2425 days in eras of 400 years that begin on a first of March, so that the leap day is the last of its year (the
 * usual arithmetic of the proleptic Gregorian calendar; Richards in "Explanatory supplement to the astronomical almanac", 15.11).
 */
#include "report/risk/date.h"

#include <string.h>

#include "base/text.h"
#include "maquette/report.h"

#define TO_1970 719468 /* days from 0000-03-01 */

const char *maq_date_text(char buf[16], int64_t day)
{
    int64_t z = day + TO_1970, era = (z >= 0 ? z : z - 146096) / 146097, doe = z - era * 146097;
    int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365, doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    int64_t mp = (5 * doy + 2) / 153, d = doy - (153 * mp + 2) / 5 + 1, m = mp < 10 ? mp + 3 : mp - 9;
    maq__snprintf(buf, 16, "%04d-%02d-%02d", (int)(yoe + era * 400 + (m <= 2)), (int)m, (int)d);
    return buf;
}

/* Of n digits; -1 where one is none. */
static int64_t digits(const char *text, int n)
{
    int64_t x = 0;
    for (int i = 0; i < n; i++) {
        if (text[i] < '0' || text[i] > '9')
            return -1;
        x = 10 * x + text[i] - '0';
    }
    return x;
}

bool maq_date_read(int64_t *day, const char *text)
{
    char back[16];
    if (strlen(text) != 10 || text[4] != '-' || text[7] != '-')
        return false;
    int64_t y = digits(text, 4), m = digits(text + 5, 2), d = digits(text + 8, 2);
    if (y < 1 || m < 1 || m > 12 || d < 1)
        return false;
    int64_t year = y - (m <= 2), era = year / 400, yoe = year - era * 400,
            doy = (153 * (m > 2 ? m - 3 : m + 9) + 2) / 5 + d - 1;
    *day = era * 146097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - TO_1970;
    return strcmp(maq_date_text(back, *day), text) == 0; /* 30 February is another day */
}
