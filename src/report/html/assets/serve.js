/* SPDX-License-Identifier: Apache-2.0 */
/* serve.js - charts of a deployment (schema maquette.serve). */
(function () {
  'use strict';
  const maq = window.maq;

  /* Shares of requests within a time, from values at even steps of their rank. */
  const cumulative = (id, lines, bounds) => {
    const some = lines.filter(l => l.values && l.values.length > 1);
    if (some.length === 0) /* one token each: there are no gaps */
      return document.getElementById(id).parentNode.remove();
    const most = Math.max(...some.map(l => l.values[Math.round((l.values.length - 1) * 0.995)])) * 1.05;
    const data = some.map(l => l.values.map((x, i) => ({x, y: i / (l.values.length - 1)})).filter(p => p.x <= most));
    maq.chart(id, () => ({
      type: 'line',
      data: {datasets: some.map((l, i) => ({label: l.name, data: data[i], borderColor: maq.color(l.color), backgroundColor: maq.color(l.color), stepped: false}))},
      options: {
        parsing: false, normalized: true,
        interaction: {mode: 'nearest', axis: 'y', intersect: false},
        scales: {
          x: maq.timeAxis('within', most),
          y: maq.axis('of requests', maq.share, {min: 0, max: 1})
        },
        plugins: {
          legend: {display: some.length > 1},
          marks: {list: (bounds || []).map((b, i) => ({x: b.x, text: b.text, row: i, low: true, color: maq.color('soft')}))},
          tooltip: {callbacks: {title: items => maq.percent(items[0].parsed.y) + ' of requests', label: item => item.dataset.label + ' within ' + maq.time(item.parsed.x)}}
        }
      }
    }));
  };

  const boundsOf = (report, metric) => (report.slo ? report.slo.bounds : []).filter(b => b.metric === metric)
      .map(b => ({x: b.bound_s, text: b.statistic + ' bound ' + maq.time(b.bound_s)}));

  const overTime = (id, t, lines, title, words, most) => maq.chart(id, () => ({
    type: 'line',
    data: {datasets: lines.map(l => ({label: l.name, data: t.map((x, i) => ({x, y: l.values[i]})), borderWidth: 1.25,
      borderColor: maq.color(l.color), backgroundColor: maq.fade(maq.color(l.color), 0.15), fill: lines.length === 1}))},
    options: {
      parsing: false, normalized: true,
      interaction: {mode: 'index', intersect: false},
      scales: {
        x: maq.timeAxis('time', t[t.length - 1] || 1),
        y: maq.axis(title, words, {beginAtZero: true, max: most})
      },
      plugins: {legend: {display: lines.length > 1}, tooltip: {callbacks: {
        title: items => maq.time(items[0].parsed.x, 4),
        label: item => item.dataset.label + ': ' + (words ? words(item.parsed.y) : maq.digits(item.parsed.y))
      }}}
    }
  }));

  const loads = more => {
    const list = more.loads;
    if (!list || list.length === 0)
      return;
    const name = l => (more.load === 'speed' ? maq.digits(l.load) + ' times as fast' : maq.digits(l.load) + ' ' + more.load) + (l.overloaded ? ', overloaded' : '');
    const point = l => ({
      pointRadius: l.asked ? 6 : 4, pointStyle: l.overloaded ? 'rectRot' : 'circle',
      pointBackgroundColor: maq.color(l.overloaded ? 'bad' : l.asked ? 'c-2' : 'c-1'), pointBorderColor: maq.color('paper')
    });
    const each = key => list.map(l => point(l)[key]);
    const dots = () => ({pointRadius: each('pointRadius'), pointStyle: each('pointStyle'), pointBackgroundColor: each('pointBackgroundColor'), pointBorderColor: each('pointBorderColor'), pointHoverRadius: 8});
    maq.chart('front', () => ({
      type: 'line',
      data: {datasets: [{label: 'load', data: list.map(l => ({x: l.per_device, y: l.tpot_s[0] > 0 ? 1 / l.tpot_s[0] : null, l})), borderColor: maq.color('soft'), borderWidth: 1.25, borderDash: [4, 3], ...dots()}]},
      options: {
        parsing: false,
        scales: {
          x: maq.axis('tokens/s out per GPU', null, {type: 'linear', beginAtZero: true, grace: '5%'}),
          y: maq.axis('tokens/s per user', null, {beginAtZero: true, grace: '10%'})
        },
        plugins: {legend: {display: false}, tooltip: {callbacks: {
          title: items => name(items[0].raw.l),
          label: item => [maq.digits(item.parsed.y) + ' tokens/s per user', maq.digits(item.parsed.x) + ' tokens/s out per GPU', 'TTFT p95 ' + maq.time(item.raw.l.ttft_s[2])]
        }}}
      }
    }));
    const line = (label, k, color) => ({label, data: list.map(l => ({x: l.load, y: l.ttft_s[k], l})), borderColor: maq.color(color), backgroundColor: maq.color(color), ...dots(), pointBackgroundColor: list.map(l => maq.color(l.overloaded ? 'bad' : color)), pointRadius: list.map(l => l.asked ? 6 : 3.5)});
    maq.chart('first-token', () => ({
      type: 'line',
      data: {datasets: [line('p50', 1, 'c-1'), line('p95', 2, 'c-2')]},
      options: {
        parsing: false,
        scales: {
          x: more.load === 'under way' ? maq.logAxis('requests under way', null, {ticks: {callback: v => list.some(l => l.load === v) ? maq.plain(v) : '', autoSkip: false, maxRotation: 0}, afterBuildTicks: axis => { axis.ticks = list.map(l => ({value: l.load})); }}) : maq.axis(more.load, null, {type: 'linear'}),
          y: maq.logAxis('time to the first token', v => maq.time(v, 1), {grace: '5%'})
        },
        plugins: {legend: {labels: {usePointStyle: false}}, tooltip: {callbacks: {
          title: items => name(items[0].raw.l), label: item => 'TTFT ' + item.dataset.label + ' ' + maq.time(item.parsed.y)
        }}}
      }
    }));
  };

  maq.draw['maquette.serve'] = (report, more) => {
    if (!more || !report.latency)
      return;
    const c = more.curves, o = more.over_time;
    cumulative('cdf-first', [{name: 'first token', values: c.ttft_s, color: 'c-1'}, {name: 'left the queue', values: c.queue_s, color: 'c-7'}], boundsOf(report, 'ttft'));
    cumulative('cdf-token', [{name: 'a token', values: c.tpot_s, color: 'c-3'}], boundsOf(report, 'tpot'));
    loads(more);
    if (!o)
      return;
    overTime('queue-time', o.t, [{name: 'running', values: o.running, color: 'c-1'}, {name: 'waiting', values: o.waiting, color: 'c-2'}], 'requests');
    overTime('kv-time', o.t, [{name: 'KV cache', values: o.kv, color: 'c-5'}], 'of the KV cache', maq.share);
    overTime('batch-time', o.t, [{name: 'requests', values: o.requests, color: 'c-3'}], 'requests');
    overTime('token-time', o.t, [{name: 'tokens', values: o.tokens, color: 'c-8'}], 'tokens');
  };
}());
