import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ClusterProcess, Role } from '../../../scripts/servers/start-cluster.mjs';
import { eventually } from '../../helpers/eventually.ts';
import { inParallel } from '../../helpers/in-parallel.ts';
import { tier } from '../../helpers/tier.ts';
import { seededRandom } from '../seeded-random.ts';
import { type EngineEnvironment, openEngineEnvironment, type StoredTurn } from './engine-environment.ts';
import { type Phase, phases } from './phases.ts';
import type { AskedCall } from './phases-model.ts';

/** The death of a worker is noticed after 15 s, that of a host after 5 s; each turn then goes on. */
const TIMEOUT_MS = 120_000;
const CASE_MS = 400_000;
const AT_ONCE = 8;
const NO_PHASE = 'none';
/** Until a worker dies with the result of a search. */
const MAX_ROUNDS = 4;
/** Sessions in each phase. */
const SESSIONS = tier === 'deep' || process.env.CHAOS_SEED !== undefined ? 4 : 1;
const random = seededRandom(Number(process.env.CHAOS_SEED ?? 1));

interface Victim {
  role: Role;
  /** What such a process executes itself: a call of these that is in flight may be made once more. */
  repeats: readonly Phase[];
}

const ofModels: readonly Phase[] = ['moderating', 'matching', 'routine', 'inferring', 'composing', 'streaming', 'checking', 'tracking'];
const victims: readonly Victim[] = [
  { role: 'actor-host', repeats: [] },
  { role: 'router-worker', repeats: ofModels },
  { role: 'effect-worker', repeats: ['looking', 'retrieving'] },
];

let environment: EngineEnvironment;
/** A turn without a fault. */
let plain: StoredTurn;
let numbers = 0;

beforeAll(async () => {
  environment = await openEngineEnvironment();
  // The tool lists are read in the background: a turn before them has no tools.
  plain = await eventually(
    async () => {
      const turn = await played(await begin(newKey(NO_PHASE)));
      return turn.results.length > 0 && turn;
    },
    { timeoutMs: TIMEOUT_MS },
  );
}, CASE_MS);
afterAll(() => environment?.close(), 120_000);

function newKey(phase: Phase | typeof NO_PHASE): string {
  numbers += 1;
  return `K-${numbers}-${phase}`;
}

/** @returns the session's id */
async function begin(key: string): Promise<string> {
  const { id } = await environment.agent.createSession({ allow_greeting: false });
  await environment.agent.postMessage(id, `I want a visit for ${key}`, {}, {}, key.endsWith('-moderating') ? '?moderation=auto' : '');
  return id;
}

function played(sessionId: string): Promise<StoredTurn> {
  return eventually(() => environment.turnOf(sessionId), { timeoutMs: TIMEOUT_MS });
}

/** Kills all processes of a service, and starts another one. */
async function kill(role: Role, env: Record<string, string> = {}): Promise<ClusterProcess> {
  const { cluster } = environment;
  for (const one of cluster.running(role)) {
    one.signal('SIGKILL');
    await one.exited;
  }
  return await cluster.add(role, env);
}

/** Waits until a process has died by itself, at its fail point. */
async function died(one: ClusterProcess): Promise<void> {
  await eventually(() => one.hasExited(), { timeoutMs: TIMEOUT_MS });
  expect(one.output()).toContain('fail point item.done: SIGKILL');
  await environment.cluster.add(one.role);
}

/** How often each call of a key was made. */
function asked(key: string): AskedCall[] {
  const { model, looked, searched, moderated } = environment;
  const others = [
    ['moderating', moderated],
    ['looking', looked],
    ['retrieving', searched],
  ] as const;
  return [...model.asked(key), ...others.map(([phase, calls]) => ({ phase, times: calls.get(key) ?? 0, isHeld: key.endsWith(phase) }))];
}

/**
 * Each repeat of a call has a cause: the death of the process at which it was in flight, once, or a lease that a living worker has lost.
 *
 * @param didDie whether the process that executes the held calls has died
 */
async function expectRepeats(key: string, sessionId: string, didDie: boolean): Promise<void> {
  const calls = asked(key);
  const inFlight = calls.filter(({ isHeld }) => didDie && isHeld);
  const excess = calls.reduce((sum, call) => sum + Math.max(0, call.times - (inFlight.includes(call) ? 2 : 1)), 0);
  // A worker may log a loss behind the end of the turn.
  const lost = await eventually(
    async () => {
      const leases = await environment.lostLeasesOf(sessionId);
      return leases >= excess && { leases };
    },
    { timeoutMs: excess > 0 ? TIMEOUT_MS : 0 },
  ).catch(() => null);
  expect(lost, `${key}: more repeats than leases that were lost: ${JSON.stringify(calls)}`).not.toBeNull();
  if (!didDie || (await environment.isUnchecked(sessionId))) return;
  expect(Math.min(...inFlight.map(({ times }) => times)), `${key}: ${JSON.stringify(calls)}`).toBeGreaterThanOrEqual(2);
}

/**
 * Whether each turn is held in its phase, and all else of it is recorded; or is over: a check of a message, or of a reply, that begins too late is given up
 * (rules 86, 123).
 */
async function areHeld(sessions: ReadonlyMap<string, string>): Promise<boolean> {
  const { gates, openEffectsOf, turnOf } = environment;
  for (const [key, sessionId] of sessions) {
    const isHeld = gates.hasEntered(key) && (await openEffectsOf(sessionId)) <= gates.held(key);
    if (!isHeld && (await turnOf(sessionId)) === null) return false;
  }
  return true;
}

/** A busy machine may take longer to notice a dead worker than a message waits for its check (rule 123): then nothing has read it. */
function expectUnchecked({ log, replies }: StoredTurn, key: string): void {
  const { model, booked } = environment;
  expect({ log, replies }, key).toEqual({ log: ['user_message', 'acknowledged', 'error', 'ready'], replies: [] });
  expect([model.asked(key).length, booked.get(key) ?? 0], key).toEqual([0, 0]);
}

/** The booking, which may not be repeated, was in flight at the worker that died. */
function isToolLost({ results }: StoredTurn): boolean {
  return JSON.stringify(results).includes('outcome_unknown');
}

/** As without a fault, but for the check that is made again. */
async function expectPlayed(turn: StoredTurn, key: string, sessionId: string, isChecked: boolean): Promise<void> {
  if (isChecked && turn.log.includes('error')) {
    expectUnchecked(turn, key);
    return;
  }
  const booked = isToolLost(turn) ? { error: 'outcome_unknown' } : `booked ${key}`;
  expect(turn, key).toEqual({ ...plain, results: [booked, `looked ${key}`], replies: [`It is done: ${key}.`] });
  const times = environment.moderated.get(key) ?? 0;
  const lost = await environment.lostLeasesOf(sessionId);
  if (!isChecked) expect(times, key).toBe(0);
  else expect(times - lost, key).toBeLessThanOrEqual(2);
  if (isChecked) expect(times, key).toBeGreaterThanOrEqual(2);
}

describe('an agent with a policy, a tool, a routine and a search', () => {
  it('uses all of them in a turn', () => {
    expect(plain.log).toEqual([...['user_message', 'acknowledged', 'processing matching', 'processing tools', 'tool', 'typing', 'assistant_message', 'ready']]);
    expect(plain.rows).toEqual([
      'applied-check',
      'began',
      'check-reply',
      'infer-tools',
      'match',
      'match',
      'reply',
      'resolved',
      'routine',
      'search',
      'tool',
      'tool',
    ]);
  });

  it.each(victims.toSorted(() => random() - 0.5))(
    'rule 69: a process that is killed in the middle of each part of a turn repeats no recorded call and no effect, and the turn ends as without a fault: $role',
    async ({ role, repeats }) => {
      const { gates, booked } = environment;
      gates.close();
      const keys = phases.flatMap((phase) => Array.from({ length: SESSIONS }, () => ({ phase, key: newKey(phase) })));
      const sessions = new Map<string, string>();
      await inParallel(keys, AT_ONCE, async ({ key }) => {
        sessions.set(key, await begin(key));
      });
      await eventually(() => areHeld(sessions), { timeoutMs: TIMEOUT_MS });
      const held = new Set(keys.flatMap(({ key }) => (gates.hasEntered(key) ? [key] : [])));
      await kill(role);
      gates.open();

      const tolerated = new Set(repeats);
      let leases = 0;
      for (const { phase, key } of keys) {
        const sessionId = sessions.get(key) ?? '';
        const turn = await played(sessionId);
        if (phase === 'moderating' && turn.log.includes('error')) {
          expectUnchecked(turn, key);
          continue;
        }
        const lost = await environment.lostLeasesOf(sessionId);
        leases += lost;
        const isUnknown = (role === 'effect-worker' && phase === 'booking') || lost > 0;
        const results = turn.results.map((result) => (isUnknown && JSON.stringify(result).includes('outcome_unknown') ? `booked ${key}` : result));
        expect({ ...turn, results }, key).toEqual({ ...plain, results: [`booked ${key}`, `looked ${key}`], replies: [`It is done: ${key}.`] });
        expect(booked.get(key), key).toBe(1);
        await expectRepeats(key, sessionId, tolerated.has(phase) && held.has(key));
      }
      console.info(`${role}: ${keys.length} turns, each in the middle of one of ${phases.join(', ')}; leases that living workers lost: ${leases}`);
    },
    CASE_MS,
  );

  it(
    'rules 72, 123: a check and a search whose worker dies with the result before it is stored are made again, and the turns end as without a fault',
    async () => {
      const { gates, searched } = environment;
      gates.open();
      // Its first item is the check, since the turn waits for it.
      const checking = await kill('router-worker', { FAIL_POINT: 'item.done:kill:1' });
      const checked = newKey('moderating');
      const ofChecked = await begin(checked);
      await died(checking);
      const begun = new Map([[checked, ofChecked]]);
      for (let round = 1; ; round += 1) {
        // Its first item is mostly a search, since tools are called later. A worker that got it late dies with the result of a tool: then another one is tried.
        const searching = await kill('effect-worker', { FAIL_POINT: 'item.done:kill:1' });
        const other = newKey(NO_PHASE);
        begun.set(other, await begin(other));
        await died(searching);
        const turns = await Promise.all([...begun].map(async ([key, id]) => ({ key, id, turn: await played(id) })));
        begun.clear();
        for (const { key, id, turn } of turns) await expectPlayed(turn, key, id, key === checked);
        if (round < MAX_ROUNDS && turns.some(({ turn }) => isToolLost(turn))) continue;
        const searches = turns.map(({ key }) => searched.get(key) ?? 0);
        const lost = await Promise.all(turns.map(({ id }) => environment.lostLeasesOf(id)));
        const [most, leases] = [Math.max(...searches), lost.reduce((sum, one) => sum + one)];
        expect(most, String(searches)).toBeGreaterThanOrEqual(2);
        expect(most - leases, String(searches)).toBeLessThanOrEqual(2);
        return;
      }
    },
    CASE_MS,
  );
});
