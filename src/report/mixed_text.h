/* mixed_text.h - what reports of plans over several node groups share. */
#ifndef MAQ_REPORT_MIXED_TEXT_H
#define MAQ_REPORT_MIXED_TEXT_H

#include "maquette/job.h"
#include "report/page.h"

/* Title, model, cluster and workload. */
void maq_page_open_job(struct maq_page *page, const struct maq_job *job);

#endif
