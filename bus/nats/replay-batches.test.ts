import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { DRIVERS_MARK } from '../large-frames.ts';
import { FrameBundles, framesIn, isBundle, MAX_BUNDLED_BYTES } from './replay-batches.ts';

const ONE = 'tok.gw1.one';
const TWO = 'tok.gw1.two';
const textOf = (bytes: Uint8Array) => Buffer.from(bytes).toString();

/** Bundles as they are published: the subject, and the frames in each. */
function collecting() {
  const kept: { subject: string; frames: string[]; sizeBytes: number }[] = [];
  const broker = { isUp: true, isReady: true };
  const bundles = new FrameBundles({
    isUp: () => broker.isUp,
    isReady: () => broker.isReady,
    publish: (subject, bundle) => {
      expect(isBundle(bundle)).toBe(true);
      kept.push({ subject, frames: framesIn(bundle).map(textOf), sizeBytes: bundle.byteLength });
    },
  });
  const say = (subject: string, ...texts: string[]) => texts.map((text) => bundles.add(subject, Buffer.from(text)));
  return { kept, broker, bundles, say };
}

describe('frames that are kept later', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it('are kept within a second, half a second of one call as one message', () => {
    const { kept, say } = collecting();
    expect(say(ONE, 'a')).toEqual([{ origin: 'gw1', callId: 'one' }]);
    vi.advanceTimersByTime(300);
    say(TWO, 'x');
    say(ONE, 'b');
    vi.advanceTimersByTime(100);
    expect(kept).toEqual([]);
    vi.advanceTimersByTime(200);
    expect(kept).toMatchObject([{ subject: ONE, frames: ['a', 'b'] }]);
    say(ONE, 'c');
    vi.advanceTimersByTime(1_000);

    expect(kept).toMatchObject([{ frames: ['a', 'b'] }, { subject: TWO, frames: ['x'] }, { subject: ONE, frames: ['c'] }]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('go before whatever else is kept of their call', () => {
    const { kept, bundles, say } = collecting();
    say(ONE, 'a', 'b');
    say(TWO, 'x');
    bundles.flush(ONE);
    bundles.flush('tok.gw1.never');
    say(ONE, 'c');
    bundles.close();

    expect(kept).toMatchObject([
      { subject: ONE, frames: ['a', 'b'] },
      { subject: TWO, frames: ['x'] },
      { subject: ONE, frames: ['c'] },
    ]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('are not kept when nobody will look back by then', () => {
    const { kept, bundles, say } = collecting();
    say(ONE, 'a');
    say(TWO, 'x');
    expect([bundles.drop(ONE), bundles.drop('tok.gw1.never')]).toEqual([
      { origin: 'gw1', callId: 'one' },
      { origin: 'gw1', callId: 'never' },
    ]);
    vi.advanceTimersByTime(1_000);
    say(ONE, 'b');
    vi.advanceTimersByTime(1_000);

    expect(kept).toMatchObject([
      { subject: TWO, frames: ['x'] },
      { subject: ONE, frames: ['b'] },
    ]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('wait while the broker is away, and are no more than a message then', () => {
    const { kept, broker, bundles, say } = collecting();
    broker.isUp = false;
    broker.isReady = false;
    say(ONE, 'a');
    say(TWO, 'x');
    vi.advanceTimersByTime(5_000);
    bundles.flush(ONE);
    say(ONE, 'b');
    broker.isUp = true;
    vi.advanceTimersByTime(5_000);
    expect(kept).toEqual([]);
    // Nothing may pass what was said before it.
    bundles.flush(TWO);
    broker.isReady = true;
    vi.advanceTimersByTime(100);

    expect(kept).toMatchObject([{ frames: ['x'] }, { frames: ['a', 'b'] }]);
  });

  it('are only live once the bus is closed', () => {
    const { kept, bundles, say } = collecting();
    bundles.close();

    expect(say(ONE, 'a')).toEqual([{ origin: 'gw1', callId: 'one' }]);
    expect(vi.getTimerCount()).toBe(0);
    expect(kept).toEqual([]);
  });

  it('are kept at once when they are many, in messages of a bounded size', () => {
    const { kept, bundles, say } = collecting();
    const frames = Array.from({ length: 100 }, (_, place) => String(place).padEnd(MAX_BUNDLED_BYTES, '.'));
    say(ONE, ...frames);
    expect(kept.length).toBeGreaterThan(10);
    bundles.close();

    expect(kept.flatMap((bundle) => bundle.frames)).toEqual(frames);
    expect(Math.max(...kept.map(({ sizeBytes }) => sizeBytes))).toBeLessThanOrEqual(32 * 1024);
  });

  it('are copied: neither their bytes nor those of another bundle are written over', () => {
    const sent: Uint8Array[] = [];
    const bundles = new FrameBundles({ isUp: () => true, isReady: () => true, publish: (_, bundle) => sent.push(bundle) });
    for (const text of ['first', 'later']) {
      bundles.add(ONE, Buffer.from(text));
      bundles.flush(ONE);
    }

    expect(sent.map((bundle) => framesIn(bundle).map(textOf))).toEqual([['first'], ['later']]);
  });
});

describe('a bundle', () => {
  it('gives back its frames byte for byte', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 700 }), { minLength: 1, maxLength: 40 }), (frames) => {
        const sent: Uint8Array[] = [];
        const bundles = new FrameBundles({ isUp: () => true, isReady: () => true, publish: (_, bundle) => sent.push(bundle) });
        for (const frame of frames) bundles.add(ONE, frame);
        bundles.close();
        expect(sent.flatMap(framesIn).map((frame) => Buffer.from(frame).toString('hex'))).toEqual(frames.map((frame) => Buffer.from(frame).toString('hex')));
      }),
    );
  });

  it.each([
    ['nothing', [], []],
    ['half a length', [0], []],
    ['half a frame behind a whole one', [0, 1, 97, 0, 2, 98], ['a']],
  ])('that holds %s gives what is whole', (_, rest, frames) => {
    expect(framesIn(Uint8Array.from([DRIVERS_MARK, ...rest])).map(textOf)).toEqual(frames);
  });
});
