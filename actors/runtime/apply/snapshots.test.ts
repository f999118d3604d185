import { describe, expect, it } from 'vitest';
import type { CommandOf, SessionCommand } from '#bus/messages/session.ts';
import type { ActorInputs } from '../../inputs/actor-inputs.ts';
import { decodeSnapshot, encodeSnapshot, MACHINE_VERSION } from '../../kinds/snapshots.ts';
import type { StoredSession } from '../../store/port/session-store.ts';
import { applyTo } from '../../test-support/apply.ts';
import { CommitPlan } from './commit-plan.ts';
import type { SessionState } from './session-state.ts';
import { Snapshots } from './snapshots.ts';

/** A host's cached sessions, at most. */
const MOST = 10_000;

const header = { v: 1 as const, sessionId: 'ses_1', sentAtMs: 0, answerTo: null, traceparent: null };
const create: CommandOf<'session.create'> = {
  ...header,
  type: 'session.create',
  commandId: 'create',
  customerId: 'cus_1',
  agentId: 'agent',
  title: null,
  mode: 'auto',
  metadata: {},
  labels: [],
  allowGreeting: false,
  bundleHash: 'first',
};
const post = (n: number, fields: Partial<CommandOf<'message.post'>> = {}): CommandOf<'message.post'> => ({
  ...header,
  type: 'message.post',
  commandId: `post-${n}`,
  source: 'customer',
  text: 'A sentence of a conversation that goes on for long.',
  metadata: {},
  triggersTurn: true,
  traceId: String(n).padStart(32, '0'),
  bundleHash: 'first',
  ...fields,
});

/** One session, driven command by command. */
function session() {
  let state: SessionState | null = null;
  let nowMs = 0;
  let ids = 0;
  const newId = () => {
    ids += 1;
    return String(ids);
  };
  return {
    apply(command: SessionCommand): CommitPlan {
      const transitionInputs: ActorInputs = {
        ...{ atMs: nowMs, coalesceMs: 150, turnTimeoutMs: 180_000, greetingOf: () => null, newId, newTraceId: newId, chance: () => 0 },
        ...{ runOf: () => null, isSettled: () => false, isSuperseded: () => false, isClaimed: () => false, toolsOf: () => null, stagedOf: () => new Map() },
      };
      const plan = new CommitPlan();
      applyTo(plan, state, command, transitionInputs);
      state = plan.sessions.get('ses_1') ?? state;
      return plan;
    },
    wait(ms: number): void {
      nowMs += ms;
    },
    get state(): SessionState {
      return state ?? expect.fail('there is no session yet');
    },
  };
}

/** A store of one session that counts its reads. */
function storeOf(snapshot: unknown) {
  const asked: string[][] = [];
  const stored: StoredSession = { id: 'ses_1', partition: 1, head: 0, snapshot, record: {} as StoredSession['record'], isDeleted: false };
  const load = async (ids: readonly string[]) => {
    asked.push([...ids]);
    return ids.includes('ses_1') ? [stored] : [];
  };
  return { asked, store: { load } };
}

describe('a snapshot', () => {
  it('DESIGN 5: a snapshot of another shape is an error of versions, reported with its partition, and not of the current command', async () => {
    const mine: object = JSON.parse(encodeSnapshot(readyState()));
    const misfits = [
      { ...mine, v: MACHINE_VERSION + 1 },
      { ...mine, session: { value: 'a state of a later program', context: {} } },
    ];

    for (const misfit of misfits) {
      const loading = new Snapshots(storeOf(misfit).store, decodeSnapshot).load(['ses_1']);
      await expect(loading).rejects.toMatchObject({ code: 'storage.schema_refused', details: { partition: 1 } });
    }
    expect((await new Snapshots(storeOf(mine).store, decodeSnapshot).load(['ses_1'])).get('ses_1')?.actors.session?.value).toBe('idle');
  });

  it('DESIGN 5: a snapshot holds no text of the conversation, and is as small after a hundred messages as after one', () => {
    const one = session();
    one.apply(create);
    one.apply(post(1));
    const early = encodeSnapshot(one.state);
    for (let n = 2; n <= 100; n += 1) {
      one.wait(1_000);
      one.apply(post(n));
    }
    const late = encodeSnapshot(one.state);

    expect(one.state.head).toBeGreaterThan(400);
    expect(JSON.parse(late)).toMatchObject({ v: MACHINE_VERSION, session: { value: 'responding' }, turn: { context: {} } });
    expect(late).not.toContain('conversation');
    // Numbers with more digits.
    expect(late.length - early.length).toBeLessThan(50);
  });

  it('DESIGN 10: a turn goes on with the configuration that it began with, whatever is stored meanwhile', () => {
    const one = session();
    one.apply(create);
    one.apply(post(1));
    const joined = one.apply(post(2, { bundleHash: 'second' }));
    one.wait(1_000);
    const next = one.apply(post(3, { bundleHash: 'second' }));

    const hashesOf = ({ effects }: CommitPlan) => [...effects.values()].map(({ inputs }) => 'bundleHash' in inputs && inputs.bundleHash);
    expect(hashesOf(joined)).toEqual(['first']);
    expect(hashesOf(next)).toEqual(['second']);
  });
});

describe('the snapshots of a host', () => {
  it('DESIGN 4: a host caches the sessions that it used last, up to a limit; others cost a read, and idle ones nothing', async () => {
    const { asked, store } = storeOf(JSON.parse(encodeSnapshot(readyState())));
    const snapshots = new Snapshots(store, decodeSnapshot);
    const state = (await snapshots.load(['ses_1'])).get('ses_1') ?? expect.fail('it was not read');
    snapshots.retain([state]);
    await snapshots.load(['ses_1']);
    expect(asked).toHaveLength(1);

    snapshots.retain(Array.from({ length: MOST - 1 }, (_, n) => ({ ...state, id: `ses_other_${n}` })));
    await snapshots.load(['ses_1']);
    expect(asked).toHaveLength(1);
    snapshots.retain([{ ...state, id: 'ses_last' }]);
    await snapshots.load(['ses_last', 'ses_1']);
    expect(asked).toEqual([['ses_1'], ['ses_1']]);
  });
});

function readyState(): SessionState {
  const one = session();
  one.apply(create);
  return one.state;
}
