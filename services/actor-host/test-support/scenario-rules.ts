import { expect } from 'vitest';
import type { CommandReply } from '#bus/messages/session.ts';
import type { ConversationEvent } from '#shared/contracts/agent/conversation-event.ts';
import type { Trace } from './scenario.ts';
import type { TestCluster } from './test-cluster.ts';

/** Status traces of turns and runs, without messages. Each ends in one `ready`, and nothing follows it. */
const TURN = /^acknowledged typing (assistant_message|error|cancelled) ready$/;
const RUN = /^acknowledged( processing\/thinking( processing\/tools tool)*( processing\/tools)?)?( error)? ready$/;

interface SessionRow {
  id: string;
  head: number;
  isDeleted: boolean;
  mode: string;
}

/** Checks the invariants of the stored state against the trace, once nothing is outstanding. */
export async function checkRules(cluster: TestCluster, { commands, runs }: Trace): Promise<void> {
  const sessions = await cluster.rows<SessionRow>(
    `select id, head, deleted_at is not null as "isDeleted", snapshot->'session'->'context'->>'mode' as mode from sessions`,
  );
  const logs = new Map<string, ConversationEvent[]>();
  for (const { id } of sessions) logs.set(id, await cluster.log(id));
  for (const session of sessions) checkLog(session, logs.get(session.id) ?? []);
  await checkCommands(cluster, commands, sessions, logs);
  await checkRuns(cluster, runs, logs);
  await checkNothingLeft(cluster);
  expect(cluster.fence.breaches, 'outcome c: only the last owner of a partition commits to it, each commit once').toEqual([]);
  checkReplies(cluster);
}

/** Invariants a, b, c: the grammar of every trace, dense offsets, one turn at a time. */
function checkLog({ id, head, isDeleted, mode }: SessionRow, log: readonly ConversationEvent[]): void {
  if (isDeleted) {
    expect(log, `${id} is deleted and keeps nothing`).toEqual([]);
    return;
  }
  expect(
    log.map((event) => event.offset),
    `outcome b: the offsets of ${id} are dense`,
  ).toEqual(Array.from({ length: head }, (_, index) => index));
  const traces = new Map<string, string[]>();
  let working: string | null = null;
  for (const event of log) {
    if (event.kind === 'user_message') continue;
    expect([null, event.trace_id], `outcome c: offset ${event.offset} of ${id} stands in the middle of another turn or run`).toContain(working);
    const word = event.kind === 'status' ? `${event.status}${event.stage === null ? '' : `/${event.stage}`}` : event.kind;
    working = word === 'ready' ? null : event.trace_id;
    traces.set(event.trace_id, [...(traces.get(event.trace_id) ?? []), word]);
  }
  for (const [trace, words] of traces)
    expect(words.join(' '), `outcome a: the statuses of trace ${trace} in ${id}`).toMatch(trace.startsWith('f') ? RUN : TURN);
  if (mode === 'manual')
    expect(
      [...traces.keys()].filter((trace) => !trace.startsWith('f')),
      `outcome d: there is no answer in ${id}, which is manual`,
    ).toEqual([]);
}

/** Invariant d for messages: each accepted one is in the log once, in order, and its turn has ended. */
async function checkCommands(
  cluster: TestCluster,
  commands: Trace['commands'],
  sessions: readonly SessionRow[],
  logs: ReadonlyMap<string, ConversationEvent[]>,
): Promise<void> {
  const seen = await cluster.rows<{ session_id: string; command_id: string; answer: CommandReply | null }>('select session_id, command_id, answer from seen');
  const answers = new Map(seen.map((row) => [`${row.session_id} ${row.command_id}`, row.answer]));
  const accepted = new Map<string, string[]>();
  for (const command of commands) {
    const key = `${command.sessionId} ${command.commandId}`;
    expect(answers.has(key), `outcome e: ${command.type} ${key} was applied`).toBe(true);
    if (command.type !== 'message.post' || answers.get(key)?.ok !== true) continue;
    accepted.set(command.sessionId, [...(accepted.get(command.sessionId) ?? []), command.text]);
    const session = sessions.find(({ id }) => id === command.sessionId);
    if (session?.isDeleted !== false || session.mode === 'manual' || !command.triggersTurn) continue;
    const log = logs.get(command.sessionId) ?? [];
    const message = log.find((event) => event.kind === 'user_message' && event.text === command.text);
    const end = log.find((event) => event.kind === 'status' && event.status === 'ready' && event.trace_id === message?.trace_id);
    expect(end, `outcome d: ${command.text} of ${command.sessionId} is covered by a turn that came to its end`).toBeDefined();
  }
  for (const { id, isDeleted } of sessions) {
    if (isDeleted) continue;
    const texts = (logs.get(id) ?? []).flatMap((event) => (event.kind === 'user_message' ? [event.text] : []));
    expect(texts, `outcome d: each accepted message stands in ${id} once, in order`).toEqual(accepted.get(id) ?? []);
  }
}

/** Invariant d for runs: each is settled, with one callback that agrees with its row and its log. */
async function checkRuns(cluster: TestCluster, runs: Trace['runs'], logs: ReadonlyMap<string, ConversationEvent[]>): Promise<void> {
  const rows = await cluster.rows<{ id: string; state: string; trace_id: string; callbacks: string[] }>(
    `select id, state, trace_id, array(select body from deliveries where run_id = runs.id) as callbacks from runs`,
  );
  expect(rows.length, 'runs').toBe(runs.length);
  for (const { id, sessionId, ephemeral, hasCallback } of runs) {
    const row = rows.find((candidate) => candidate.id === id);
    expect(['succeeded', 'failed'], `outcome d: ${id} is settled`).toContain(row?.state);
    expect(
      row?.callbacks.map((body) => (JSON.parse(body) as { status: string }).status),
      `outcome d: ${id} has one callback, which says what its row says`,
    ).toEqual(hasCallback ? [row?.state] : []);
    const words = (logs.get(sessionId) ?? []).flatMap((event) => (event.kind === 'status' && event.trace_id === row?.trace_id ? [event.status] : []));
    if (words.length > 0) expect(words.includes('error') ? 'failed' : 'succeeded', `outcome d: the log of ${id} says the same as its row`).toBe(row?.state);
    if (ephemeral) expect(await cluster.count('sessions', `id = '${sessionId}' and deleted_at is null`), `${sessionId} still exists`).toBe(0);
  }
  const steps = await cluster.rows<{ run_id: string; n: number; last: number }>(
    'select run_id, count(*) as n, max(seq) as last from steps group by run_id having count(*) <> max(seq) + 1 or count(distinct seq) <> count(*)',
  );
  expect(steps, 'transcripts are dense').toEqual([]);
}

async function checkNothingLeft(cluster: TestCluster): Promise<void> {
  expect(await cluster.rows('select key from timers'), 'timers').toEqual([]);
  expect(await cluster.rows(`select id from effects where state = 'open'`), 'open effects').toEqual([]);
  expect(await cluster.rows('select id from effects group by id having count(*) > 1'), 'effects that stand twice').toEqual([]);
  expect(await cluster.rows(`select id from deliveries where state = 'open'`), 'open deliveries').toEqual([]);
  expect(await cluster.rows(`select id, reason from dead_letters where source = 'command'`), 'commands that could not be applied').toEqual([]);
  expect(await cluster.rows('select id from dead_letters group by id having count(*) > 1'), 'dead letters that stand twice').toEqual([]);
}

/** A repeated command gets the same reply. */
function checkReplies({ replies: answers }: TestCluster): void {
  const first = new Map<string, CommandReply>();
  for (const { commandId, answer } of answers) {
    expect(answer, `answers to ${commandId}`).toEqual(first.get(commandId) ?? answer);
    first.set(commandId, answer);
  }
}
