import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { Bus } from '#bus/bus.ts';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { sseFrame, templateFrame, textFrame } from '#bus/messages/frame.ts';
import { interestReply } from '#bus/messages/heartbeat.ts';
import { firstFrames } from '#bus/messages/test-support/first-frames.ts';
import { systemClock } from '#shared/clock.ts';
import { mintGenerationId } from '#shared/generation-id.ts';
import type { Database } from '#shared/storage/database.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { type GatewayLimits, gatewayLimits } from '../limits.ts';
import { startRouterGateway } from '../service.ts';
import { environment, HOUSE_SECRET, KEY, recordingLog, testConfig } from '../test-support/harness.ts';
import { get, post } from '../test-support/http-client.ts';
import { type PendingCall, type ScriptedWorker, startScriptedWorker } from '../test-support/scripted-worker.ts';

const eventually = <Value>(probe: () => Value) => expect.poll(probe, { timeout: 30_000, interval: 5 });
const streamed = { model: 'large', messages: [{ role: 'user', content: 'Hello' }], stream: true };
const authorization = `Bearer ${KEY}`;
const NOT_FOUND = { error: { code: 404, message: 'There is no generation with this id, or its frames are no longer retained', type: 'not_found' } };

let database: Database;
let bus: Bus;
let worker: ScriptedWorker;
const gateways: { stop(): Promise<void> }[] = [];
const log = recordingLog();

beforeAll(async () => {
  database = await openTestDatabase();
  bus = await openMemoryBus({ database, clock: systemClock });
  worker = startScriptedWorker(bus);
}, 60_000);

afterEach(async () => {
  await Promise.all(gateways.splice(0).map((gateway) => gateway.stop()));
});

afterAll(async () => {
  await worker.stop();
  await bus.close();
  await database.close();
});

async function gateway(limits: Partial<GatewayLimits> = {}): Promise<string> {
  const started = await startRouterGateway({
    config: { host: '127.0.0.1', port: 0, drainTimeoutMs: 0 },
    routerConfig: testConfig,
    environment,
    houseSecret: HOUSE_SECRET,
    bus,
    database: null,
    cache: null,
    log,
    clock: systemClock,
    limits: { ...gatewayLimits, ...limits },
  });
  gateways.push(started);
  return `${started.url}/api/v1`;
}

/** A streaming client that has got `Hel`. */
async function begin(url: string, headers: Record<string, string> = {}) {
  const client = post(`${url}/chat/completions`, streamed, { authorization, ...headers });
  const held = await worker.next();
  held.frame('content', 1, 'Hel');
  const answer = await client.answer;
  await eventually(() => answer.text).toContain('Hel');
  return { answer, held, callId: held.call.callId };
}

/** A call id of a gateway that does not exist any more. */
const oldCall = () => mintGenerationId({ houseSecret: HOUSE_SECRET, origin: 'gold', keyId: 'one', nowMs: Date.now() });

function resume(url: string, callId: string, headers: Record<string, string> = {}) {
  return get(`${url}/generations/${callId}/stream`, { authorization, ...headers });
}

/** Sends a worker's heartbeat. @returns the interest replies */
function beat({ call }: PendingCall): Promise<string[]> {
  return new Promise((resolve) => {
    const answers: string[] = [];
    const subscription = bus.notices.subscribe('held.w1', (_subject, body) => {
      const { from, calls } = interestReply.parse(JSON.parse(body));
      answers.push(`${from === call.origin ? 'origin' : 'other'} ${calls.join()}`);
    });
    bus.notices.publish(`hb.${call.origin}`, JSON.stringify({ v: 1, workerId: 'w1', question: 1, calls: [call.callId] }));
    // Notices take a few ticks.
    setTimeout(() => {
      void subscription.stop().then(() => resolve(answers.sort()));
    }, 50);
  });
}

describe('a stream whose connection was lost', () => {
  it('goes on at another gateway, byte for byte, behind the client’s last event', async () => {
    const [first, second] = [await gateway(), await gateway()];
    const { answer, held, callId } = await begin(first, { 'x-detach': 'true' });
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
    const url = await gateway();
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
    const url = await gateway();
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
    const url = await gateway();
    const { answer, held, callId } = await begin(url);
    held.frame('done', 2, '[DONE]');
    await answer.ended;

    const again = await resume(url, callId);
    expect(await again.ended).toBe(true);
    expect(again.text).toBe(answer.text);
  });

  it('goes on for a client that posts its request again, and no second call is made', async () => {
    const url = await gateway();
    const { answer, held, callId } = await begin(url, { 'x-detach': 'true' });
    answer.leave();
    held.frame('done', 2, '[DONE]');
    const resumed = await post(`${url}/chat/completions`, streamed, { authorization, 'last-event-id': `${callId}.1.1` }).answer;

    expect(await resumed.ended).toBe(true);
    expect(resumed.text).toBe(`id: ${callId}.1.2\ndata: [DONE]\n\n`);
    const another = post(`${url}/chat/completions`, { ...streamed, session_id: 'another' }, { authorization });
    const next = await worker.next();
    expect(next.call.request.session_id).toBe('another');
    another.leave();
    await expect(another.answer).rejects.toThrow();
  });

  it('DESIGN 7: a stream goes on exactly behind its client’s last event, wherever in a frame it was cut', async () => {
    const url = await gateway();
    const { answer, held } = await begin(url);
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
    const url = await gateway();
    const { answer, held, callId } = await begin(url);
    held.frame('done', 2, '[DONE]');
    await answer.ended;

    expect((await resume(url, callId, { 'last-event-id': `${callId}.1.2` })).status).toBe(204);
  });

  it('ends for a client that names an event beyond the last, also when it asked to wait', async () => {
    const url = await gateway({ headerDelayMs: 20 });
    const { answer, held, callId } = await begin(url, { 'x-detach': 'true' });
    answer.leave();
    const resumed = await resume(url, callId, { 'last-event-id': `${callId}.1.2.9` });
    await eventually(() => resumed.text).toContain('PROCESSING');
    held.frame('done', 2, '[DONE]');

    await eventually(() => beat(held)).toEqual(['origin ']);
    expect(await Promise.race([resumed.ended, new Promise((resolve) => setTimeout(resolve, 2_000, 'still open'))])).toBe(true);
    resumed.leave();
  });

  it('ends with the error chunk when another worker has the call meanwhile', async () => {
    const url = await gateway();
    const { answer, held, callId } = await begin(url, { 'x-detach': 'true' });
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
    const url = await gateway();
    const client = post(`${url}/chat/completions`, { ...streamed, stream: false }, { authorization });
    const held = await worker.next();
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
    const url = await gateway({ silenceMs: 20 });
    const resumed = await resume(url, idOf(), headers);
    await resumed.ended;

    expect(resumed.status).toBe(404);
    expect(JSON.parse(resumed.text)).toMatchObject(NOT_FOUND);
  });

  it.each(['nonsense', 'gen-1.1.1'])('is answered with 404 when it is posted with the event %s, and no call is made', async (lastEventId) => {
    const url = await gateway();
    const { answer } = post(`${url}/chat/completions`, streamed, { authorization, 'last-event-id': lastEventId });
    await (await answer).ended;

    expect((await answer).status).toBe(404);
  });

  it('DESIGN 7: a stream is answered with 404 when its beginning is not retained any more', async () => {
    const url = await gateway();
    const callId = oldCall();
    for (const seq of [7, 8]) bus.tokens.publish(`tok.gold.${callId}`, sseFrame('m', { callId, attempt: 1, seq }, 'data: late\n\n'));

    for (const headers of [{}, { 'last-event-id': `${callId}.1.5` }]) {
      const resumed = await resume(url, callId, headers);
      await resumed.ended;
      expect([resumed.status, JSON.parse(resumed.text)]).toMatchObject([404, NOT_FOUND]);
    }
  });

  it('is answered with 404 when no retained frame has the template of its texts', async () => {
    const url = await gateway();
    const callId = oldCall();
    for (const seq of [7, 8]) bus.tokens.publish(`tok.gold.${callId}`, textFrame({ callId, attempt: 1, seq }, '"late"'));

    const resumed = await resume(url, callId, { 'last-event-id': `${callId}.1.7` });
    await resumed.ended;
    expect([resumed.status, JSON.parse(resumed.text)]).toMatchObject([404, NOT_FOUND]);
  });

  it('needs a key', async () => {
    expect((await get(`${await gateway()}/generations/${oldCall()}/stream`, {})).status).toBe(401);
  });
});

describe('a call goes on while it has a reader', () => {
  it('as its gateway reports for as long as its client is connected, and then is aborted', async () => {
    const url = await gateway();
    const { answer, held, callId } = await begin(url);
    expect(await beat(held)).toEqual([`origin ${callId}`]);
    answer.leave();
    await eventually(() => worker.aborted).toContain(callId);
    expect(await beat(held)).toEqual(['origin ']);
  });

  it('as another gateway reports, where its client has resumed', async () => {
    const [first, second] = [await gateway(), await gateway()];
    const { answer, held, callId } = await begin(first, { 'x-detach': 'true' });
    answer.leave();
    const resumed = await resume(second, callId, { 'last-event-id': `${callId}.1.0` });
    await eventually(() => resumed.text).toContain('Hel');
    await eventually(() => beat(held)).toEqual(['origin ', `other ${callId}`]);
    resumed.leave();
    await eventually(() => worker.aborted).toContain(callId);
    await eventually(() => beat(held)).toEqual(['origin ']);
  });

  it('and is not aborted while a second reader has it', async () => {
    const url = await gateway();
    const { answer, held, callId } = await begin(url);
    const second = await resume(url, callId);
    await eventually(() => second.text).toContain('Hel');
    answer.leave();
    await answer.ended;
    held.frame('done', 2, '[DONE]');

    expect(await second.ended).toBe(true);
    expect(second.text).toContain('[DONE]');
    expect(worker.aborted).not.toContain(callId);
  });

  it('and when its client disconnects but had detached it', async () => {
    const url = await gateway();
    const { answer, held, callId } = await begin(url, { 'x-detach': 'true' });
    expect(held.call.detached).toBe(true);
    answer.leave();
    await eventually(() => beat(held)).toEqual(['origin ']);
    expect(worker.aborted).not.toContain(callId);
  });

  it('and when its gateway stops but its client had detached it', async () => {
    const url = await gateway();
    const calls = [];
    for (const headers of [{ 'x-detach': 'true' }, {}]) {
      const client = post(`${url}/chat/completions`, { ...streamed, stream: false }, { authorization, ...headers });
      calls.push({ client, held: await worker.next() });
    }
    await gateways.pop()?.stop();

    const [detached, other] = calls.map(({ held }) => held.call.callId);
    // A gateway aborts the oldest first.
    await eventually(() => worker.aborted).toContain(other);
    expect(worker.aborted).not.toContain(detached);
    for (const { client } of calls) expect((await client.answer).status).toBe(503);
  });

  it('and when its client does not read and is disconnected, but had detached it', async () => {
    const url = await gateway({ unsentBytes: 1_024, graceMs: 60_000 });
    const { answer, held } = await begin(url, { 'x-detach': 'true' });
    answer.stopReading();
    const isCut = () =>
      log.lines.some(({ message, fields }) => message === 'a client was disconnected: it left too many bytes unread' && fields.call_id === held.call.callId);
    let seq = 1;
    await eventually(() => {
      seq += 1;
      held.frame('content', seq, 'x'.repeat(256 * 1_024));
      return isCut();
    }).toBe(true);

    // Not kept as resumable: a kept call is aborted in the end.
    expect(await beat(held)).toEqual(['origin ']);
    answer.leave();
  });

  it('DESIGN 7: a call goes on for a client that the gateway has disconnected, which can resume it', async () => {
    const url = await gateway({ unsentBytes: 1_024, graceMs: 60_000 });
    const { answer, held, callId } = await begin(url);
    answer.stopReading();
    const part = 'x'.repeat(256 * 1_024);
    let seq = 1;
    // The kernel's buffers take some megabytes first.
    await eventually(() => {
      seq += 1;
      held.frame('content', seq, part);
      return log.lines.map(({ message }) => message);
    }).toContain('a client was disconnected: it left too many bytes unread');
    expect(await beat(held)).toEqual([`origin ${callId}`]);

    const again = await resume(url, callId, { 'last-event-id': `${callId}.1.1` });
    held.frame('done', seq + 1, '[DONE]');
    expect(await again.ended).toBe(true);
    expect(again.text.split('\n\n')).toHaveLength(seq + 1);
    expect(worker.aborted).not.toContain(callId);
    answer.leave();
  });
});

describe('a worker without heartbeats', () => {
  it('DESIGN 7: after the last heartbeat of a worker its stream ends with the error chunk, and its call is aborted', async () => {
    const { answer, callId } = await begin(await gateway({ silenceMs: 30 }));

    expect(await answer.ended).toBe(true);
    expect(answer.text).toContain('"finish_reason":"error"');
    expect(answer.text).toContain('has stopped sending frames and heartbeats');
    await eventually(() => worker.aborted).toContain(callId);
    // For another worker to bill what was shown.
    expect(await worker.next()).toMatchObject({ delivery: 2, call: { callId } });
  });

  it('is waited for as long as it sends heartbeats', async () => {
    const { answer, held } = await begin(await gateway({ silenceMs: 300 }));
    const endsAtMs = performance.now() + 1_000;
    while (performance.now() < endsAtMs) await beat(held);
    held.frame('done', 2, '[DONE]');

    expect(await answer.ended).toBe(true);
    expect(answer.text).not.toContain('error');
  });

  it('may have published the end: the retained frames count', async () => {
    const url = await gateway({ silenceMs: 100 });
    const { answer, held } = await begin(url, {});
    held.frame('done', 2, '[DONE]');

    expect(await answer.ended).toBe(true);
    expect(answer.text).toContain('[DONE]');
  });
});
