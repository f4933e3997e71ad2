/* SPDX-License-Identifier: Apache-2.0 */
/* replay.js - charts of a replayed job (schema maquette.replay). */
(function () {
  'use strict';
  const maq = window.maq;
  const parts = [['computing', 'computing', 'c-1'], ['moving', 'bytes move', 'c-2'], ['peers', 'for peers', 'c-4'], ['host', 'for the host', 'c-7']];
  const keys = {computing: 'computing_s', moving: 'moving_s', peers: 'waiting_for_peers_s', host: 'waiting_for_host_s'};

  maq.draw['maquette.replay'] = (report, more) => {
    const steps = report.steps, longest = Math.max(0, ...steps.map(s => s.time_s), ...more.captured_steps) * 1.08;
    if (steps.length > 0)
      maq.chart('step-chart', () => ({
        type: 'bar',
        data: {labels: steps.map((s, i) => String(i)), datasets: [{label: 'replayed', data: steps.map(s => s.time_s), backgroundColor: maq.color('c-1')}]
          .concat(more.captured_steps.length > 0 ? [{label: 'as captured', data: more.captured_steps, backgroundColor: maq.color('c-bubble')}] : [])},
        options: {
          interaction: {mode: 'index', intersect: false},
          scales: {x: maq.axis('step', null, {grid: {display: false}}), y: maq.timeAxis('time', longest)},
          plugins: {legend: {display: more.captured_steps.length > 0}, tooltip: {callbacks: {title: items => 'step ' + items[0].label, label: item => item.dataset.label + ': ' + maq.time(item.raw, 4)}}}
        }
      }));
    const classes = report.classes.slice(0, 64), whole = Math.max(...classes.map(c => Object.values(keys).reduce((sum, k) => sum + c[k], 0))) * 1.02;
    document.getElementById('class-chart').style.setProperty('--rows', classes.length);
    maq.chart('class-chart', () => ({
      type: 'bar',
      data: {labels: classes.map(c => c.name), datasets: parts.map(p => ({label: p[1], data: classes.map(c => c[keys[p[0]]]), backgroundColor: maq.color(p[2]), barPercentage: 0.9, categoryPercentage: 0.92}))},
      options: {
        indexAxis: 'y',
        scales: {x: maq.timeAxis('time', whole, {stacked: true}), y: {stacked: true, grid: {display: false}, ticks: {callback: function (v) {
          const text = this.getLabelForValue(v), most = this.chart.width < 500 ? 18 : 40;
          return text.length > most ? text.slice(0, most - 1) + '…' : text;
        }}}},
        plugins: {tooltip: {callbacks: {label: item => item.dataset.label + ': ' + maq.time(item.raw, 4)}}}
      }
    }));
    const n = more.computing.length, width = more.ranks_of_a_point;
    const top = Math.max(...more.computing.map((x, i) => x + more.moving[i] + more.peers[i] + more.host[i])) * 1.02;
    maq.chart('rank-chart', () => ({
      type: n <= 64 ? 'bar' : 'line',
      data: {labels: more.computing.map((x, i) => String(i * width)), datasets: parts.map(p => ({label: p[1], data: more[p[0]], backgroundColor: n <= 64 ? maq.color(p[2]) : maq.fade(maq.color(p[2]), 0.75),
        borderColor: maq.color(p[2]), borderWidth: n <= 64 ? 0 : 1, fill: 'stack', stepped: 'middle', barPercentage: 1, categoryPercentage: 0.94}))},
      options: {
        interaction: {mode: 'index', intersect: false},
        scales: {x: maq.axis('rank', null, {stacked: true, grid: {display: false}}), y: maq.timeAxis('time', top, {stacked: true})},
        plugins: {tooltip: {callbacks: {title: items => 'rank ' + items[0].label + (width > 1 ? ' and on' : ''), label: item => item.dataset.label + ': ' + maq.time(item.raw, 4)}}}
      }
    }));
  };

  /* What a captured job holds: its largest operators. */
  maq.draw['maquette.graph'] = report => {
    const shown = report.operators.slice(0, 24), place = document.getElementById('operator-chart');
    if (!place || shown.length === 0)
      return;
    const most = Math.max(...shown.map(o => o.total_s)) * 1.03;
    place.style.setProperty('--rows', shown.length);
    maq.chart('operator-chart', () => ({
      type: 'bar',
      data: {labels: shown.map(o => o.name.length > 40 ? o.name.slice(0, 39) + '…' : o.name), datasets: [{label: 'time', data: shown.map(o => o.total_s), backgroundColor: maq.color('c-1'), barPercentage: 0.9, categoryPercentage: 0.85}]},
      options: {
        indexAxis: 'y',
        scales: {x: maq.timeAxis('recorded time, all ranks', most), y: {ticks: {autoSkip: false}, grid: {display: false}}},
        plugins: {legend: {display: false}, tooltip: {callbacks: {title: items => shown[items[0].dataIndex].name, label: item => maq.time(item.raw, 4) + ', ' + maq.plain(shown[item.dataIndex].launches) + ' launches of ' + maq.time(shown[item.dataIndex].mean_s, 3)}}}
      }
    }));
  };
}());
