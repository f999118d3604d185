import fc from 'fast-check';
import { expect, it } from 'vitest';
import { routine as routineSchema } from '#shared/contracts/documents/routine.ts';
import { nothingSince } from './plan-routine.ts';
import { planRoutines } from './plan-routines.ts';
import { callKey, type RoutineAnswer, type RoutineCall } from './routine-calls.ts';
import { routineItem } from './routine-items.ts';
import { MAX_PATH_NODES, type RoutinePath } from './routine-machine.ts';
import { type RoutineModel, routineModels } from './routine-model.ts';
import { checkBacktrack } from './steps/check-backtrack.ts';
import { nextStep } from './steps/next-step.ts';
import { selectNode } from './steps/select-node.ts';

const IDS = ['a', 'b', 'c', 'd', 'e', 'f', 'g'];
const condition = fc.option(fc.constantFrom('one', 'two', 'three'), { nil: null, freq: 2 });
const step = (id: string) =>
  fc.oneof(
    fc.constant({ kind: 'chat', id, chat_state: `Say ${id}.` }),
    fc.constant({ kind: 'tool', id, tool_state: [`s:${id}`] }),
    fc.constant({ kind: 'fork', id }),
  );
/** Documents that pass the check of a start; most random graphs do not. */
const routines = fc
  .integer({ min: 1, max: IDS.length })
  .chain((count) => {
    const ids = IDS.slice(0, count);
    const edge = fc.record({ from: fc.constantFrom('root', ...ids), to: fc.constantFrom(...ids, 'end'), when: condition });
    return fc.record({ steps: fc.tuple(...ids.map(step)), transitions: fc.array(edge, { maxLength: 3 * count }) });
  })
  .map((parts) => {
    const forks = new Set(parts.steps.filter(({ kind }) => kind === 'fork').map(({ id }) => id));
    const used = new Set<string>();
    const transitions = parts.transitions.filter(({ from, when }) => when !== null || (!used.has(from) && used.add(from) !== undefined));
    // Makes forks valid, and all steps reachable, more often than chance.
    const more = [...forks].flatMap((id) => ['yes', 'no'].map((when, index) => ({ from: id, to: index === 0 ? 'end' : 'a', when })));
    const reach = parts.steps.flatMap(({ id }) => (id === 'a' ? [] : [{ from: 'a', to: id, when: `to ${id}` }]));
    return routineSchema.safeParse({ id: 'r', version: 1, conditions: ['c'], steps: parts.steps, transitions: [...transitions, ...more, ...reach] });
  })
  .filter(({ success }) => success)
  .map(({ data }) => data);

/** What a model may write: JSON that fits the schema more or less, and anything else. */
const json = (value: fc.Arbitrary<object>) => value.map((one) => JSON.stringify(one));
const small = fc.oneof({ weight: 4, arbitrary: fc.integer({ min: 0, max: 8 }) }, fc.integer({ min: -3, max: 99 }));
const texts = {
  'next-step': json(
    fc.record({ rationale: fc.string(), step_completed: fc.boolean(), choice: fc.oneof(small.map(String), fc.constantFrom('none', '0', 'None', '-1')) }),
  ),
  backtrack: json(fc.record({ rationale: fc.string(), requires_backtracking: fc.boolean(), same_process: fc.boolean() })),
  'select-node': json(fc.record({ rationale: fc.string(), backtrack_to: small, advanced: fc.array(small, { maxLength: 5 }), next_step: small })),
};
const nonsense = fc.oneof(fc.string(), fc.json(), fc.constant(''), fc.constant('{'.repeat(200)));
/** As staged, for another version of the routine. */
const someIds = fc.array(fc.constantFrom('root', ...IDS, 'end', 'unknown'), { maxLength: 4 });
const someId = fc.constantFrom('root', ...IDS, 'end', 'unknown');
const stored = {
  'next-step': fc.record({ kind: fc.constant('next-step' as const), isCompleted: fc.boolean(), follow: someIds, rationale: fc.constant('') }),
  backtrack: fc.record({
    kind: fc.constant('backtrack' as const),
    requiresBacktracking: fc.boolean(),
    isSameProcess: fc.boolean(),
    rationale: fc.constant(''),
  }),
  'select-node': fc.record({ kind: fc.constant('select-node' as const), target: someId, advanced: someIds, next: someId, rationale: fc.constant('') }),
};
const steps = { 'next-step': nextStep, backtrack: checkBacktrack, 'select-node': selectNode };

const turns = fc.array(
  fc.record({
    activated: fc.boolean(),
    ran: fc.array(fc.subarray(IDS), { maxLength: 3 }),
    displaced: fc.boolean(),
    // Answers come in any order, and by the number of the call.
    replies: fc.array(fc.record({ ...texts, form: fc.integer({ max: 9, min: 0 }), nonsense, stored: fc.record(stored), late: fc.boolean() }), {
      minLength: 12,
      maxLength: 12,
    }),
  }),
  { minLength: 1, maxLength: 5 },
);
type Turn = typeof turns extends fc.Arbitrary<(infer One)[]> ? One : never;

/** A turn with the answers that could be read; an answer that never can be leaves the routine as it was. */
function pathAfter(model: RoutineModel, path: RoutinePath, { activated, ran, displaced, replies }: Turn): RoutinePath {
  const { id } = model.routine;
  const passes = [[], ...ran].map((tools) => ({
    ...nothingSince,
    activated: new Set(activated ? [id] : []),
    ranTools: new Set(tools.map((tool) => `s:${tool}`)),
  }));
  const answers = new Map<string, RoutineAnswer>();
  let used = 0;
  for (;;) {
    const plan = planRoutines({ routines: [model], paths: { [id]: path }, passes, displaced: new Set(displaced ? [id] : []), answers });
    if (plan.calls.length === 0) return plan.paths[id] ?? [];
    const before = answers.size;
    for (const call of plan.calls) {
      const reply = replies[used];
      used += 1;
      if (reply === undefined) return path;
      if (reply.late && plan.calls.length > 1) continue;
      const answer = reply.form < 2 ? reply.stored[call.kind] : answerTo(model, call, reply.form === 2 ? reply.nonsense : reply[call.kind]);
      if (answer !== null) answers.set(callKey(call), answer);
    }
    if (answers.size === before && used >= replies.length) return path;
  }
}

function answerTo(model: RoutineModel, call: RoutineCall, text: string): RoutineAnswer | null {
  const read = steps[call.kind].read({ text, toolCalls: [], finishReason: 'stop' }, routineItem(model, call));
  return read.type === 'read' ? read.answer : null;
}

/** Written against the document, not the graph that the engine makes of it. */
function problemOf({ steps: all, transitions, initial_step: initial }: RoutineModel['routine'], path: RoutinePath): string | null {
  const fromRoot = transitions.filter(({ from }) => from === 'root');
  const first = initial ?? (fromRoot.length === 0 ? all[0]?.id : undefined);
  const begins = new Set([...fromRoot.map(({ to }) => to), ...(first === undefined || fromRoot.some(({ when }) => when === null) ? [] : [first])]);
  for (const [index, id] of path.entries()) {
    const before = index === 0 ? undefined : path[index - 1];
    if (id === null) {
      if (before === null) return 'it ends twice';
      continue;
    }
    if (!all.some((one) => one.id === id)) return `${id} is no step`;
    if (path.slice(0, index).includes(id)) continue; // It went back.
    const isAllowed = before === undefined || before === null ? begins.has(id) : transitions.some(({ from, to }) => from === before && to === id);
    if (!isAllowed) return `no way from ${before ?? 'the root'} to ${id}`;
  }
  const last = path.at(-1);
  return all.find(({ id }) => id === last)?.kind === 'fork' ? 'it stands at a fork' : null;
}

it('DESIGN 5: rule 39: whatever a model answers, and in whatever order, a path is one that the graph has', () => {
  fc.assert(
    fc.property(routines, turns, (routine, all) => {
      const [model] = routineModels({ routines: [routine as RoutineModel['routine']], macros: [], variable_sets: [] }, () => null);
      if (model === undefined) throw new Error('no model');
      let path: RoutinePath = [];
      for (const turn of all) {
        const after = pathAfter(model, path, turn);
        if (turn.displaced) expect(after).toEqual(path);
        path = after;
        expect([problemOf(model.routine, path), path]).toEqual([null, path]);
        expect(path.length).toBeLessThanOrEqual(MAX_PATH_NODES);
      }
    }),
    { numRuns: 300 },
  );
});
