import { expect, it, vi } from 'vitest';
import type { Bus, CommandLog } from '#bus/bus.ts';
import { actorFields } from '#bus/messages/actor-fields.ts';
import { partitionOf } from '#bus/partition.ts';
import { type Clock, systemClock } from '#shared/clock.ts';
import { ulidTimeMs } from '#shared/ids.ts';
import { type Log, silentLog } from '#shared/telemetry/log.ts';
import { type Metrics, noMetrics } from '#shared/telemetry/metrics.ts';
import { openMetrics } from '#shared/telemetry/open-metrics.ts';
import { seriesOf } from '#shared/telemetry/series-of.ts';
import type { ActorInputs } from '../../inputs/actor-inputs.ts';
import { actorKinds } from '../../kinds/registry.ts';
import { decodeSnapshot } from '../../kinds/snapshots.ts';
import type { CommitStore } from '../../store/port/commit-store.ts';
import type { RuntimeStore } from '../../store/runtime-store.ts';
import { Timers } from '../partitions/timers.ts';
import { AgentStateCache } from '../publish/agent-state-cache.ts';
import { Histories } from '../publish/histories.ts';
import { Outbox } from '../publish/outbox.ts';
import { TurnRowCache } from '../publish/turn-row-cache.ts';
import { commandCheck } from './command-check.ts';
import { CommitLoop } from './commit-loop.ts';
import { Mailbox } from './mailbox.ts';
import { Snapshots } from './snapshots.ts';
import type { TransitionInputs } from './transition-inputs.ts';

const PARTITIONS = [7, 8];
const COMMANDS = 300;
const WAIT = { timeout: 60_000 };

type StoreOfLoop = Pick<RuntimeStore, 'commits' | 'sessions'>;

const noSessions: StoreOfLoop['sessions'] = { load: async () => [], messages: async () => [], event: async () => null, cut: async () => null };
const commitsBy = (commit: CommitStore['commit']): CommitStore => ({ commit, processed: async () => [] });

/** A store that blocks its first commit until `release`, and records its calls in order. */
function heldStore(owned = PARTITIONS) {
  const noted: string[] = [];
  let release = () => {};
  const held = new Promise<void>((resolve) => (release = resolve));
  const commits = commitsBy(async ({ processed }) => {
    noted.push(`commit of ${processed.size}`);
    await held;
    noted.push('done');
    return { kind: 'committed', owned: new Set(owned) };
  });
  const load: StoreOfLoop['sessions']['load'] = async () => {
    noted.push('read');
    return [];
  };
  return { noted, release, store: { commits, sessions: { ...noSessions, load } } };
}

const inputs: Omit<ActorInputs, keyof TransitionInputs> = {
  ...{ coalesceMs: 0, turnTimeoutMs: 1_000, greetingOf: () => null, runOf: () => expect.fail('there are no runs') },
  ...{ isSettled: () => false, isSuperseded: () => false, isClaimed: () => false, toolsOf: () => null, stagedOf: () => new Map() },
};

let agentStateReads = 0;
const agentStates = new AgentStateCache({
  agentStates: async () => {
    agentStateReads += 1;
    return new Map();
  },
});

const nothing = () => ({ stop: async () => {} });

function newOutbox(): Outbox {
  return new Outbox({
    bus: {
      notices: { publish: () => {} },
      work: { publish: async () => ({ duplicate: false }), onRefused: nothing, onStored: nothing },
      connectionNumber: () => 1,
    } as unknown as Bus,
    clock: systemClock,
    log: silentLog,
    workOf: () => 'tool',
    callSilenceMs: 60_000,
    cursorOf: () => null,
    isOwner: () => true,
    render: async () => '',
    onRowsDone: () => {},
    fail: () => {},
  });
}

function loopOn(
  { commits, sessions }: StoreOfLoop,
  metrics: Metrics = noMetrics,
  outbox = newOutbox(),
  log: Log = silentLog,
  clock: Clock = systemClock,
): CommitLoop {
  return new CommitLoop({
    ...{
      store: { commits, partitions: {} as RuntimeStore['partitions'] },
      outbox,
      clock,
      log,
      metrics,
      check: commandCheck({ isTagged: () => false }, 0),
      snapshots: new Snapshots(sessions, decodeSnapshot),
      histories: new Histories(sessions),
      turnRows: new TurnRowCache({ staged: async () => new Map() }),
      agentStates,
      timers: new Timers(systemClock, () => {}, '-due'),
    },
    kinds: actorKinds,
    readInputs: async () => inputs,
  });
}

const creating = (sessionId: string) =>
  JSON.stringify({
    ...{ v: 1, type: 'session.create', sessionId, commandId: `cmd-${sessionId}`, sentAtMs: 0, answerTo: null, traceparent: null },
    ...{ customerId: 'c', agentId: 'a', title: null, mode: 'auto', metadata: {}, labels: [], allowGreeting: false, bundleHash: 'b' },
  });

const messageTo = (sessionId: string) =>
  JSON.stringify({
    ...{ v: 1, type: 'message.post', sessionId, commandId: `cmd-say-${sessionId}`, sentAtMs: 0, answerTo: null, traceparent: null },
    ...{ source: 'customer', text: 'hello', metadata: {}, triggersTurn: true, traceId: 'a'.repeat(32), bundleHash: 'b' },
  });

it('DESIGN 4: commands that come while a commit is in flight are stored by the next ones, at most 128 each, over all partitions', async () => {
  const { noted, release, store } = heldStore();
  const loop = loopOn(store);
  const mailboxes = PARTITIONS.map(
    (partition) => new Mailbox({ partition, epoch: 1, owner: 'host-1', commitNo: 0, cursor: 0, cursorFingerprint: null }, loop.kick),
  );
  for (const mailbox of mailboxes) loop.own(mailbox);
  let sent = 0;
  for (let n = 0; sent < COMMANDS; n += 1) {
    const mailbox = mailboxes.find(({ claim }) => claim.partition === partitionOf(`ses_${n}`));
    mailbox?.start(creating(`ses_${n}`));
    if (mailbox !== undefined) sent += 1;
  }
  await vi.waitFor(() => expect(noted).toContain('commit of 1'), WAIT);
  release();
  await loop.stop();

  // Never two commits in flight, and no state is read before the previous commit has returned.
  expect(noted).toEqual([1, 128, 128, 43].flatMap((size) => ['read', `commit of ${size}`, 'done']));
  // Each commit but the first, which had one command, was of both partitions.
  expect(mailboxes.map(({ claim }) => claim.commitNo).sort()).toEqual([3, 4]);
});

it('reads the agent states of a partition anew once it is acquired: it may have read them while another host owned it', async () => {
  const { store } = heldStore();
  const loop = loopOn(store);
  const sessionId = Array.from({ length: 10_000 }, (_, n) => `ses_${n}`).find((id) => partitionOf(id) === 7) ?? '';
  await agentStates.agentStates([sessionId]);
  await agentStates.agentStates([sessionId]);
  expect(agentStateReads).toBe(1);

  loop.own(new Mailbox({ partition: 7, epoch: 2, owner: 'host-1', commitNo: 0, cursor: 0, cursorFingerprint: null }, () => {}));
  await agentStates.agentStates([sessionId]);

  expect(agentStateReads).toBe(2);
});

it('DESIGN 6: releases a partition once its outbox has handed over its calls', async () => {
  const { store } = heldStore();
  const outbox = newOutbox();
  let handedOver = () => {};
  const handOver = vi.spyOn(outbox, 'handOver').mockReturnValue(new Promise((resolve) => (handedOver = resolve)));
  const loop = loopOn(store, noMetrics, outbox);
  loop.own(new Mailbox({ partition: 7, epoch: 1, owner: 'host-1', commitNo: 0, cursor: 0, cursorFingerprint: null }, loop.kick));
  const released = vi.fn();
  const releasing = loop.release([7]).then(released);
  await vi.waitFor(() => expect(handOver).toHaveBeenCalledExactlyOnceWith([7]), WAIT);
  expect([released.mock.calls.length, loop.mailboxOf(7) === undefined]).toEqual([0, false]);

  handedOver();
  await releasing;
  expect(loop.mailboxOf(7)).toBeUndefined();
});

it('adds a partition to no commit for the row of a published effect, until rows are flushed', async () => {
  const committed: unknown[] = [];
  const commits = commitsBy(async ({ partitions }) => {
    committed.push([...partitions.keys()]);
    return { kind: 'committed', owned: new Set(PARTITIONS) };
  });
  const outbox = newOutbox();
  const loop = loopOn({ commits, sessions: noSessions }, noMetrics, outbox);
  const [talking, other] = PARTITIONS.map((partition) => {
    const mailbox = new Mailbox({ partition, epoch: 1, owner: 'host-1', commitNo: 0, cursor: 0, cursorFingerprint: null }, loop.kick);
    loop.own(mailbox);
    return { mailbox, sessionId: Array.from({ length: 10_000 }, (_, n) => `ses_${n}`).find((id) => partitionOf(id) === partition) ?? '' };
  }) as [{ mailbox: Mailbox; sessionId: string }, { mailbox: Mailbox; sessionId: string }];
  talking.mailbox.start(creating(talking.sessionId));
  talking.mailbox.start(messageTo(talking.sessionId));
  await vi.waitFor(() => expect(outbox.hasDone).toBe(true), WAIT);
  committed.length = 0;

  other.mailbox.start(creating(other.sessionId));
  await vi.waitFor(() => expect(committed).toHaveLength(1), WAIT);
  loop.flushRows();
  await vi.waitFor(() => expect(committed).toHaveLength(2), WAIT);

  expect(committed).toEqual([[other.mailbox.claim.partition], [talking.mailbox.claim.partition]]);
  await vi.waitFor(() => expect(outbox.hasDone).toBe(false), WAIT);
  await outbox.stop();
  await loop.stop();
});

it.each([
  ['in its commit', []],
  ['in an earlier commit of its batch, as the batch was halved', ['poison']],
])('applies no timer that a command before it has disarmed %s', async (_when, others) => {
  const applied: string[] = [];
  const commits = commitsBy(async ({ processed }) => {
    const ids = [...processed.values()].map(({ commandId }) => commandId);
    if (ids.includes('cmd-poison')) throw new Error('a row that can not be stored');
    applied.push(...ids);
    return { kind: 'committed', owned: new Set([7]) };
  });
  const loop = loopOn({ commits, sessions: noSessions });
  const mailbox = new Mailbox({ partition: 7, epoch: 1, owner: 'host-1', commitNo: 0, cursor: 0, cursorFingerprint: null }, () => {});
  loop.own(mailbox);
  mailbox.follow({ read: () => ({ stop: async () => {} }) } as unknown as CommandLog, 0);
  const sessionId = Array.from({ length: 10_000 }, (_, n) => `ses_${n}`).find((id) => partitionOf(id) === 7) ?? '';
  const header = { v: 1, sessionId, sentAtMs: 0, answerTo: null, traceparent: null };
  const round = { callId: 'r1', deliveryId: 'run_1-callback', attempts: 1, outcome: 'failed', reason: null, retryAfterMs: null };
  mailbox.start(JSON.stringify({ ...header, type: 'delivery.reported', commandId: 'r1', ...round }));
  for (const id of others) mailbox.start(JSON.stringify({ ...JSON.parse(creating(sessionId)), commandId: `cmd-${id}` }));
  const overdue = { ...header, type: 'effect.overdue', commandId: 'r1-overdue', callId: 'r1', ...actorFields('run_1-callback'), kind: 'delivery' };
  mailbox.fire({ partition: 7, key: 'r1-overdue', command: JSON.stringify(overdue) });
  loop.kick();
  await loop.stop();

  expect(applied).toEqual(['r1']);
  expect(mailbox.claim.commitNo).toBe(1 + others.length);
});

it('DESIGN 7: the id of a turn has the time of the database, which its session’s events have', async () => {
  const nowMs = Date.UTC(2026, 0, 1);
  const turns: (string | undefined)[] = [];
  const commits = commitsBy(async ({ effects }) => {
    turns.push(...[...effects.keys()].map((id) => /^trn_(.*)-1$/.exec(id)?.[1]));
    return { kind: 'committed', owned: new Set(PARTITIONS) };
  });
  const outbox = newOutbox();
  const loop = loopOn({ commits, sessions: noSessions }, noMetrics, outbox, silentLog, { nowMs: () => nowMs });
  const mailbox = new Mailbox({ partition: 7, epoch: 1, owner: 'host-1', commitNo: 0, cursor: 0, cursorFingerprint: null }, loop.kick);
  loop.own(mailbox);
  const sessionId = Array.from({ length: 10_000 }, (_, n) => `ses_${n}`).find((id) => partitionOf(id) === 7) ?? '';
  mailbox.start(creating(sessionId));
  mailbox.start(messageTo(sessionId));
  await vi.waitFor(() => expect(turns).toHaveLength(1), WAIT);
  await outbox.stop();
  await loop.stop();

  expect(ulidTimeMs(turns[0] ?? '')).toBe(nowMs);
});

it('DESIGN 12: counts commits with their sizes, and the partitions that another host has taken', async () => {
  const { release, store } = heldStore([7]);
  const metrics = openMetrics();
  const loop = loopOn(store, metrics);
  const mailboxes = PARTITIONS.map(
    (partition) => new Mailbox({ partition, epoch: 1, owner: 'host-1', commitNo: 0, cursor: 0, cursorFingerprint: null }, () => {}),
  );
  for (const mailbox of mailboxes) {
    loop.own(mailbox);
    const sessionId = Array.from({ length: 10_000 }, (_, n) => `ses_${n}`).find((id) => partitionOf(id) === mailbox.claim.partition) ?? '';
    mailbox.start(creating(sessionId));
  }
  expect(mailboxes.every(({ oldestAgeMs }) => oldestAgeMs > 0)).toBe(true);
  release();
  await loop.stop();

  const text = await metrics.text();
  expect(seriesOf(text, 'switchyard_commits_total')).toContain('{outcome="committed"} 1');
  expect(seriesOf(text, 'switchyard_commit_batch_commands_sum')).toEqual(['2']);
  expect(seriesOf(text, 'switchyard_commit_duration_seconds_count')).toEqual(['1']);
  expect(seriesOf(text, 'switchyard_fences_total')).toEqual(['1']);
  expect(mailboxes.map(({ oldestAgeMs }) => oldestAgeMs)).toEqual([0, 0]);
});

it('DESIGN 11: skips commands without a tag at the cost of reading them: a commit for each batch, one log line, no other row', async () => {
  const lines: unknown[] = [];
  const rows: number[] = [];
  const commits = commitsBy(async (plan) => {
    const { partitions, sessions, deletedSessions, processed, effects, effectStates, outboxDone, timers, runs, deliveries, deliveryStates } = plan;
    const kinds = [partitions, sessions, deletedSessions, processed, effects, effectStates, outboxDone, timers, runs, deliveries, deliveryStates];
    const lists = [plan.events, plan.steps, plan.runCalls, plan.deadLetters];
    rows.push([...kinds.map(({ size }) => size), ...lists.map(({ length }) => length)].reduce((sum, count) => sum + count, 0));
    return { kind: 'committed', owned: new Set([7]) };
  });
  const metrics = openMetrics();
  const loop = loopOn({ commits, sessions: noSessions }, metrics, newOutbox(), { ...silentLog, error: (fields) => lines.push(fields) });
  const mailbox = new Mailbox({ partition: 7, epoch: 1, owner: 'host-1', commitNo: 0, cursor: 0, cursorFingerprint: null }, () => {});
  loop.own(mailbox);
  const sessionId = Array.from({ length: 10_000 }, (_, n) => `ses_${n}`).find((id) => partitionOf(id) === 7) ?? '';
  const commands = Array.from({ length: 512 }, (_, n) => ({ sequence: n + 1, messageId: `m${n}`, body: creating(sessionId), storedAtMs: 1 }));
  const log = {
    read: (_partition, _after, handler) => {
      void handler(commands);
      return { stop: async () => {} };
    },
  } as CommandLog;
  mailbox.follow(log, commands.length);
  loop.kick();
  await loop.stop();

  expect(rows).toEqual([1, 1, 1, 1]);
  expect(mailbox.claim.cursor).toBe(512);
  expect(lines).toEqual([{ count: 128, command_id: 'm0', partition: 7 }]);
  expect(seriesOf(await metrics.text(), 'switchyard_commands_refused_total')).toEqual(['512']);
});
