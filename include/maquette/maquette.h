/* maquette.h - everything: a scale model of LLM clusters. */
#ifndef MAQUETTE_MAQUETTE_H
#define MAQUETTE_MAQUETTE_H

#include "maquette/capture.h"
#include "maquette/catalogue.h"
#include "maquette/checkpoint.h"
#include "maquette/cluster.h"
#include "maquette/compose.h"
#include "maquette/cost.h"
#include "maquette/diag.h"
#include "maquette/failures.h"
#include "maquette/framework.h"
#include "maquette/graph.h"
#include "maquette/islands.h"
#include "maquette/job.h"
#include "maquette/mixed_plan.h"
#include "maquette/mixed_search.h"
#include "maquette/model.h"
#include "maquette/parallelizer.h"
#include "maquette/peers.h"
#include "maquette/plan.h"
#include "maquette/profile.h"
#include "maquette/report.h"
#include "maquette/risk.h"
#include "maquette/risk_run.h"
#include "maquette/search.h"
#include "maquette/session.h"
#include "maquette/slices.h"
#include "maquette/trace.h"
#include "maquette/train.h"
#include "maquette/validate.h"

#endif
