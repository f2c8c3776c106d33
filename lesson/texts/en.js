// The texts of the lesson in English. A translation has the same keys; what it lacks is shown in
// English. {name} is filled in; `code` and *stress* are the only marks. SPDX-License-Identifier:
// MIT
export const en =
    {
      language: 'English',
      shell: {
        title: 'Pipeline parallelism, a lesson',
        pages: 'Pages',
        previous: 'Back',
        next: 'Next',
        language: 'Language',
        theme: 'Appearance',
        themes: {auto: 'as the system', light: 'light', dark: 'dark'},
        critical: 'Critical path',
        transfers: 'Transfers',
        save_svg: 'Save as SVG',
        save_png: 'Save as PNG',
        whole: 'Whole run',
        numbers: 'The same in numbers',
        command: 'The same on your machine',
        copy: 'Copy',
        copied: 'Copied',
        look: 'Try this',
        course: 'Questions of the course',
        not_translated: 'Some of this page is not translated, and stands in English.',
        starting: 'The engine starts ...',
        no_engine:
            'This page needs plumbline_engine.js beside it: scripts/wasm makes both in build/wasm/lesson.',
        keys: 'W and S zoom, A and D move, arrow keys go from op to op, 0 shows the whole run.',
      },
      result: {
        formula: 'By formula',
        simulated: 'Simulated',
        overhead: 'Idle time / busy time',
        none: 'Equal stages, free links',
        equal: 'equal',
        from: 'from {formula}',
        because: 'The difference, term by term: {terms}.',
        points: '{name} {points} points',
        slowest: 'Stage {stage} takes {percent} % more than the mean.',
        iteration: 'Iteration',
        period: 'A micro-batch, in the steady state',
        steady: 'read in the steady state',
        peak: 'Most memory of a GPU',
        in_flight: 'Most in flight',
        stalls: 'Waiting for links, of all time',
      },
      terms: {
        uneven_stages: 'uneven stages',
        uneven_passes: 'other ratios of forward to backward',
        uneven_slices: 'uneven slices',
        transfers: 'transfers',
        collectives: 'all-reduces',
        updates: 'updates',
        overhead: 'overhead',
        pairs: 'pairs that overlap',
        changing_rates: 'shared network cards and neighbours',
        blocking: 'blocking transfers',
        measured: 'measured times',
      },
      causes: {
        fill: 'filling',
        drain: 'draining',
        dependency: 'waiting for an input',
        transfer: 'waiting for a link',
        all_reduce: 'waiting for an all-reduce',
        rendezvous: 'waiting for the other end of a transfer',
        update: 'waiting for updates of others',
        overhead: 'time between ops',
      },
      table: {
        caption: 'Each GPU: {name}',
        device: 'GPU',
        stages: 'stages',
        busy: 'busy',
        idle: 'idle',
        bubble: 'bubble',
        in_flight: 'in flight',
        versions: 'versions',
        memory: 'peak memory',
        weights: 'weights',
      },
      sentence: '{name}: {who} run {ops} ops in {time}. {bubble} of their time is idle: {causes}.',
      who: '{devices} GPUs',
      groups: '{devices} groups of {size} GPUs',
      no_idle: 'nothing',
      gpu: 'GPU {number}',
      group: 'group {number}',
      rank: 'rank {rank}, GPU {number}',
      controls: {
        p: 'GPUs, p',
        m: 'Micro-batches, m',
        ratio: 'Backward : forward',
        schedule: 'Schedule',
        cost: 'Fixed cost of an op',
        fixed: 'What stays',
        first: 'Layers of stage 0',
        second: 'Layers of stages 0 and 1 together',
        latency: 'Latency of a link',
        copies: 'Ranks',
        batch: 'Samples of a mini-batch',
        bandwidth: 'Bandwidth of a link',
        together: 'Both stages of a rank on its first GPU',
        view: 'What runs',
        mib: 'Weights of one layer',
        weights: 'Versions of weights',
        replicas: 'GPUs of each stage',
        chunks: 'Stages of each GPU',
        input: 'Backward for the input, of 2 ms',
        model: 'Model',
        preset: 'GPU',
        gpus: 'GPUs',
        tp: 'Tensor parallel, TP',
        cp: 'Context parallel, CP',
        pp: 'Pipeline stages, PP',
        ep: 'Expert parallel, EP',
        vp: 'Stages of each GPU, VP',
        mbs: 'Samples of a micro-batch',
        recompute: 'Recompute activations',
        price: 'Price of a GPU hour',
        tokens: 'Tokens of the training',
      },
      options: {
        naive: 'naive (A)',
        gpipe: 'GPipe (B)',
        'delayed-backward': 'the loop (C)',
        '1f1b': '1F1B',
        own: 'my own order',
        mini_batch: 'the mini-batch: 64 samples',
        micro_batch: 'the micro-batch: 16 samples',
        equal: 'equal stages',
        heavy: 'a heavy first stage',
        stalls: 'data parallelism on 8 GPUs',
        stash: 'stash: a backward has the weights of its forward',
        'vertical-sync': 'vertical sync: the same version on all stages',
        two: '2BW: two versions',
        none: 'none',
        full: 'all',
        selective: 'selected ones',
      },
      editor: {
        title: 'The order of each GPU',
        help:
            'Type the ops, or drag them. With the keyboard: go to an op, and move it with Alt and an arrow key.',
        lane: 'Ops of GPU {number}',
        moved: '{op} is number {place} of GPU {number} now.',
        circle: 'No op can run: this is a deadlock. {waits}',
        waits: 'GPU {number} is at {op}, which waits for {other}.',
        wrong: 'The engine refuses this order:',
        hint:
            'An op is F or B and the number of a micro-batch, such as F0. Each GPU has each of them once.',
        empty: 'GPU {number} has no op.',
      },
      practical: {
        caption: 'The practical\'s table: the iteration time of A, B and C',
        option: 'option',
        parts: '{m} micro-batches',
      },
      staleness: {updates: 'Updates before it', since: 'Updates since its forward'},
      lecture: {
        caption:
            'The lecture\'s table, from PipeDream\'s paper: best plan, and speed-up over data parallelism',
        model: 'model',
        bytes: 'weights',
      },
      rank_of_one:
          'Rank {rank} has GPU {gpus} alone, and runs {forwards} forwards, {m} on each stage, and as many backwards.',
      ranks:
          'Rank {rank} has the GPUs {gpus}, and runs {forwards} forwards, {m} on each stage, and as many backwards.',
      idle_gpus: 'GPUs without work: {gpus}.',
      cards: {
        tokens: 'tokens per second',
        tokens_per_gpu: 'tokens per second and GPU',
        days: 'days',
        cost: 'cost',
        mfu: 'of the peak (MFU)',
        iteration: 'iteration',
        memory: 'Memory of each stage, by what it holds',
        limit: 'limit',
        fits: 'It fits.',
        does_not_fit: 'It does not fit.',
        launch:
            'The same layout for a launcher: Megatron-LM here, or nemo, torchtitan, nanotron, deepspeed',
        divide: 'TP x CP x PP = {product} must divide {gpus} GPUs.',
        stage: 'stage',
      },
      quiz: {
        title: 'Quiz',
        student: 'Student number',
        student_help:
            'Your number gives you figures of your own. Without one you have those of the course.',
        check: 'Check',
        right: 'Right.',
        wrong: 'Not right.',
        tries: 'Tries: {tries}',
        show: 'Show that run',
        from_editor: 'Take the order from the editor',
        code: 'Result code',
        code_help:
            'For your homework. It holds your answers; `plumbline grade CODE` checks them again.',
        answer: 'Your answer',
        empty: 'There is no answer yet.',
        again: 'Try again. From the second try on the engine tells what it gets.',
        score: '{right} of {all} right',
        shown: 'The run of this answer',
      },
      pages: {
        naive: {
          title: 'One GPU at a time',
          lead: [
            'A model is too large for one GPU. So it is cut into *stages*, one on each of p GPUs. A *mini-batch* is cut into m *micro-batches*. F is a forward of one stage, B a backward.',
            'In the *naive* order a micro-batch goes through all stages and back before the next one begins. One GPU works, and the others wait. Red and hatched is idle time: the *bubble*.',
            'The *bubble fraction* is idle time / (GPUs x time). Here it is (p-1)/p, whatever m is.',
          ],
          look: [
            'Move m. The picture gets longer, the share of red stays.',
            'Move p. Each further GPU holds a further stage, so the model gets longer, and so does the run. The busy time of a GPU stays; the idle share grows to (p-1)/p.',
            'Point at red time: it tells what the GPU waits for.',
          ],
          course: [
            [
              1, 'Do the GPUs of option A work at the same time?',
              'No. Where one row has an op, all others are idle. p GPUs are as fast as one.'
            ],
            [
              2, 'Where is idle time to be expected?',
              'On each GPU while the micro-batch is on another one: before its first F, between its F and its B, and after its B.'
            ],
            [
              15, 'What is a bubble, when does it occur, and why does it cost?',
              'Time in which a GPU has nothing to do. It occurs while a pipeline fills and drains, and where an op waits for another GPU. It costs, because the GPU is paid for and does no work.'
            ],
            [
              null, 'Why is A no pipeline parallelism?',
              'The stages never work at the same time. A pipeline begins when a stage takes the next micro-batch while another one still has the last.'
            ],
          ],
        },
        fill: {
          title: 'Fill and drain',
          lead: [
            '*GPipe* runs all forwards first, then all backwards. So a GPU takes the next micro-batch while the next GPU still works on the last one.',
            'Idle time stays in three places. Before: the pipeline *fills*, and GPU p-1 waits for its first input. In the middle: GPU 0 has run its forwards, and waits for the first gradient of GPU 1. After: the pipeline *drains*. On each GPU they add up to the time of p-1 micro-batches, of m+p-1 in all: (p-1)/(m+p-1).',
            'Two numbers are called the bubble. Idle time / all time is (p-1)/(m+p-1). Idle time / busy time is (p-1)/m. With 4 stages and 16 micro-batches the first is 15.79 %, the second 18.75 %. Both are right. The efficiency that belongs to the first is 84.21 %.',
          ],
          look: [
            'Go from naive to GPipe. The same ops take less time.',
            'Double m. The idle time of a GPU stays as long as p-1 micro-batches; the rest gets longer.',
            'Move p with m = 16. Deep pipelines need many micro-batches.',
          ],
          course: [
            [
              3, 'What is different in option B?',
              'All forwards run, then all backwards. A new micro-batch enters GPU 0 while GPU 1 still has the one before.'
            ],
            [
              4, 'Why are forward and backward parted?',
              'The first backward of GPU 0 must wait for GPU 1. The forwards of other micro-batches wait for nobody. B puts them there.'
            ],
            [
              5, 'Are the bubbles gone then?',
              'No, they are smaller: (p-1)/(m+p-1) in place of (p-1)/p.'
            ],
            [
              38, 'The handbook: which bubble do 4 stages and 16 micro-batches have?',
              '3/19 = 15.79 % of all time, and 84.21 % efficiency. The chapter\'s function returns 3/16 = 18.75 %: that is idle time / busy time. 1 - 0.1875 is no efficiency, for it mixes two denominators.'
            ],
            [
              null, 'The handbook: how do I make a reproducible record?',
              'Give the command on this page `--record run.json`. It notes the version, the inputs and the output. `plumbline check --record run.json` runs it again and says what differs.'
            ],
            [
              null, 'What is the main limit of GPipe?',
              'Memory. It holds the activations of all m micro-batches until their backwards. So m cannot grow as the bubble wants it.'
            ],
          ],
        },
        one_f_one_b: {
          title: '1F1B: the same bubble, less memory',
          lead: [
            '*1F1B* runs a few forwards, then one backward and one forward in turn. Position s of p begins with p-s forwards, so that its first backward comes as early as it can.',
            'Both pictures have one axis of time. With equal stages and free links both end at the same time, and the bubble is the same: (p-1)/(m+p-1).',
            'The difference is below: how many micro-batches are *in flight*, which is how many activations a GPU holds. GPipe holds m, 1F1B holds min(m, p-s).',
          ],
          look: [
            'Move m. The memory of GPipe grows, that of 1F1B stays from m = p on.',
            'Compare the causes of idle time: the sums are the same. 1F1B waits at other places.',
          ],
          course: [
            [
              7, 'What tells option C from GPipe?',
              'C runs a backward between forwards. So it holds two micro-batches, GPipe all. It is slower; page 4 shows why.'
            ],
            [
              8, 'Why is 1F1B said to be more efficient?',
              'Against the naive order it idles less. Against GPipe it does not, where stages are equal. It needs less memory, and with that room more micro-batches fit. They make the bubble smaller.'
            ],
            [
              16, 'Why is 1F1B more efficient than GPipe, by overlap and idle time?',
              'Its backwards begin early and overlap with later forwards. But the idle time is the same in sum. The gain is memory. If your answer says "less idle time than GPipe", add "with more micro-batches".'
            ],
            [
              null, 'Which one to use at scale?',
              '1F1B or one of its successors (page 9): the memory of GPipe grows with m, and at scale m is large.'
            ],
          ],
        },
        loop: {
          title: 'The loop that looks like 1F1B',
          lead: [
            'The course\'s option C is one loop on one host: forward of micro-batch i on both GPUs, then, if i > 0, backward of i-1. Both GPUs get the same list of ops. 1F1B gives each GPU a list of its own.',
            'With the same list, GPU 1 has to run F1 before B0. GPU 0 waits for that B0 before it can run F2. So almost nothing overlaps.',
            'Below is the order of each GPU. Change it. The engine runs what you make.',
          ],
          look: [
            'Take the loop, and compare with 1F1B: which ops of GPU 1 are at another place?',
            'Put `B0` of GPU 1 before its `F1`, in the loop. What happens to the time? Then do so with each B of GPU 1.',
            'Put `B1` before `B0` on one GPU, and `F0` behind `F1` on the other. Find an order that never ends.',
          ],
          course: [
            [
              6, 'When does the first backward begin in C?',
              'As the third op of the list: after F1, before F2. Option B waits for all forwards.'
            ],
            [
              11, 'Why is the backward a step late?',
              'The loop first launches the forward of i, so that GPUs have work, and then the backward of the one before, whose output is there.'
            ],
            [
              12, 'What if the condition i > 0 goes?',
              'In the first turn i - 1 is -1. In Python that is the last of the list: the micro-batch that has just run. Its backward would run in the first turn, and again in the second.'
            ],
            [
              13, 'What happens to the overlap then?',
              'In the first turn there is none: B0 comes right behind F0. In the second turn PyTorch raises an error, because the graph of micro-batch 0 is freed.'
            ],
            [
              17, 'Complete the function.',
              '`for i in range(m): forward(i); if i > 0: backward(i - 1)`, and behind the loop `backward(m - 1)`. Outputs and targets are stored, one of each for a micro-batch.'
            ],
            [
              18, 'Why i-1 and not i?',
              'The backward of i right behind its forward is the naive order: GPU 0 would wait for it.'
            ],
            [
              19, 'What happens without the condition?',
              'As in question 12: micro-batch 0 has two backwards, and the second one raises.'
            ],
            [
              20, 'What does that do to efficiency?',
              'Nothing can be measured, for the step does not end. If the graph were kept, one backward more would run, and its gradient would count twice.'
            ],
            [
              21, 'Which sequence do prints of F{i} and B{i-1} show, with 4 micro-batches?',
              'F0 F1 B0 F2 B1 F3 B2. B3 is behind the loop, which prints nothing.'
            ],
            [
              22,
              'Where does backward begin to overlap with forward, and why would that be better than GPipe?',
              'In the list, from B0 on, which stands between F1 and F2. But on the GPUs no forward overlaps with a backward: while GPU 0 runs B0, GPU 1 has nothing to do, because F2 comes behind B0 on GPU 0. In 1F1B they do overlap (page 3). The gain over GPipe is memory, not idle time.'
            ],
          ],
        },
        parts: {
          title: 'Do more micro-batches always help?',
          lead: [
            'A mini-batch of 64 samples is cut into m parts. More parts, smaller bubble. But starting an op costs something, however small the op is: a kernel launch, a Python call.',
            'So there is a best m. Below it the bubble costs more, above it the starts do. The update at the end has a fixed cost, too.',
            'The table is the practical\'s: options A, B, C with 2, 4 and 8 micro-batches, for the costs that you set.',
          ],
          look: [
            'Set the fixed cost to 0. More parts always help in B.',
            'Set it to 1 ms, then to 3 ms. Which m is the best for B each time?',
            'Hold the micro-batch in place of the mini-batch. Then more micro-batches are more work, too.',
          ],
          course: [
            [
              9, 'Do more micro-batches always help?',
              'No. The bubble gets smaller, but each op costs its start. In option C they even hurt, from 2 on, for almost nothing overlaps.'
            ],
            [
              10, 'Which option gains most from more micro-batches?',
              'B. A gains nothing: its bubble is (p-1)/p whatever m is, and each part adds starts. See the table.'
            ],
            [
              14, 'A, B and C in your own words: order, utilisation, efficiency.',
              'A: F0 B0 F1 B1; one GPU at a time; slowest, least memory. B: all F, then all B; busiest; fastest, most memory. C: F0 F1 B0 F2 B1; a little busier than A; between them in both.'
            ],
          ],
        },
        uneven:
            {
              title: 'Uneven stages, slow links',
              lead:
                  [
                    'The formula holds for equal stages and free links. Real layers differ, and links take time. Then the formula loses its tick, and the lines below the picture say why.',
                    'Here six layers stand on three GPUs. The first layer takes half as long as each of the four behind it, the last one three times as long. Move the borders of the stages. The slowest stage sets the pace: the others wait for it in every micro-batch.',
                    'Latency is paid in the fill and in the drain. Strict 1F1B pays it in the middle, too, where a GPU waits for a gradient on its way. Eager 1F1B begins with more forwards. It hides the latency, and holds more micro-batches in flight.',
                  ],
              look: [
                'Find the borders with the smallest bubble. Two choices are equally good.',
                'Give stage 0 two layers, stages 0 and 1 together five, set the latency to 1 ms, and compare GPipe with 1F1B. Where one stage is very slow, it hides the latency.',
              ],
              course: [
                [
                  35, 'Why must stages be balanced?',
                  'Each micro-batch passes each stage, so the slowest stage sets the pace. A better order of ops does not help. A better cut does, or more GPUs for that stage.'
                ],
              ],
            },
        hybrid: {
          title: 'Hybrid: copies of a pipeline',
          lead: [
            'Practical 10: `torchrun` starts some processes, the *ranks*. Rank r has two stages on two GPUs of its own. Each rank runs its share of the mini-batch through its pipeline.',
            'At the end the ranks average their gradients, stage by stage: an *all-reduce*. It is the idle time at the end, in which GPUs send and receive. It depends on the bytes of the gradients, on the links and on the number of ranks, not on the batch.',
          ],
          look: [
            'Double the batch. The work grows, the all-reduce stays.',
            'Slow the links down. When is one rank faster for each sample?',
            'Put both stages of a rank on its first GPU.',
          ],
          course: [
            [
              23, 'How many processes are started?',
              'Two, one for each copy of the pipeline: `--nproc_per_node=2`.'
            ],
            [
              24, 'Which GPUs has each rank?',
              'Rank r has r and r + 2: rank 0 the GPUs 0 and 2, rank 1 the GPUs 1 and 3.'
            ],
            [
              25, 'How many micro-batches are there?',
              'As many as m says in each rank, each of different samples.'
            ],
            [
              26, 'When do ranks synchronise?',
              'Once, behind the last backward, in the all-reduce. Until then they do not know of each other.'
            ],
            [
              27, 'What changes with 2 and with 8 micro-batches?',
              'The parts are larger or smaller, and so is the bubble. The all-reduce stays. The program prints fewer or more lines of the same pattern.'
            ],
            [
              28, 'How many forwards and backwards are there?',
              'On each stage of each rank one F and one B for each micro-batch. The line under the picture counts them.'
            ],
            [
              29, 'Does the pattern change with 32 or 128 samples?',
              'No. The schedule and m decide the order. The ops get shorter or longer.'
            ],
            [
              30, 'What stays the same?',
              'The number of ops and their order, the GPUs, and the bytes of the all-reduce: gradients are as large as the weights.'
            ],
            [
              31, 'What becomes of rank 1 with one process?',
              'It does not exist. Its GPUs 1 and 3 have nothing to do, and rank 0 runs all samples.'
            ],
            [
              32, 'Does anything still synchronise?',
              'No all-reduce. The two GPUs of the rank still wait for each other\'s activations and gradients.'
            ],
            [
              33, 'What changes if the second device is the first?',
              'The results stay, the pipeline is gone: the GPU runs all ops of both stages one after the other, and holds the whole model.'
            ],
            [
              34, 'Are several GPUs still used?',
              'With two processes yes, one each: plain data parallelism. With one process no.'
            ],
          ],
        },
        pipedream: {
          title: 'PipeDream: no flush, old weights',
          lead: [
            'GPipe and 1F1B end each mini-batch with a *flush*: the pipeline runs empty, then the weights are updated. *PipeDream* never flushes. Each backward is followed by an update. In the steady state only uneven stages and links make GPUs idle.',
            'The price: between the forward and the backward of a micro-batch the weights are updated. *Weight stashing* keeps the version of the forward for its backward. Stage s of p has p-s micro-batches in flight, and so p-s versions. Its gradients are *stale* by as many updates, less one.',
            'A stage may stand on several GPUs, which take micro-batches in turn and average their gradients: *replicas*.',
          ],
          look: [
            'Count the versions in the table below. Then choose vertical sync, and 2BW.',
            'Choose a backward in the timeline: it tells how many updates came since its forward. By so many its gradient is stale.',
            'Take the heavy first stage: 9 ms of work on three GPUs has a period of 3 ms. A micro-batch goes forward and backward on the same replica. What do other replicas give?',
            'Take data parallelism, and make the weights large: that is the share of time which PipeDream wants to save.',
          ],
          course: [
            [
              36, 'Is the memory overhead similar to data parallelism\'s?',
              'About. The first stage keeps p versions, each a p-th of the model: together one whole model, as data parallelism has on each GPU. Later stages keep less. Vertical sync keeps p versions everywhere.'
            ],
            [
              37, 'Two takeaways from the lecture\'s table?',
              'The model decides: ResNet-50 (97 MB) is best as plain data parallelism, 16 GPUs, 1x. VGG-16 (528 MB) is best as 15-1: 5.28x on 4x4, 2.98x on 2x8. The network decides, too: GNMT-8 (1.1 GB) gains 2.95x as a straight pipeline on 3x4, and nothing on 2x8, where it is 16, 1x.'
            ],
            [
              null, 'How many micro-batches are active?',
              'About the number of GPUs / the replicas of the first stage. The tables show them as in flight.'
            ],
            [
              null, 'How does PipeDream choose its stages?',
              'It profiles each layer: forward, backward, bytes of activations and of weights. Dynamic programming cuts the layers inside a server, then across servers, and may replicate stages. `plumbline plan` does it.'
            ],
          ],
        },
        zero_bubble: {
          title: 'Zero bubble, interleaved, DualPipe',
          lead: [
            'A backward has two parts: I, the gradient of the input, which the stage before waits for; and W, the gradient of the weights, which nobody waits for. *Zero-bubble* schedules run W where a GPU would idle.',
            '*Interleaved* schedules give each GPU several shorter stages. The pipeline fills faster, and more transfers are paid.',
            '*DualPipe* and *Chimera* run two pipelines in opposite directions. Each GPU then holds two stages: the weights stand in memory twice. DualPipe needs at least 2p micro-batches.',
            'Above is 1F1B, below the schedule that you choose, on one axis of time.',
          ],
          look: [
            'Look at zb-h1: W fills gaps. The GPU with most memory needs hardly more; the later ones hold as much as the first. Then look at zb-h2: it needs more memory.',
            'Make I longer than W: gaps come back.',
            'Compare the weights in the tables of zb-v and dualpipe.',
          ],
          course: [],
        },
        engineers: {
          title: 'One model, N GPUs',
          lead: [
            'For engineers: a model, a cluster, a layout. Times of kernels come from tables and a model of the GPU; nothing was measured here.',
            'The layout must divide the GPUs: TP x CP x PP, and the rest is data parallel.',
          ],
          look: [
            'Find a layout that fits, with the least days.',
            'Recompute all activations: how much memory does it free, and how many days does it cost?',
          ],
          course: [],
        },
      },
    };
