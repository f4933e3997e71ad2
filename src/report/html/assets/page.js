/* SPDX-License-Identifier: Apache-2.0 */
/* page.js - what all pages share: the data that the page carries, units, colours of the theme, charts that follow both. */
(function () {
  'use strict';
  const root = document.documentElement;
  const read = id => {
    const element = document.getElementById(id);
    return element ? JSON.parse(element.textContent) : null;
  };
  const maq = window.maq = {report: read('report'), more: read('more'), draw: {}, made: []};
  root.classList.replace('plain', 'drawn');

  /* --- numbers with units: three significant digits, as in the tables --- */
  maq.digits = (x, n) => {
    const a = Math.abs(x);
    n = n || 3;
    if (!(a > 0))
      return '0';
    const places = Math.max(0, n - 1 - Math.floor(Math.log10(a) + 1e-9));
    const text = x.toFixed(Math.min(places, 12));
    return a >= 10000 ? Number(text).toLocaleString('en-US', {maximumFractionDigits: 0}) : text;
  };
  const scaled = (x, units, n) => {
    let i = 0;
    while (i + 1 < units.length && Math.abs(x) >= units[i + 1][0] * 0.9995)
      i++;
    return maq.digits(x / units[i][0], n) + ' ' + units[i][1];
  };
  maq.time = (s, n) => {
    const units = [[1e-9, 1e-9, 'ns'], [1e-6, 1e-6, 'us'], [1e-3, 1e-3, 'ms'], [1, 1, 's'], [120, 60, 'min'], [7200, 3600, 'h'], [172800, 86400, 'days']];
    let i = 0;
    while (i + 1 < units.length && Math.abs(s) >= units[i + 1][0] * 0.9995)
      i++;
    return s === 0 ? '0 s' : maq.digits(s / units[i][1], n) + ' ' + units[i][2];
  };
  maq.count = (x, n) => scaled(x, [[1, ''], [1e3, 'k'], [1e6, 'M'], [1e9, 'B'], [1e12, 'T']], n).trim();
  maq.gib = bytes => maq.digits(bytes / 1073741824, 3) + ' GiB';
  maq.percent = x => (100 * x).toFixed(1) + ' %';

  /* --- colours --- */
  maq.color = name => getComputedStyle(root).getPropertyValue('--' + name).trim();
  maq.fade = (color, alpha) => {
    const n = parseInt(color.slice(1), 16);
    return 'rgba(' + (n >> 16) + ',' + (n >> 8 & 255) + ',' + (n & 255) + ',' + alpha + ')';
  };
  /* n colours between two, for what has an order (stages). */
  maq.ramp = (n, i) => {
    const t = n > 1 ? i / (n - 1) : 0, dark = maq.isDark();
    return 'hsl(' + Math.round(215 - 190 * t) + ',' + (dark ? 65 : 58) + '%,' + (dark ? 64 : 45) + '%)';
  };
  maq.isDark = () => root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;

  /* --- charts --- */
  const Chart = window.Chart;
  /* Lines across a chart at a value, with words: options.plugins.marks = [{x or y, text, color}] */
  const marks = {
    id: 'marks',
    afterDatasetsDraw(chart, args, options) {
      const ctx = chart.ctx, area = chart.chartArea;
      for (const mark of options.list || []) {
        const along = mark.x !== undefined ? 'x' : 'y', at = chart.scales[mark.axis || along].getPixelForValue(mark[along]);
        const low = along === 'x' ? area.left : area.top, high = along === 'x' ? area.right : area.bottom;
        if (!(at >= low - 1 && at <= high + 1))
          continue;
        ctx.save();
        ctx.strokeStyle = ctx.fillStyle = mark.color || maq.color('ink');
        ctx.setLineDash([5, 4]);
        ctx.lineWidth = 1.25;
        ctx.beginPath();
        ctx.moveTo(along === 'x' ? at : area.left, along === 'x' ? area.top : at);
        ctx.lineTo(along === 'x' ? at : area.right, along === 'x' ? area.bottom : at);
        ctx.stroke();
        ctx.font = '11px ' + Chart.defaults.font.family;
        ctx.textBaseline = 'alphabetic';
        const width = ctx.measureText(mark.text || '').width;
        if (along === 'x') {
          const right = at + 4 + width > area.right;
          ctx.textAlign = right ? 'right' : 'left';
          ctx.fillText(mark.text || '', at + (right ? -4 : 4), mark.low ? area.bottom - 7 - 13 * (mark.row || 0) : area.top + 11 + 13 * (mark.row || 0));
        } else {
          ctx.textAlign = 'right';
          ctx.fillText(mark.text || '', area.right - 4, at - 4 < area.top + 9 ? at + 12 : at - 4);
        }
        ctx.restore();
      }
    }
  };
  const setDefaults = () => {
    const d = Chart.defaults;
    d.font.family = getComputedStyle(document.body).fontFamily;
    d.font.size = 12;
    d.color = maq.color('soft');
    d.borderColor = maq.color('hair');
    d.animation = false;
    d.responsive = true;
    d.maintainAspectRatio = false;
    d.plugins.legend.position = 'bottom';
    d.plugins.legend.labels.boxWidth = 11;
    d.plugins.legend.labels.boxHeight = 11;
    d.plugins.legend.labels.padding = 9;
    d.plugins.tooltip.backgroundColor = maq.color('ink');
    d.plugins.tooltip.titleColor = d.plugins.tooltip.bodyColor = d.plugins.tooltip.footerColor = maq.color('paper');
    d.plugins.tooltip.padding = 8;
    d.plugins.tooltip.boxPadding = 4;
    d.plugins.tooltip.cornerRadius = 5;
    d.elements.bar.borderWidth = 0;
    d.elements.point.radius = 0;
    d.elements.point.hitRadius = 6;
    d.elements.line.borderWidth = 1.75;
    d.scale.grid.drawBorder = false;
  };
  Chart.register(marks);

  /* Draws anew into a place: what was drawn there is taken back. A page may give maq.later a function that is handed what draws, to call it when
     there is time; until then the place shows what it showed. */
  const set = item => {
    const old = maq.made.find(other => other.place === item.place);
    maq.made = maq.made.filter(other => other !== old);
    maq.made.push(item);
    item.chart = old && old.chart; /* until it has its own */
    maq.later(() => {
      if (!maq.made.includes(item))
        return;
      undo(item);
      item.draw ? item.draw() : make(item);
    });
  };
  const undo = item => {
    if (item.chart)
      item.chart.destroy();
    item.chart = null;
  };
  maq.later = draw => draw();
  const make = item => {
    const canvas = document.createElement('canvas');
    const caption = item.place.parentNode.querySelector('figcaption');
    canvas.setAttribute('role', 'img');
    canvas.setAttribute('aria-label', caption ? caption.textContent : item.place.id);
    item.place.replaceChildren(canvas);
    item.chart = new Chart(canvas, item.config());
  };
  /* Draws into the place `id`, where the page has one; `config` is asked again when colours change. */
  maq.chart = (id, config) => {
    const place = document.getElementById(id);
    if (!place)
      return;
    set({place, config});
  };
  /* The same for what is no chart of the library: `draw` is called again when colours change. */
  maq.drawing = (place, draw) => {
    set({place, draw});
  };
  const again = () => {
    setDefaults();
    for (const item of maq.made) {
      if (item.draw) {
        item.draw();
      } else {
        undo(item);
        make(item);
      }
    }
  };

  /* Axis of a quantity: title, ticks as `words` says them. */
  maq.axis = (title, words, more) => Object.assign(
      {title: {display: true, text: title, color: maq.color('soft')}, ticks: {maxRotation: 0, autoSkipPadding: 12}},
      words ? {ticks: {maxRotation: 0, autoSkipPadding: 12, callback: words}} : {}, more || {});
  /* Numbers of ticks: as short as they are. */
  maq.plain = v => Math.abs(v) >= 1e6 || (v !== 0 && Math.abs(v) < 1e-4) ? maq.count(v) : Number(v.toPrecision(6)).toLocaleString('en-US', {maximumFractionDigits: 6});
  /* A logarithmic axis. */
  maq.logAxis = (title, words, more) => maq.axis(title, null, Object.assign({type: 'logarithmic', ticks: {callback: maq.logTick(words), autoSkip: false, maxRotation: 0}}, more || {}));
  maq.share = v => Number((100 * v).toPrecision(3)) + ' %';
  /* The axis of such times. */
  maq.timeAxis = (title, most, more) => {
    const words = maq.timeTicks(most);
    return maq.axis(title + ', ' + words.unit, null, Object.assign({type: 'linear', min: 0, max: most,
      ticks: {callback: words, maxRotation: 0, autoSkipPadding: 12}, afterBuildTicks: axis => {
        axis.ticks = [];
        for (let i = 0; i * words.step <= most * (1 + 1e-9); i++)
          axis.ticks.push({value: i * words.step});
      }}, more || {}));
  };
  /* Ticks of a logarithmic axis: ones, twos and fives. */
  maq.logTick = words => value => {
    const lead = value / Math.pow(10, Math.floor(Math.log10(value) + 1e-9));
    return [1, 2, 5].some(x => Math.abs(lead - x) < 1e-6) ? (words || maq.plain)(value) : '';
  };
  /* Of an axis that goes to `most`: a step between ticks that is 1, 2 or 5 times a power of ten. */
  maq.step = most => {
    const raw = most / 7, power = Math.pow(10, Math.floor(Math.log10(raw)));
    return power * [1, 2, 5, 10].find(m => m * power >= raw * 0.999);
  };
  /* Times of an axis that goes to `most` seconds, all in one unit; .unit is its name, .step lies between ticks. */
  maq.timeTicks = most => {
    const [unit, name] = [[86400, 'days', 172800], [3600, 'h', 7200], [60, 'min', 120], [1, 's', 0.9995], [1e-3, 'ms', 0.9995e-3], [1e-6, 'us', 0]].find(u => most >= u[2]);
    const words = v => maq.plain(v / unit);
    words.unit = name;
    words.step = maq.step(most / unit) * unit;
    return words;
  };

  /* --- theme --- */
  const button = document.getElementById('theme');
  const label = () => {
    button.textContent = maq.isDark() ? 'light' : 'dark';
    button.setAttribute('aria-label', 'show the page in ' + button.textContent + ' colours');
  };
  button.hidden = false;
  button.addEventListener('click', () => {
    root.dataset.theme = maq.isDark() ? 'light' : 'dark';
    label();
    again();
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
    label();
    again();
  });
  let kept;
  addEventListener('beforeprint', () => {
    kept = root.dataset.theme;
    root.dataset.theme = 'light';
    again();
  });
  addEventListener('afterprint', () => {
    if (kept)
      root.dataset.theme = kept;
    else
      delete root.dataset.theme;
    again();
  });

  /* Draws what a document has into the places that the page has for it. */
  maq.show = (report, more) => {
    const schema = report.schema.replace(/\/.*/, '');
    if (maq.draw[schema])
      maq.draw[schema](report, more);
  };
  /* Takes back what was drawn into places that the page has no more. */
  maq.forget = () => {
    maq.made.filter(item => !item.place.isConnected).forEach(undo);
    maq.made = maq.made.filter(item => item.place.isConnected);
  };
  /* A page without a report shows some by itself. */
  maq.start = () => {
    label();
    setDefaults();
    if (maq.report)
      maq.show(maq.report, maq.more);
    root.classList.add('ready');
  };
}());
