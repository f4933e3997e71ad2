/* SPDX-License-Identifier: Apache-2.0 */
/* profile.js - charts of kernels on a GPU: a plan of measurements (schema maquette.profile), what a file holds (maquette.kernels), and how far
   predictions are off (maquette.kernels.compare). */
(function () {
  'use strict';
  const maq = window.maq;

  /* Predicted over measured seconds, both logarithmic, with the line where they are equal. sets: [{label, color, points: [{x, y, name}]}] */
  const against = (id, sets) => {
    const all = sets.flatMap(s => s.points.flatMap(p => [p.x, p.y])), low = Math.min(...all) / 1.5, high = Math.max(...all) * 1.5;
    const axis = title => maq.logAxis(title, v => maq.time(v, 1), {min: low, max: high});
    maq.chart(id, () => ({
      type: 'scatter',
      data: {datasets: sets.map(s => ({label: s.label, data: s.points, backgroundColor: maq.fade(maq.color(s.color), 0.8), borderColor: maq.color(s.color), pointRadius: all.length > 1000 ? 2 : 4, pointStyle: s.style}))
        .concat([{label: 'as measured', data: [{x: low, y: low}, {x: high, y: high}], showLine: true, borderColor: maq.color('soft'), borderDash: [5, 4], borderWidth: 1.25, pointRadius: 0, pointHitRadius: 0}])},
      options: {
        scales: {x: axis('measured'), y: axis('predicted')},
        plugins: {tooltip: {callbacks: {title: items => items[0].raw.name, label: item => item.dataset.label + ' ' + maq.time(item.raw.y, 3) + ', measured ' + maq.time(item.raw.x, 3) + ': ' +
          (item.raw.y >= item.raw.x ? '+' : '') + maq.percent(item.raw.y / item.raw.x - 1)}}}
      }
    }));
  };

  /* What is known of an operator, in the order of the legend. */
  const states = [['measured', 'measured now', 'c-1'], ['held', 'in the file', 'c-3'], ['planned', 'to be measured', 'c-2'], ['left', 'left for another time', 'c-4'], ['skipped', 'cannot be measured here', 'c-bubble'], ['refused', 'not measured', 'c-8']];

  maq.draw['maquette.profile'] = (report, more) => {
    const shown = report.items.slice(0, 24), names = more.names, seen = states.filter(s => shown.some(x => x.state === s[0]));
    const done = report.items.map((x, i) => ({...x, name: names[i]})).filter(x => x.measured && x.measured.median_s > 0 && x.predicted_s > 0);
    if (done.length > 0)
      against('against', [{label: 'predicted', color: 'c-1', points: done.map(x => ({x: x.measured.median_s, y: x.predicted_s, name: x.name}))}]);
    if (shown.length === 0)
      return document.getElementById('shares').closest('figure').remove();
    document.getElementById('shares').style.setProperty('--rows', shown.length);
    maq.chart('shares', () => ({
      type: 'bar',
      data: {labels: names.slice(0, shown.length), datasets: seen.map(s => ({label: s[1], data: shown.map(x => x.state === s[0] ? 100 * x.predicted_share : null), backgroundColor: maq.color(s[2]), barPercentage: 0.9, categoryPercentage: 0.9}))},
      options: {
        indexAxis: 'y',
        scales: {x: maq.axis('% of the predicted time of all', null, {stacked: true, beginAtZero: true}), y: {stacked: true, grid: {display: false}, ticks: {autoSkip: false, font: {size: 11}, callback: function (v) {
          const text = this.getLabelForValue(v), most = this.chart.width < 500 ? 20 : 44;
          return text.length > most ? text.slice(0, most - 1) + '…' : text;
        }}}},
        plugins: {tooltip: {filter: item => item.raw !== null, callbacks: {title: items => names[items[0].dataIndex], label: item => {
          const x = shown[item.dataIndex];
          return [item.dataset.label + ', ' + item.raw.toFixed(1) + ' %', maq.time(x.predicted_s, 3) + ' a call' + (x.calls > 0 ? ', ' + maq.plain(x.calls) + ' calls' : '')];
        }}}}
      }
    }));
  };

  maq.draw['maquette.kernels'] = (report, more) => {
    const rows = report.rows.map((r, i) => ({...r, name: more.names[i]})).filter(r => r.median_s > 0);
    const kinds = [...new Set(rows.map(r => r.kind))], devices = [...new Set(rows.map(r => r.device))], times = rows.map(r => r.median_s);
    const place = document.getElementById('kinds');
    if (rows.length === 0)
      return;
    place.style.setProperty('--rows', kinds.length);
    maq.chart('kinds', () => ({
      type: 'scatter',
      data: {datasets: devices.slice(0, 16).map((d, i) => ({label: d, data: rows.filter(r => r.device === d).map(r => ({x: r.median_s, y: kinds.indexOf(r.kind), r})), backgroundColor: maq.fade(maq.color('c-' + (i % 8 + 1)), 0.75), borderColor: maq.color('c-' + (i % 8 + 1)), pointRadius: 4.5}))},
      options: {
        scales: {x: maq.logAxis('median', v => maq.time(v, 1), {min: Math.min(...times) / 1.5, max: Math.max(...times) * 1.5}),
          y: maq.axis('', null, {min: -0.6, max: kinds.length - 0.4, reverse: true, ticks: {stepSize: 1, autoSkip: false, callback: v => kinds[v] || ''}})},
        plugins: {tooltip: {callbacks: {title: items => items[0].raw.r.name, label: item => item.dataset.label + ', ' + item.raw.r.mode + ', ' + item.raw.r.cache + ': ' + maq.time(item.raw.x, 3) + ', ' + maq.plain(item.raw.r.n) + ' repetitions'}}}
      }
    }));
  };

  maq.draw['maquette.kernels.compare'] = (report, more) => {
    const rows = report.rows.map((r, i) => ({...r, name: more.names[i]})).filter(r => r.measured_s > 0);
    if (rows.length === 0)
      return;
    const points = key => rows.filter(r => r[key] > 0).map(r => ({x: r.measured_s, y: r[key], name: r.name}));
    against('against-chart', [{label: 'fitted', color: 'c-1', points: points('fitted_s')}, {label: 'analytical', color: 'c-2', style: 'rectRot', points: points('analytical_s')}].filter(s => s.points.length > 0));
  };
}());
