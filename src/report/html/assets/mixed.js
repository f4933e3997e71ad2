/* SPDX-License-Identifier: Apache-2.0 */
/* mixed.js - charts of the best plan over several node groups (schema maquette.plan.mixed). */
(function () {
  'use strict';
  const maq = window.maq, GIB = 1073741824;

  maq.draw['maquette.plan.mixed'] = report => {
    if (report.plans.length === 0)
      return;
    const stages = report.plans[0].stages, kinds = [...new Set(report.islands.map(i => i.device))];
    const color = s => maq.color('c-' + (kinds.indexOf(report.islands[s.island].device) % 8 + 1));
    const label = s => report.islands[s.island].device, title = items => 'stage ' + items[0].label + ', ' + label(stages[items[0].dataIndex]);
    for (const id of ['stage-time', 'stage-memory'])
      document.getElementById(id).style.setProperty('--rows', stages.length);
    const y = () => maq.axis('stage', null, {stacked: true, grid: {display: false}}), labels = stages.map((s, i) => String(i));
    const shape = {barPercentage: 0.9, categoryPercentage: 0.92};
    /* Of each kind of device a colour; what the legend shows is the kinds. */
    const legend = {labels: {generateLabels: () => kinds.map((k, i) => ({text: k, fillStyle: maq.color('c-' + (i % 8 + 1)), strokeStyle: 'transparent', fontColor: maq.color('soft')}))}, onClick: () => {}};
    if (stages.some(s => s.compute_s > 0)) {
      const most = Math.max(...stages.map(s => s.compute_s + s.hop_s)) * 1.03;
      maq.chart('stage-time', () => ({
        type: 'bar',
        data: {labels, datasets: [{label: 'computing', data: stages.map(s => s.compute_s), backgroundColor: stages.map(color), ...shape},
          {label: 'to the next stage', data: stages.map(s => s.hop_s), backgroundColor: maq.color('c-bubble'), ...shape}]},
        options: {indexAxis: 'y', scales: {x: maq.timeAxis('time of a micro batch', most, {stacked: true}), y: y()},
          plugins: {legend, tooltip: {callbacks: {title, label: item => item.dataset.label + ': ' + maq.time(item.raw, 4)}}}}
      }));
    } else {
      document.getElementById('stage-time').parentNode.remove();
    }
    maq.chart('stage-memory', () => ({
      type: 'bar',
      data: {labels, datasets: [{label: 'needed', data: stages.map(s => s.memory_bytes / GIB), backgroundColor: stages.map(color), ...shape},
        {label: 'left', data: stages.map(s => Math.max(0, s.capacity_bytes - s.memory_bytes) / GIB), backgroundColor: maq.color('hair'), ...shape}]},
      options: {indexAxis: 'y', scales: {x: maq.axis('GiB', null, {stacked: true}), y: y()},
        plugins: {legend, tooltip: {callbacks: {title, label: item => item.dataset.label + ': ' + item.raw.toFixed(1) + ' GiB'}}}}
    }));
  };

  /* The same of what is composed from a profile: a bar for each stage of each pipeline of the best plan. */
  maq.draw['maquette.plan.composed'] = report => {
    if (report.plans.length === 0)
      return;
    const several = report.plans[0].pipelines.length > 1;
    const stages = report.plans[0].pipelines.flatMap((p, k) => p.stages.map((s, i) => ({...s, name: (several ? 'pipeline ' + k + ', ' : '') + 'stage ' + i})));
    const most = Math.max(...stages.map(s => s.compute_s + s.hop_s)) * 1.03, shape = {barPercentage: 0.9, categoryPercentage: 0.92};
    document.getElementById('stage-chart').style.setProperty('--rows', stages.length);
    maq.chart('stage-chart', () => ({
      type: 'bar',
      data: {labels: stages.map(s => s.name), datasets: [{label: 'computing', data: stages.map(s => s.compute_s), backgroundColor: maq.color('c-1'), ...shape},
        {label: 'to the next stage', data: stages.map(s => s.hop_s), backgroundColor: maq.color('c-2'), ...shape}]},
      options: {indexAxis: 'y', scales: {x: maq.timeAxis('time of a micro batch', most, {stacked: true}), y: {stacked: true, ticks: {autoSkip: false}, grid: {display: false}}},
        plugins: {tooltip: {callbacks: {label: item => item.dataset.label + ': ' + maq.time(item.raw, 4)}}}}
    }));
  };
}());
