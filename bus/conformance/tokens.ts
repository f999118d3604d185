import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { Collector, eventually, type UnderTest } from './under-test.ts';

function bytesOf(text: string): Uint8Array {
  return Buffer.from(text);
}

function textOf(frame: Uint8Array): string {
  return Buffer.from(frame).toString();
}

/** The first letter of a frame that is stored so (messages/retention.ts). */
const LETTERS = { 'at once': 'd', soon: 't', 'no more': 'D' } as const;

/** Compared instead of the bytes: millions of them take seconds. */
function hashOf(frame: Uint8Array): string {
  return createHash('sha256').update(frame).digest('hex');
}

export function tokenCases(underTest: UnderTest): void {
  describe('tokens', () => {
    it('reach the subscribers of their origin, in order and byte for byte', async () => {
      const { bus } = underTest();
      const [mine, others] = [new Collector<string>(), new Collector<string>()];
      bus.tokens.subscribe('tok.gw1.*', (subject, frame) => mine.add(`${subject} ${textOf(frame)}`));
      bus.tokens.subscribe('tok.gw2.*', (_, frame) => others.add(textOf(frame)));
      const frames = Array.from({ length: 300 }, (_, index) => `frame ${index} \u{1f600}`);
      for (const frame of frames) bus.tokens.publish('tok.gw1.call1', bytesOf(frame));
      bus.tokens.publish('tok.gw2.call2', bytesOf('other'));

      expect(await others.atLeast(1)).toEqual(['other']);
      expect(await mine.atLeast(frames.length)).toEqual(frames.map((frame) => `tok.gw1.call1 ${frame}`));
    });

    it('no longer reach a subscriber that stopped', async () => {
      const { bus } = underTest();
      const [stopped, standing] = [new Collector<string>(), new Collector<string>()];
      const subscription = bus.tokens.subscribe('tok.gw1.*', (_, frame) => stopped.add(textOf(frame)));
      bus.tokens.subscribe('tok.gw1.call1', (_, frame) => standing.add(textOf(frame)));
      bus.tokens.publish('tok.gw1.call1', bytesOf('a'));
      await stopped.atLeast(1);
      await subscription.stop();
      bus.tokens.publish('tok.gw1.call1', bytesOf('b'));

      expect(await standing.atLeast(2)).toEqual(['a', 'b']);
      expect(stopped.items).toEqual(['a']);
    });

    it.each(['at once', 'soon'] as const)(
      'that are retained %s no longer reach a reader that stopped at the one before, and a reader that throws does not affect others',
      async (retention) => {
        const { bus } = underTest();
        const [stopped, throwing, standing] = [new Collector<string>(), new Collector<string>(), new Collector<string>()];
        const subscription = bus.tokens.subscribe('tok.gw1.*', (_, frame) => {
          stopped.add(textOf(frame));
          void subscription.stop();
        });
        bus.tokens.subscribe('tok.gw1.*', (_, frame) => {
          throwing.add(textOf(frame));
          throw new Error('a reader that is broken');
        });
        bus.tokens.subscribe('tok.gw1.call2', (_, frame) => standing.add(textOf(frame)));
        for (const [call, text] of ['a', 'b', 'c'].entries()) bus.tokens.publish(`tok.gw1.call${call}`, bytesOf(`${LETTERS[retention]}${text}`));

        const frames = ['a', 'b', 'c'].map((text) => `${LETTERS[retention]}${text}`);
        expect(await throwing.atLeast(3)).toEqual(frames);
        expect(await standing.atLeast(1)).toEqual(frames.slice(2));
        expect(stopped.items).toEqual(frames.slice(0, 1));
      },
    );

    it('are retained, so that a reader can replay one call', async () => {
      const { bus } = underTest();
      for (const index of [1, 2, 3]) {
        bus.tokens.publish('tok.gw1.call1', bytesOf(`a${index}`));
        bus.tokens.publish('tok.gw1.call2', bytesOf(`b${index}`));
      }
      const replay = await eventually(
        () => bus.tokens.replay('tok.gw1.call2'),
        (frames) => frames.length >= 3,
      );

      expect(replay.map(textOf)).toEqual(['b1', 'b2', 'b3']);
    });

    it('may be larger than any message, and are delivered whole and in order, live and replayed', async () => {
      const { bus } = underTest();
      const received = new Collector<string>();
      bus.tokens.subscribe('tok.gw1.*', (_, frame) => received.add(hashOf(frame)));
      const frames = [bytesOf('before'), Buffer.alloc(5_000_000, 'frame '), Buffer.alloc(600_000), bytesOf('after')];
      for (const frame of frames) bus.tokens.publish('tok.gw1.call1', frame);

      expect(await received.atLeast(frames.length)).toEqual(frames.map(hashOf));
      const kept = await eventually(
        () => bus.tokens.replay('tok.gw1.call1'),
        (replayed) => replayed.length >= frames.length,
      );
      expect(kept.map(hashOf)).toEqual(frames.map(hashOf));
    });

    it('that are retained soon are live at once, in order among those that are retained at once', async () => {
      const { bus } = underTest();
      const received = new Collector<string>();
      bus.tokens.subscribe('tok.gw1.*', (subject, frame) => received.add(`${subject} ${textOf(frame)}`));
      const frames = Array.from({ length: 40 }, (_, index) => `${LETTERS[index % 7 === 0 ? 'at once' : 'soon']} ${index}`);
      for (const frame of frames) bus.tokens.publish('tok.gw1.call1', bytesOf(frame));
      const whole = frames.map((frame) => `tok.gw1.call1 ${frame}`);
      expect(await received.atLeast(whole.length)).toEqual(whole);

      expect((await bus.tokens.replay('tok.gw1.call1', 'now')).map(textOf)).toEqual(frames);
      expect(received.items).toEqual(whole);
    });

    it('that are retained soon are all stored once one of their call is that is retained at once', async () => {
      const { bus } = underTest();
      for (const text of ['ta', 'tb', 'tc']) bus.tokens.publish('tok.gw1.call1', bytesOf(text));
      bus.tokens.publish('tok.gw1.call1', bytesOf('end'));
      const kept = await eventually(
        () => bus.tokens.replay('tok.gw1.call1'),
        (frames) => frames.length > 0 && textOf(frames.at(-1) ?? bytesOf('')) === 'end',
      );

      expect(kept.map(textOf)).toEqual(['ta', 'tb', 'tc', 'end']);
    });

    it('that need no retention any more are live in order, and pending ones of them are not stored', async () => {
      const { bus } = underTest();
      const received = new Collector<string>();
      bus.tokens.subscribe('tok.gw1.*', (subject, frame) => received.add(`${subject} ${textOf(frame)}`));
      const frames = (['at once', 'soon', 'no more'] as const).map((retention) => LETTERS[retention]);
      for (const frame of frames) bus.tokens.publish('tok.gw1.call1', bytesOf(frame));
      expect(await received.atLeast(frames.length)).toEqual(frames.map((frame) => `tok.gw1.call1 ${frame}`));

      const kept = (await bus.tokens.replay('tok.gw1.call1', 'now')).map(textOf);
      expect(kept[0]).toBe(LETTERS['at once']);
      expect(kept).not.toContain(LETTERS['no more']);
      // A call that continues is stored again.
      bus.tokens.publish('tok.gw1.call1', bytesOf('t after'));
      expect((await bus.tokens.replay('tok.gw1.call1', 'now')).map(textOf)).toEqual([...kept, 't after']);
    });

    it('are retained whatever their first byte and their size', async () => {
      const { bus } = underTest();
      const received = new Collector<string>();
      bus.tokens.subscribe('tok.gw1.*', (_, frame) => received.add(hashOf(frame)));
      const marked = [0, 1, 2, 255].map((first) => Buffer.from([first, 0, 1, 97]));
      const sizes = [1, 10_000, 600_000].flatMap((size) => ['t', 'x'].map((letter) => Buffer.alloc(size, letter)));
      const frames = [...marked, Buffer.alloc(0), ...sizes, bytesOf('end')];
      for (const frame of frames) bus.tokens.publish('tok.gw1.call1', frame);

      expect(await received.atLeast(frames.length)).toEqual(frames.map(hashOf));
      expect((await bus.tokens.replay('tok.gw1.call1', 'now')).map(hashOf)).toEqual(frames.map(hashOf));
    });

    it('have an empty replay for an unknown call', async () => {
      const { bus } = underTest();
      bus.tokens.publish('tok.gw1.call1', bytesOf('a'));

      expect(await bus.tokens.replay('tok.gw1.call9')).toEqual([]);
    });
  });
}

export function tokenWindowCases(underTest: UnderTest): void {
  describe('tokens: later', () => {
    it('are no longer retained, each by its own age', async () => {
      const { bus, windows, pass } = underTest();
      const kept = async () => (await bus.tokens.replay('tok.gw1.call1')).map(textOf).join();
      bus.tokens.publish('tok.gw1.call1', bytesOf('old'));
      await eventually(kept, (frames) => frames === 'old');
      await pass(windows.replayMs / 2);
      bus.tokens.publish('tok.gw1.call1', bytesOf('young'));
      await eventually(kept, (frames) => frames === 'old,young');
      await pass(windows.replayMs / 2);
      await eventually(kept, (frames) => frames === 'young');
      await pass(windows.replayMs / 2);

      expect(await eventually(kept, (frames) => frames === '')).toBe('');
    });
  });
}
