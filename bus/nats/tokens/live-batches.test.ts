import { setImmediate as nextTurn } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { atTickEnd } from '../connection/tick-end.ts';
import { eachFrameIn, LiveBatches, liveAddressOf } from './live-batches.ts';

const textOf = (bytes: Uint8Array) => Buffer.from(bytes).toString('latin1');

/** Published batches, and the frames of one origin. */
function collecting() {
  const sent: { subject: string; batch: Uint8Array }[] = [];
  const received: string[] = [];
  const read = (subject: string, message: Uint8Array) =>
    eachFrameIn(subject, message, (retainedAt, callId, frame) => received.push(`${retainedAt}${callId} ${textOf(frame)}`));
  const batches = new LiveBatches((subject, batch) => {
    sent.push({ subject, batch });
    if (subject.startsWith('live.gw1.')) read(subject, batch);
  });
  const say = (subject: string, text: string) => batches.add(liveAddressOf(subject), Buffer.from(text, 'latin1'));
  return { sent, received, batches, read, say };
}

describe('frames that are said in one turn of the event loop', () => {
  it('go as one message to each origin, and come as they were said', async () => {
    const { sent, received, say } = collecting();
    say('tok.gw1.one', 'a');
    await Promise.resolve();
    say('tok.gw2.other', 'x');
    say('tok.gw1.two', 'b');
    say('tok.gw1.one', 'c');
    expect(sent).toEqual([]);
    await nextTurn();

    expect(sent.map(({ subject }) => subject)).toEqual(['live.gw1._batch', 'live.gw2._batch']);
    expect(received).toEqual(['tok.gw1.one a', 'tok.gw1.two b', 'tok.gw1.one c']);
    say('tok.gw1.one', 'd');
    await nextTurn();
    expect(received.at(-1)).toBe('tok.gw1.one d');
  });

  it('go before whatever else is sent, and are sent once', async () => {
    const { sent, batches, say } = collecting();
    say('tok.gw1.one', 'a');
    batches.flush();
    expect(sent).toHaveLength(1);
    await nextTurn();

    expect(sent).toHaveLength(1);
  });

  it('go with the next turn when they are said while this one ends', async () => {
    const { received, say } = collecting();
    atTickEnd(() => {
      say('tok.gw1.one', 'a');
      queueMicrotask(() => say('tok.gw1.one', 'b'));
    });
    await nextTurn();
    await nextTurn();
    await nextTurn();

    expect(received).toEqual(['tok.gw1.one a', 'tok.gw1.one b']);
  });

  it('do not wait when they are much', () => {
    const { sent, received, say } = collecting();
    for (let count = 0; count < 40; count += 1) say('tok.gw1.one', 'x'.repeat(4_000));

    expect(sent.length).toBeGreaterThan(1);
    expect(Math.max(...sent.map(({ batch }) => batch.byteLength))).toBeLessThan(128 * 1_024);
    expect(received.length).toBeGreaterThan(30);
  });

  it('come back byte for byte, whatever they are, and from a batch that was cut off as far as it goes', async () => {
    const frame = fc.record({ call: fc.constantFrom('one', 'gen-01J8ZQ5T0M8W6', 'x'.repeat(128)), bytes: fc.uint8Array({ maxLength: 600 }) });
    await fc.assert(
      fc.asyncProperty(fc.array(frame, { minLength: 1, maxLength: 12 }), fc.nat(), async (frames, cut) => {
        const { sent, received, batches, read } = collecting();
        for (const { call, bytes } of frames) batches.add({ origin: 'gw1', callId: call }, bytes);
        batches.flush();
        const expected = frames.map(({ call, bytes }) => `tok.gw1.${call} ${textOf(bytes)}`);
        expect(received).toEqual(expected);

        received.length = 0;
        const whole = sent[0]?.batch ?? new Uint8Array();
        read('live.gw1._batch', whole.subarray(0, cut % whole.byteLength));
        expect(received).toEqual(expected.slice(0, received.length));
      }),
    );
  });
});

it('a frame that came by itself is one too: older workers send such', () => {
  const { received, read } = collecting();
  read('live.gw1.one', Buffer.from('a'));

  expect(received).toEqual(['tok.gw1.one a']);
});
