import { expect, it } from 'vitest';
import { AwaitedCopy, type Reply, type Stored } from './awaited-copy.ts';

const SENT_AT_MS = 1_000_000;
const own: Stored = { sequence: 10, duplicate: false };
const accepted = { reply: { ok: true, value: {} }, repeat: false } as const;

function refusedAt(sequence?: number, storedAtMs = SENT_AT_MS) {
  return {
    reply: { ok: false, code: 'service.overloaded', message: 'later', ...(sequence !== undefined && { sequence, storedAtMs }) },
    repeat: false,
  } as const;
}

/** The reply that a copy takes of those that arrive, some of them before its acknowledgement. */
async function replyOf(stored: Stored, { early = [], late = [] }: { early?: Reply[]; late?: Reply[] }) {
  const copy = new AwaitedCopy(SENT_AT_MS);
  for (const reply of early) copy.offer(reply);
  copy.stored(stored);
  for (const reply of late) copy.offer(reply);
  return copy.reply;
}

it.each([
  ['an earlier copy', refusedAt(9)],
  ['a log that was replaced', refusedAt(5_000, SENT_AT_MS - 60_000)],
])('passes over a refusal of %s, before and behind its acknowledgement', async (_of, refusal) => {
  expect(await replyOf(own, { early: [refusal], late: [accepted] })).toEqual(accepted);
  expect(await replyOf(own, { late: [refusal, accepted] })).toEqual(accepted);
});

it.each([
  ['its own', refusedAt(10)],
  ['its own, by the clock of a broker that is late', refusedAt(10, SENT_AT_MS - 4_000)],
  ['that of a later copy, which is applied behind it', refusedAt(11)],
  ['one of a host that says no position', refusedAt()],
])('takes a refusal: %s', async (_of, refusal) => {
  expect(await replyOf(own, { early: [refusal] })).toEqual(refusal);
  expect(await replyOf(own, { late: [refusal] })).toEqual(refusal);
});

it('knows that any refusal is of an earlier request when the log has dropped the copy', async () => {
  const repeat = { sequence: 3, duplicate: true };
  expect(await replyOf(repeat, { late: [refusedAt(3)] })).toEqual({ ...refusedAt(3), isOfEarlier: true });
  expect(await replyOf(repeat, { early: [refusedAt(2)] })).toEqual({ ...refusedAt(2), isOfEarlier: true });
  expect(await replyOf(repeat, { early: [refusedAt(2), accepted] })).toEqual(accepted);
});

it('is in doubt only when a refusal’s position is later than its own and its time is not', () => {
  const copy = new AwaitedCopy(SENT_AT_MS);
  copy.stored(own);
  copy.accept(refusedAt(9, 0));
  expect(copy.isDoubtful).toBe(false);
  expect(copy.accept(refusedAt(10, 0)), 'its own, by a broker whose clock is behind').toEqual(refusedAt(10, 0));
  expect(copy.isDoubtful).toBe(false);
  copy.accept(refusedAt(11, 0));
  expect(copy.isDoubtful).toBe(true);
});
