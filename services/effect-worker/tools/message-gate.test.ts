import { describe, expect, it } from 'vitest';
import { type BodyGate, jsonGate, messageGate } from './message-gate.ts';
import { STRUCTURED_TEXT } from './structured-text.ts';

const ID = 7;
const answer = (result: unknown) => ({ jsonrpc: '2.0', id: ID, result });
const event = (message: unknown) => `data: ${JSON.stringify(message)}\n\n`;
const progress = { jsonrpc: '2.0', method: 'notifications/progress', params: {} };
const ping = { jsonrpc: '2.0', id: 'p', method: 'ping' };

/** What passes of a body in these pieces, and the failure that ends it. */
async function passed(gate: BodyGate, ...pieces: (string | Uint8Array)[]): Promise<{ text: string; slices: number; failure: unknown }> {
  let text = '';
  let slices = 0;
  try {
    for (const piece of pieces) {
      for await (const slice of gate.pass(typeof piece === 'string' ? Buffer.from(piece) : piece)) {
        text += Buffer.from(slice).toString();
        slices += 1;
      }
    }
    text += Buffer.from(gate.end()).toString();
  } catch (failure) {
    return { text, slices, failure };
  }
  return { text, slices, failure: null };
}

/** Deterministic random bytes. */
function noise(sizeBytes: number, isAllowed: (byte: number) => boolean = () => true): Uint8Array {
  let state = 1;
  return Uint8Array.from({ length: sizeBytes }, () => {
    do state = (state * 48_271) % 2_147_483_647;
    while (!isAllowed(state & 255));
    return state & 255;
  });
}

describe('an event stream of a tool server', () => {
  it('passes messages with their ids, however they are split and ended', async () => {
    const text = `: hello\r\n\r\nid: 1\r\ndata: {"jsonrpc":"2.0",\r\ndata: "id":1,"method":"a"}\r\n\r\nevent: ping\ndata: 1\n\nid: 2\ndata:\n\n${event(answer('é'))}`;
    const whole = `id: 1\ndata: {"jsonrpc":"2.0",\ndata: "id":1,"method":"a"}\n\nid: 2\ndata:\n\n${event(answer('é'))}`;
    expect(await passed(messageGate(ID), text)).toMatchObject({ text: whole, failure: null });
    const bytes = Buffer.from(text);
    expect(await passed(messageGate(ID), ...[...bytes.keys()].map((at) => bytes.subarray(at, at + 1)))).toMatchObject({ text: whole, failure: null });
  });

  it.each([
    ['no JSON', 'data: x\n\n'],
    ['no message', 'data: {"id":1}\n\n'],
    ['of another version', 'data: {"jsonrpc":"1.0","method":"a"}\n\n'],
  ])('ends at the tenth message that is %s', async (_, foreign) => {
    expect(await passed(messageGate(ID), foreign.repeat(9) + event(answer(1)))).toEqual({ text: event(answer(1)), slices: 1, failure: null });
    const { text, failure } = await passed(messageGate(ID), ...Array.from({ length: 10 }, () => foreign), event(answer(1)));
    expect(text).toBe('');
    expect(failure).toMatchObject({ kind: 'unreadable', sent: true });
  });

  it('DESIGN 13: the event loop is yielded to for every 16 KiB of a tool server’s stream', async () => {
    let turns = 0;
    let next = setImmediate(function turn() {
      turns += 1;
      next = setImmediate(turn);
    });
    const padded = event({ ...ping, params: { padding: 'x'.repeat(1_500) } });
    const flood = padded.repeat(Math.floor(1_000_000 / padded.length));
    const { text, slices, failure } = await passed(messageGate(ID), flood);
    clearImmediate(next);
    expect({ text: text === flood, failure }).toEqual({ text: true, failure: null });
    expect(slices).toBeGreaterThanOrEqual(61);
    expect(turns).toBeGreaterThanOrEqual(slices - 1);
  });

  it.each([
    ['progress', event(progress).repeat(25_000)],
    ['comments', ': still here\n\n'.repeat(90_000)],
    ['random bytes', noise(1_200_000)],
    ['random bytes without an end of a line', noise(1_200_000, (byte) => byte !== 10 && byte !== 13)],
    ['empty lines', '\n'.repeat(1_200_000)],
  ])('brings no more than 1 MiB beside its answer: %s', async (_, flood) => {
    const { failure } = await passed(messageGate(ID), flood, event(answer(1)));
    expect(failure).toMatchObject({ kind: 'unreadable', message: expect.stringContaining('1048576 bytes beside') });
  });

  it('may bring an answer of several MiB, after a little of something else', async () => {
    const large = event(answer('x'.repeat(4_000_000)));
    const pieces = Array.from({ length: Math.ceil(large.length / 65_536) }, (_, at) => large.slice(at * 65_536, (at + 1) * 65_536));
    const { text, failure } = await passed(messageGate(ID), event(ping), ...pieces, event(ping));
    expect({ isWhole: text === event(ping) + large + event(ping), failure }).toEqual({ isWhole: true, failure: null });
    expect((await passed(messageGate(undefined), ...pieces)).failure).toMatchObject({ kind: 'unreadable' });
  });

  it('passes no notification that the client does not use, and progress ten times a second', async () => {
    let nowMs = 0;
    const gate = messageGate(ID, () => nowMs);
    const changed = { jsonrpc: '2.0', method: 'notifications/tools/list_changed' };
    const acknowledged = { jsonrpc: '2.0', method: 'notifications/subscriptions/acknowledged', params: {} };
    const logged = { jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'x' } };
    expect((await passed(gate, event(progress) + event(logged) + event(progress) + event(acknowledged) + event(changed) + event(ping))).text).toBe(
      event(progress) + event(acknowledged) + event(changed) + event(ping),
    );
    nowMs = 99;
    expect((await passed(gate, `id: 7\n${event(progress)}`)).text).toBe('id: 7\ndata:\n\n');
    nowMs = 100;
    expect((await passed(gate, `id: 8\n${event(progress)}`)).text).toBe(`id: 8\n${event(progress)}`);
    const { text, failure } = await passed(gate, event(progress).repeat(9_000) + event(answer(1)));
    expect({ text, failure }).toEqual({ text: event(answer(1)), failure: null });
  });

  it('passes no more than a thousand messages of other kinds within a minute', async () => {
    let nowMs = 0;
    const gate = messageGate(ID, () => nowMs);
    expect((await passed(gate, event(ping).repeat(1_000))).failure).toBeNull();
    nowMs = 60_000;
    expect((await passed(gate, event(ping).repeat(1_000))).failure).toBeNull();
    expect((await passed(gate, event(ping))).failure).toMatchObject({ kind: 'unreadable', message: expect.stringContaining('1000 messages beside') });
  });

  it.each(['{},', '[],', '[', '1,'])('DESIGN 13: an answer has a bounded number of values: %s', async (piece) => {
    const large = `data: {"jsonrpc":"2.0","id":7,"result":[${piece.repeat(250_000)}\n\n`;
    expect((await passed(messageGate(ID), large)).failure).toMatchObject({ kind: 'unreadable', message: expect.stringContaining('200000 values') });
    expect((await passed(jsonGate(), large.slice('data: '.length))).failure).toMatchObject({
      kind: 'unreadable',
      message: expect.stringContaining('200000 values'),
    });
  });

  it('may have any characters in its texts, however it is split', async () => {
    const text = `{"a":"${'\\"[{,'.repeat(100_000)}","b":"\\\\"}`;
    const bytes = Buffer.from(text);
    const pieces = Array.from({ length: 800 }, (_, at) => bytes.subarray(at * 1_001, (at + 1) * 1_001));
    expect(JSON.parse(text).b).toBe('\\');
    expect(await passed(jsonGate(), ...pieces)).toMatchObject({ text, failure: null });
  });

  it('DESIGN 13: that answers no request stays open as long as it has at most 16 KiB a second', async () => {
    let nowMs = 0;
    const gate = messageGate(undefined, () => nowMs);
    const asMuchAsGoes = { text: event(progress).repeat(Math.floor(16_384 / event(progress).length)), comments: ': still here\n\n'.repeat(1_170) };
    for (let second = 0; second < 300; second += 1) {
      nowMs += 1_000;
      const { failure } = await passed(gate, second % 2 === 0 ? asMuchAsGoes.text : asMuchAsGoes.comments);
      expect(failure, `second ${second}`).toBeNull();
    }
    expect((await passed(gate, event(progress).repeat(25_000))).failure).toMatchObject({
      kind: 'unreadable',
      message: expect.stringContaining('16384 each second'),
    });
  });

  it('that answers no request may have one message a minute that is not JSON-RPC', async () => {
    let nowMs = 0;
    const gate = messageGate(undefined, () => nowMs);
    for (let minute = 0; minute < 50; minute += 1) {
      nowMs += 60_000;
      expect((await passed(gate, 'data: x\n\n')).failure).toBeNull();
    }
    expect((await passed(gate, 'data: x\n\n'.repeat(10))).failure).toMatchObject({ kind: 'unreadable' });
  });

  it('that answers no request buffers at most 1 MiB of an incomplete event, however slowly it comes', async () => {
    let nowMs = 0;
    const gate = messageGate(undefined, () => nowMs);
    const slowly = async (text: string) => {
      nowMs += 60_000;
      return (await passed(gate, text)).failure;
    };
    let failure = await slowly('data: ');
    let sentBytes = 0;
    for (; failure === null && sentBytes < 4_000_000; sentBytes += 16_384) failure = await slowly('x'.repeat(16_384));
    expect(failure).toMatchObject({ kind: 'unreadable', message: expect.stringContaining('1048576 characters') });
    expect(sentBytes).toBeLessThanOrEqual(1_048_576 + 16_384);
  });

  it('is resumed after a second at the earliest', async () => {
    expect((await passed(messageGate(ID), `retry: 0\n\n${event(progress)}`)).text).toBe(`retry: 1000\n${event(progress)}`);
  });
});

describe('a JSON answer', () => {
  it('is one message of any size, or a list of up to 64 KiB', async () => {
    expect((await passed(jsonGate(), ' {"a":"', 'x'.repeat(100_000), '"}')).failure).toBeNull();
    expect((await passed(jsonGate(), '\n [', '1,'.repeat(20_000), '1]')).failure).toBeNull();
    expect((await passed(jsonGate(), '\n [', '1,'.repeat(40_000), '1]')).failure).toMatchObject({ kind: 'unreadable' });
  });

  it.each([
    ['a string without an end', `"x":"${'\\"'.repeat(1_000_000)}`],
    ['a comma too many', '"x":1,}'],
  ])('that is no JSON passes as it is, and takes linear time: %s', async (_, rest) => {
    const text = `{"result":{"structuredContent":{"a":1e400}},${rest}`;
    expect(await passed(jsonGate(), text)).toMatchObject({ text, failure: null });
  });

  it('with four million escapes and a number that cannot be kept exactly passes', async () => {
    const text = `{"jsonrpc":"2.0","id":7,"result":{"structuredContent":{"id":9007199254740993,"text":"${'\\n'.repeat(4_000_000)}"}}}`;
    const { text: passedOn, failure } = await passed(jsonGate(), text);
    expect(failure).toBeNull();
    expect(JSON.parse(passedOn).result).toMatchObject({ [STRUCTURED_TEXT]: expect.stringContaining('"id":9007199254740993') });
  });
});
