import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { Bus } from '#bus/bus.ts';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { errorFrame, sseFrame, templateFrame, textFrame } from '#bus/messages/frame.ts';
import { systemClock } from '#shared/clock.ts';
import type { Database } from '#shared/storage/database.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { addPart, emptyAnswer } from '#shared/surfaces/answer.ts';
import { responses } from '#shared/surfaces/responses/surface.ts';
import { readEvents } from '#shared/surfaces/responses/test-support/read-events.ts';
import { startRouterGateway } from '../service.ts';
import { environment, HOUSE_SECRET, KEY, recordingLog, testConfig } from '../test-support/harness.ts';
import { get, post } from '../test-support/http-client.ts';
import { type PendingCall, type ScriptedWorker, startScriptedWorker } from '../test-support/scripted-worker.ts';

const eventually = <Value>(probe: () => Value) => expect.poll(probe, { timeout: 60_000, interval: 5 });
const authorization = `Bearer ${KEY}`;
const streamed = { model: 'large', input: 'Hello', stream: true };

let database: Database;
let bus: Bus;
let worker: ScriptedWorker;
let gateway: Awaited<ReturnType<typeof startRouterGateway>>;

beforeAll(async () => {
  database = await openTestDatabase();
  bus = await openMemoryBus({ database, clock: systemClock });
  worker = startScriptedWorker(bus);
});

afterEach(() => gateway.stop());

afterAll(async () => {
  await worker.stop();
  await bus.close();
  await database.close();
});

async function openGateway(errors?: 'response.error') {
  const routerConfig = { ...testConfig, ...(errors && { errors }) };
  const config = { host: '127.0.0.1', port: 0, drainTimeoutMs: 0 };
  gateway = await startRouterGateway({
    ...{ config, routerConfig, environment, houseSecret: HOUSE_SECRET, bus, database: null, cache: null, log: recordingLog(), clock: systemClock },
  });
}

function ask(headers: Record<string, string> = {}) {
  return post(`${gateway.url}/api/v1/responses`, streamed, { authorization, ...headers });
}

const EVENTS_OF_FIRST = 5;

/** Two frames of a worker: the opening events with the first text, and a text in the template. */
function sendTexts({ call, send }: PendingCall): void {
  const { callId } = call;
  const answer = emptyAnswer();
  const writer = responses.partWriter({ id: callId, created: 7, model: 'acme/large', provider: 'A', request: call.request, now: () => 9 }, answer);
  const [first, second] = ['It ', 'is '].map((text) => ({ type: 'text-delta' as const, text }));
  if (first === undefined || second === undefined) throw new Error('there are two');
  addPart(answer, first);
  const events = writer.parts([first]);
  send(templateFrame({ callId, attempt: 1, seq: 1 }, writer.template, events));
  addPart(answer, second);
  send(textFrame({ callId, attempt: 1, seq: 2 }, writer.text([second]) ?? ''));
}

const body = (message: string) => ({ error: { code: 502, message, type: 'provider_unavailable', param: '' } });
const numbersIn = (sse: string) => readEvents(sse).map(({ sequence_number }) => sequence_number);
const upTo = (count: number) => Array.from({ length: count }, (_, index) => index);

describe('a stream of /responses', () => {
  it('DESIGN 7: the numbers of events go on when the gateway ends the stream itself', async () => {
    await openGateway();
    const client = ask();
    const held = await worker.next();
    sendTexts(held);
    const response = await client.answer;
    await eventually(() => response.text).toContain('"is "');
    // Content of a second worker: what was shown can't be withdrawn.
    held.frame('content', 1, '{}', 2);
    await response.ended;

    const events = readEvents(response.text);
    expect(numbersIn(response.text)).toEqual(upTo(EVENTS_OF_FIRST + 2));
    expect(events.at(-1)).toMatchObject({
      type: 'error',
      code: 'server_error',
      param: null,
      error: { code: 'server_error', message: expect.stringMatching(/worker/) },
    });
    expect(response.text.endsWith('data: [DONE]\n\n')).toBe(true);
  });

  it('DESIGN 7: the numbers of events go on when another worker reports the loss of the first, which counts from 0 again', async () => {
    await openGateway();
    const client = ask();
    const held = await worker.next();
    sendTexts(held);
    const response = await client.answer;
    await eventually(() => response.text).toContain('"is "');
    const { callId } = held.call;
    held.send(
      errorFrame({ callId, attempt: 2, seq: 1 }, 502, JSON.stringify(body('the worker died')), 'data: {"type":"response.failed","sequence_number":0}\n\n'),
    );
    await response.ended;

    expect(numbersIn(response.text)).toEqual(upTo(EVENTS_OF_FIRST + 2));
    expect(readEvents(response.text).at(-1)).toMatchObject({ type: 'error', message: 'the worker died', error_type: 'provider_unavailable' });
  });

  const chat = { model: 'large', messages: [{ role: 'user', content: 'Hello' }], stream: true };
  const OTHER_API = [400, 'invalid_request', 'last-event-id', expect.stringContaining('of another API')];
  const refusalAt = async (path: string, request: object, lastEventId: string) => {
    const response = await post(`${gateway.url}/api/v1/${path}`, request, { authorization, 'last-event-id': lastEventId }).answer;
    await response.ended;
    const { error } = JSON.parse(response.text);
    return [response.status, error.type, error.param ?? error.metadata?.param, error.message];
  };
  const byPost = (lastEventId: string) => ask({ 'last-event-id': lastEventId }).answer;
  const byId = (lastEventId: string) =>
    get(`${gateway.url}/api/v1/generations/${lastEventId.split('.')[0]}/stream`, { authorization, 'last-event-id': lastEventId });

  it.each([
    ['a text, by POST', (id: string) => `${id}.1.2`, [], byPost],
    ['an event in the middle of a frame, by POST', (id: string) => `${id}.1.1.4`, [4, 5], byPost],
    ['a text, by the id of the generation', (id: string) => `${id}.1.2`, [], byId],
    ['an event in the middle of a frame, by the id of the generation', (id: string) => `${id}.1.1.4`, [4, 5], byId],
  ])('DESIGN 7: the numbers of events go on behind %s with which a client resumes', async (_, idOf, between, resume) => {
    await openGateway();
    const first = ask({ 'x-detach': 'true' });
    const held = await worker.next();
    sendTexts(held);
    const begun = await first.answer;
    await eventually(() => begun.text).toContain('"is "');
    first.leave();

    const again = resume(idOf(held.call.callId));
    const { callId } = held.call;
    held.send(sseFrame('m', { callId, attempt: 1, seq: 3 }, 'data: {"type":"response.x","sequence_number":6}\n\n'));
    const resumed = await again;
    await eventually(() => resumed.text).toContain('response.x');
    held.frame('content', 1, '{}', 2);
    await resumed.ended;

    expect(numbersIn(resumed.text)).toEqual([...between, 6, 7]);
    expect(readEvents(resumed.text).at(-1)).toMatchObject({ type: 'error', error: { code: 'server_error' } });
  });

  it('is refused to a client that repeats its request at the path of another API, and goes on at its own', async () => {
    await openGateway();
    const first = ask({ 'x-detach': 'true' });
    const held = await worker.next();
    sendTexts(held);
    const begun = await first.answer;
    await eventually(() => begun.text).toContain('"is "');
    first.leave();
    const { callId } = held.call;

    for (const lastEventId of [`${callId}.1.0`, `${callId}.1.1`, `${callId}.1.1.4`, `${callId}.1.2`]) {
      expect(await refusalAt('chat/completions', chat, lastEventId)).toEqual(OTHER_API);
    }
    expect(await refusalAt('embeddings', { model: 'large', input: 'Hello' }, `${callId}.1.1`)).toEqual(OTHER_API);
    const resumed = await byPost(`${callId}.1.1`);
    held.send(sseFrame('d', { callId, attempt: 1, seq: 3 }, 'data: {"type":"response.x","sequence_number":6}\n\ndata: [DONE]\n\n'));
    expect([resumed.status, await resumed.ended, numbersIn(resumed.text)]).toEqual([200, true, upTo(7).slice(1)]);
    expect(worker.aborted).not.toContain(callId);
  });

  it('is all that its path resumes: a stream of chunks is refused there, and the call goes on for its reader', async () => {
    await openGateway();
    const client = post(`${gateway.url}/api/v1/chat/completions`, chat, { authorization });
    const held = await worker.next();
    const { callId } = held.call;
    const chunk = (content: string) => `{"id":"${callId}","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"${content}"}}]}`;
    held.frame('content', 1, chunk('It '));
    const response = await client.answer;

    expect(await refusalAt('responses', streamed, `${callId}.1.1`)).toEqual(OTHER_API);
    held.frame('content', 2, chunk('is'));
    expect(await refusalAt('responses', streamed, `${callId}.1.1`)).toEqual(OTHER_API);
    held.frame('done', 3, '[DONE]');
    expect(await response.ended).toBe(true);
    expect(response.text).toContain('[DONE]');
    const again = await post(`${gateway.url}/api/v1/chat/completions`, chat, { authorization, 'last-event-id': `${callId}.1.1` }).answer;
    expect([again.status, await again.ended]).toEqual([200, true]);
    expect(again.text).toContain('"is"');
  });

  it('ends with response.error where the router is set up so', async () => {
    await openGateway('response.error');
    const client = ask();
    const held = await worker.next();
    sendTexts(held);
    const response = await client.answer;
    await eventually(() => response.text).toContain('"is "');
    held.frame('content', 1, '{}', 2);
    await response.ended;
    expect(readEvents(response.text).at(-1)).toMatchObject({ type: 'response.error', sequence_number: EVENTS_OF_FIRST + 1, error: { code: 'server_error' } });
  });
});
