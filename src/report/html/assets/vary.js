/* SPDX-License-Identifier: Apache-2.0 */
/* vary.js - charts of the best plan on other devices (schema maquette.plan.vary). */
(function () {
  'use strict';
  const maq = window.maq;
  const colors = ['c-1', 'c-2', 'c-3', 'c-4', 'c-5', 'c-6', 'c-8', 'c-7'];

  maq.draw['maquette.plan.vary'] = report => {
    const fits = report.variants.filter(v => v.fits), differ = key => new Set(report.variants.map(v => v[key])).size > 1;
    if (fits.length === 0)
      return document.querySelectorAll('figure').forEach(f => f.remove());
    const keys = ['model', 'seq_length', 'global_batch_size', 'gpu'].filter(k => k === 'gpu' || differ(k));
    const units = {seq_length: ' tokens', global_batch_size: ' sequences'};
    const name = v => keys.map(k => v[k] + (units[k] || '')).join(', ');
    const groups = [...new Set(fits.map(name))], money = fits.some(v => v.usd_per_trillion_tokens > 0);
    const cost = v => money ? v.usd_per_trillion_tokens : v.gpu_hours_per_trillion_tokens;
    const tip = {callbacks: {
      title: items => name(items[0].raw.v) + ', ' + maq.plain(items[0].raw.v.gpus) + ' GPUs',
      label: item => {
        const v = item.raw.v;
        return [maq.digits(v.days_per_trillion_tokens) + ' days, ' + maq.digits(v.gpu_hours_per_trillion_tokens) + ' GPU-hours' + (v.usd_per_trillion_tokens > 0 ? ', ' + maq.digits(v.usd_per_trillion_tokens) + ' USD' : ''),
          'step ' + maq.time(v.step_time_s, 4) + ', MFU ' + maq.percent(v.mfu), maq.digits(v.tokens_per_s / v.gpus) + ' tokens/s per GPU'];
      }
    }};
    const sets = (x, y) => groups.map((g, i) => {
      const list = fits.filter(v => name(v) === g).sort((a, b) => a.gpus - b.gpus), color = maq.color(colors[i % colors.length]);
      return {label: g, data: list.map(v => ({x: x(v), y: y(v), v})), showLine: true, borderColor: color, borderWidth: 1.25, pointRadius: list.map(v => v.pareto ? 5 : 4), pointHoverRadius: 7,
        pointBackgroundColor: list.map(v => v.pareto ? color : maq.color('paper')), pointBorderColor: color, pointBorderWidth: 1.75, backgroundColor: color};
    });
    const ends = of => ({min: Math.min(...fits.map(of)) * 0.8, max: Math.max(...fits.map(of)) * 1.25});
    maq.chart('soon', () => ({
      type: 'scatter',
      data: {datasets: sets(v => v.days_per_trillion_tokens, cost)},
      options: {
        scales: {x: maq.logAxis('days for 10^12 tokens', null, ends(v => v.days_per_trillion_tokens)), y: maq.axis(money ? 'USD for 10^12 tokens' : 'GPU-hours for 10^12 tokens', maq.plain, {grace: '8%'})},
        plugins: {tooltip: tip, legend: {display: groups.length > 1}}
      }
    }));
    maq.chart('scaling', () => ({
      type: 'scatter',
      data: {datasets: sets(v => v.gpus, v => v.tokens_per_s / v.gpus)},
      options: {
        scales: {
          x: maq.logAxis('GPUs', null, {...ends(v => v.gpus), ticks: {callback: maq.plain, autoSkip: true, maxRotation: 0}, afterBuildTicks: axis => { axis.ticks = [...new Set(fits.map(v => v.gpus))].sort((a, b) => a - b).map(value => ({value})); }}),
          y: maq.axis('tokens/s per GPU', null, {beginAtZero: true, grace: '5%'})
        },
        plugins: {tooltip: tip, legend: {display: groups.length > 1}}
      }
    }));
  };
}());
