import { afterEach, expect, it, vi } from 'vitest';
import type { Bus } from '#bus/bus.ts';
import type { CommandOf, CommandReply, ReplyMessage } from '#bus/messages/session.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import { CommandReplies } from './command-replies.ts';
import { limits, waits } from './limits.ts';
import type { ProcessedCommands } from './processed-commands.ts';
import { until } from './test-support/until.ts';

afterEach(() => {
  vi.useRealTimers();
});

/** A bus with the test as its owner. */
function fixture({ duplicate = false, seen = null as CommandReply | null, lookMs = 0 } = {}) {
  let onReply: (subject: string, body: string) => void = () => {};
  const reads: string[] = [];
  const appended: { partition: number; messageId: string }[] = [];
  const bus = {
    commands: {
      append: async (partition: number, messageId: string) => {
        appended.push({ partition, messageId });
        return { sequence: appended.length, duplicate };
      },
    },
    notices: {
      subscribe: (_pattern: string, handler: typeof onReply) => {
        onReply = handler;
        return { stop: async () => {}, ready: async () => {} };
      },
    },
  } as unknown as Bus;
  const processedCommands = {
    read: async (_sessionId: string, commandId: string) => {
      reads.push(commandId);
      if (lookMs > 0) await new Promise((resolve) => setTimeout(resolve, lookMs));
      return seen;
    },
  } as unknown as ProcessedCommands;
  const commandReplies = new CommandReplies({ bus, processedCommands, waits: { ...waits, silenceMs: 20, replyMs: 200, lastReadMs: 100 }, log: silentLog });
  commandReplies.open();
  return {
    commandReplies,
    reads,
    appended,
    say: (message: ReplyMessage | string) => onReply('ans', typeof message === 'string' ? message : JSON.stringify(message)),
  };
}

function command(commandId: string): CommandOf<'turn.deadline'> {
  return { v: 1, type: 'turn.deadline', sessionId: 'ses_1', commandId, sentAtMs: 0, answerTo: null, traceparent: null, turnId: 'trn_1' };
}

const reply = { ok: true, value: { n: 1 } } as const;

it('waits no longer than its limit, and reports that there was no reply', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  const { commandReplies, reads } = fixture();
  const sent = commandReplies.send(command('c'), 2_000);
  await vi.advanceTimersByTimeAsync(2_200);

  expect(await sent).toBeNull();
  expect(reads.length).toBeGreaterThan(1);
});

it('stays within its limit when the database is slow, and does not repeat a read in flight', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  const { commandReplies, reads } = fixture({ lookMs: 2_000, seen: reply });
  const onOutcome = vi.fn();
  void commandReplies.send(command('c'), 200).then(onOutcome);

  // 200 to wait, 100 for the last read, and slack for timers.
  await vi.advanceTimersByTimeAsync(299);
  expect(onOutcome).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(6);
  expect(onOutcome).toHaveBeenCalledExactlyOnceWith(null);
  expect(reads).toEqual(['c']);
});

it('accepts a reply that comes during a slow read', async () => {
  const { commandReplies, say } = fixture({ lookMs: 2_000, duplicate: true });
  const sent = commandReplies.send(command('c'), 1_000);
  setTimeout(() => say({ v: 1, commandId: 'c', repeat: true, answer: reply }), 50);

  expect(await sent).toEqual({ reply, repeat: true });
});

it('reads once more when the time is over', async () => {
  const { commandReplies } = fixture({ seen: reply });

  expect(await commandReplies.send(command('c'), 1)).toEqual({ reply, repeat: false });
});

it('accepts a reply that is faster than the acknowledgement', async () => {
  const { commandReplies, say, reads } = fixture();
  const sent = commandReplies.send(command('c'), 1_000);
  say({ v: 1, commandId: 'c', repeat: false, answer: reply });

  expect(await sent).toEqual({ reply, repeat: false });
  expect(reads).toEqual([]);
});

it('ignores invalid replies, and replies to others', async () => {
  const { commandReplies, say } = fixture();
  const sent = commandReplies.send(command('c'), 1_000);
  say('nonsense');
  say('{"v":2}');
  say({ v: 1, commandId: 'other', repeat: false, answer: { ok: false, code: 'internal', message: 'no' } });
  say({ v: 1, commandId: 'c', repeat: true, answer: reply });

  expect(await sent).toEqual({ reply, repeat: true });
});

it('reads the processed command at once when the log has the command already', async () => {
  const { commandReplies, reads } = fixture({ duplicate: true, seen: reply });

  expect(await commandReplies.send(command('c'), 10_000)).toEqual({ reply, repeat: true });
  expect(reads).toEqual(['c']);
});

const refusalOf = (sequence: number) => ({ ok: false, code: 'service.overloaded', message: 'later', sequence }) as const;

it('stores a repeat under another message id when the first request was refused for the moment, and reports the reply to that', async () => {
  const { commandReplies, appended, say } = fixture({ duplicate: true, seen: refusalOf(1) });
  const sent = commandReplies.send(command('c'), 1_000);
  await until(() => appended.length === 2, 'a second message');
  say({ v: 1, commandId: 'c', repeat: false, answer: reply });

  expect(await sent).toEqual({ reply, repeat: false });
  expect(appended.map(({ messageId }) => messageId)).toEqual(['c', expect.stringMatching(/^c-[0-9A-Z]{26}$/)]);
});

it.each([
  ['a conflict', { ok: false, code: 'request.conflict', message: 'a turn is in progress' }],
  ['a command that could not be applied', { ok: false, code: 'internal', message: 'the command could not be applied' }],
] as const)('repeats any other refusal: %s', async (_case, seen) => {
  const { commandReplies, appended } = fixture({ duplicate: true, seen });

  expect(await commandReplies.send(command('c'), 1_000)).toMatchObject({ reply: seen, repeat: true });
  expect(appended).toHaveLength(1);
});

it('takes no stored refusal of an earlier request for the reply to this one', async () => {
  const { commandReplies, reads } = fixture({ seen: refusalOf(0) });

  expect(await commandReplies.send(command('c'), 1)).toBeNull();
  expect(new Set(reads)).toEqual(new Set(['c']));
});

it('takes no refusal of an earlier copy that arrives late for the reply to the next one', async () => {
  const { commandReplies, appended, say } = fixture({ duplicate: true, seen: refusalOf(1) });
  const sent = commandReplies.send(command('c'), 10_000);
  await until(() => appended.length === 2, 'a second message');
  say({ v: 1, commandId: 'c', repeat: false, answer: refusalOf(1) });
  say({ v: 1, commandId: 'c', repeat: false, answer: reply });

  expect(await sent).toEqual({ reply, repeat: false });
});

it('reports no refusal of a log that was replaced: whether the command was refused is not known', async () => {
  const sentAtMs = 1_000_000;
  const { commandReplies } = fixture({ seen: { ...refusalOf(5_000), storedAtMs: sentAtMs - 60_000 } });

  await expect(commandReplies.send({ ...command('c'), sentAtMs }, 1)).rejects.toMatchObject({ code: 'service.no_answer' });
});

it.each([
  ['its own', refusalOf(1)],
  ['one of a host that says no position', { ok: false, code: 'service.overloaded', message: 'later' }],
] as const)('reads a lost refusal: %s', async (_case, seen) => {
  const { commandReplies, appended } = fixture({ seen });

  expect(await commandReplies.send(command('c'), 1)).toMatchObject({ reply: seen, repeat: false });
  expect(appended).toHaveLength(1);
});

it('refuses commands when too many wait for their replies, however fast they came', async () => {
  const { commandReplies, appended, say } = fixture();
  const clock = vi.spyOn(performance, 'now').mockReturnValue(0); // keeps the queueing delay unmeasured
  const ids = Array.from({ length: limits.waitingCommands }, (_, n) => `c-${n}`);
  const waiting = ids.map((id) => commandReplies.send(command(id), 10_000));
  const refused = commandReplies.send(command('one too many'), 50);
  clock.mockRestore();

  await expect(refused).rejects.toMatchObject({ code: 'service.overloaded' });
  expect(appended).toHaveLength(limits.waitingCommands);
  for (const commandId of ids) say({ v: 1, commandId, repeat: false, answer: reply });
  await Promise.all(waiting);
  expect(await commandReplies.send(command('later'), 1)).toBeNull();
});

it('refuses commands while owners are far behind, counting commands whose callers no longer wait', async () => {
  const { commandReplies, say } = fixture();
  const ids = Array.from({ length: 100 }, (_, n) => `c-${n}`);
  expect(await Promise.all(ids.map((id) => commandReplies.send(command(id), 1)))).toEqual(ids.map(() => null));
  const isTaken = (commandId: string) =>
    commandReplies.send(command(commandId), 1).then(
      () => true,
      (error: { code: string }) => error.code !== 'service.overloaded',
    );
  await until(async () => !(await isTaken('one more')), 'a refusal');

  for (const commandId of [...ids, 'one more']) say({ v: 1, commandId, repeat: false, answer: reply });
  await until(() => isTaken('later'), 'room');
});
