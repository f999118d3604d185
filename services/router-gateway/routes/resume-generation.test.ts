import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { Bus } from '#bus/bus.ts';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { sseFrame, templateFrame, textFrame } from '#bus/messages/frame.ts';
import { firstFrames } from '#bus/messages/test-support/first-frames.ts';
import { systemClock } from '#shared/clock.ts';
import { mintGenerationId } from '#shared/generation-id.ts';
import type { Database } from '#shared/storage/database.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { HOUSE_SECRET } from '../test-support/harness.ts';
import { get, post } from '../test-support/http-client.ts';
import { authorization, eventually, NOT_FOUND, oldCall, ResumableStreams, resume, streamed } from '../test-support/resumable-streams.ts';

let database: Database;
let bus: Bus;
let streams: ResumableStreams;

beforeAll(async () => {
  database = await openTestDatabase();
  bus = await openMemoryBus({ database, clock: systemClock });
  streams = new ResumableStreams(bus);
});

afterEach(() => streams.stopGateways());

afterAll(async () => {
  await streams.worker.stop();
  await bus.close();
  await database.close();
});

describe('a stream whose connection was lost', () => {
  it('goes on at another gateway, byte for byte, behind the client’s last event', async () => {
    const [first, second] = [await streams.gateway(), await streams.gateway()];
    const { answer, held, callId } = await streams.begin(first, { 'x-detach': 'true' });
    answer.leave();
    held.frame('content', 2, 'lo ');
    const resumed = await resume(second, callId, { 'last-event-id': `${callId}.1.1` });
    await eventually(() => resumed.text).toContain('lo ');
    held.frame('content', 3, 'there');
    held.frame('done', 4, '[DONE]');

    expect(await resumed.ended).toBe(true);
    const whole = ['Hel', 'lo ', 'there', '[DONE]'].map((text, position) => `id: ${callId}.1.${position + 1}\ndata: ${text}\n\n`).join('');
    expect(answer.text + resumed.text).toBe(whole);
    expect(resumed.headers).toMatchObject({ 'content-type': 'text/event-stream', 'x-generation-id': callId });
  });

  it('DESIGN 7: a stream of texts goes on from any of its events, also when its first frames are not retained any more', async () => {
    const url = await streams.gateway();
    const callId = oldCall();
    const template = { prefix: 'data: {"text":', suffix: '}\n\n' };
    const event = (text: string) => `${template.prefix}"${text}"${template.suffix}`;
    const send = (frame: Uint8Array) => bus.tokens.publish(`tok.gold.${callId}`, frame);
    for (const seq of [7, 8]) send(textFrame({ callId, attempt: 1, seq }, `"${seq}"`));
    send(templateFrame({ callId, attempt: 1, seq: 9 }, template, event('9')));
    send(sseFrame('d', { callId, attempt: 1, seq: 10 }, 'data: [DONE]\n\n'));

    const events = [...[8, 9].map((seq) => `id: ${callId}.1.${seq}\n${event(String(seq))}`), `id: ${callId}.1.10\ndata: [DONE]\n\n`];
    for (const had of [7, 8, 9]) {
      const resumed = await resume(url, callId, { 'last-event-id': `${callId}.1.${had}` });
      expect(await resumed.ended).toBe(true);
      expect(resumed.text).toBe(events.slice(had - 7).join(''));
    }
  });

  it('of a worker of the release before goes on from any of its events, without its first frame too', async () => {
    const url = await streams.gateway();
    const callId = oldCall();
    const [first, ...rest] = firstFrames(callId, { created: 7, model: 'odd","choices":[', provider: 'East' }, 1, ['a', 'b "', '\u{1f600}']);
    const send = (frame: Uint8Array | undefined) => bus.tokens.publish(`tok.gold.${callId}`, frame ?? new Uint8Array());
    for (const frame of [first, ...rest]) send(frame);
    const whole = await resume(url, callId, {});
    expect(await whole.ended).toBe(true);
    const contents = [...whole.text.matchAll(/"delta":\{"content":(".*?")\},"finish_reason"/g)].map(([, json]) => JSON.parse(json ?? ''));
    expect(contents).toEqual(['a', 'b "', '\u{1f600}']);
    // An id line, a data line and an empty line per event.
    expect(whole.text).toMatch(/^(?:id: \S+\ndata: .*\n\n){5}$/);

    for (const had of [1, 2, 3]) {
      const resumed = await resume(url, callId, { 'last-event-id': `${callId}.1.${had}${had === 1 ? '.2' : ''}` });
      expect(await resumed.ended).toBe(true);
      expect(resumed.text).toBe(whole.text.slice(whole.text.indexOf(`id: ${callId}.1.${had + 1}\n`)));
    }
  });

  it('is sent whole to a client that names no event, also after its end', async () => {
    const url = await streams.gateway();
    const { answer, held, callId } = await streams.begin(url);
    held.frame('done', 2, '[DONE]');
    await answer.ended;

    const again = await resume(url, callId);
    expect(await again.ended).toBe(true);
    expect(again.text).toBe(answer.text);
  });

  it('goes on for a client that posts its request again, and no second call is made', async () => {
    const url = await streams.gateway();
    const { answer, held, callId } = await streams.begin(url, { 'x-detach': 'true' });
    answer.leave();
    held.frame('done', 2, '[DONE]');
    const resumed = await post(`${url}/chat/completions`, streamed, { authorization, 'last-event-id': `${callId}.1.1` }).answer;

    expect(await resumed.ended).toBe(true);
    expect(resumed.text).toBe(`id: ${callId}.1.2\ndata: [DONE]\n\n`);
    const another = post(`${url}/chat/completions`, { ...streamed, session_id: 'another' }, { authorization });
    const next = await streams.worker.next();
    expect(next.call.request.session_id).toBe('another');
    another.leave();
    await expect(another.answer).rejects.toThrow();
  });

  it('DESIGN 7: a stream goes on exactly behind its client’s last event, wherever in a frame it was cut', async () => {
    const url = await streams.gateway();
    const { answer, held } = await streams.begin(url);
    held.frame('content', 2, 'lo \n\ndata: the');
    held.frame('done', 3, 're\n\ndata: {}\n\ndata: [DONE]');
    await answer.ended;
    const events = answer.text.split('\n\n').slice(0, -1);
    expect(events).toHaveLength(6);

    for (let had = 1; had < events.length; had += 1) {
      const lastId = events[had - 1]?.split('\n')[0]?.slice('id: '.length) ?? '';
      const resumed = await resume(url, held.call.callId, { 'last-event-id': lastId });
      await resumed.ended;
      expect(resumed.text).toBe(`${events.slice(had).join('\n\n')}\n\n`);
    }
    const lastId = events.at(-1)?.split('\n')[0]?.slice('id: '.length) ?? '';
    expect((await resume(url, held.call.callId, { 'last-event-id': lastId })).status).toBe(204);
  });

  it('ends at once with 204 for a client that has all of it', async () => {
    const url = await streams.gateway();
    const { answer, held, callId } = await streams.begin(url);
    held.frame('done', 2, '[DONE]');
    await answer.ended;

    expect((await resume(url, callId, { 'last-event-id': `${callId}.1.2` })).status).toBe(204);
  });

  it('ends for a client that names an event beyond the last, also when it asked to wait', async () => {
    const url = await streams.gateway({ headerDelayMs: 20 });
    const { answer, held, callId } = await streams.begin(url, { 'x-detach': 'true' });
    answer.leave();
    const resumed = await resume(url, callId, { 'last-event-id': `${callId}.1.2.9` });
    await eventually(() => resumed.text).toContain('PROCESSING');
    held.frame('done', 2, '[DONE]');

    await eventually(() => streams.beat(held)).toEqual(['origin ']);
    expect(await Promise.race([resumed.ended, new Promise((resolve) => setTimeout(resolve, 2_000, 'still open'))])).toBe(true);
    resumed.leave();
  });

  it('ends with the error chunk when another worker has the call meanwhile', async () => {
    const url = await streams.gateway();
    const { answer, held, callId } = await streams.begin(url, { 'x-detach': 'true' });
    answer.leave();
    held.frame('content', 2, 'lo');
    held.frame('content', 1, 'Anew', 2);

    const resumed = await resume(url, callId, { 'last-event-id': `${callId}.1.1` });
    expect(await resumed.ended).toBe(true);
    expect(resumed.text).toContain('data: lo');
    expect(resumed.text).not.toContain('Anew');
    expect(resumed.text).toContain('"finish_reason":"error"');
  });

  it('is the whole answer for a call that was not streamed', async () => {
    const url = await streams.gateway();
    const client = post(`${url}/chat/completions`, { ...streamed, stream: false }, { authorization });
    const held = await streams.worker.next();
    held.body(200, { whole: true });
    await (await client.answer).ended;

    const resumed = await resume(url, held.call.callId);
    await resumed.ended;
    expect([resumed.status, JSON.parse(resumed.text)]).toEqual([200, { whole: true }]);
  });
});

describe('what can’t be resumed', () => {
  it.each([
    ['another key’s id', () => mintGenerationId({ houseSecret: HOUSE_SECRET, origin: 'gold', keyId: 'two', nowMs: Date.now() }), {}],
    ['a wrong tag', () => `${oldCall().slice(0, -1)}x`, {}],
    ['an id of which nothing is kept', oldCall, {}],
    ['no id at all', () => 'nonsense', {}],
    ['an event of another stream', oldCall, { 'last-event-id': 'gen-1.1.1' }],
    ['an event that is none', oldCall, { 'last-event-id': '7' }],
  ])('is answered with the same 404: %s', async (_case, idOf, headers) => {
    const url = await streams.gateway({ silenceMs: 20 });
    const resumed = await resume(url, idOf(), headers);
    await resumed.ended;

    expect(resumed.status).toBe(404);
    expect(JSON.parse(resumed.text)).toMatchObject(NOT_FOUND);
  });

  it('is answered with 404 for the event of another stream of the same key, which is not sent in its place', async () => {
    const url = await streams.gateway({ silenceMs: 20 });
    const { answer, held, callId } = await streams.begin(url);
    held.frame('done', 2, '[DONE]');
    await answer.ended;
    const resumed = await resume(url, oldCall(), { 'last-event-id': `${callId}.1.1` });
    await resumed.ended;
    expect([resumed.status, JSON.parse(resumed.text)]).toMatchObject([404, NOT_FOUND]);
  });

  it.each(['nonsense', 'gen-1.1.1'])('is answered with 404 when it is posted with the event %s, and no call is made', async (lastEventId) => {
    const url = await streams.gateway();
    const { answer } = post(`${url}/chat/completions`, streamed, { authorization, 'last-event-id': lastEventId });
    await (await answer).ended;

    expect((await answer).status).toBe(404);
  });

  it('DESIGN 7: a stream is answered with 404 when its beginning is not retained any more', async () => {
    const url = await streams.gateway();
    const callId = oldCall();
    for (const seq of [7, 8]) bus.tokens.publish(`tok.gold.${callId}`, sseFrame('m', { callId, attempt: 1, seq }, 'data: late\n\n'));

    for (const headers of [{}, { 'last-event-id': `${callId}.1.5` }]) {
      const resumed = await resume(url, callId, headers);
      await resumed.ended;
      expect([resumed.status, JSON.parse(resumed.text)]).toMatchObject([404, NOT_FOUND]);
    }
  });

  it('is answered with 404 when no retained frame has the template of its texts', async () => {
    const url = await streams.gateway();
    const callId = oldCall();
    for (const seq of [7, 8]) bus.tokens.publish(`tok.gold.${callId}`, textFrame({ callId, attempt: 1, seq }, '"late"'));

    const resumed = await resume(url, callId, { 'last-event-id': `${callId}.1.7` });
    await resumed.ended;
    expect([resumed.status, JSON.parse(resumed.text)]).toMatchObject([404, NOT_FOUND]);
  });

  it('needs a key', async () => {
    expect((await get(`${await streams.gateway()}/generations/${oldCall()}/stream`, {})).status).toBe(401);
  });
});
