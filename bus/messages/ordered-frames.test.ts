import { setImmediate as nextTurn } from 'node:timers/promises';
import { beforeEach, describe, expect, it } from 'vitest';
import { unstatedTemplate } from '#shared/surfaces/chat-completions/unstated-template.ts';
import { attemptOf } from './attempt-number.ts';
import { bodyFrame, errorFrame, sseFrame, templateFrame, textFrame } from './frame.ts';
import { type FrameSource, OrderedFrames } from './ordered-frames.ts';
import { firstFrames } from './test-support/first-frames.ts';
import { readyFrames } from './test-support/ready-frames.ts';

const CALL = 'gen-gw1-01ARZ3NDEKTSV4RRFFQ69G5FAV-tag';
const template = { prefix: 'data: {"text":', suffix: '}\n\n' };
const at = (seq: number, attempt = 1) => ({ callId: CALL, attempt, seq });
const stating = (seq: number, attempt = 1) => templateFrame(at(seq, attempt), template, `data: ${attempt}.${seq}\n\n`);
const more = (seq: number, attempt = 1) => sseFrame('m', at(seq, attempt), `data: ${attempt}.${seq}\n\n`);
const text = (seq: number, attempt = 1) => textFrame(at(seq, attempt), `"${attempt}.${seq}"`);
const done = (seq: number) => sseFrame('d', at(seq), 'data: a\n\ndata: b\n\n');

let seen: string[];
let asked: string[];
beforeEach(() => {
  seen = [];
  asked = [];
});

/** What a reader reports; `replays` are given in turn, the last one again and again. */
function reading(replays: Uint8Array[][] = [[]], about: Partial<FrameSource> = {}, isWilling = true): OrderedFrames {
  const replay = async (upTo: string) => {
    asked.push(upTo);
    return replays[Math.min(asked.length, replays.length) - 1] ?? [];
  };
  const note = (what: string) => () => {
    seen.push(what);
  };
  const frames: OrderedFrames = new OrderedFrames(
    { callId: CALL, replay, maxPendingBytes: 1_000, unstatedTemplate, ...about },
    {
      onReady: (frame) => seen.push(frame.kind === 'body' ? 'body' : `${frame.kind} ${frame.attempt}.${frame.seq}`),
      onText: (frame, own) => seen.push(Buffer.from(own.eventOf(frame.seq, frame.text)).toString().split('\n').slice(1, 2).join()),
      onAttempt: ({ attempt }) => {
        if (attempt > 1) seen.push(`attempt ${attempt}`);
        return isWilling || attempt === 1;
      },
      onNothingLeft: note('nothing left'),
      onLost: ({ seq }) => {
        seen.push(`lost before ${seq}`);
        frames.close();
      },
      onForeign: note('foreign'),
      onOverflow: note('overflow'),
      onReplayed: (error) => seen.push(error === null ? 'replayed' : 'not replayed'),
    },
  );
  return frames;
}

function receive(frames: OrderedFrames, ...bytes: Uint8Array[]): void {
  for (const one of bytes) frames.receive(one);
}

describe('the frames of a call', () => {
  it('are delivered as they come, repeated ones and those of a lower attempt are not', () => {
    receive(reading(), stating(1), text(2), text(2), stating(1), stating(1, 2), text(3, 1), text(2, 2), Buffer.from('nonsense'), bodyFrame(200, '{}'));

    expect(seen).toEqual(['content 1.1', 'data: {"text":"1.2"}', 'attempt 2', 'content 2.1', 'data: {"text":"2.2"}', 'foreign', 'body']);
  });

  it('of an attempt that is not wanted are not delivered', () => {
    receive(reading([[]], {}, false), stating(1), stating(1, 2), text(2));

    expect(seen).toEqual(['content 1.1', 'attempt 2', 'data: {"text":"1.2"}']);
  });

  describe('of two deliveries with one number', () => {
    const [first, second] = [attemptOf(2, 7), attemptOf(2, 8)];
    const open = (attempt: number) => sseFrame('o', at(1, attempt), 'data: role\n\n');
    const more = (seq: number, attempt: number) => sseFrame('m', at(seq, attempt), 'data: x\n\n');

    it('are those of the one that has content first, whatever the other sends', () => {
      receive(reading(), stating(1, first), stating(1, second), text(2, second), text(2, first), sseFrame('d', at(3, second), 'data: end\n\n'), text(3, first));

      expect(seen).toEqual([`attempt ${first}`, `content ${first}.1`, `data: {"text":"${first}.2"}`, `data: {"text":"${first}.3"}`]);
    });

    it.each([
      { what: 'the first has content first', live: [open(first), open(second), more(2, first), more(2, second)], shown: first, replays: 0 },
      { what: 'the second has content first', live: [open(first), open(second), more(2, second), more(2, first)], shown: second, replays: 1 },
    ])('are read from the beginning of that one: $what', async ({ live, shown, replays }) => {
      receive(reading([live]), ...live, more(3, shown));
      await nextTurn();

      expect(seen.filter((what) => what.startsWith('lost'))).toEqual([]);
      expect(asked).toHaveLength(replays);
      const begun = seen.lastIndexOf(`attempt ${shown}`);
      expect(seen.slice(begun).filter((what) => /^(open|content)/.test(what))).toEqual([`open ${shown}.1`, `content ${shown}.2`, `content ${shown}.3`]);
    });

    it.each(['open', 'error'])('begin anew with content of the second, and not with its %s', (kind) => {
      const frame = kind === 'open' ? open(second) : errorFrame(at(1, second), 502, '{}', 'data: x\n\n');
      receive(reading(), open(first), frame, stating(2, first));

      expect(seen).toEqual([`attempt ${first}`, `open ${first}.1`, `content ${first}.2`]);
    });

    it('are not mixed behind the position of a resumed reader', async () => {
      const frames = reading([[stating(1, second), text(2, second), text(3, second)]]);
      frames.resume({ attempt: first, seq: 2, events: 1 });
      frames.replay();
      await nextTurn();
      receive(frames, sseFrame('d', at(4, second), 'data: end\n\n'));

      expect(seen).toEqual(['replayed']);
    });
  });

  it('have the template of their own attempt', () => {
    const other = templateFrame(at(1, 2), { prefix: 'data: [', suffix: ']\n\n' }, 'data: x\n\n');
    receive(reading(), stating(1), other, stating(2), text(2, 2));

    expect(seen.at(-1)).toBe('data: ["2.2"]');
  });

  it('that came while the stored ones were read follow them', async () => {
    const frames = reading([[stating(1), text(2)]]);
    receive(frames, text(3), more(4));
    expect([seen, frames.isCatchingUp]).toEqual([[], true]);
    await nextTurn();
    receive(frames, text(5));

    expect(seen).toEqual(['content 1.1', 'data: {"text":"1.2"}', 'data: {"text":"1.3"}', 'content 1.4', 'replayed', 'data: {"text":"1.5"}']);
    expect(asked).toEqual(['kept']);
  });

  it('that are missing are looked for three times, then they are lost', async () => {
    const frames = reading([[stating(1)]]);
    receive(frames, stating(1), text(3));
    for (let turn = 0; turn < 4; turn += 1) await nextTurn();
    receive(frames, text(4));

    expect(asked).toEqual(['kept', 'now', 'now']);
    expect(seen).toEqual(['content 1.1', 'lost before 3']);
  });

  it('are lost as well when the stored ones can not be read', async () => {
    const replay = (upTo: string) => {
      asked.push(upTo);
      return Promise.reject(new Error('no'));
    };
    receive(reading([], { replay }), stating(1), errorFrame(at(3), 502, '{}', 'data: e\n\n'));
    for (let turn = 0; turn < 4; turn += 1) await nextTurn();

    expect([asked.length, seen]).toEqual([3, ['content 1.1', 'lost before 3']]);
  });

  it('are not held without limit while the stored ones are read', () => {
    const frames = reading([[]], { replay: () => new Promise(() => {}) });
    receive(frames, ...Array.from({ length: 100 }, (_, index) => text(index + 3)));

    expect(seen[0]).toBe('overflow');
  });

  it('are not delivered once the reader has closed', async () => {
    const frames = reading([[stating(1), text(2)]]);
    receive(frames, text(2));
    frames.close();
    await nextTurn();
    receive(frames, stating(1));

    expect(seen).toEqual([]);
  });
});

describe('a text', () => {
  it('without a template is looked for like a missing frame', async () => {
    receive(reading([[stating(1)]]), more(1), text(2));
    await nextTurn();

    expect(seen).toEqual(['content 1.1', 'data: {"text":"1.2"}', 'replayed']);
  });

  it('is not put into the template of a lower attempt', async () => {
    receive(reading([[stating(1, 2)]]), stating(1), more(1, 2), text(2, 2));
    await nextTurn();

    expect(seen.slice(2)).toEqual(['content 2.1', 'data: {"text":"2.2"}', 'replayed']);
    expect(asked).toEqual(['kept']);
  });

  it.each([
    ['no chunk', 'data: anything\n\n'],
    ['a chunk without choices', 'data: {"id":"a"}\n\n'],
    ['a chunk behind a comment', ': comment\n\ndata: {"id":"a","choices":[{}]}\n\n'],
    ['a chunk behind one without choices', 'data: {"id":"a"}\n\ndata: {"id":"a","choices":[{}]}\n\n'],
  ])('has no template behind content of the release before that begins with %s', (_, events) => {
    receive(reading(), sseFrame('c', at(1), events), text(2));

    expect([seen, asked]).toEqual([['content 1.1'], ['kept']]);
  });

  it('of a worker of the release before has the template of its chunks', () => {
    const [first = new Uint8Array(), second = new Uint8Array(), end = new Uint8Array()] = firstFrames(
      CALL,
      { created: 7, model: 'odd","choices":[ \u00e9', provider: 'East' },
      1,
      ['a', 'b'],
    );
    const [opening, content] = readyFrames(CALL, [first, second, end]).map((frame) => ('sse' in frame ? Buffer.from(frame.sse).toString() : ''));

    expect(content).toBe(
      opening
        ?.slice(opening.indexOf(`id: ${CALL}.1.1.2`))
        .replace('.1.1.2', '.1.2')
        .replace('"content":"a"', '"content":"b"'),
    );
  });
});

describe('a resumed reader', () => {
  const resumed = async (after: { seq: number; events: number } | null, stored: Uint8Array[]) => {
    const frames = reading([stored]);
    frames.resume(after && { attempt: 1, ...after });
    frames.replay();
    await nextTurn();
  };

  it('gets nothing before the first replay, and then what it does not have', async () => {
    await resumed({ seq: 2, events: 1 }, [stating(1), text(2), text(3)]);
    expect(seen).toEqual(['data: {"text":"1.3"}', 'replayed']);
  });

  it('gets the rest of a frame, of which it has some events', async () => {
    await resumed({ seq: 4, events: 1 }, [done(4)]);
    expect(seen).toEqual(['done 1.4', 'replayed']);
  });

  it('gets the template from any frame: the first may be expired', async () => {
    await resumed({ seq: 7, events: 1 }, [Buffer.from('nonsense'), text(7), text(8), stating(1, 2), stating(9)]);
    expect(seen.slice(0, 2)).toEqual(['foreign', 'data: {"text":"1.8"}']);
  });

  it('learns that it has all', async () => {
    await resumed({ seq: 4, events: 2 }, [done(4)]);
    expect(seen[0]).toBe('nothing left');
  });
});
