/* SPDX-License-Identifier: Apache-2.0 */
/* mixed.js - charts of plans whose stages differ (schemas maquette.plan.mixed, .slices, .predict, .composed). */
(function () {
  'use strict';
  const maq = window.maq, GIB = 1073741824;

  /*
   * Of each stage the parts of its time ([words, member, colour or null for that of its device]) and its memory. A kind of device is a
   * colour; what the legend shows is the kinds, and the parts that have a colour of their own.
   */
  const drawStages = (stages, what, parts, device, label) => {
    const kinds = [...new Set(stages.map(device))], shape = {barPercentage: 0.9, categoryPercentage: 0.92}, labels = stages.map(label);
    const color = s => maq.color('c-' + (kinds.indexOf(device(s)) % 8 + 1)), title = items => 'stage ' + items[0].label + ', ' + device(stages[items[0].dataIndex]);
    for (const id of ['stage-time', 'stage-memory'])
      document.getElementById(id).style.setProperty('--rows', stages.length);
    const y = () => maq.axis('stage', null, {stacked: true, grid: {display: false}});
    const legend = own => ({labels: {generateLabels: () => kinds.map((k, i) => [k, maq.color('c-' + (i % 8 + 1))]).concat(own).map(x => ({text: x[0], fillStyle: x[1], strokeStyle: 'transparent', fontColor: maq.color('soft')}))}, onClick: () => {}});
    if (stages.some(s => s[parts[0][1]] > 0)) {
      const most = Math.max(...stages.map(s => parts.reduce((sum, p) => sum + s[p[1]], 0))) * 1.03;
      maq.chart('stage-time', () => ({
        type: 'bar',
        data: {labels, datasets: parts.map((p, i) => ({label: p[0], data: stages.map(s => s[p[1]]), backgroundColor: p[2] ? maq.color(p[2]) : stages.map(s => i === 0 ? color(s) : maq.fade(color(s), 0.6)), ...shape}))},
        options: {indexAxis: 'y', scales: {x: maq.timeAxis('time of a ' + what, most, {stacked: true}), y: y()},
          plugins: {legend: legend(parts.filter(p => p[2]).map(p => [p[0], maq.color(p[2])])), tooltip: {callbacks: {title, label: item => item.dataset.label + ': ' + maq.time(item.raw, 4)}}}}
      }));
    } else {
      document.getElementById('stage-time').parentNode.remove();
    }
    maq.chart('stage-memory', () => ({
      type: 'bar',
      data: {labels, datasets: [{label: 'needed', data: stages.map(s => s.memory_bytes / GIB), backgroundColor: stages.map(s => s.memory_bytes > s.capacity_bytes ? maq.color('bad') : color(s)), ...shape},
        {label: 'left', data: stages.map(s => Math.max(0, s.capacity_bytes - s.memory_bytes) / GIB), backgroundColor: maq.color('hair'), ...shape}]},
      options: {indexAxis: 'y', scales: {x: maq.axis('GiB', null, {stacked: true}), y: y()},
        plugins: {legend: legend([]), tooltip: {callbacks: {title, label: item => item.dataset.label + ': ' + item.raw.toFixed(1) + ' GiB'}}}}
    }));
  };
  const passed = [['computing', 'compute_s', null], ['to the next stage', 'hop_s', 'c-bubble']];
  const drawBest = what => report => {
    if (report.plans.length > 0)
      drawStages(report.plans[0].stages, what, passed, s => report.islands[s.island].device, (s, i) => String(i));
  };

  maq.draw['maquette.plan.mixed'] = drawBest('micro batch');

  /* The same of what is composed of a parallelizer's answers, and of a plan that was written down. */
  maq.draw['maquette.plan.slices'] = drawBest('wave');
  maq.draw['maquette.plan.predict'] = report => {
    const several = new Set(report.stages.map(s => s.pipeline)).size > 1, columns = new Set(report.stages.map(s => s.replica)).size > 1;
    drawStages(report.stages, 'micro batch', [['forward', 'forward_s', null], ['backward', 'backward_s', null], ['from the stage before', 'hop_s', 'c-bubble']], s => s.device,
        s => (several ? s.pipeline + '.' : '') + s.stage + (columns ? ' (' + s.replica + ')' : ''));
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
