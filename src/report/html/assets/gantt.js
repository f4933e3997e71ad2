/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gantt.js - spans on rows over time, on a canvas: zoomed by wheel, keys and buttons, moved by dragging.
 *
 *   maq.gantt(id, {rows: [{name, lanes: [{at: [...], to: [...], kind: [...], of: [...]}, ...]}], end, kinds: {k: {name, color, thin}},
 *                  text: (kind, of) => short text in a span, tip: (row, kind, of, from, to) => lines, words: value => "1.2 s"})
 *
 * The first lane of a row is high, the others are thin. Spans of a lane are in order of their begin.
 */
(function () {
  'use strict';
  const maq = window.maq;
  maq.gantt = (id, chart) => {
    const place = document.getElementById(id);
    if (!place)
      return;
    const tools = document.createElement('div'), keys = document.createElement('div');
    const canvas = document.createElement('canvas'), tip = document.createElement('div');
    let from = 0, to = chart.end, active = false;
    tools.className = 'gantt-tools';
    keys.className = 'keys';
    tip.className = 'tip';
    tip.hidden = true;
    canvas.tabIndex = 0;
    canvas.setAttribute('role', 'img');
    canvas.setAttribute('aria-label', place.parentNode.querySelector('figcaption').textContent);
    const present = new Set(chart.rows.flatMap(row => row.lanes.flatMap(lane => lane.kind)));
    const shown = Object.keys(chart.kinds).filter(k => present.has(k));
    tools.append(keys);

    const axis = 22, left = () => place.clientWidth < 600 ? 34 : 64;
    const many = chart.rows.length > 40, thin = many ? 2 : 4, every = many ? Math.ceil(chart.rows.length / 40) : 1;
    const high = () => Math.max(many ? 5 : 12, Math.min(26, 420 / chart.rows.length));
    const rowHeight = row => high() + (row.lanes.length - 1) * (thin + 1) + (many ? 2 : 4);
    const height = () => axis + chart.rows.reduce((sum, row) => sum + rowHeight(row), 0) + 4;
    const width = () => place.clientWidth - left() - 2;
    const x = value => left() + (value - from) / (to - from) * width();

    /* First span of a lane that ends behind `value`. */
    const find = (lane, value) => {
      let a = 0, b = lane.to.length;
      while (a < b) {
        const mid = a + b >> 1;
        if (lane.top[mid] <= value)
          a = mid + 1;
        else
          b = mid;
      }
      return a;
    };
    for (const row of chart.rows)
      for (const lane of row.lanes) { /* ends so far, which grow where spans overlap */
        lane.top = lane.to.slice();
        for (let i = 1; i < lane.top.length; i++)
          lane.top[i] = Math.max(lane.top[i], lane.top[i - 1]);
      }

    const draw = () => {
      const ratio = Math.max(window.devicePixelRatio || 1, 2), w = place.clientWidth, h = height();
      if (w === 0)
        return;
      canvas.width = w * ratio;
      canvas.height = h * ratio;
      canvas.style.height = h + 'px';
      const ctx = canvas.getContext('2d'), font = getComputedStyle(document.body).fontFamily;
      const colors = {}, ink = maq.color('ink'), soft = maq.color('soft'), hair = maq.color('hair');
      for (const k of shown)
        colors[k] = maq.color(chart.kinds[k].color);
      ctx.scale(ratio, ratio);
      ctx.font = '11px ' + font;
      ctx.textBaseline = 'middle';
      /* time axis */
      const step = (() => {
        const raw = (to - from) / Math.max(2, width() / (width() < 500 ? 62 : 110)), power = Math.pow(10, Math.floor(Math.log10(raw)));
        return power * [1, 2, 5, 10].find(m => m * power >= raw);
      })();
      ctx.textAlign = 'center';
      for (let t = Math.ceil(from / step) * step; t <= to + step * 1e-9; t += step) {
        ctx.fillStyle = hair;
        ctx.fillRect(Math.round(x(t)), axis - 4, 1, h - axis);
        ctx.fillStyle = soft;
        if (x(t) > left() + 10 && x(t) < w - 20)
          ctx.fillText(chart.words(t, step), x(t), axis / 2 - 2);
      }
      ctx.fillStyle = soft;
      ctx.textAlign = 'left';
      let top = axis;
      for (const row of chart.rows) {
        ctx.save();
        ctx.fillStyle = soft;
        ctx.textAlign = 'right';
        if (chart.rows.indexOf(row) % every === 0)
          ctx.fillText(place.clientWidth < 600 ? row.brief : row.name, left() - 6, top + high() / 2);
        ctx.beginPath();
        ctx.rect(left(), top - 1, width() + 2, rowHeight(row));
        ctx.clip();
        let y = top;
        row.lanes.forEach((lane, number) => {
          const tall = number === 0 ? high() : thin;
          for (let i = find(lane, from); i < lane.at.length && lane.at[i] < to; i++) {
            const a = x(lane.at[i]), b = x(lane.to[i]), wide = Math.max(b - a, 0.6);
            ctx.fillStyle = colors[lane.kind[i]];
            ctx.fillRect(a, y, number === 0 && wide > 3 ? wide - 0.7 : wide, tall);
            if (number === 0 && wide > 15 && tall >= 12) {
              const text = chart.text(lane.kind[i], lane.of[i]);
              if (text && ctx.measureText(text).width < wide - 4) {
                ctx.fillStyle = maq.isDark() ? '#10151c' : '#ffffff';
                ctx.textAlign = 'center';
                ctx.fillText(text, Math.max(a, left()) + (Math.min(b, w) - Math.max(a, left())) / 2, y + tall / 2 + 0.5);
              }
            }
          }
          y += tall + 1;
        });
        ctx.restore();
        top += rowHeight(row);
      }
      keys.replaceChildren(...shown.map(k => {
        const item = document.createElement('span'), box = document.createElement('i');
        box.style.background = colors[k];
        item.append(box, chart.kinds[k].name);
        return item;
      }));
    };

    /* --- moving and zooming --- */
    const show = (a, b) => {
      const span = Math.min(Math.max(b - a, chart.end * 1e-5), chart.end);
      from = Math.min(Math.max(a, 0), chart.end - span);
      to = from + span;
      tip.hidden = true;
      requestAnimationFrame(draw);
    };
    const zoom = (factor, at) => show(at - (at - from) * factor, at + (to - at) * factor);
    const middle = () => (from + to) / 2;
    const value = event => from + (event.clientX - canvas.getBoundingClientRect().left - left()) / width() * (to - from);
    const actions = {
      '+': () => zoom(0.6, middle()), '=': () => zoom(0.6, middle()), '-': () => zoom(1 / 0.6, middle()), '0': () => show(0, chart.end),
      Home: () => show(0, to - from), End: () => show(chart.end - (to - from), chart.end),
      ArrowLeft: () => show(from - (to - from) / 8, to - (to - from) / 8), ArrowRight: () => show(from + (to - from) / 8, to + (to - from) / 8)
    };
    for (const [text, key, words] of [['−', '-', 'zoom out'], ['+', '+', 'zoom in'], ['whole step', '0', 'show the whole step']]) {
      const button = document.createElement('button');
      button.type = 'button';
      button.textContent = text;
      button.setAttribute('aria-label', words);
      button.addEventListener('click', actions[key]);
      tools.append(button);
    }
    canvas.addEventListener('keydown', event => {
      const action = !event.ctrlKey && !event.metaKey && !event.altKey && actions[event.key];
      if (action) {
        event.preventDefault();
        action();
      }
    });
    canvas.addEventListener('wheel', event => {
      if (!event.ctrlKey && !event.metaKey && !active)
        return;
      event.preventDefault();
      if (Math.abs(event.deltaX) > Math.abs(event.deltaY))
        show(from + event.deltaX / width() * (to - from), to + event.deltaX / width() * (to - from));
      else
        zoom(Math.pow(1.0018, event.deltaY), value(event));
    }, {passive: false});
    let held = null;
    canvas.addEventListener('pointerdown', event => {
      held = {x: event.clientX, from, to};
      active = true;
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener('pointerup', () => held = null);
    canvas.addEventListener('pointercancel', () => held = null);
    canvas.addEventListener('blur', () => active = false);
    canvas.addEventListener('dblclick', () => show(0, chart.end));

    /* --- what is under the pointer --- */
    const under = event => {
      const box = canvas.getBoundingClientRect(), at = value(event), px = (to - from) / width();
      let top = axis, y = event.clientY - box.top;
      for (const row of chart.rows) {
        if (y >= top && y < top + rowHeight(row)) {
          let lane = 0, low = top + high() + 1;
          while (lane + 1 < row.lanes.length && y >= low) {
            lane++;
            low += thin + 1;
          }
          const spans = row.lanes[lane];
          for (let i = find(spans, at - 2 * px); i < spans.at.length && spans.at[i] <= at + 2 * px; i++)
            if (spans.to[i] >= at - 2 * px)
              return chart.tip(row, spans.kind[i], spans.of[i], spans.at[i], spans.to[i]);
          return null;
        }
        top += rowHeight(row);
      }
      return null;
    };
    canvas.addEventListener('pointermove', event => {
      if (held) {
        const by = (held.x - event.clientX) / width() * (held.to - held.from);
        if (Math.abs(held.x - event.clientX) > 2)
          show(held.from + by, held.to + by);
        return;
      }
      const text = under(event);
      tip.hidden = !text;
      if (!text)
        return;
      tip.textContent = text;
      const box = place.getBoundingClientRect(), px = event.clientX - box.left, py = event.clientY - box.top;
      tip.style.left = Math.max(0, Math.min(px + 14, box.width - tip.offsetWidth)) + 'px';
      tip.style.top = py + 16 + 'px';
    });
    canvas.addEventListener('pointerleave', () => tip.hidden = true);
    maq.drawing(place, () => {
      if (canvas.parentNode !== place) { /* the first time: in the stead of what was there */
        if (place.watched)
          place.watched.disconnect();
        place.replaceChildren(tools, canvas, tip);
        place.watched = new ResizeObserver(() => requestAnimationFrame(draw));
        place.watched.observe(place);
      }
      draw();
    });
  };
}());
