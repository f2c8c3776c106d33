// The ten pages: for each its controls, and the runs that it shows for their values. A run is a
// scenario of examples/ and settings, so that the command line says the same.
// SPDX-License-Identifier: MIT

const range = (id, from, to, value, step = 1, unit = '', when = undefined) =>
    ({kind: 'range', id, from, to, value, step, unit, when});
const choice = (id, options, value = options[0], when = undefined) =>
    ({kind: 'choice', id, options, value, when});
const check = (id) => ({kind: 'check', id, value: false});
const hidden = (id, value) => ({kind: 'text', id, value});

/** examples/four-stages.yaml as p stages of 1 ms forward and 2 ms backward. */
function pipelineOf(p) {
  return [
    `model.uniform.layers=${2 * p}`, `cluster.devices=${p}`, 'cluster.memory=', `plan.stages=${p}`
  ];
}

function equalStages(schedule, {p, m}, more = []) {
  return {
    title: schedule,
    settings:
        [...pipelineOf(p), `schedule.name=${schedule}`, `schedule.micro_batches=${m}`, ...more],
  };
}

/**
 * The schedules of page 9 that have several stages on each device, and whether chunks may be
 * chosen.
 */
const CHUNKED = {
  'interleaved-1f1b': true,
  'looped-bfs': true,
  'interleaved-zb': true,
  'zb-v': false,
  'v-half': false,
  'v-min': false,
  dualpipev: false,
};
const ZERO_BUBBLE = [
  'zb-h1', 'zb-h2', 'interleaved-1f1b', 'looped-bfs', 'interleaved-zb', 'zb-v', 'v-half', 'v-min',
  'dualpipev', 'dualpipe', 'chimera', 'gpipe', '1f1b'
];

/** Sixteen layers, or so many that each chunk has as many, on p devices. */
function parted(schedule, {p, m, chunks, input}) {
  const stages = !(schedule in CHUNKED) ? p : p * (CHUNKED[schedule] ? Number(chunks) : 2);
  const layers = 4 * p;
  const whole = layers / p;
  const ms = (time) => `${Number((time / whole).toFixed(6))}ms`;
  return {
    title: schedule,
    settings: [
      'schedule.file=', `schedule.name=${schedule}`, `schedule.micro_batches=${m}`,
      ...(CHUNKED[schedule] ? [`schedule.chunks=${chunks}`] : []), `cluster.devices=${p}`,
      `plan.stages=${stages}`, `model.uniform.layers=${layers}`, `model.uniform.forward=${ms(1)}`,
      `model.uniform.backward_input=${ms(input)}`, `model.uniform.backward_weight=${ms(2 - input)}`
    ],
  };
}

/** Two borders behind layers 1 to 5, the second behind the first. */
function partitionOf({first, second}) {
  return [first, second - first, 6 - second];
}

/** The border that was moved pushes the other one. */
function pushBorder(values, moved) {
  if (values.first < values.second) return;
  if (moved === 'first')
    values.second = values.first + 1;
  else
    values.first = values.second - 1;
}

/**
 * Page 8: stages without a flush, some of them on several devices; and what they are to replace.
 */
const withoutFlush = {
  equal: ({p, weights}) => ({
    title: 'pipedream',
    settings: [
      `model.uniform.layers=${p}`, `cluster.devices=${p}`, `schedule.weights=${weights}`,
      `schedule.micro_batches=${Math.max(4, p)}`, 'schedule.mini_batches=4'
    ],
  }),
  heavy: ({replicas}) => ({
    title: 'pipedream',
    settings: [`plan.replicas=[${replicas.replace('-', ',')}]`, 'schedule.mini_batches=2'],
  }),
  stalls: ({mib}) => ({
    title: 'stalls',
    settings: [
      'plan={}', 'schedule.name=data-parallel', 'schedule.micro_batches=1',
      `model.layers.3.parameters=${mib}MiB`, 'model.layers.4.parameters=4MiB'
    ],
  }),
};

function hybridPlan({copies, together}) {
  const d = Number(copies);
  if (together)
    return [
      `cluster.devices=${Math.max(2 * d, 4)}`, `plan.data_parallel=${d}`, 'plan.devices=[[0],[0]]'
    ];
  if (d === 1) return ['plan.data_parallel=1', 'plan.devices=[[0],[2]]'];
  return [`cluster.devices=${2 * d}`, `plan.data_parallel=${d}`];
}

/** Of a group that shares experts, the key counts the samples of all its micro-batches. */
function samplesOfGroup({model, mbs, ep, tp, cp}) {
  return model === 'mixtral-8x7b' ? mbs * Math.max(1, ep / (tp * cp)) : mbs;
}

const FIXED = {
  mini_batch: ['training.mini_batch_size=64'],
  micro_batch: ['training.mini_batch_size=', 'training.micro_batch_size=16'],
};

export const PAGES = [
  {
    id: 'naive',
    example: 'four-stages',
    controls: [range('p', 2, 8, 4), range('m', 1, 16, 4), range('ratio', 1, 3, 2, 0.5)],
    runs: (v) => [equalStages('naive', v, [`model.uniform.backward=${v.ratio / 2}ms`])],
    columns: ['busy', 'idle', 'bubble'],
  },
  {
    id: 'fill',
    example: 'four-stages',
    controls: [
      choice('schedule', ['naive', 'gpipe'], 'gpipe'), range('p', 2, 8, 4), range('m', 1, 64, 4)
    ],
    runs: (v) => [equalStages(v.schedule, v)],
    columns: ['busy', 'idle', 'bubble'],
    showsOverhead: true,
  },
  {
    id: 'one_f_one_b',
    example: 'four-stages',
    controls: [range('p', 2, 8, 4), range('m', 1, 32, 8)],
    runs: (v) => ['gpipe', '1f1b'].map((schedule) => equalStages(schedule, v)),
    columns: ['bubble', 'in_flight', 'memory'],
    opensTable: true,
  },
  {
    id: 'loop',
    example: 'delayed-backward',
    controls: [
      choice('schedule', ['delayed-backward', '1f1b', 'gpipe', 'naive', 'own']),
      range('m', 2, 8, 4, 1, '', (v) => v.schedule !== 'own'), hidden('order', '')
    ],
    runs: (v) => [{
      title: v.schedule,
      order: v.schedule === 'own' ? v.order : null,
      settings: v.schedule === 'own' ?
          ['schedule.file=order.csv', 'schedule.micro_batches='] :
          [`schedule.name=${v.schedule}`, `schedule.micro_batches=${v.m}`],
    }],
    columns: ['busy', 'idle', 'bubble', 'in_flight'],
    extra: 'editor',
  },
  {
    id: 'parts',
    example: 'practical-a',
    controls: [
      choice('schedule', ['naive', 'gpipe', 'delayed-backward', '1f1b'], 'gpipe'),
      choice('m', ['1', '2', '4', '8', '16', '32'], '4'), range('cost', 0, 3, 0.5, 0.25, ' ms'),
      choice('fixed', ['mini_batch', 'micro_batch'])
    ],
    runs: (v) => [{
      title: v.schedule,
      settings: [
        `schedule.name=${v.schedule}`, `schedule.micro_batches=${v.m}`,
        `overhead.per_op=${v.cost}ms`, ...FIXED[v.fixed]
      ],
    }],
    /** The practical's table: the same scenario with three options and three numbers of parts. */
    practical: (v) =>
        ['schedule.name=naive,gpipe,delayed-backward', 'schedule.micro_batches=2,4,8',
         `overhead.per_op=${v.cost}ms`, ...FIXED[v.fixed]],
    columns: ['busy', 'idle', 'bubble', 'in_flight', 'memory'],
    extra: 'practical',
  },
  {
    id: 'uneven',
    example: 'uneven-stages',
    controls: [
      choice('schedule', ['gpipe', '1f1b', 'eager-1f1b']), range('m', 1, 16, 8),
      range('first', 1, 4, 2), range('second', 2, 5, 4), range('latency', 0, 2, 0, 0.25, ' ms')
    ],
    runs: (v) => [{
      title: v.schedule,
      settings: [
        `plan.partition=[${partitionOf(v)}]`, `schedule.name=${v.schedule}`,
        `schedule.micro_batches=${v.m}`, `cluster.link.latency=${v.latency}ms`
      ],
    }],
    settle: pushBorder,
    columns: ['busy', 'idle', 'bubble', 'in_flight'],
  },
  {
    id: 'hybrid',
    example: 'practical-10',
    controls: [
      choice('copies', ['1', '2', '4'], '2'), choice('batch', ['32', '64', '128'], '64'),
      choice('m', ['2', '4', '8'], '4'), range('bandwidth', 1000, 16000, 8000, 1000, ' MiB/s'),
      check('together')
    ],
    runs: (v) => [{
      title: 'gpipe',
      settings: [
        ...hybridPlan(v), `training.mini_batch_size=${v.batch}`, `schedule.micro_batches=${v.m}`,
        `cluster.link.bandwidth=${v.bandwidth}MiB/s`
      ],
    }],
    columns: ['stages', 'busy', 'idle', 'bubble'],
    ranks: (v) => Number(v.copies),
    extra: 'ranks',
  },
  {
    id: 'pipedream',
    example: (v) => ({equal: 'pipedream-async', heavy: 'replicas', stalls: 'planned'})[v.view],
    controls: [
      choice('view', ['equal', 'heavy', 'stalls']),
      range('p', 2, 6, 4, 1, '', (v) => v.view === 'equal'),
      range('mib', 4, 400, 400, 4, ' MiB', (v) => v.view === 'stalls'),
      choice(
          'weights', ['stash', 'vertical-sync', 'two', 'none'], 'stash', (v) => v.view === 'equal'),
      choice('replicas', ['1-1', '2-1', '3-1', '2-2', '1-3'], '3-1', (v) => v.view === 'heavy')
    ],
    runs: (v) => [withoutFlush[v.view](v)],
    columns: ['stages', 'bubble', 'in_flight', 'versions', 'memory'],
    extra: 'lecture',
    tellsStaleness: true,
  },
  {
    id: 'zero_bubble',
    example: 'zero-bubble',
    controls: [
      choice('schedule', ZERO_BUBBLE), range('p', 2, 8, 4, 2), range('m', 2, 24, 8, 2),
      choice('chunks', ['2', '4'], '2', (v) => CHUNKED[v.schedule] === true),
      range('input', 0.5, 1.5, 1, 0.25, ' ms')
    ],
    runs: (v) => ['1f1b', v.schedule].map((schedule) => parted(schedule, v)),
    columns: ['bubble', 'in_flight', 'weights', 'memory'],
  },
  {
    id: 'engineers',
    example: 'layouts',
    controls: [
      choice('model', ['llama-70b', 'mixtral-8x7b']),
      choice('preset', ['h100-sxm', 'h200-sxm', 'b200-sxm', 'a100-sxm-80gb']),
      choice('gpus', ['32', '64', '128', '256', '512'], '128'),
      choice('tp', ['1', '2', '4', '8'], '8'), choice('cp', ['1', '2', '4']),
      choice('pp', ['1', '2', '4', '8'], '4'),
      choice('ep', ['1', '2', '4', '8'], '1', (v) => v.model === 'mixtral-8x7b'),
      choice('vp', ['1', '2', '4']), choice('mbs', ['1', '2', '4']),
      choice('recompute', ['none', 'selective', 'full']), range('price', 1, 6, 2.5, 0.25, ' USD'),
      choice('tokens', ['1T', '5T', '15T'])
    ],
    runs: (v) => [{
      title: v.model,
      settings: [
        `model.huggingface=examples/configs/${v.model}.json`, `cluster.device.preset=${v.preset}`,
        `cluster.gpus=${v.gpus}`, `model.tensor_parallel=${v.tp}`,
        `model.sequence_parallel=${v.tp !== '1'}`, `model.context_parallel=${v.cp}`,
        ...(v.model === 'mixtral-8x7b' ? [`model.expert_parallel=${v.ep}`] : []),
        `plan.stages=${v.pp * v.vp}`,
        ...(v.vp === '1' ? ['schedule.name=1f1b'] :
                           ['schedule.name=interleaved-1f1b', `schedule.chunks=${v.vp}`]),
        `training.micro_batch_size=${samplesOfGroup(v)}`, `schedule.recompute=${v.recompute}`,
        'schedule.recompute_layers=', `cluster.price=${v.price}USD/h`, `training.tokens=${v.tokens}`
      ],
    }],
    columns: ['stages', 'busy', 'idle', 'bubble', 'in_flight', 'memory'],
    extra: 'cards',
  },
];

/** The example of a page, without folder and ending. */
export function exampleOf(page, values) {
  return typeof page.example === 'string' ? page.example : page.example(values);
}

/** The files that the pages need, by their paths in the repository. */
export function filesOfPages(pages) {
  const names = pages.flatMap(
      ({example, controls}) => typeof example === 'string' ?
          [example] :
          controls.find(({id}) => id === 'view').options.map((view) => example({view})));
  const models =
      pages.find(({id}) => id === 'engineers').controls.find(({id}) => id === 'model').options;
  return [
    ...new Set(names.map((name) => `examples/${name}.yaml`)),
    ...models.map((model) => `examples/configs/${model}.json`)
  ];
}
