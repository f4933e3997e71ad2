/* SPDX-License-Identifier: Apache-2.0 */
/* post_training.js - a generation and what it is for, over time (schema maquette.post_training). */
(function () {
  'use strict';
  const maq = window.maq;
  maq.draw['maquette.post_training'] = (report, more) => {
    const kinds = {};
    more.kinds.forEach((k, i) => {
      kinds[i] = {name: k[0], color: k[1]};
    });
    const rows = [{name: 'trainer', brief: 't', lanes: [{at: more.at, to: more.to, kind: more.kind.map(String), of: more.step}]}];
    const busy = more.kinds.findIndex(k => k[0] === 'generate'), from = more.generates[0];
    more.engines.forEach((end, i) => rows.push({name: more.engine + ' ' + i, brief: String(i), lanes: [{at: [from], to: [from + end], kind: [String(busy)], of: [0]}]}));
    const several = more.kind.filter(k => more.kinds[k][0] === 'train').length > 1;
    maq.gantt('gantt', {
      rows, end: more.end, kinds,
      words: (t, step) => maq.time(t, Math.max(3, 1 + Math.ceil(Math.log10((t + 1e-12) / step)))),
      text: (kind, of) => several && kinds[kind].name === 'train' ? String(of) : '',
      tip: (row, kind, of, at, to) => kinds[kind].name + (several && kinds[kind].name === 'train' ? ', step ' + of : '') + ', ' + row.name +
        '\nbegins at ' + maq.time(at, 5) + ', lasts ' + maq.time(to - at, 4)
    });
  };
}());
