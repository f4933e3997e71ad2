/* SPDX-License-Identifier: Apache-2.0 */
/* date.h - days of the calendar, proleptic Gregorian, as "2026-12-31". */
#ifndef MAQ_REPORT_RISK_DATE_H
#define MAQ_REPORT_RISK_DATE_H

#include <stdint.h>

/* Days after 1970-01-01 as text. Returns buf. */
const char *maq_date_text(char buf[16], int64_t day);

#endif
