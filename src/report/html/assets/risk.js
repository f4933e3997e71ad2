/* SPDX-License-Identifier: Apache-2.0 */
/* risk.js - charts of distributions: of a step (schema maquette.risk.step), a captured job (maquette.risk.graph), a run (maquette.risk.run). */
(function () {
  'use strict';
  const maq = window.maq;
  const rows = (id, n) => {
    const place = document.getElementById(id);
    if (place)
      place.style.setProperty('--rows', n);
    return place;
  };
  /* A linear axis from low to high, not from 0, with round ticks. */
  const between = (title, low, high, words) => {
    const step = maq.step(high - low);
    return maq.axis(title, null, {type: 'linear', min: low, max: high, ticks: {callback: words || maq.plain, maxRotation: 0, autoSkipPadding: 12}, afterBuildTicks: axis => {
      axis.ticks = [];
      for (let i = Math.ceil(low / step - 1e-9); i * step <= high * (1 + 1e-12); i++)
        axis.ticks.push({value: i * step});
    }});
  };
  /* Bars with whiskers: error bars of a horizontal bar chart, options.plugins.whiskers.list[dataset][index] = [low, high]. */
  const whiskers = {
    id: 'whiskers',
    afterDatasetsDraw(chart, args, options) {
      const ctx = chart.ctx, x = chart.scales.x;
      (options.list || []).forEach((list, set) => {
        const meta = chart.getDatasetMeta(set);
        if (meta.hidden)
          return;
        ctx.save();
        ctx.strokeStyle = maq.color('ink');
        ctx.lineWidth = 1.25;
        list.forEach((ends, i) => {
          const bar = meta.data[i];
          if (!ends || !bar || !(ends[1] > ends[0]))
            return;
          const a = x.getPixelForValue(ends[0]), b = x.getPixelForValue(ends[1]);
          if (b - a < 2)
            return;
          ctx.beginPath();
          ctx.moveTo(a, bar.y);
          ctx.lineTo(b, bar.y);
          ctx.moveTo(a, bar.y - 3);
          ctx.lineTo(a, bar.y + 3);
          ctx.moveTo(b, bar.y - 3);
          ctx.lineTo(b, bar.y + 3);
          ctx.stroke();
        });
        ctx.restore();
      });
    }
  };
  window.Chart.register(whiskers);
  const named = size => ({grid: {display: false}, ticks: {autoSkip: false, font: {size: 11}, callback: function (v) {
    const text = this.getLabelForValue(v), most = this.chart.width < 500 ? 22 : size;
    return text.length > most ? text.slice(0, most - 1) + '…' : text;
  }}});

  /* --- a step --- */

  /* Of steps, or of whole jobs. */
  const distribution = (report, more, of) => {
    const t = more.t, share = more.share, base = report.base_s;
    if (!t || t.length === 0)
      return;
    const low = Math.min(t[0], base), high = t[t.length - 1], pad = 0.01 * (high - low);
    const density = [];
    for (let i = 0; i + 1 < t.length; i++)
      density.push({x: (t[i] + t[i + 1]) / 2, y: Math.max(0, (share[i + 1] - share[i]) / (t[i + 1] - t[i]))});
    const quantiles = ['p5', 'p50', 'p95', 'p99'].filter(q => report[q].value_s <= high);
    maq.chart('density', () => ({
      type: 'line',
      data: {datasets: [{label: of, data: density, borderColor: maq.color('c-1'), backgroundColor: maq.fade(maq.color('c-1'), 0.18), fill: 'origin', tension: 0.2}]},
      options: {
        parsing: false, interaction: {mode: 'nearest', axis: 'x', intersect: false},
        scales: {x: between((of === 'steps' ? 'step time' : 'time') + ', s', low - pad, high + pad), y: maq.axis('how often', () => '', {beginAtZero: true})},
        plugins: {
          legend: {display: false},
          marks: {list: quantiles.map((q, i) => ({x: report[q].value_s, text: q, row: i % 2, color: maq.color('soft')})).concat([{x: base, text: 'base', row: 2, color: maq.color('c-2')}])},
          tooltip: {callbacks: {title: items => maq.digits(items[0].parsed.x, 5) + ' s', label: item => {
            const i = Math.min(item.dataIndex, share.length - 1);
            return maq.percent(share[i]) + ' of ' + of + ' take no longer';
          }}}
        }
      }
    }));
    maq.chart('cumulative', () => ({
      type: 'line',
      data: {datasets: [{label: of, data: t.map((x, i) => ({x, y: share[i]})), borderColor: maq.color('c-3')},
        {label: 'quantiles', data: quantiles.map(q => ({x: report[q].value_s, y: {p5: 0.05, p50: 0.5, p95: 0.95, p99: 0.99}[q], q})), showLine: false, pointRadius: 4, backgroundColor: maq.color('c-2'), borderColor: maq.color('paper')}]},
      options: {
        parsing: false, interaction: {mode: 'nearest', axis: 'x', intersect: false},
        scales: {x: between((of === 'steps' ? 'step time' : 'time') + ', s', low - pad, high + pad), y: maq.axis('of ' + of, maq.share, {min: 0, max: 1})},
        plugins: {
          legend: {display: false},
          marks: {list: [{x: base, text: 'base', low: true, color: maq.color('c-2')}]},
          tooltip: {callbacks: {title: () => '', label: item => item.raw.q ? item.raw.q + ': ' + maq.digits(item.parsed.x, 5) + ' s' : maq.percent(item.parsed.y) + ' take no longer than ' + maq.digits(item.parsed.x, 5) + ' s'}}
        }
      }
    }));
  };

  const tornado = (id, list, base, name) => {
    if (!list || list.length === 0 || !rows(id, 2 * list.length))
      return;
    const share = (d, key) => 100 * d[key + '_s'] / base, ends = (d, key) => [100 * d[key + '_low_s'] / base, 100 * d[key + '_high_s'] / base];
    maq.chart(id, () => ({
      type: 'bar',
      data: {
        labels: list.map(name),
        datasets: [
          {label: 'p95 from it alone', data: list.map(d => share(d, 'p95_alone')), backgroundColor: maq.color('c-1'), barPercentage: 0.95, categoryPercentage: 0.8},
          {label: 'gone without it', data: list.map(d => -share(d, 'p95_removed')), backgroundColor: maq.color('c-3'), barPercentage: 0.95, categoryPercentage: 0.8}
        ]
      },
      options: {
        indexAxis: 'y',
        scales: {x: maq.axis('% of the base', null, {grace: '4%'}), y: named(36)},
        plugins: {
          whiskers: {list: [list.map(d => ends(d, 'p95_alone')), list.map(d => ends(d, 'p95_removed').map(x => -x).reverse())]},
          tooltip: {callbacks: {label: item => item.dataset.label + ': ' + (item.raw >= 0 ? '+' : '') + item.raw.toFixed(2) + ' % of the base'}}
        }
      }
    }));
  };

  const sources = report => {
    const words = {}; /* from the table */
    document.querySelectorAll('#sources tbody tr').forEach((row, i) => {
      if (report.sources[i])
        words[report.sources[i].source] = row.cells[0].textContent;
    });
    tornado('tornado', report.sources, report.base_s, d => words[d.source] || d.source);
  };
  maq.draw['maquette.risk.step'] = (report, more) => {
    distribution(report, more, 'steps');
    sources(report);
    for (const parts of ['kernels', 'dimensions', 'stages'])
      tornado('tornado-' + parts, Array.isArray(report[parts]) ? report[parts].slice(0, 20) : null, report.base_s, d => d.name);
  };

  /* --- a captured job --- */

  maq.draw['maquette.risk.graph'] = (report, more) => {
    const path = report.longest_path;
    distribution(report, more, 'jobs');
    sources(report);
    if (path.length === 0 || !rows('longest-chart', path.length))
      return;
    maq.chart('longest-chart', () => ({
      type: 'bar',
      data: {labels: path.map(d => d.operator), datasets: [{label: 'time', data: path.map(d => d.seconds), backgroundColor: maq.color('c-1'), barPercentage: 0.9, categoryPercentage: 0.85}]},
      options: {
        indexAxis: 'y',
        scales: {x: maq.timeAxis('time on the longest path', path[0].seconds * 1.03), y: named(40)},
        plugins: {legend: {display: false}, tooltip: {callbacks: {title: items => path[items[0].dataIndex].operator, label: item => maq.time(item.raw, 4) + ', ' + maq.percent(item.raw / report.base_s) + ' of the base, ' + maq.plain(path[item.dataIndex].count) + ' times'}}}
      }
    }));
  };

  /* --- a run --- */

  const DAY = 86400;
  const finish = (report, more) => {
    const curve = more.wall_s, n = curve.length, unit = curve[n - 1] > 2 * DAY ? [DAY, 'days'] : curve[n - 1] > 7200 ? [3600, 'hours'] : [60, 'minutes'];
    const low = Math.min(report.ideal_s, curve[0]) / unit[0], high = curve[n - 1] / unit[0], pad = 0.02 * (high - low) || 1;
    const quantiles = [['p5', 0.05], ['p50', 0.5], ['p95', 0.95], ['p99', 0.99]].map(q => ({q: q[0], y: q[1], ...report.done_after[q[0]]}));
    const day = x => report.start ? new Date(Date.parse(report.start + 'T00:00:00Z') + Math.ceil(x * unit[0] / DAY) * DAY * 1000).toISOString().slice(0, 10) : '';
    maq.chart('finish', () => ({
      type: 'line',
      data: {datasets: [
        {label: 'runs', data: curve.map((x, i) => ({x: x / unit[0], y: i / (n - 1)})), borderColor: maq.color('c-1'), backgroundColor: maq.fade(maq.color('c-1'), 0.12), fill: 'origin'},
        {label: 'quantiles', data: quantiles.map(q => ({x: q.value_s / unit[0], y: q.y, q})), showLine: false, pointRadius: 4.5, backgroundColor: maq.color('c-2'), borderColor: maq.color('paper')}
      ]},
      options: {
        parsing: false, interaction: {mode: 'nearest', axis: 'x', intersect: false},
        scales: {x: between(unit[1], low - pad, high + pad), y: maq.axis('of runs are done', maq.share, {min: 0, max: 1})},
        plugins: {
          legend: {display: false},
          marks: {list: [{x: report.ideal_s / unit[0], text: 'nothing stops it', low: true, color: maq.color('soft')}].concat(
              report.promise ? [{x: report.promise.within_s / unit[0], text: 'promise', low: true, row: 1, color: maq.color('bad')}] : [])},
          tooltip: {callbacks: {title: () => '', label: item => {
            const q = item.raw.q, at = x => maq.digits(x / unit[0], 4);
            if (q)
              return q.q + ': ' + at(q.value_s) + ' ' + unit[1] + (q.low_s === null || q.high_s === null ? '' : ' (' + at(q.low_s) + ' to ' + at(q.high_s) + ')') + (report.start ? ', ' + day(q.value_s / unit[0]) : '');
            return maq.percent(item.parsed.y) + ' of runs are done after ' + maq.digits(item.parsed.x, 4) + ' ' + unit[1] + (report.start ? ', ' + day(item.parsed.x) : '');
          }}}
        }
      },
      plugins: [{id: 'intervals', afterDatasetsDraw(chart) {
        const ctx = chart.ctx, sx = chart.scales.x, sy = chart.scales.y;
        ctx.save();
        ctx.strokeStyle = maq.color('c-2');
        ctx.lineWidth = 2;
        for (const q of quantiles) {
          if (q.low_s === null || q.high_s === null)
            continue;
          ctx.beginPath();
          ctx.moveTo(sx.getPixelForValue(q.low_s / unit[0]), sy.getPixelForValue(q.y));
          ctx.lineTo(sx.getPixelForValue(q.high_s / unit[0]), sy.getPixelForValue(q.y));
          ctx.stroke();
        }
        ctx.restore();
      }}]
    }));
  };

  const bars = (id, list, label, title, color, tip) => {
    if (list.length === 0 || !rows(id, list.length))
      return;
    maq.chart(id, () => ({
      type: 'bar',
      data: {labels: list.map(x => x.name), datasets: [{label, data: list.map(x => x.value), backgroundColor: maq.color(color), barPercentage: 0.85, categoryPercentage: 0.9}]},
      options: {
        indexAxis: 'y',
        scales: {x: maq.axis(title, null, {beginAtZero: true, grace: '3%'}), y: named(32)},
        plugins: {legend: {display: false}, tooltip: {callbacks: {label: item => tip(list[item.dataIndex])}}}
      }
    }));
  };

  maq.draw['maquette.risk.run'] = (report, more) => {
    finish(report, more);
    const wall = report.mean_s;
    bars('buckets', report.buckets.map((b, i) => ({name: b.bucket.replace(/_/g, ' '), value: b.time_s / DAY, what: more.names[i], bucket: b})).filter(b => b.bucket.bucket !== 'productive' && b.value > 0)
        .sort((a, b) => b.value - a.value), 'days', 'days', 'c-2', b => [b.what, maq.time(b.bucket.time_s) + ', ' + (100 * b.bucket.share).toFixed(2) + ' %']);
    bars('causes', report.causes.map(c => ({name: c.cause, value: c.lost_s / 3600, cause: c})).filter(c => c.value > 0).slice(0, 20), 'hours', 'hours lost', 'c-8',
        c => [c.cause.interruptions.toFixed(1) + ' interruptions', maq.time(c.cause.lost_s) + ' lost, ' + (100 * c.cause.lost_s / wall).toFixed(2) + ' %']);
    const list = report.what_if ? report.what_if.variants : [];
    if (list.length === 0 || !rows('variants', 2 * list.length))
      return;
    const low = Math.min(...list.map(v => v.done_after.p50.value_s)) / DAY, high = Math.max(...list.map(v => v.done_after.p95.value_s)) / DAY;
    maq.chart('variants', () => ({
      type: 'bar',
      data: {labels: more.variants.map((name, i) => name + (i === report.what_if.best ? ' (best)' : '')), datasets: [['p50', 'c-1'], ['p95', 'c-2']].map(q => ({label: q[0], data: list.map(v => v.done_after[q[0]].value_s / DAY), backgroundColor: maq.color(q[1]), barPercentage: 0.95, categoryPercentage: 0.8}))},
      options: {
        indexAxis: 'y',
        scales: {x: between('days', Math.max(0, low - 0.3 * (high - low || 1)), high + 0.05 * (high - low || 1)), y: named(30)},
        plugins: {tooltip: {callbacks: {label: item => item.dataset.label + ': ' + item.raw.toFixed(2) + ' days, goodput ' + maq.percent(list[item.dataIndex].goodput)}}}
      }
    }));
  };

  /* --- the law of recorded times --- */

  maq.draw['maquette.risk.fit'] = report => report.series.forEach((s, i) => {
    const shown = ['p50', 'p95', 'p99'].filter(q => s[q].predicted !== null), all = shown.flatMap(q => [s[q].predicted, s[q].low, s[q].high, s[q].observed]).filter(x => x !== null);
    if (!rows('quantiles-' + i, shown.length))
      return;
    if (all.length === 0)
      return document.getElementById('quantiles-' + i).closest('figure').remove();
    const low = Math.min(...all), high = Math.max(...all), pad = 0.08 * (high - low || high);
    const y = q => shown.indexOf(q);
    const dots = [{label: 'predicted', data: shown.map(q => ({x: s[q].predicted, y: y(q)})), backgroundColor: maq.color('c-1'), borderColor: maq.color('c-1'), pointRadius: 6, showLine: false}];
    if (shown.some(q => s[q].observed !== null))
      dots.push({label: 'observed', data: shown.filter(q => s[q].observed !== null).map(q => ({x: s[q].observed, y: y(q)})), backgroundColor: maq.color('c-2'), borderColor: maq.color('c-2'), pointStyle: 'rectRot', pointRadius: 7, showLine: false});
    const spans = shown.map(q => ({label: '', data: [{x: s[q].low === null ? s[q].predicted : s[q].low, y: y(q)}, {x: s[q].high === null ? s[q].predicted : s[q].high, y: y(q)}], borderColor: maq.fade(maq.color('c-1'), 0.45), borderWidth: 4, pointRadius: 0, showLine: true}));
    maq.chart('quantiles-' + i, () => ({
      type: 'scatter',
      data: {datasets: dots.concat(spans)},
      options: {
        scales: {x: between('step time, s', low - pad, high + pad), y: maq.axis('', null, {min: -0.6, max: shown.length - 0.4, reverse: true, ticks: {stepSize: 1, callback: v => shown[v] || ''}, grid: {display: false}})},
        plugins: {legend: {labels: {filter: item => item.text !== ''}}, tooltip: {filter: item => item.dataset.label !== '', callbacks: {label: item => item.dataset.label + ' ' + shown[item.raw.y] + ': ' + maq.digits(item.raw.x, 5) + ' s'}}}
      }
    }));
  });

  /* --- a recorded job, run again --- */

  maq.draw['maquette.risk.replay'] = report => {
    const steps = report.step_times, longest = Math.max(report.ideal_s, ...steps.map(s => s.step_s)) * 1.05;
    maq.chart('step-chart', () => ({
      type: 'line',
      data: {labels: steps.map(s => String(s.step)), datasets: [{label: 'replayed', data: steps.map(s => s.step_s), borderColor: maq.color('c-1'), pointRadius: steps.length > 60 ? 0 : 3, backgroundColor: maq.color('c-1')}]},
      options: {
        interaction: {mode: 'index', intersect: false},
        scales: {x: maq.axis('step', null, {grid: {display: false}}), y: maq.timeAxis('time', longest)},
        plugins: {legend: {display: false}, marks: {list: [{y: report.ideal_s, text: 'without stragglers', color: maq.color('c-3')}]}, tooltip: {callbacks: {title: items => 'step ' + items[0].label, label: item => maq.time(item.raw, 4)}}}
      }
    }));
    const stages = [...new Set(report.by_worker.map(w => w.stage))].sort((a, b) => a - b);
    maq.chart('worker-chart', () => ({
      type: 'scatter',
      data: {datasets: stages.slice(0, 32).map((stage, i) => ({label: 'stage ' + stage, data: report.by_worker.filter(w => w.stage === stage).map(w => ({x: w.dp_rank, y: w.slowdown})), backgroundColor: maq.ramp(stages.length, i), borderColor: maq.ramp(stages.length, i), pointRadius: 3.5, showLine: false}))},
      options: {
        scales: {x: maq.axis('data-parallel rank', maq.plain, {ticks: {precision: 0}}), y: maq.axis('slowdown by it alone', maq.plain, {grace: '5%'})},
        plugins: {tooltip: {callbacks: {label: item => item.dataset.label + ', rank ' + item.raw.x + ': ' + item.raw.y.toFixed(4)}}}
      }
    }));
  };
}());
