import { describe, expect, it } from 'vitest';
import { nothingSince } from './plan-routine.ts';
import { planRoutines, type RoutinesInput } from './plan-routines.ts';
import { callKey, type RoutineAnswer } from './routine-calls.ts';
import type { RoutinePath } from './routine-machine.ts';
import { chat, fork, modelOf, tool, way } from './test-support/routines.ts';

const toolFirst = modelOf('tool-first', [tool('look'), chat('say')], [way('look', 'say')]);
const booking = modelOf(
  'booking',
  [chat('people'), fork('size'), chat('time'), chat('events'), chat('confirm')],
  [way('people', 'size'), way('size', 'time', 'At most 8'), way('size', 'events', 'More than 8'), way('time', 'confirm'), way('confirm', 'end')],
);
const branching = modelOf('branching', [chat('a'), chat('b')], [way('root', 'a', 'It is urgent'), way('root', 'b', 'It is not')]);
const forkFirst = modelOf('fork-first', [fork('f'), chat('a'), chat('b')], [way('f', 'a', 'one'), way('f', 'b', 'other')]);
const forkAfter = modelOf('fork-after', [tool('look'), fork('f'), chat('a'), chat('b')], [way('look', 'f'), way('f', 'a', 'one'), way('f', 'b', 'other')]);
const tools = modelOf(
  'tools',
  [chat('ask'), tool('one'), tool('two'), tool('three'), chat('good'), chat('bad')],
  [way('ask', 'one'), way('one', 'two'), way('two', 'good', 'It worked'), way('two', 'three', 'It failed'), way('good', 'bad')],
);

const nextStep = (follow: string[] | null, isCompleted: boolean): RoutineAnswer => ({ kind: 'next-step', isCompleted, follow, rationale: '' });
const stay = nextStep([], false);
const done = nextStep([], true);
const leave = nextStep(null, false);
const to = (...follow: string[]) => nextStep(follow, true);
const backtrack = (requiresBacktracking: boolean, isSameProcess: boolean): RoutineAnswer => {
  return { kind: 'backtrack', requiresBacktracking, isSameProcess, rationale: '' };
};
const forward = backtrack(false, true);
const back = backtrack(true, true);
const anew = backtrack(true, false);
const select = (target: string, advanced: string[], next: string | null): RoutineAnswer => ({ kind: 'select-node', target, advanced, next, rationale: '' });

interface Turn extends Partial<Pick<RoutinesInput, 'displaced'>> {
  path?: RoutinePath;
  activated?: boolean;
  /** Of the passes after the first one. */
  ran?: string[][];
  answers?: RoutineAnswer[];
}

/** Gives the answers to calls as they are asked for, and returns the kinds that were asked for beside the plan. */
function turnOf(model: ReturnType<typeof modelOf>, { path = [], activated = true, ran = [], answers = [], displaced = new Set() }: Turn) {
  const { id } = model.routine;
  const passes = [new Set<string>(), ...ran.map((tools) => new Set(tools))].map((ranTools, index) => {
    return { ...nothingSince, activated: new Set(activated && index === 0 ? [id] : []), ranTools };
  });
  const given = new Map<string, RoutineAnswer>();
  const left = [...answers];
  const asked: string[][] = [];
  for (;;) {
    const plan = planRoutines({ routines: [model], paths: { [id]: path }, passes, displaced, answers: given });
    if (plan.calls.length === 0) return { plan, asked, path: plan.paths[id] ?? [], step: plan.steps[0]?.stepId ?? null };
    asked.push(plan.calls.map(({ kind, at }) => `${kind} ${at}`));
    const before = given.size;
    for (const call of plan.calls) {
      const index = left.findIndex(({ kind }) => kind === call.kind);
      const [answer] = index < 0 ? [] : left.splice(index, 1);
      if (answer !== undefined) given.set(callKey(call), answer);
    }
    if (given.size === before) return { plan, asked, path: plan.paths[id] ?? [], step: null };
  }
}

describe('a step is selected by the situation of the routine', () => {
  it('rule 31: neither activated nor live, it is asked nothing and has no path', () => {
    expect(turnOf(booking, { activated: false })).toMatchObject({ asked: [], path: [], step: null });
    expect(turnOf(booking, { activated: false, path: ['people', null] })).toMatchObject({ asked: [], path: ['people', null], step: null });
  });

  it('rule 39: of a path the newest 100 nodes are kept', () => {
    const cycle = modelOf('cycle', [chat('a'), chat('b')], [way('a', 'b'), way('b', 'a'), way('b', 'end', 'It is over')]);
    const path = Array.from({ length: 100 }, (_, index) => (index % 2 === 0 ? 'a' : 'b'));
    const after = turnOf(cycle, { path, activated: false, answers: [to('a'), forward] });
    expect([after.step, after.path.length, after.path[0], after.path.at(-1)]).toEqual(['a', 100, 'b', 'a']);
  });

  it('rule 32: a first step that only calls a tool is entered without a model call', () => {
    const { asked, path, plan } = turnOf(toolFirst, {});
    expect([asked, path, plan.steps]).toEqual([[], ['look'], [{ routineId: 'tool-first', stepId: 'look', pendingTools: ['s:look'] }]]);
  });

  it('rule 33: a tool step whose tool ran in this turn goes on along its only way, without a model call', () => {
    expect(turnOf(toolFirst, { ran: [['s:look']] })).toMatchObject({ asked: [], path: ['look', 'say'], step: 'say' });
    expect(turnOf(toolFirst, { ran: [['s:another']] })).toMatchObject({ asked: [], path: ['look'], step: 'look' });
    const { path, plan } = turnOf(tools, { path: ['ask'], ran: [['s:one']], answers: [to('one'), forward] });
    expect([path, plan.steps]).toEqual([['ask', 'one', 'two'], [{ routineId: 'tools', stepId: 'two', pendingTools: ['s:two'] }]]);
  });

  it('rule 33: with several ways on it is asked which; one without a way on ends the routine', () => {
    const turn = { path: ['ask'], ran: [['s:one'], ['s:two']], answers: [to('one'), forward] };
    expect(turnOf(tools, turn).asked).toEqual([['next-step ask', 'backtrack ask'], ['next-step two']]);
    expect(turnOf(tools, { ...turn, answers: [...turn.answers, to('good')] })).toMatchObject({ path: ['ask', 'one', 'two', 'good'], step: 'good' });
    const stays = turnOf(tools, { ...turn, answers: [...turn.answers, stay] });
    expect([stays.path, stays.plan.steps[0]?.pendingTools]).toEqual([['ask', 'one', 'two'], []]);
    const beforeFork = { path: ['look'], activated: false, ran: [['s:look']], answers: [stay, forward] };
    expect(turnOf(forkAfter, beforeFork).asked).toEqual([['next-step look', 'backtrack look'], ['next-step look']]);
    expect(turnOf(forkAfter, { ...beforeFork, answers: [stay, forward, to('f', 'a')] })).toMatchObject({ path: ['look', 'f', 'a'], step: 'a' });
    const failed = { ran: [...turn.ran, ['s:three']], answers: [...turn.answers, to('three')] };
    expect(turnOf(tools, { ...turn, ...failed })).toMatchObject({ path: ['ask', 'one', 'two', 'three', null], step: null });
  });

  it('rule 34: activated without a path it is asked from its first step on', () => {
    expect(turnOf(booking, {}).asked).toEqual([['next-step people']]);
    expect(turnOf(booking, { answers: [stay] })).toMatchObject({ path: ['people'], step: 'people' });
    expect(turnOf(booking, { answers: [to('size', 'time')] })).toMatchObject({ path: ['people', 'size', 'time'], step: 'time' });
    expect(turnOf(booking, { answers: [leave] })).toMatchObject({ path: [null], step: null });
    expect(turnOf(booking, { path: [null] }).asked).toEqual([['next-step people']]);
  });

  it('rule 34: a routine that begins with a branch is not entered before a condition holds', () => {
    for (const [model, at, first] of [
      [branching, 'root', ['a']],
      [forkFirst, 'f', ['f', 'a']],
    ] as const) {
      expect(turnOf(model, {}).asked).toEqual([[`next-step ${at}`]]);
      expect(turnOf(model, { answers: [stay] })).toMatchObject({ path: [], step: null });
      expect(turnOf(model, { answers: [to('a')] })).toMatchObject({ path: first, step: 'a' });
    }
  });

  it('rule 35: on a live path the next step and going back are asked at once', () => {
    const live = { path: ['people', 'size', 'time'], activated: false };
    expect(turnOf(booking, live).asked).toEqual([['next-step time', 'backtrack time']]);
    expect(turnOf(booking, { ...live, answers: [stay, forward] })).toMatchObject({ path: live.path, step: 'time' });
    expect(turnOf(booking, { ...live, answers: [to('confirm'), forward] })).toMatchObject({ path: [...live.path, 'confirm'], step: 'confirm' });
    expect(turnOf(booking, { ...live, answers: [leave, forward] })).toMatchObject({ path: [...live.path, null], step: null });
    expect(turnOf(booking, { ...live, answers: [forward] }).asked.at(-1)).toEqual(['next-step time']);
    expect(turnOf(booking, { ...live, answers: [to('confirm')] })).toMatchObject({ asked: [expect.anything(), ['backtrack time']], path: live.path });
  });

  it('rule 36: when it goes back, the next step is not awaited any more, and the node is selected', () => {
    const live = { path: ['people', 'size', 'time'] };
    const { asked, path, step } = turnOf(booking, { ...live, answers: [back] });
    expect([asked, path, step]).toEqual([[['next-step time', 'backtrack time'], ['select-node time']], live.path, null]);
    const answered = turnOf(booking, { ...live, answers: [back, to('confirm'), select('people', ['people'], 'events')] });
    expect(answered).toMatchObject({ path: [...live.path, 'people', 'size', 'events'], step: 'events' });
  });

  it('rule 37: a path that has ended is only asked whether it goes back: for the same the node is selected, for another thing it begins anew', () => {
    const ended = { path: ['people', 'size', 'time', null] };
    expect(turnOf(booking, ended).asked).toEqual([['backtrack time']]);
    expect(turnOf(booking, { ...ended, answers: [forward] })).toMatchObject({ path: ended.path, step: null });
    expect(turnOf(booking, { ...ended, answers: [back, select('time', [], 'time')] })).toMatchObject({ path: [...ended.path, 'time'], step: 'time' });
    expect(turnOf(booking, { ...ended, answers: [anew] }).asked).toEqual([['backtrack time'], ['next-step people']]);
    expect(turnOf(booking, { ...ended, answers: [anew, stay] })).toMatchObject({ path: [...ended.path, 'people'], step: 'people' });
    expect(turnOf(booking, { ...ended, answers: [anew, leave] })).toMatchObject({ path: ended.path, step: null });
    const live = { path: ['people', 'size', 'time'], answers: [anew, stay, stay] };
    expect(turnOf(booking, live)).toMatchObject({ path: [...live.path, null, 'people'], step: 'people' });
  });

  it('rule 40: a last step that is completed ends the routine', () => {
    const last = { path: ['people', 'size', 'time', 'confirm'] };
    expect(turnOf(booking, { ...last, answers: [done, forward] })).toMatchObject({ path: [...last.path, null], step: null });
    expect(turnOf(booking, { ...last, answers: [stay, forward] })).toMatchObject({ path: last.path, step: 'confirm' });
    expect(turnOf(booking, { path: ['people'], answers: [done, forward] })).toMatchObject({ path: ['people'], step: 'people' });
  });
});

describe('several routines', () => {
  const activating = { ...nothingSince, activated: new Set(['tool-first', 'booking']) };
  const both = { routines: [toolFirst, booking], paths: {}, passes: [activating] };
  const key = callKey({ kind: 'next-step', routineId: 'booking', pass: 1, path: [] });

  it('rule 41: each has a path and at most one step of its own', () => {
    const plan = planRoutines({ ...both, displaced: new Set(), answers: new Map([[key, stay]]) });
    expect(plan.paths).toEqual({ 'tool-first': ['look'], booking: ['people'] });
    expect(plan.steps.map(({ stepId }) => stepId)).toEqual(['look', 'people']);
    expect([...plan.active]).toEqual(['tool-first', 'booking']);
  });

  it('rule 41: one that is displaced contributes no step, and its path stays for the next turn', () => {
    const plan = planRoutines({ ...both, paths: { booking: ['people'] }, displaced: new Set(['booking']), answers: new Map() });
    expect(plan).toMatchObject({ calls: [], paths: { 'tool-first': ['look'], booking: ['people'] }, steps: [{ stepId: 'look' }] });
  });

  it('rule 41: one that a later pass activates is asked then, and no routine twice for one message', () => {
    const passes = [{ ...nothingSince, activated: new Set<string>() }, activating];
    const paths = { 'tool-first': ['look', 'say'] };
    const said = new Map<string, RoutineAnswer>([
      [callKey({ kind: 'next-step', routineId: 'tool-first', pass: 1, path: ['look', 'say'] }), stay],
      [callKey({ kind: 'backtrack', routineId: 'tool-first', pass: 1, path: ['look', 'say'] }), forward],
    ]);
    const plan = planRoutines({ ...both, paths, passes, displaced: new Set(), answers: said });
    expect(plan.calls.map(({ routineId, kind, pass }) => [routineId, kind, pass])).toEqual([['booking', 'next-step', 2]]);
  });
});
