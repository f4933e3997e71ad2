/* SPDX-License-Identifier: Apache-2.0 */
/* serve_vary.js - charts of requests with other values of some options (schema maquette.serve.vary). */
(function () {
  'use strict';
  const maq = window.maq;
  const colors = ['c-1', 'c-2', 'c-3', 'c-4', 'c-5', 'c-6', 'c-8', 'c-7'], styles = ['circle', 'rect', 'triangle', 'rectRot', 'star'];

  maq.draw['maquette.serve.vary'] = report => {
    const served = report.variants.filter(v => v.fits && !v.why), axes = Object.keys(report.variants[0].values);
    if (served.length === 0)
      return document.querySelectorAll('figure').forEach(f => f.remove());
    const values = a => [...new Set(served.map(v => v.values[a]))], numeric = a => values(a).length > 1 && values(a).every(x => x.trim() !== '' && isFinite(x));
    /* What a line goes along: the load, or the number with most values. */
    const along = ['concurrency', 'rate', 'batch'].find(a => axes.includes(a) && numeric(a)) ||
      axes.filter(numeric).sort((a, b) => values(b).length - values(a).length)[0];
    const others = axes.filter(a => a !== along), name = v => others.map(a => a + '=' + v.values[a]).join(' ') || 'all';
    const groups = [...new Set(served.map(name))], whole = v => axes.map(a => a + '=' + v.values[a]).join(' ');
    const tip = {callbacks: {
      title: items => whole(items[0].raw.v),
      label: item => {
        const v = item.raw.v;
        return [maq.digits(v.output_tokens_per_s_per_user) + ' tokens/s of a user, ' + maq.digits(v.output_tokens_per_s_per_device) + ' of a GPU', 'TTFT ' + maq.time(v.ttft_mean_s) + ', TPOT ' + maq.time(v.tpot_mean_s),
          maq.digits(v.requests_per_s) + ' requests/s on ' + maq.plain(v.gpus) + (v.gpus === 1 ? ' GPU' : ' GPUs') + (v.overloaded ? ', overloaded' : v.slo_met === undefined ? '' : v.slo_met ? ', bounds held' : ', bounds missed')];
      }
    }};
    const sets = (x, y, line) => groups.map((g, i) => {
      const list = served.filter(v => name(v) === g), color = maq.color(colors[i % colors.length]);
      if (along)
        list.sort((a, b) => a.values[along] - b.values[along]);
      return {label: g, data: list.map(v => ({x: x(v), y: y(v), v})), showLine: line && !!along, borderColor: color, borderWidth: 1.25, pointStyle: styles[Math.floor(i / colors.length) % styles.length],
        pointRadius: list.map(v => v.pareto ? 5 : 4), pointHoverRadius: 7, pointBackgroundColor: list.map(v => v.pareto ? color : maq.color('paper')), pointBorderColor: color, pointBorderWidth: 1.75, backgroundColor: color};
    });
    const legend = {display: groups.length > 1, labels: {usePointStyle: true, boxWidth: 7, boxHeight: 7}};
    const ends = of => ({min: Math.min(...served.map(of)) * 0.8, max: Math.max(...served.map(of)) * 1.25});
    maq.chart('front-chart', () => ({
      type: 'scatter',
      data: {datasets: sets(v => v.output_tokens_per_s_per_device, v => v.output_tokens_per_s_per_user, true)},
      options: {
        scales: {
          x: maq.axis('tokens/s out of a GPU', null, {beginAtZero: true, grace: '4%'}),
          y: maq.axis('tokens/s of a user', null, {beginAtZero: true, grace: '6%'})
        },
        plugins: {tooltip: tip, legend}
      }
    }));
    if (!along)
      return document.getElementById('along').closest('figure').remove();
    const number = v => Number(v.values[along]), positive = served.every(v => number(v) > 0);
    maq.chart('along', () => ({
      type: 'scatter',
      data: {datasets: sets(number, v => v.ttft_mean_s * 1e3, true)},
      options: {
        scales: {
          x: positive ? maq.logAxis(along, null, {...ends(number), ticks: {callback: maq.plain, autoSkip: true, maxRotation: 0},
            afterBuildTicks: axis => { axis.ticks = [...new Set(served.map(number))].sort((a, b) => a - b).map(value => ({value})); }}) : maq.axis(along, null, {grace: '4%'}),
          y: maq.logAxis('mean TTFT, ms', null, ends(v => v.ttft_mean_s * 1e3))
        },
        plugins: {tooltip: tip, legend}
      }
    }));
  };
}());
