/* SPDX-License-Identifier: Apache-2.0 */
/* train.js - charts of a training step (schema maquette.train). */
(function () {
  'use strict';
  const maq = window.maq, GIB = 1073741824;
  const buckets = maq.buckets = [
    ['forward_s', 'forward', 'c-forward'], ['backward_s', 'backward', 'c-backward'], ['recompute_s', 'recompute', 'c-recompute'],
    ['exposed_tp_comm_s', 'exposed TP comm', 'c-tp'], ['exposed_cp_comm_s', 'exposed CP comm', 'c-cp'],
    ['exposed_ep_comm_s', 'exposed EP comm', 'c-ep'], ['exposed_pp_comm_s', 'exposed PP comm', 'c-pp'],
    ['exposed_dp_comm_s', 'exposed DP comm', 'c-dp'], ['optimizer_s', 'optimizer', 'c-optimizer'],
    ['host_s', 'waiting for host', 'c-host'], ['other_s', 'other', 'c-other'], ['bubble_s', 'bubble', 'c-bubble']
  ];
  const kinds = {
    f: {name: 'forward', color: 'c-forward'}, b: {name: 'backward', color: 'c-backward'},
    w: {name: 'weight gradient', color: 'c-recompute'}, p: {name: 'forward and backward', color: 'c-ep'},
    u: {name: 'optimizer', color: 'c-optimizer'}, s: {name: 'pipeline transfer', color: 'c-pp'},
    g: {name: 'parameter gather', color: 'c-tp'}, r: {name: 'gradient reduction', color: 'c-dp'}, n: {name: 'gradient norm', color: 'c-host'}
  };
  const memory = [
    ['weights_bytes', 'weights', 'c-1'], ['gradients_bytes', 'gradients', 'c-3'], ['optimizer_bytes', 'optimizer', 'c-6'],
    ['activations_bytes', 'activations', 'c-2'], ['transient_bytes', 'transient', 'c-8'], ['fragmentation_bytes', 'cached', 'c-bubble'],
    ['context_bytes', 'context', 'c-7'], ['nccl_bytes', 'communicators', 'c-4'], ['graphs_bytes', 'graphs', 'c-5']
  ];
  const rows = (id, n) => {
    const place = document.getElementById(id);
    if (place)
      place.style.setProperty('--rows', n);
  };
  const stageNames = report => report.stages.map(s => report.stages.length > 1 ? String(s.stage) : 'step');

  const breakdown = report => {
    const used = buckets.filter(b => report.stages.some(s => s.breakdown[b[0]] > 5e-5 * report.step_time_s));
    rows('breakdown-chart', report.stages.length);
    maq.chart('breakdown-chart', () => ({
      type: 'bar',
      data: {
        labels: stageNames(report),
        datasets: used.map(b => ({label: b[1], data: report.stages.map(s => s.breakdown[b[0]]), backgroundColor: maq.color(b[2]), barPercentage: 0.92, categoryPercentage: 0.92}))
      },
      options: {
        indexAxis: 'y',
        interaction: {mode: 'nearest', axis: 'xy', intersect: true},
        scales: {
          x: maq.timeAxis('time in the step', report.step_time_s, {stacked: true}),
          y: maq.axis(report.stages.length > 1 ? 'stage' : '', null, {stacked: true, grid: {display: false}})
        },
        plugins: {tooltip: {callbacks: {
          title: items => report.stages.length > 1 ? 'stage ' + items[0].label : 'step',
          label: item => item.dataset.label + ': ' + maq.time(item.raw) + ', ' + maq.percent(item.raw / report.step_time_s)
        }}}
      }
    }));
  };

  const memoryBars = report => {
    const used = memory.filter(m => report.stages.some(s => s.memory[m[0]] > 0));
    const capacity = Math.max(...report.stages.map(s => s.memory.capacity_bytes));
    const most = Math.max(capacity, ...report.stages.map(s => s.memory.total_bytes));
    rows('memory-chart', report.stages.length);
    maq.chart('memory-chart', () => ({
      type: 'bar',
      data: {
        labels: stageNames(report),
        datasets: used.map(m => ({label: m[1], data: report.stages.map(s => s.memory[m[0]] / GIB), backgroundColor: maq.color(m[2]), barPercentage: 0.92, categoryPercentage: 0.92}))
      },
      options: {
        indexAxis: 'y',
        scales: {
          x: maq.axis('GiB', null, {stacked: true, max: most / GIB * 1.04, ticks: {maxRotation: 0, includeBounds: false}}),
          y: maq.axis(report.stages.length > 1 ? 'stage' : '', null, {stacked: true, grid: {display: false}})
        },
        plugins: {
          marks: {list: [{x: capacity / GIB, color: maq.color('bad'), text: ''}]},
          tooltip: {callbacks: {
            title: items => report.stages.length > 1 ? 'stage ' + items[0].label : 'memory',
            label: item => item.dataset.label + ': ' + item.raw.toFixed(2) + ' GiB',
            footer: items => {
              const s = report.stages[items[0].dataIndex].memory;
              return 'total ' + maq.gib(s.total_bytes) + ' of ' + maq.gib(s.capacity_bytes);
            }
          }}
        }
      }
    }));
  };

  /* Stages that a chart of lines shows: all of a few; of many the ends, the worst and some between. */
  const someStages = report => {
    const n = report.stages.length, all = report.stages.map((s, i) => i);
    return n <= 16 ? all : all.filter(i => i % Math.ceil(n / 14) === 0 || i === n - 1 || i === report.worst_memory_stage);
  };

  const memoryTime = (report, more) => {
    if (!more || !more.stages[0].t)
      return document.getElementById('memory-time').parentNode.remove();
    const capacity = Math.max(...report.stages.map(s => s.memory.capacity_bytes)) / GIB, shown = someStages(report);
    const lines = shown.map(i => {
      const s = report.stages[i].memory, rest = s.total_bytes - s.activations_bytes, points = [];
      let t = 0;
      more.stages[i].t.forEach((dt, k) => {
        t += dt;
        points.push({x: t * more.tick_s, y: (rest + more.stages[i].b[k] * 1024) / GIB});
      });
      points.push({x: report.step_time_s, y: points[points.length - 1].y});
      return points;
    });
    maq.chart('memory-time', () => ({
      type: 'line',
      data: {datasets: lines.map((points, k) => ({label: report.stages.length > 1 ? String(shown[k]) : 'memory', data: points, stepped: true, borderWidth: 1.25,
        borderColor: maq.ramp(lines.length, k), backgroundColor: maq.ramp(lines.length, k)}))},
      options: {
        parsing: false, normalized: true,
        interaction: {mode: 'nearest', axis: 'x', intersect: false},
        scales: {
          x: maq.timeAxis('time in the step', report.step_time_s),
          y: maq.axis('GiB', null, {beginAtZero: true, suggestedMax: capacity * 1.12})
        },
        plugins: {
          marks: {list: [{y: capacity, color: maq.color('bad'), text: 'capacity ' + capacity.toFixed(1) + ' GiB'}]},
          legend: {display: lines.length > 1, title: {display: true, text: 'stage', padding: 0}},
          tooltip: {mode: 'nearest', intersect: false, callbacks: {
            title: items => maq.time(items[0].parsed.x, 4),
            label: item => (report.stages.length > 1 ? 'stage ' + item.dataset.label + ': ' : '') + item.parsed.y.toFixed(2) + ' GiB'
          }}
        }
      }
    }));
  };

  const roofline = (report, more) => {
    const ops = report.operators.filter(o => o.flop_per_call > 0 && o.bytes_per_call > 0 && o.time_s > 0).map(o => ({
      x: o.flop_per_call / o.bytes_per_call, y: o.flop_per_call * o.calls / o.time_s, r: 4 + 40 * Math.sqrt(o.busy_share), o
    }));
    const peak = report.peak_flop_per_s, band = more.band;
    if (ops.length === 0)
      return document.getElementById('roofline').parentNode.remove();
    const low = Math.min(peak / band / 4, ...ops.map(o => o.x)) / 2, high = Math.max(peak / band * 4, ...ops.map(o => o.x)) * 2;
    const bottom = Math.min(low * band * 2, ...ops.map(o => o.y)) / 2;
    const roof = [{x: low, y: low * band}, {x: peak / band, y: peak}, {x: high, y: peak}];
    maq.chart('roofline', () => ({
      data: {datasets: [
        {type: 'bubble', label: 'operator', data: ops, backgroundColor: ops.map(o => maq.fade(maq.color(o.o.provider === 'fitted' ? 'c-forward' : o.o.provider === 'measured' ? 'c-backward' : 'c-tp'), 0.5)),
          borderColor: maq.color('paper'), borderWidth: 1, clip: false},
        {type: 'line', label: 'roof', data: roof, borderColor: maq.color('soft'), borderWidth: 1.5, pointHitRadius: 0}
      ]},
      options: {
        scales: {
          x: maq.logAxis('FLOP per byte', null, {min: low, max: high}),
          y: maq.logAxis('TFLOP/s', v => maq.plain(v / 1e12), {min: bottom, max: peak * 2.2})
        },
        plugins: {
          legend: {display: false},
          tooltip: {filter: item => item.dataset.label === 'operator', callbacks: {
            title: items => items.length ? items[0].raw.o.operator : '',
            label: item => [item.raw.o.module, maq.digits(item.raw.x) + ' FLOP per byte', maq.digits(item.raw.y / 1e12) + ' TFLOP/s, ' +
              maq.percent(item.raw.y / Math.min(peak, item.raw.x * band)) + ' of the roof', maq.percent(item.raw.o.busy_share) + ' of busy time']
          }}
        }
      },
      plugins: [{id: 'roofs', afterDatasetsDraw(chart) {
        const ctx = chart.ctx, area = chart.chartArea, sx = chart.scales.x, sy = chart.scales.y;
        ctx.save();
        ctx.fillStyle = maq.color('soft');
        ctx.font = '11px ' + window.Chart.defaults.font.family;
        ctx.textAlign = 'right';
        ctx.fillText('dense peak ' + maq.digits(peak / 1e12) + ' TFLOP/s', area.right - 4, sy.getPixelForValue(peak) - 5);
        ctx.textAlign = 'left';
        const ax = sx.getPixelForValue(low), ay = sy.getPixelForValue(low * band);
        ctx.translate(ax, Math.min(ay, area.bottom));
        const dx = sx.getPixelForValue(peak / band) - ax, dy = sy.getPixelForValue(peak) - ay;
        if (ay <= area.bottom)
          ctx.rotate(Math.atan2(dy, dx));
        ctx.fillText('memory ' + maq.digits(band / 1e12) + ' TB/s', 8, -5);
        ctx.restore();
      }}]
    }));
  };

  const pipeline = (report, more) => {
    if (!more)
      return;
    const tick = more.tick_s, chunks = Math.max(1, ...more.layers.map(l => l[1] + 1)), layers = {};
    for (const [stage, chunk, first, n] of more.layers)
      layers[stage + '/' + chunk] = n > 1 ? 'layers ' + first + '-' + (first + n - 1) : n === 1 ? 'layer ' + first : 'no layers';
    const laneOf = k => 'fbwpu'.includes(k) ? 0 : k === 's' ? 1 : 2;
    const stages = more.stages.map((s, number) => {
      const lanes = [0, 1, 2].map(() => ({at: [], to: [], kind: [], of: []}));
      let end = 0;
      for (let i = 0; i < s.k.length; i++) {
        const at = end + s.g[i], lane = lanes[laneOf(s.k[i])];
        end = at + s.d[i];
        lane.at.push(at * tick);
        lane.to.push(end * tick);
        lane.kind.push(s.k[i]);
        lane.of.push({m: s.m[i], c: s.c[i]});
      }
      return {name: 'stage ' + number, brief: String(number), number, lanes};
    });
    /* Sends and communication of data parallelism have a lane each where some stage has them. */
    const used = [0, 1, 2].filter(l => l === 0 || stages.some(s => s.lanes[l].at.length > 0));
    for (const s of stages)
      s.lanes = used.map(l => {
        const lane = s.lanes[l], order = lane.at.map((v, i) => i).sort((a, b) => lane.at[a] - lane.at[b] || a - b);
        return {at: order.map(i => lane.at[i]), to: order.map(i => lane.to[i]), kind: order.map(i => lane.kind[i]), of: order.map(i => lane.of[i])};
      });
    const end = more.drawn < 0.9999 ? Math.max(...stages.flatMap(s => s.lanes[0].to.filter((t, i) => s.lanes[0].kind[i] !== 'u'))) :
      stages.reduce((most, s) => s.lanes.reduce((m, l) => l.to.reduce((a, t) => Math.max(a, t), m), most), report.step_time_s); /* later where steps overlap */
    maq.gantt('gantt', {
      rows: stages, end, kinds,
      words: (t, step) => step >= 1 ? t.toFixed(0) + ' s' : step >= 1e-3 ? (t >= 1 ? t.toFixed(Math.max(0, Math.ceil(-Math.log10(step) - 1e-9))) + ' s' : (t * 1e3).toFixed(0) + ' ms') : maq.time(t, 6),
      text: (kind, of) => 'fbwp'.includes(kind) ? String(of.m) : '',
      tip: (row, kind, of, from, to) => {
        const lines = [kinds[kind].name + (stages.length > 1 ? ', stage ' + row.number : '')];
        if ('fbwps'.includes(kind))
          lines.push('microbatch ' + of.m + (chunks > 1 ? ', chunk ' + of.c : '') + ' (' + layers[row.number + '/' + of.c] + ')');
        else if (kind === 'r' && chunks > 1)
          lines.push('chunk ' + of.c);
        const passes = more.passes && more.passes[more.program[row.number * more.chunks + of.c]];
        lines.push('begins at ' + maq.time(from, 5) + ', lasts ' + maq.time(to - from, 4));
        if (passes && 'fbwp'.includes(kind))
          for (const op of passes['fbwp'.indexOf(kind) % 3])
            lines.push('   ' + op[0] + (op[1] ? ', ' + op[1] : '') + ': ' + (op[2] > 1 ? op[2] + ' in ' : '') + maq.time(op[3]));
        return lines.join('\n');
      }
    });
    if (more.drawn < 0.9999) {
      const caption = document.getElementById('gantt').parentNode.querySelector('figcaption');
      caption.append(' The beginning of a long step: ' + maq.percent(more.drawn) + ' of what happens in it.');
    }
  };

  maq.draw['maquette.train'] = (report, more) => {
    breakdown(report);
    pipeline(report, more);
    memoryBars(report);
    memoryTime(report, more);
    roofline(report, more);
  };
}());
