import { setImmediate as nextTurn } from 'node:timers/promises';
import { beforeEach, describe, expect, it } from 'vitest';
import { MAX_USAGE_BYTES } from '../../usage-limits.ts';
import { HeldFrames } from '../tokens/held-frames.ts';
import { PACKED_ID, unpacked } from './packed-records.ts';
import { RecordBatches } from './record-batches.ts';

/** In the order in which they leave: frames, and the records of each message. */
let sent: (string | string[])[];
let ids: string[];
let stored: (messageId: string) => Promise<void>;
let held: HeldFrames;
let batches: RecordBatches;

beforeEach(() => {
  [sent, ids] = [[], []];
  stored = async () => {};
  held = new HeldFrames((subject, frame) => sent.push(`${subject} ${Buffer.from(frame)}`));
  batches = new RecordBatches(held, (messageId, body) => {
    ids.push(messageId);
    const read = messageId.startsWith(PACKED_ID) ? unpacked(body) : [{ messageId, body }];
    sent.push((read ?? []).map((record) => `${record.messageId}=${record.body}`));
    return stored(messageId);
  });
});

const frame = (text: string) => held.publish('tok', Buffer.from(text));

describe('records of one tick', () => {
  it('leave as one message, ahead of every frame that was published behind the first of them', async () => {
    frame('0');
    const both = [batches.append('gen-1', 'a')];
    frame('1');
    await Promise.resolve();
    both.push(batches.append('gen-2', 'b'));
    frame('2');
    expect(sent).toEqual(['tok 0']);
    await nextTurn();
    await Promise.all(both);

    expect(sent).toEqual(['tok 0', ['gen-1=a', 'gen-2=b'], 'tok 1', 'tok 2']);
    frame('3');
    expect(sent.at(-1)).toBe('tok 3');
  });

  it('leave at once when frames do, and in this order', () => {
    void batches.append('gen-1', 'a');
    frame('1');
    held.release();

    expect(sent).toEqual([['gen-1=a'], 'tok 1']);
  });

  it('have the id of a lone record, and otherwise one that is never used again', async () => {
    for (let tick = 0; tick < 3; tick += 1) {
      void batches.append('gen-1', 'a');
      if (tick > 0) void batches.append('gen-2', 'b');
      await nextTurn();
    }

    expect(ids[0]).toBe('gen-1');
    expect(new Set(ids).size).toBe(3);
    expect(ids.slice(1)).not.toContain('gen-1');
  });

  it('have a repeated record once', async () => {
    const appended = [batches.append('gen-1', 'a'), batches.append('gen-1', 'a'), batches.append('gen-2', 'b')];
    await Promise.all(appended.map((one) => one));
    expect(sent).toEqual([['gen-1=a', 'gen-2=b']]);
  });

  it('are stored, or not, together, and those of the next tick by themselves', async () => {
    stored = (messageId) => (messageId === 'gen-3' ? Promise.resolve() : Promise.reject(new Error('full')));
    const first = [batches.append('gen-1', 'a'), batches.append('gen-2', 'b')].map((one) => expect(one).rejects.toThrow('full'));
    await nextTurn();
    await batches.append('gen-3', 'c');
    await Promise.all(first);
  });

  it('are several messages past the size of a record, and past 200', async () => {
    const large = 'x'.repeat(Math.floor(MAX_USAGE_BYTES / 3) - 100);
    for (const id of ['1', '2']) void batches.append(`gen-${id}`, large);
    await nextTurn();
    expect(sent.map((records) => records.length)).toEqual([1, 1]);
    sent = [];
    for (let index = 0; index < 450; index += 1) void batches.append(`gen-${index}`, '');
    await nextTurn();

    expect(sent.map((records) => records.length)).toEqual([200, 200, 50]);
  });
});
