import { beforeEach, expect, it } from 'vitest';
import { errorFrame, sseFrame, textFrame } from '#bus/messages/frame.ts';
import { Deadlines } from '#shared/deadlines.ts';
import type { CallReader } from './call-readers.ts';
import { DetachedCalls } from './detached-calls.ts';

const eventually = <Value>(probe: () => Value | Promise<Value>) => expect.poll(probe, { timeout: 60_000, interval: 5 });
const FAR = 3_600_000;
const address = { callId: 'a', attempt: 1, seq: 1 };

let readers: Map<string, CallReader>;
let ended: string[];
let left: string[];

function open(limits: { detachedCalls?: number; detachedSilenceMs?: number } = {}): DetachedCalls {
  const subscribe = (callId: string, reader: CallReader) => {
    readers.set(callId, reader);
    return { ready: async () => {}, release: () => void readers.delete(callId) };
  };
  const all = { detachedCalls: 10, detachedSilenceMs: FAR, deadlineGraceMs: 0, ...limits };
  return new DetachedCalls({ readers: { subscribe }, deadlines: new Deadlines(), clock: { nowMs: () => 0 }, limits: all });
}
const follow = (calls: DetachedCalls, callId: string, deadlineAtMs = FAR) =>
  calls.follow({ callId, deadlineAtMs, end: () => void ended.push(callId), leave: () => void left.push(callId) });

beforeEach(() => {
  readers = new Map();
  [ended, left] = [[], []];
});

it('a call ends with its last frame, and with no other', () => {
  const calls = open();
  for (const callId of ['a', 'b']) follow(calls, callId);
  for (const frame of [sseFrame('o', address, 'data: x\n\n'), sseFrame('m', address, 'data: x\n\n'), textFrame(address, 'd')])
    readers.get('a')?.frames.receive(frame);
  expect(ended).toEqual([]);
  readers.get('a')?.frames.receive(sseFrame('d', address, 'data: x\n\n'));
  readers.get('b')?.frames.receive(errorFrame(address, 502, '{}', 'data: x\n\n'));

  expect([ended, left, readers.size]).toEqual([['a', 'b'], [], 0]);
});

it('a call ends when its worker sends no heartbeats any more; one that waits in the queue has none', async () => {
  const calls = open({ detachedSilenceMs: 20 });
  for (const callId of ['queued', 'lost']) {
    follow(calls, callId);
    readers.get(callId)?.onLoss();
  }
  readers.get('lost')?.onBeat(null);

  await eventually(() => ended).toEqual(['lost']);
  expect([...readers.keys()]).toEqual(['queued']);
});

it('a call ends at its deadline', async () => {
  follow(open(), 'a', 20);
  await eventually(() => ended).toEqual(['a']);
});

it('calls beyond the limit count as ended', () => {
  const calls = open({ detachedCalls: 1 });
  for (const callId of ['a', 'b']) follow(calls, callId);
  expect([ended, [...readers.keys()]]).toEqual([['b'], ['a']]);
});

it('a stop leaves the calls, and follows none any more', () => {
  const calls = open();
  for (const callId of ['a', 'b']) follow(calls, callId);
  calls.stop();
  expect([ended, left, readers.size]).toEqual([[], ['a', 'b'], 0]);
});
