/* SPDX-License-Identifier: Apache-2.0 */
/* plan.js - charts of a search for the best plan (schema maquette.plan). */
(function () {
  'use strict';
  const maq = window.maq, GIB = 1073741824;

  const front = (report, more) => {
    const best = report.plans[0];
    const point = (p, name) => ({x: p.needed_bytes / GIB, y: p.step_time_s, name});
    const changed = report.alternatives.filter(a => a.possible && a.step_time_s < 3 * best.step_time_s)
        .map(a => ({...point(a, a.name + ' ' + a.to + ' instead of ' + a.from), fits: a.fits}));
    const pareto = report.pareto.map((p, i) => point(p, more.pareto[i])).sort((a, b) => a.x - b.x);
    const runners = report.plans.slice(1).map((p, i) => point(p, more.plans[i + 1]));
    const without = report.headroom && report.headroom.without ? [point(report.headroom.without, 'without headroom')] : [];
    const sets = [
      {label: 'the winner', data: [point(best, more.plans[0])], color: 'c-2', radius: 7, style: 'rectRot', order: 0},
      {label: 'runners-up', data: runners, color: 'c-1', radius: 5, order: 1},
      {label: 'no other beats it in both', data: pareto, color: 'c-3', radius: 2.5, line: true, order: 2},
      {label: 'without headroom', data: without, color: 'c-4', radius: 5, style: 'triangle', order: 1},
      {label: 'one thing changed', data: changed.filter(a => a.fits), color: 'c-7', radius: 3, order: 3},
      {label: 'changed, does not fit', data: changed.filter(a => !a.fits), color: 'bad', radius: 3, style: 'crossRot', order: 4}
    ].filter(s => s.data.length > 0);
    const capacity = more.capacity_bytes / GIB;
    const all = sets.flatMap(s => s.data);
    maq.chart('front', () => ({
      type: 'scatter',
      data: {datasets: sets.map(s => ({label: s.label, data: s.data, order: s.order, pointStyle: s.style || 'circle', pointRadius: s.radius, pointHoverRadius: s.radius + 2,
        backgroundColor: maq.color(s.color), borderColor: maq.color(s.color), borderWidth: 1.5, showLine: !!s.line, stepped: s.line ? 'after' : false}))},
      options: {
        scales: {
          x: maq.axis('GiB on the fullest GPU', null, {beginAtZero: true, max: Math.min(Math.max(capacity, ...all.map(p => p.x)), capacity * 1.3) * 1.05, ticks: {includeBounds: false, maxRotation: 0}}),
          y: maq.axis('step time, s', maq.plain, {grace: '5%'})
        },
        plugins: {
          legend: {labels: {usePointStyle: true, boxWidth: 7, boxHeight: 7}},
          marks: {list: [{x: capacity, text: 'capacity', color: maq.color('bad')}]},
          tooltip: {callbacks: {title: items => items[0].raw.name, label: item => item.dataset.label + ': ' + maq.digits(item.parsed.y, 5) + ' s, ' + item.parsed.x.toFixed(1) + ' GiB'}}
        }
      }
    }));
  };

  const parts = (report, more) => {
    const used = maq.buckets.filter(b => report.plans.some(p => p.breakdown[b[0]] > 1e-3 * p.step_time_s));
    maq.chart('parts', () => ({
      type: 'bar',
      data: {
        labels: report.plans.map((p, i) => String(i + 1)),
        datasets: used.map(b => ({label: b[1], data: report.plans.map(p => p.breakdown[b[0]]), backgroundColor: maq.color(b[2]), barPercentage: 0.85, categoryPercentage: 0.9}))
      },
      options: {
        indexAxis: 'y',
        scales: {
          x: maq.timeAxis('time in the step', Math.max(...report.plans.map(p => p.step_time_s)), {stacked: true}),
          y: maq.axis('plan', null, {stacked: true, grid: {display: false}})
        },
        plugins: {tooltip: {callbacks: {
          title: items => more.plans[items[0].dataIndex],
          label: item => item.dataset.label + ': ' + maq.time(item.raw, 4) + ', ' + maq.percent(item.raw / report.plans[item.dataIndex].step_time_s)
        }}}
      }
    }));
  };

  /* Of each key the neighbours of the winner's value would be in the table; the chart has every value, the best first. */
  const whatIf = report => {
    const best = report.plans[0].step_time_s;
    const list = report.alternatives.filter(a => a.possible).map(a => ({...a, more: 100 * (a.step_time_s / best - 1)}))
        .sort((a, b) => a.more - b.more || (a.key < b.key ? -1 : 1)).slice(0, 24);
    const place = document.getElementById('what-if-chart');
    if (!place || list.length === 0)
      return;
    place.style.setProperty('--rows', list.length);
    maq.chart('what-if-chart', () => ({
      type: 'bar',
      data: {
        labels: list.map(a => a.name + ' ' + a.to),
        datasets: [{label: 'step', data: list.map(a => a.more), backgroundColor: list.map(a => a.fits ? maq.color('c-1') : maq.fade(maq.color('bad'), 0.35)), barPercentage: 0.9, categoryPercentage: 0.9}]
      },
      options: {
        indexAxis: 'y',
        scales: {
          x: maq.axis('longer step, %', null, {grace: '3%'}),
          y: {grid: {display: false}, ticks: {autoSkip: false, font: {size: 11}, callback: function (v) {
            const text = this.getLabelForValue(v);
            return text.length > 30 ? text.slice(0, 29) + '…' : text;
          }}}
        },
        plugins: {legend: {display: false}, tooltip: {callbacks: {
          title: items => { const a = list[items[0].dataIndex]; return a.name + ' ' + a.to + ' instead of ' + a.from; },
          label: item => { const a = list[item.dataIndex]; return [(a.more >= 0 ? '+' : '') + a.more.toFixed(2) + ' %, ' + maq.digits(a.step_time_s, 5) + ' s', a.fits ? 'fits: ' + maq.gib(a.needed_bytes) : 'does not fit: ' + maq.gib(a.needed_bytes)]; }
        }}}
      }
    }));
  };

  maq.draw['maquette.plan'] = (report, more) => {
    if (report.plans.length === 0)
      return;
    report.alternatives.forEach((a, i) => { a.name = more.changed[i]; });
    front(report, more);
    parts(report, more);
    whatIf(report);
  };
}());
