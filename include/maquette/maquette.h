/* SPDX-License-Identifier: Apache-2.0 */
/* maquette.h - everything: a scale model of LLM clusters. */
#ifndef MAQUETTE_MAQUETTE_H
#define MAQUETTE_MAQUETTE_H

#include "maquette/capture.h"
#include "maquette/capture_graph.h"
#include "maquette/catalogue.h"
#include "maquette/checkpoint.h"
#include "maquette/cluster.h"
#include "maquette/cost.h"
#include "maquette/diag.h"
#include "maquette/failures.h"
#include "maquette/framework.h"
#include "maquette/graph.h"
#include "maquette/islands.h"
#include "maquette/job.h"
#include "maquette/launch.h"
#include "maquette/measure.h"
#include "maquette/mixed_plan.h"
#include "maquette/mixed_step.h"
#include "maquette/model.h"
#include "maquette/parallelizer.h"
#include "maquette/peers.h"
#include "maquette/plan.h"
#include "maquette/planner.h"
#include "maquette/planner_external.h"
#include "maquette/planner_measured.h"
#include "maquette/planner_mixed.h"
#include "maquette/replay.h"
#include "maquette/report.h"
#include "maquette/risk.h"
#include "maquette/risk_run.h"
#include "maquette/trace.h"
#include "maquette/train.h"
#include "maquette/validate.h"
#include "maquette/validate_serve.h"

#endif
