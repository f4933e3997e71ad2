/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ui.js - the page of `maquette ui`: a job is edited, the program answers, the report is shown as it would be in its file.
 *
 * The page computes nothing. A change is sent at once; while an answer is on its way only the newest change waits, and what it overtakes is
 * never asked. Commands that take long run when they are told to, and are looked after until they are over.
 */
(function () {
  'use strict';
  const maq = window.maq, $ = id => document.getElementById(id), changed = $('changed'); /* goes with the report, under its headline */
  const make = (name, more, ...inside) => {
    const e = Object.assign(document.createElement(name), more || {});
    e.append(...inside);
    return e;
  };

  /* --- the program --- */
  const kept = {
    get: key => { try { return sessionStorage.getItem('maquette ' + key); } catch (e) { return null; } },
    set: (key, value) => { try { sessionStorage.setItem('maquette ' + key, value); } catch (e) { /* private windows may have none */ } }
  };
  const token = location.hash.slice(1) || kept.get('token') || '';
  kept.set('token', token);
  history.replaceState(null, '', location.pathname); /* not in the history, nor in a picture of the window */

  class Refused extends Error {}
  const ask = async (method, path, body) => {
    let response;
    try {
      response = await fetch(path, {method, headers: Object.assign({Authorization: 'Bearer ' + token}, body ? {'Content-Type': 'application/json'} : {}),
        body: body && JSON.stringify(body), cache: 'no-store', credentials: 'omit', redirect: 'error'});
    } catch (e) {
      throw new Refused('The program does not answer: is it still running? Start `maquette ui` again and open the address that it prints.');
    }
    const answer = await response.json();
    if (!response.ok)
      throw new Refused(answer.message || 'status ' + response.status);
    return answer;
  };

  /* --- what is edited: a document and options, by command --- */
  const state = {command: 'train', documents: {}, options: {}, answers: {}, run: null, runCommand: null};
  let session;
  const sheet = command => command === 'serve' ? 'serve' : 'job'; /* train and plan are asked of one job */
  const optionsOf = command => state.options[command];
  const remember = () => kept.set('desk', JSON.stringify({command: state.command, documents: state.documents, options: state.options}));
  const recall = () => {
    let desk = {};
    try { desk = JSON.parse(kept.get('desk')) || {}; } catch (e) { /* as if there were none */ }
    const begin = {job: session.documents.train, serve: session.documents.serve};
    for (const key of ['job', 'serve'])
      state.documents[key] = desk.documents && typeof desk.documents[key] === 'string' ? desk.documents[key] : begin[key];
    for (const name of Object.keys(session.commands))
      state.options[name] = desk.options && desk.options[name] || {};
    if (session.commands[desk.command])
      state.command = desk.command;
  };
  const question = () => {
    const options = {};
    for (const [name, value] of Object.entries(optionsOf(state.command))) {
      const option = session.commands[state.command].options.find(o => o.name === name);
      if (option)
        options[name] = option.list ? value.split('\n').map(l => l.trim()).filter(l => l) : value;
    }
    return {command: state.command, document: state.documents[sheet(state.command)], options};
  };

  /* --- the answer --- */
  let shownAt = 0, before = null, askedDiff = 0;
  const withoutScripts = text => new DOMParser().parseFromString(text, 'text/html'); /* such a document runs nothing */
  const documentOf = (page, id) => {
    const element = page.getElementById(id);
    return element ? JSON.parse(element.textContent) : null;
  };
  /* The headline and the tables first: charts are drawn one in a frame. What a newer answer overtakes is not drawn. */
  let drawings = [];
  const left = () => { document.documentElement.dataset.drawing = String(drawings.length); };
  maq.later = draw => {
    if (drawings.push(draw) === 1)
      requestAnimationFrame(drawNext);
    left();
  };
  const drawNext = () => setTimeout(() => {
    const draw = drawings.shift();
    if (draw)
      draw();
    if (drawings.length > 0)
      requestAnimationFrame(drawNext);
    else
      maq.forget();
    left();
  });
  const place = (into, page) => {
    const head = page.querySelector('header'), main = page.querySelector('main');
    const open = new Set([...into.querySelectorAll('section details[open] > summary')].map(s => s.textContent));
    for (const plot of main.querySelectorAll('.plot')) { /* shows what it shows until it is drawn anew */
      const old = into.querySelector('#' + CSS.escape(plot.id));
      if (old)
        plot.replaceWith(old);
    }
    into.replaceChildren(...[...head.querySelectorAll(':scope > .facts, :scope > .verdict, :scope > .cards'), main].map(e => document.adoptNode(e)));
    main.querySelector('.cards').after(changed);
    for (const summary of into.querySelectorAll('details > summary'))
      if (open.has(summary.textContent))
        summary.parentNode.open = true;
    maq.forget();
  };
  /* What changed, once a reader could have seen what was there before. */
  const compare = async (command, now) => {
    const number = ++askedDiff, was = before;
    if (!was || was.command !== command || was.text === now) {
      if (!was || was.command !== command)
        changed.replaceChildren();
      return;
    }
    try {
      const answer = await ask('POST', '/api/diff', {before: was.text, after: now});
      if (number !== askedDiff || !answer.page)
        return;
      const page = withoutScripts(answer.page), main = page.querySelector('main'), fold = make('details', {open: changed.querySelector('details[open]') !== null});
      for (const section of main.querySelectorAll('section'))
        section.removeAttribute('id'); /* those of the report have them */
      const figures = [...main.querySelectorAll('.card')].map(card => {
        const [label, value, note] = ['h3', '.value', '.note'].map(part => card.querySelector(part).textContent);
        return make('li', {title: note}, label + ' ', make('strong', {}, value), make('span', {}, ' ' + note));
      });
      fold.append(make('summary', {}, 'What the change is made of'), ...main.querySelectorAll(':scope > section'));
      changed.replaceChildren(make('h2', {}, 'What changed'), make('ul', {}, ...figures), fold);
      maq.forget();
      const draw = () => maq.show(documentOf(page, 'report'), null);
      if (fold.open)
        draw();
      else
        fold.addEventListener('toggle', draw, {once: true});
    } catch (e) {
      changed.replaceChildren();
    }
  };
  const show = (command, answer, took) => {
    state.answers[command] = answer;
    $('line').textContent = answer.command_line;
    document.body.classList.toggle('stale', !answer.page);
    showFindings(answer);
    showSettings(command, answer);
    $('took').textContent = took;
    buttons();
    if (!answer.page)
      return;
    const page = withoutScripts(answer.page), report = documentOf(page, 'report'), text = page.getElementById('report').textContent;
    if (state.shown && state.shown.command === command && performance.now() - shownAt > 1500)
      before = state.shown;
    place($('shown'), page);
    showNouns(report);
    maq.show(report, documentOf(page, 'more'));
    $('pulse').replaceChildren(...[...document.querySelectorAll('#shown .cards .value')].map(e => make('span', {}, e.textContent)));
    $('pulse').hidden = false;
    state.shown = {command, text};
    shownAt = performance.now();
    if (report.document && command === 'plan')
      $('shown').prepend(make('p', {className: 'small'}, make('button', {type: 'button', id: 'use-plan', onclick: () => usePlan(report.document)}, 'Take the best plan as the job')));
    compare(command, text);
  };
  const fail = error => {
    if (!(error instanceof Refused))
      console.error(error);
    $('took').textContent = error.message;
    document.body.classList.add('stale');
  };

  /* The newest change waits while an answer is on its way; there is never more than one of each. */
  let wanted = null, asking = false;
  const change = async () => {
    remember();
    if (session.commands[state.command].aside) {
      document.body.classList.toggle('stale', Boolean(state.answers[state.command]));
      return;
    }
    wanted = {question: question(), since: performance.now()};
    if (asking)
      return;
    asking = true;
    while (wanted) {
      const one = wanted;
      wanted = null;
      try {
        const answer = await ask('POST', '/api/answer', one.question);
        if (!wanted && state.command === one.question.command) {
          show(one.question.command, answer, '');
          const took = performance.now() - one.since;
          $('took').textContent = 'answered in ' + Math.max(1, Math.round(took)) + ' ms';
          document.documentElement.dataset.answered = String(Number(document.documentElement.dataset.answered || 0) + 1);
          await new Promise(requestAnimationFrame); /* what is there is painted before more is asked */
        }
      } catch (error) {
        fail(error);
      }
    }
    asking = false;
  };

  /* --- what takes long --- */
  const pause = ms => new Promise(done => setTimeout(done, ms));
  const watch = async () => {
    const id = state.run;
    buttons();
    try {
      for (;;) {
        const now = await ask('GET', '/api/runs/' + id);
        if (state.run !== id)
          return;
        $('progress').textContent = (now.state === 'stopping' ? 'stopping; ' : '') + (now.progress || 'running') + ', ' + now.elapsed_s.toFixed(1) + ' s';
        if (now.state === 'over' || now.state === 'failed') {
          state.run = null;
          $('progress').textContent = now.state === 'failed' ? 'out of memory' : '';
          if (now.answer && state.command === state.runCommand)
            show(state.runCommand, now.answer, 'took ' + now.elapsed_s.toFixed(2) + ' s');
          else if (now.answer)
            state.answers[state.runCommand] = now.answer;
          break;
        }
        await pause(Math.min(500, 60 + now.elapsed_s * 100));
      }
    } catch (error) {
      state.run = null;
      $('progress').textContent = '';
      fail(error);
    }
    buttons();
  };
  const go = async () => {
    if (!session.commands[state.command].aside || state.run)
      return;
    try {
      state.runCommand = state.command;
      state.run = (await ask('POST', '/api/runs', question())).run;
      watch();
    } catch (error) {
      fail(error);
    }
  };
  const stop = () => state.run && ask('DELETE', '/api/runs/' + state.run).catch(fail);

  /* --- findings: beside the line or the field that they are about --- */
  const fieldOf = name => document.querySelector('#edit [data-name="' + CSS.escape(name.replace(/^-+/, '').replace(/-/g, '_')) + '"]');
  const hintOf = finding => finding.hint ? [make('span', {className: 'hint'}, ' Hint: ' + finding.hint)] : [];
  const showFindings = answer => {
    const lines = {}, rest = [];
    for (const old of document.querySelectorAll('#edit .fault'))
      old.remove();
    for (const finding of answer.diagnostics || []) {
      const option = finding.file && finding.file.startsWith('--') ? session.commands[state.command].options.find(o =>
        [o.name, ...o.aliases.split('|')].some(n => n.replace(/_/g, '-') === finding.file.slice(2).replace(/_/g, '-'))) : null;
      const field = option && fieldOf(option.name);
      if (field)
        field.append(make('p', {className: 'fault'}, finding.code + ': ' + finding.message, ...hintOf(finding)));
      if (finding.file === 'job')
        lines[finding.line] = finding.severity === 'error' ? 'bad' : lines[finding.line] || 'warn';
      if (!field || finding.severity !== 'error')
        rest.push(finding);
    }
    $('findings').replaceChildren(...rest.map(finding => make('li', {className: finding.severity},
      ...(finding.file === 'job' ? [make('button', {type: 'button', onclick: () => goTo(finding.line, finding.column)}, 'line ' + finding.line)] : []),
      ...(finding.code ? [make('code', {}, finding.code), ': '] : []), finding.message, ...hintOf(finding))));
    drawLines(lines);
  };
  let marked = {};
  const drawLines = lines => {
    marked = lines || marked;
    const n = $('document').value.split('\n').length, parts = [];
    for (let i = 1; i <= n; i++)
      parts.push(marked[i] ? make('span', {className: marked[i]}, String(i)) : String(i), '\n');
    $('lines').replaceChildren(...parts);
    $('lines').scrollTop = $('document').scrollTop;
  };
  const goTo = (line, column) => {
    const text = $('document'), lines = text.value.split('\n');
    const at = lines.slice(0, line - 1).reduce((sum, l) => sum + l.length + 1, 0) + column - 1;
    text.focus();
    text.setSelectionRange(at, Math.max(at, at - column + 1 + lines[line - 1].length));
  };

  /* --- fields: options of the command line, over what the job says --- */
  const shortName = option => option.aliases ? option.aliases.split('|')[0] : option.name;
  const settle = (option, value) => {
    const mine = optionsOf(state.command);
    if (value === '' || value === false)
      delete mine[option.name];
    else
      mine[option.name] = value;
    for (const field of document.querySelectorAll('#edit [data-name="' + CSS.escape(option.name) + '"]'))
      field.classList.toggle('set', option.name in mine);
    countSet();
    change();
  };
  const countSet = () => {
    const n = Object.keys(optionsOf(state.command)).length;
    $('set-count').replaceChildren(...(n === 0 ? ['Fields are options over the job file; an empty one leaves what the job says.'] :
      [n + (n === 1 ? ' option' : ' options') + ' over the job file. ', make('button', {type: 'button', id: 'clear', onclick: () => { state.options[state.command] = {}; build(); change(); }}, 'Clear')]));
  };
  const control = (option, id) => {
    const value = optionsOf(state.command)[option.name];
    let e;
    if (option.flag) {
      e = make('input', {type: 'checkbox', checked: value === true});
      e.addEventListener('change', () => settle(option, e.checked));
    } else if (option.words.length > 0) {
      e = make('select', {}, make('option', {value: ''}, ''), ...option.words.map(w => make('option', {value: w}, w)));
      e.value = value || '';
      e.addEventListener('change', () => settle(option, e.value));
    } else if (option.list) {
      e = make('textarea', {rows: 2, placeholder: option.value + ', a line each', value: value || ''});
      e.addEventListener('input', () => settle(option, e.value));
    } else {
      e = make('input', {type: 'text', value: value || '', placeholder: option.otherwise || option.value});
      e.addEventListener('input', () => settle(option, e.value.trim()));
    }
    e.id = id;
    e.title = option.doc;
    return e;
  };
  const field = (option, prefix, list) => {
    const id = prefix + option.name, e = control(option, id), wide = option.list || ['model', 'cluster', 'name', 'slo'].includes(option.name);
    if (list)
      e.setAttribute('list', list);
    const box = make('div', {className: 'field' + (wide ? ' wide' : '')}, make('label', {htmlFor: id, title: option.name + ': ' + option.doc}, shortName(option).replace(/_/g, ' ')), e);
    box.dataset.name = option.name;
    box.classList.toggle('set', option.name in optionsOf(state.command));
    return box;
  };
  const quick = ['model', 'cluster', 'framework'], needless = ['explain']; /* the page shows every setting as it is */
  const build = () => {
    const command = session.commands[state.command], often = command.often.filter(name => !quick.includes(name) && !needless.includes(name));
    const by = name => command.options.find(o => o.name === name);
    $('quick').replaceChildren(...quick.filter(by).map(name => field(by(name), 'q-', name === 'framework' ? null : 'names-' + name)));
    const framework = $('q-framework');
    if (framework && framework.tagName !== 'SELECT') {
      framework.setAttribute('list', 'names-framework');
    }
    $('often').replaceChildren(...often.filter(by).map(name => field(by(name), 'o-')));
    $('all').replaceChildren();
    if ($('every').open)
      fillAll();
    $('every-summary').textContent = 'All ' + command.options.length + ' options';
    $('document').value = state.documents[sheet(state.command)];
    $('document-label').textContent = session.file || 'Job file';
    $('document').setAttribute('aria-label', 'job file');
    drawLines({});
    countSet();
    for (const tab of $('tabs').children) {
      const mine = tab.dataset.command === state.command;
      tab.setAttribute('aria-selected', String(mine));
      tab.tabIndex = mine ? 0 : -1;
    }
    $('run').hidden = !command.aside;
    $('go').textContent = state.command === 'plan' ? 'Search' : 'Run';
    buttons();
  };
  const fillAll = () => {
    const words = $('seek').value.toLowerCase().split(/\s+/).filter(w => w), command = session.commands[state.command];
    const hit = o => words.every(w => (o.name + ' ' + o.aliases + ' ' + o.doc + ' ' + o.words.join(' ')).toLowerCase().replace(/_/g, ' ').includes(w.replace(/_/g, ' ')));
    const shown = new Set([...quick, ...needless, ...(words.length ? [] : command.often)]);
    $('all').replaceChildren(...command.options.filter(o => !shown.has(o.name) && hit(o)).map(o => field(o, 'a-')));
    if (state.answers[state.command])
      showSettings(state.command, state.answers[state.command]);
  };
  /* What the job has where a field is empty: a reader sees every value, and where it comes from. */
  const nouns = report => {
    const job = report && report.job || {}, named = {model: job.model, cluster: job.cluster, framework: job.framework, name: job};
    return Object.fromEntries(Object.entries(named).filter(([, noun]) => noun && noun.name).map(([key, noun]) => [key, noun.name]));
  };
  const showNouns = report => {
    for (const [name, value] of Object.entries(nouns(report)))
      for (const e of document.querySelectorAll('#edit [data-name="' + name + '"] input'))
        e.placeholder = value;
  };
  const showSettings = (command, answer) => {
    if (!answer.settings)
      return;
    for (const option of session.commands[command].options) {
      const setting = answer.settings[option.section + '.' + option.name];
      if (!setting)
        continue;
      for (const e of document.querySelectorAll('#edit [data-name="' + CSS.escape(option.name) + '"] :is(input, select)')) {
        if (e.tagName === 'SELECT')
          e.options[0].textContent = setting[0];
        else
          e.placeholder = setting[0];
        e.title = option.doc + '\n' + setting[0] + ', ' + setting[1];
      }
    }
  };

  /* --- what is taken away --- */
  const download = (name, type, text) => {
    const link = make('a', {href: URL.createObjectURL(new Blob([text], {type})), download: name});
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  };
  const usePlan = text => {
    state.documents.job = text;
    state.options.train = {};
    turn('train');
  };
  const buttons = () => {
    const answer = state.answers[state.command], long = session.commands[state.command].aside;
    $('save-report').disabled = !(answer && answer.page);
    $('copy-line').disabled = !answer;
    $('go').disabled = Boolean(state.run);
    $('stop').hidden = $('busy').hidden = !(state.run && long);
    document.body.setAttribute('aria-busy', String(Boolean(state.run)));
  };
  /* As it is written, with its comments; where options lie over it, the program writes it anew. */
  $('save-job').addEventListener('click', async () => {
    const one = question();
    let text = one.document;
    if (Object.keys(one.options).length > 0 && one.command !== 'serve') {
      try {
        text = (await ask('POST', '/api/job', one)).job_file;
      } catch (error) {
        return fail(error);
      }
      if (!text) {
        $('took').textContent = 'The job has faults: what is saved is what stands in the field, without the options.';
        text = one.document;
      }
    }
    download(session.file ? session.file.replace(/.*\//, '') : 'job.yaml', 'text/yaml', text);
  });
  /* The script of a report comes once, with this page. */
  $('save-report').addEventListener('click', () => {
    const page = state.answers[state.command].page, end = page.lastIndexOf('<script><\/script>') + '<script>'.length;
    download('report.html', 'text/html', page.slice(0, end) + document.querySelector('body > script').textContent + page.slice(end));
  });
  $('copy-line').addEventListener('click', async () => {
    try {
      await navigator.clipboard.writeText($('line').textContent);
      $('took').textContent = 'copied';
    } catch (e) {
      getSelection().selectAllChildren($('line'));
    }
  });

  /* --- the desk --- */
  const turn = command => {
    state.command = command;
    before = null;
    $('shown').replaceChildren();
    changed.replaceChildren();
    $('findings').replaceChildren();
    $('pulse').hidden = true;
    $('line').textContent = 'maquette ' + command;
    $('took').textContent = '';
    maq.forget();
    state.shown = null;
    document.body.classList.remove('stale');
    build();
    if (state.answers[command])
      show(command, state.answers[command], '');
    remember();
    if (!session.commands[command].aside)
      change();
    else if (!state.answers[command])
      $('took').textContent = session.commands[command].summary + '. Ctrl+Enter begins it.';
  };
  const tabs = () => {
    $('tabs').replaceChildren(...Object.keys(session.commands).map(name => {
      const tab = make('button', {type: 'button', onclick: () => turn(name)}, name);
      tab.dataset.command = name;
      tab.setAttribute('role', 'tab');
      tab.setAttribute('aria-controls', 'answer');
      return tab;
    }));
    $('tabs').addEventListener('keydown', event => {
      const all = [...$('tabs').children], by = {ArrowRight: 1, ArrowLeft: -1}[event.key];
      if (!by)
        return;
      const next = all[(all.indexOf(document.activeElement) + by + all.length) % all.length];
      turn(next.dataset.command);
      next.focus();
    });
  };
  const names = (id, list) => $(id).replaceChildren(...list.map(value => make('option', {value})));
  $('document').addEventListener('input', () => {
    state.documents[sheet(state.command)] = $('document').value;
    drawLines(null);
    change();
  });
  $('document').addEventListener('scroll', () => { $('lines').scrollTop = $('document').scrollTop; });
  $('edit').addEventListener('submit', event => event.preventDefault());
  $('seek').addEventListener('input', fillAll);
  $('every').addEventListener('toggle', () => $('every').open && fillAll());
  $('go').addEventListener('click', go);
  $('stop').addEventListener('click', stop);
  addEventListener('keydown', event => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      go();
    }
  });

  (async () => {
    maq.start();
    try {
      session = await ask('GET', '/api/session');
      recall();
      names('names-model', session.names.models);
      names('names-cluster', session.names.gpus.map(name => name + ':8'));
      document.body.append(make('datalist', {id: 'names-framework'}, ...session.names.frameworks.map(value => make('option', {value}))));
      tabs();
      turn(state.command);
    } catch (error) {
      fail(error);
    }
  })();
}());
