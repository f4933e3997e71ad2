/* SPDX-License-Identifier: Apache-2.0 */
/* diff.js - charts of a comparison (schema maquette.diff): what each part of a table adds to the change. */
(function () {
  'use strict';
  const maq = window.maq;
  const ROWS = 24;
  const words = key => key.replace(/_(s|bytes)$/, '').replace(/_/g, ' ').replace(/\b(tp|cp|ep|pp|dp|kv|gpu|nccl)\b/g, w => w.toUpperCase());

  const changes = table => {
    const rows = table.rows.filter(r => r.change !== 0), place = document.getElementById('chart-' + table.table);
    if (!place || rows.length === 0)
      return place && place.closest('figure').remove();
    const shown = rows.slice(0, ROWS), left = rows.slice(ROWS).reduce((sum, r) => sum + r.change, 0);
    if (rows.length > ROWS)
      shown.push({row: 'all others', change: left});
    const most = Math.max(...shown.map(r => Math.abs(r.change))), time = maq.timeTicks(most);
    const [unit, name] = /_bytes$/.test(table.whole) ? [1073741824, 'GiB'] : /_s$/.test(table.whole) ? [null, time.unit] : [1, ''];
    const axis = v => unit ? maq.plain(v / unit) : time(v);
    place.closest('figure').style.setProperty('--rows', shown.length);
    maq.chart(place.id, () => ({
      type: 'bar',
      data: {
        labels: shown.map(r => words(r.row)),
        datasets: [{label: 'change', data: shown.map(r => r.change), backgroundColor: shown.map(r => maq.color(r.change > 0 ? 'c-ep' : 'c-backward')), barPercentage: 0.9, categoryPercentage: 0.85}]
      },
      options: {
        indexAxis: 'y',
        scales: {x: maq.axis('change' + (name ? ', ' + name : ''), axis, {grace: '4%'}), y: {ticks: {autoSkip: false}, grid: {display: false}}},
        plugins: {legend: {display: false}, tooltip: {callbacks: {label: item => axis(item.raw) + ' ' + name}}}
      }
    }));
  };

  maq.draw['maquette.diff'] = report => report.tables.filter(t => t.whole).forEach(changes);
}());
