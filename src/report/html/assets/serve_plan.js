/* SPDX-License-Identifier: Apache-2.0 */
/* serve_plan.js - charts of a search for the best deployment (schema maquette.serve.plan). */
(function () {
  'use strict';
  const maq = window.maq;
  const colors = ['c-1', 'c-2', 'c-3', 'c-4', 'c-5', 'c-6', 'c-7', 'c-8'], styles = ['circle', 'rect', 'triangle', 'rectRot', 'star'];

  const front = (report, more) => {
    const names = [...new Set(report.front.map(p => more.names[p.candidate]))];
    const points = report.front.map(p => ({x: p.tokens_per_s_per_gpu, y: p.tokens_per_s_per_user, p}));
    maq.chart('front-chart', () => ({
      type: 'scatter',
      data: {datasets: [...names.map((name, i) => ({label: name, data: points.filter(q => more.names[q.p.candidate] === name), order: 1, pointRadius: 4.5, pointHoverRadius: 7,
        pointStyle: styles[Math.floor(i / colors.length) % styles.length], backgroundColor: maq.color(colors[i % colors.length]), borderColor: maq.color(colors[i % colors.length])})),
        {label: 'all', data: points, showLine: true, borderColor: maq.color('line'), borderWidth: 1.25, pointRadius: 0, pointHitRadius: 0, order: 2}]},
      options: {
        parsing: false,
        scales: {
          x: maq.axis('tokens/s out per GPU', null, {beginAtZero: true, grace: '3%'}),
          y: maq.axis('tokens/s per user', null, {beginAtZero: true, grace: '5%'})
        },
        plugins: {
          legend: {labels: {usePointStyle: true, boxWidth: 7, boxHeight: 7, filter: item => item.text !== 'all'}},
          tooltip: {filter: item => item.dataset.label !== 'all', callbacks: {
            title: items => items.length ? items[0].dataset.label : '',
            label: item => [maq.digits(item.parsed.y) + ' tokens/s per user', maq.digits(item.parsed.x) + ' tokens/s out per GPU', 'TTFT ' + maq.time(item.raw.p.ttft_mean_s), item.raw.p.concurrency + ' requests at a time']
          }}
        }
      }
    }));
  };

  const ranked = (report, more) => {
    const place = document.getElementById('ranked');
    const list = report.candidates.map((c, i) => ({c, name: more.names[i]})).filter(x => x.c.requests_per_s > 0)
        .map(x => ({...x, per: x.c.requests_per_s / (x.c.replicas * x.c.gpus)})).sort((a, b) => b.per - a.per || (a.name < b.name ? -1 : 1)).slice(0, 24);
    if (!place || list.length === 0)
      return;
    place.style.setProperty('--rows', list.length);
    maq.chart('ranked', () => ({
      type: 'bar',
      data: {labels: list.map(x => x.name), datasets: [{label: 'requests/s', data: list.map(x => x.per), barPercentage: 0.85, categoryPercentage: 0.9,
        backgroundColor: list.map(x => maq.color(x.c.verdict === 'best' ? 'c-2' : 'c-1'))}]},
      options: {
        indexAxis: 'y',
        scales: {
          x: maq.axis('requests/s per GPU', null, {beginAtZero: true, grace: '3%'}),
          y: {grid: {display: false}, ticks: {autoSkip: false, font: {size: 11}, callback: function (v) {
            const text = this.getLabelForValue(v), most = this.chart.width < 500 ? 22 : 60;
            return text.length > most ? text.slice(0, most - 1) + '…' : text;
          }}}
        },
        plugins: {legend: {display: false}, tooltip: {callbacks: {label: item => {
          const c = list[item.dataIndex].c;
          return [maq.digits(c.requests_per_s) + ' requests/s on ' + c.replicas * c.gpus + ' GPUs', 'TTFT ' + maq.time(c.ttft_mean_s) + ', TPOT ' + maq.time(c.tpot_mean_s), c.verdict];
        }}}}
      }
    }));
  };

  maq.draw['maquette.serve.plan'] = (report, more) => {
    if (report.front.length > 0)
      front(report, more);
    ranked(report, more);
  };
}());
