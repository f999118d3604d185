import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { DRIVER_PREFIX } from '../../large-frames.ts';
import { framesIn, isReplayBatch, MAX_BATCHED_BYTES, ReplayBatches } from './replay-batches.ts';

const ONE = 'tok.gw1.one';
const TWO = 'tok.gw1.two';
const textOf = (bytes: Uint8Array) => Buffer.from(bytes).toString();

/** Published batches: the subject, and the frames in each. */
function collecting() {
  const retained: { subject: string; frames: string[]; sizeBytes: number }[] = [];
  const broker = { isUp: true, isReady: true };
  const batches = new ReplayBatches({
    isUp: () => broker.isUp,
    isReady: () => broker.isReady,
    publish: (subject, batch) => {
      expect(isReplayBatch(batch)).toBe(true);
      retained.push({ subject, frames: framesIn(batch).map(textOf), sizeBytes: batch.byteLength });
    },
  });
  const publish = (subject: string, ...texts: string[]) => texts.map((text) => batches.add(subject, Buffer.from(text)));
  return { retained, broker, batches, publish };
}

describe('frames that are retained soon', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it('are stored within a second, half a second of one call as one message', () => {
    const { retained, publish } = collecting();
    expect(publish(ONE, 'a')).toEqual([{ origin: 'gw1', callId: 'one' }]);
    vi.advanceTimersByTime(300);
    publish(TWO, 'x');
    publish(ONE, 'b');
    vi.advanceTimersByTime(100);
    expect(retained).toEqual([]);
    vi.advanceTimersByTime(200);
    expect(retained).toMatchObject([{ subject: ONE, frames: ['a', 'b'] }]);
    publish(ONE, 'c');
    vi.advanceTimersByTime(1_000);

    expect(retained).toMatchObject([{ frames: ['a', 'b'] }, { subject: TWO, frames: ['x'] }, { subject: ONE, frames: ['c'] }]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('are stored before any other frame of their call', () => {
    const { retained, batches, publish } = collecting();
    publish(ONE, 'a', 'b');
    publish(TWO, 'x');
    batches.flush(ONE);
    batches.flush('tok.gw1.never');
    publish(ONE, 'c');
    batches.close();

    expect(retained).toMatchObject([
      { subject: ONE, frames: ['a', 'b'] },
      { subject: TWO, frames: ['x'] },
      { subject: ONE, frames: ['c'] },
    ]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('are not stored when no reader can replay them by then', () => {
    const { retained, batches, publish } = collecting();
    publish(ONE, 'a');
    publish(TWO, 'x');
    expect([batches.drop(ONE), batches.drop('tok.gw1.never')]).toEqual([
      { origin: 'gw1', callId: 'one' },
      { origin: 'gw1', callId: 'never' },
    ]);
    vi.advanceTimersByTime(1_000);
    publish(ONE, 'b');
    vi.advanceTimersByTime(1_000);

    expect(retained).toMatchObject([
      { subject: TWO, frames: ['x'] },
      { subject: ONE, frames: ['b'] },
    ]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('wait while the broker is away, bounded to the size of a message', () => {
    const { retained, broker, batches, publish } = collecting();
    broker.isUp = false;
    broker.isReady = false;
    publish(ONE, 'a');
    publish(TWO, 'x');
    vi.advanceTimersByTime(5_000);
    batches.flush(ONE);
    publish(ONE, 'b');
    broker.isUp = true;
    vi.advanceTimersByTime(5_000);
    expect(retained).toEqual([]);
    // The order of publishing must hold.
    batches.flush(TWO);
    broker.isReady = true;
    vi.advanceTimersByTime(100);

    expect(retained).toMatchObject([{ frames: ['x'] }, { frames: ['a', 'b'] }]);
  });

  it('are live only, once the bus is closed', () => {
    const { retained, batches, publish } = collecting();
    batches.close();

    expect(publish(ONE, 'a')).toEqual([{ origin: 'gw1', callId: 'one' }]);
    expect(vi.getTimerCount()).toBe(0);
    expect(retained).toEqual([]);
  });

  it('are stored at once when they are many, in messages of a bounded size', () => {
    const { retained, batches, publish } = collecting();
    const frames = Array.from({ length: 100 }, (_, index) => String(index).padEnd(MAX_BATCHED_BYTES, '.'));
    publish(ONE, ...frames);
    expect(retained.length).toBeGreaterThan(10);
    batches.close();

    expect(retained.flatMap((batch) => batch.frames)).toEqual(frames);
    expect(Math.max(...retained.map(({ sizeBytes }) => sizeBytes))).toBeLessThanOrEqual(32 * 1024);
  });

  it('are copied: neither their bytes nor those of another batch are overwritten', () => {
    const sent: Uint8Array[] = [];
    const batches = new ReplayBatches({ isUp: () => true, isReady: () => true, publish: (_, batch) => sent.push(batch) });
    for (const text of ['first', 'later']) {
      batches.add(ONE, Buffer.from(text));
      batches.flush(ONE);
    }

    expect(sent.map((batch) => framesIn(batch).map(textOf))).toEqual([['first'], ['later']]);
  });
});

describe('a replay batch', () => {
  it('returns its frames byte for byte', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 700 }), { minLength: 1, maxLength: 40 }), (frames) => {
        const sent: Uint8Array[] = [];
        const batches = new ReplayBatches({ isUp: () => true, isReady: () => true, publish: (_, batch) => sent.push(batch) });
        for (const frame of frames) batches.add(ONE, frame);
        batches.close();
        expect(sent.flatMap(framesIn).map((frame) => Buffer.from(frame).toString('hex'))).toEqual(frames.map((frame) => Buffer.from(frame).toString('hex')));
      }),
    );
  });

  it.each([
    ['nothing', [], []],
    ['half a length', [0], []],
    ['half a frame behind a whole one', [0, 1, 97, 0, 2, 98], ['a']],
  ])('with %s returns its complete frames', (_, rest, frames) => {
    expect(framesIn(Uint8Array.from([DRIVER_PREFIX, ...rest])).map(textOf)).toEqual(frames);
  });
});
