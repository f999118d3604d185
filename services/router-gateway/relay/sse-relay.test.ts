import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { Bus } from '#bus/bus.ts';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { addresses, subjectOf } from '#bus/subjects.ts';
import { systemClock } from '#shared/clock.ts';
import type { Database } from '#shared/storage/database.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { type GatewayLimits, gatewayLimits } from '../limits.ts';
import { startRouterGateway } from '../service.ts';
import { environment, type FaultyBus, faultyBus, HOUSE_SECRET, KEY, recordingLog, testConfig } from '../test-support/harness.ts';
import { post } from '../test-support/http-client.ts';
import { type PendingCall, type ScriptedWorker, startScriptedWorker } from '../test-support/scripted-worker.ts';

// Bounds for a busy machine; none of these waits for time to pass.
const eventually = <Value>(probe: () => Value) => expect.poll(probe, { timeout: 60_000, interval: 5 });

const streamed = { model: 'large', messages: [{ role: 'user', content: 'Hello' }], stream: true };

let database: Database;
let memoryBus: Bus;
let testBus: FaultyBus;
let worker: ScriptedWorker;
let gateway: Awaited<ReturnType<typeof startRouterGateway>>;
const log = recordingLog();

beforeAll(async () => {
  database = await openTestDatabase();
  memoryBus = await openMemoryBus({ database, clock: systemClock });
  testBus = faultyBus(memoryBus);
  worker = startScriptedWorker(memoryBus);
});

afterEach(async () => {
  await gateway.stop();
  testBus.faults.loses = () => false;
  testBus.faults.replays = 0;
});

afterAll(async () => {
  await worker.stop();
  await memoryBus.close();
  await database.close();
});

/** A gateway, a streaming client, and its call. */
async function begin(limits: Partial<GatewayLimits> = {}, totalMs = 600_000) {
  gateway = await startRouterGateway({
    config: { host: '127.0.0.1', port: 0, drainTimeoutMs: 0 },
    routerConfig: { ...testConfig, timeouts: { ...testConfig.timeouts, total_ms: totalMs } },
    environment,
    houseSecret: HOUSE_SECRET,
    bus: testBus.bus,
    database: null,
    cache: null,
    log,
    clock: systemClock,
    limits: { ...gatewayLimits, ...limits },
  });
  const client = post(`${gateway.url}/api/v1/chat/completions`, streamed, { authorization: `Bearer ${KEY}`, 'x-request-id': 'req-1' });
  return { client, held: await worker.next() };
}

/** A frame as the client gets it. */
const seen = ({ call }: PendingCall, seq: number, text: string, attempt = 1) => `id: ${call.callId}.${attempt}.${seq}\ndata: ${text}\n\n`;

/** The gateway's own error chunk at the end of a stream. */
function errorChunkAtTheEndOf(text: string): { id: string; error: { code: number; message: string } } {
  const last = text.trimEnd().split('\n').at(-1) ?? '';
  return JSON.parse(last.replace(/^data: /, ''));
}

describe('before any content', () => {
  it('DESIGN 7: an error before any content has its own status and its body, whatever was held back', async () => {
    const { client, held } = await begin();
    held.frame('open', 1, 'role');
    held.error(2, 429);
    const response = await client.answer;
    await response.ended;

    expect(response.status).toBe(429);
    expect(response.headers['content-type']).toBe('application/json');
    expect(response.headers['x-generation-id']).toBe(held.call.callId);
    expect(response.text).toBe('{"status":429}');
  });

  it('frames without content wait for one with content', async () => {
    const { client, held } = await begin();
    let answered = false;
    const response = client.answer.finally(() => {
      answered = true;
    });
    let live = 0;
    testBus.faults.loses = () => {
      live += 1;
      return false;
    };
    held.frame('open', 1, 'debug');
    held.frame('open', 2, 'role');
    await eventually(() => live).toBe(2);
    expect(answered).toBe(false);

    held.frame('content', 3, 'Hi');
    const { status, headers } = await response;
    await eventually(async () => (await response).text).toBe(seen(held, 1, 'debug') + seen(held, 2, 'role') + seen(held, 3, 'Hi'));

    expect(status).toBe(200);
    expect(headers).toMatchObject({
      'content-type': 'text/event-stream',
      'cache-control': 'no-cache',
      'x-accel-buffering': 'no',
      'x-generation-id': held.call.callId,
      'x-request-id': 'req-1',
    });
    expect(held.call.want).toBe('frames');
  });

  it('frames without content do not wait when they are large', async () => {
    const { client, held } = await begin({ bufferedBytes: 1_000 });
    held.frame('open', 1, 'd'.repeat(2_000));

    await eventually(async () => (await client.answer).text).toBe(seen(held, 1, 'd'.repeat(2_000)));
  });

  it('DESIGN 7: a comment commits the headers after a while, and is repeated in silence; then an error is a chunk', async () => {
    const { client, held } = await begin({ headerDelayMs: 20 });
    held.frame('open', 1, 'role');
    const response = await client.answer;
    const processing = ': SWITCHYARD PROCESSING\n\n';
    await eventually(() => response.text).toContain(`${seen(held, 1, 'role')}${processing}${processing}`);
    held.error(2, 502);

    expect(await response.ended).toBe(true);
    expect(response.status).toBe(200);
    expect(response.text.endsWith(`id: ${held.call.callId}.1.2\ndata: error 502\n\n`)).toBe(true);
  });

  it('DESIGN 7: another delivery of a call takes over before any content, and frames of the former are dropped', async () => {
    const { client, held } = await begin();
    held.frame('open', 1, 'role of the first');
    held.frame('open', 1, 'role of the second', 2);
    held.frame('content', 2, 'of a worker that lost the call');
    held.error(3, 500);
    held.frame('content', 2, 'Hi', 2);
    held.frame('done', 3, '[DONE]', 2);
    const response = await client.answer;

    expect(await response.ended).toBe(true);
    expect(response.text).toBe(seen(held, 1, 'role of the second', 2) + seen(held, 2, 'Hi', 2) + seen(held, 3, '[DONE]', 2));
  });

  it('DESIGN 7: a call without any worker ends with 408 after its deadline, and is aborted', async () => {
    const { client, held } = await begin({ deadlineGraceMs: 10 }, 20);
    const response = await client.answer;
    await response.ended;

    expect(response.status).toBe(408);
    expect(JSON.parse(response.text).error).toMatchObject({ code: 408, type: 'timeout' });
    await eventually(() => worker.aborted).toContain(held.call.callId);
  });

  it('an empty answer is a stream too', async () => {
    const { client, held } = await begin();
    held.frame('done', 1, '[DONE]');
    const response = await client.answer;

    expect(await response.ended).toBe(true);
    expect(response.status).toBe(200);
    expect(response.text).toBe(seen(held, 1, '[DONE]'));
  });
});

describe('after content', () => {
  it('DESIGN 7: an error after content ends the stream with its chunk and nothing after it', async () => {
    const { client, held } = await begin();
    held.frame('content', 1, 'Hi');
    held.error(2, 502);
    held.frame('done', 3, '[DONE]');
    const response = await client.answer;

    expect(await response.ended).toBe(true);
    expect(response.text).toBe(`${seen(held, 1, 'Hi')}id: ${held.call.callId}.1.2\ndata: error 502\n\n`);
  });

  it('DESIGN 7: frames are sent in order and once, with unparsed bytes', async () => {
    const { client, held } = await begin();
    const odd = '{"not json 日本語 \u2028';
    held.frame('content', 1, odd);
    held.frame('content', 1, odd);
    held.frame('content', 2, 'b');
    held.frame('content', 1, odd);
    held.frame('done', 3, '[DONE]');
    held.frame('done', 3, '[DONE]');
    const response = await client.answer;

    expect(await response.ended).toBe(true);
    expect(response.text).toBe(seen(held, 1, odd) + seen(held, 2, 'b') + seen(held, 3, '[DONE]'));
    expect(worker.aborted).not.toContain(held.call.callId);
    expect(testBus.faults.replays).toBe(0);
  });

  it('DESIGN 7: a lost frame is replayed, and the stream is the same as without the loss', async () => {
    const { client, held } = await begin();
    // Two gaps apart, so that the second is found during the replay for the first.
    testBus.faults.loses = (_, frame) => /^mid: \S+\.1\.[24]\n/.test(Buffer.from(frame).toString());
    for (let seq = 1; seq <= 5; seq += 1) held.frame('content', seq, `part ${seq}`);
    held.frame('done', 6, '[DONE]');
    const response = await client.answer;

    expect(await response.ended).toBe(true);
    expect(response.text).toBe([1, 2, 3, 4, 5].map((seq) => seen(held, seq, `part ${seq}`)).join('') + seen(held, 6, '[DONE]'));
    expect(testBus.faults.replays).toBe(1);
  });

  it('a lost last frame is replayed after a silence', async () => {
    const { client, held } = await begin({ silenceMs: 20 });
    testBus.faults.loses = (_, frame) => frame[0] === 'd'.charCodeAt(0);
    held.frame('content', 1, 'Hi');
    held.frame('done', 2, '[DONE]');
    const response = await client.answer;

    expect(await response.ended).toBe(true);
    expect(response.text).toBe(seen(held, 1, 'Hi') + seen(held, 2, '[DONE]'));
  });

  it('DESIGN 7: a permanently lost frame ends the stream with an error chunk, and the call is aborted', async () => {
    const { client, held } = await begin();
    held.frame('content', 1, 'Hi');
    held.frame('content', 3, 'there');
    const response = await client.answer;

    expect(await response.ended).toBe(true);
    expect(response.text.startsWith(seen(held, 1, 'Hi'))).toBe(true);
    expect(response.text).not.toMatch(/there|\[DONE\]/);
    expect(errorChunkAtTheEndOf(response.text)).toEqual({
      id: held.call.callId,
      object: 'chat.completion.chunk',
      created: expect.any(Number),
      model: 'acme/large',
      provider: 'switchyard',
      error: { code: 502, message: 'A part of the answer was lost in transit', metadata: { error_type: 'provider_unavailable' } },
      choices: [{ index: 0, delta: { content: '' }, finish_reason: 'error' }],
    });
    await eventually(() => worker.aborted).toContain(held.call.callId);
  });

  it('an error behind a lost frame is sent as its worker wrote it', async () => {
    const { client, held } = await begin();
    held.frame('content', 1, 'Hi');
    held.error(5, 502);
    const response = await client.answer;

    expect(await response.ended).toBe(true);
    expect(response.text).toBe(`${seen(held, 1, 'Hi')}id: ${held.call.callId}.1.5\ndata: error 502\n\n`);
  });

  it('DESIGN 7: another delivery of a call ends a stream that has begun: sent content can not be revoked', async () => {
    const { client, held } = await begin();
    held.frame('content', 1, 'Hi');
    held.frame('open', 1, 'role', 2);
    const response = await client.answer;

    expect(await response.ended).toBe(true);
    expect(errorChunkAtTheEndOf(response.text).error).toMatchObject({ code: 502 });
    await eventually(() => worker.aborted).toContain(held.call.callId);
  });

  it('another delivery may itself report that the call is lost', async () => {
    const { client, held } = await begin();
    held.frame('content', 1, 'Hi');
    held.error(1, 502, 2);
    const response = await client.answer;

    expect(await response.ended).toBe(true);
    expect(response.text).toBe(`${seen(held, 1, 'Hi')}id: ${held.call.callId}.2.1\ndata: error 502\n\n`);
  });

  it('a stream whose worker died ends with an error chunk after the deadline', async () => {
    const { client, held } = await begin({ deadlineGraceMs: 10 }, 100);
    held.frame('content', 1, 'Hi');
    const response = await client.answer;

    expect(await response.ended).toBe(true);
    expect(errorChunkAtTheEndOf(response.text).error).toMatchObject({ code: 408, metadata: { error_type: 'timeout' } });
    // Queued for another worker, which bills what was shown.
    expect((await worker.next()).call.callId).toBe(held.call.callId);
  });

  it('a body in place of frames is an internal error, reported without detail', async () => {
    const { client, held } = await begin();
    held.frame('content', 1, 'Hi');
    held.body(200, { secret: 'inside' });
    const response = await client.answer;

    expect(await response.ended).toBe(true);
    expect(errorChunkAtTheEndOf(response.text).error).toMatchObject({ code: 500, message: 'Internal server error' });
    expect(response.text).not.toContain('inside');
  });

  it('bytes that are not a frame are dropped', async () => {
    const { client, held } = await begin();
    held.send(Buffer.from('nonsense'));
    held.send(Buffer.from('mid: another-call.1.1\ndata: x\n\n'));
    held.frame('content', 1, 'Hi');
    held.frame('done', 2, '[DONE]');
    const response = await client.answer;

    expect(await response.ended).toBe(true);
    expect(response.text).toBe(seen(held, 1, 'Hi') + seen(held, 2, '[DONE]'));
  });
});

describe('a client', () => {
  it('that disconnects before any content has its call aborted, once', async () => {
    const { client, held } = await begin();
    client.leave();
    await expect(client.answer).rejects.toThrow();

    await eventually(() => worker.aborted.filter((id) => id === held.call.callId)).toHaveLength(1);
  });

  it('that disconnects during the stream has its call aborted, and later frames are dropped', async () => {
    const { client, held } = await begin();
    held.frame('content', 1, 'Hi');
    const response = await client.answer;
    await eventually(() => response.text).toContain('Hi');
    response.leave();
    await eventually(() => worker.aborted.filter((id) => id === held.call.callId)).toHaveLength(1);

    held.frame('content', 2, 'still here?');
    held.frame('done', 3, '[DONE]');
    expect(await response.ended).toBe(false);
    expect(response.text).toBe(seen(held, 1, 'Hi'));
  });

  it('that disconnects has its call aborted before its line is logged, which says so', async () => {
    const { client, held } = await begin();
    const { callId } = held.call;
    const lines = () => log.lines.filter(({ message, fields }) => message === 'request' && fields['call_id'] === callId);
    const linesBefore: number[] = [];
    const aborts = memoryBus.notices.subscribe(subjectOf(addresses.control, callId), () => void linesBefore.push(lines().length));
    held.frame('content', 1, 'Hi');
    const response = await client.answer;
    response.leave();
    await eventually(lines).toHaveLength(1);
    await aborts.stop();

    expect(linesBefore).toEqual([0]);
    expect(lines()[0]?.fields).toMatchObject({ status: 200, incomplete: true });
  });

  it('DESIGN 7: a client that does not read is disconnected, and its call aborted when it has not resumed in time', async () => {
    const { client, held } = await begin({ unsentBytes: 64 * 1_024, graceMs: 50 });
    held.frame('content', 1, 'Hi');
    const response = await client.answer;
    response.stopReading();
    const part = 'x'.repeat(64 * 1_024);
    let seq = 1;
    // The kernel's buffers take some megabytes first.
    await expect
      .poll(
        () => {
          seq += 1;
          held.frame('content', seq, part);
          return worker.aborted;
        },
        { timeout: 60_000, interval: 1 },
      )
      .toContain(held.call.callId);

    expect(log.lines).toContainEqual(expect.objectContaining({ level: 'warn', message: 'a client was disconnected: it left too many bytes unread' }));
  });

  it('that is still reading one large event is not disconnected for what comes meanwhile', async () => {
    const { client, held } = await begin();
    held.frame('content', 1, 'Hi');
    const response = await client.answer;
    response.stopReading();
    // More than the kernel's buffers take.
    const large = 'x'.repeat(16 * 1_024 * 1_024);
    held.frame('content', 2, large);
    for (const seq of [3, 4, 5]) {
      // Each in its own tick, like tokens.
      await nextTurn();
      held.frame('content', seq, 'y');
    }
    held.frame('done', 6, '[DONE]');
    response.readOn();

    expect(await response.ended).toBe(true);
    expect(response.text.length).toBeGreaterThan(large.length);
    expect(response.text.endsWith(seen(held, 5, 'y') + seen(held, 6, '[DONE]'))).toBe(true);
  });

  it('that does not read the end of its stream is disconnected in time', async () => {
    const { client, held } = await begin({ unsentBytes: 512 * 1_024 * 1_024, finishMs: 50 });
    held.frame('content', 1, 'Hi');
    const response = await client.answer;
    response.stopReading();
    held.frame('content', 2, 'x'.repeat(32 * 1_024 * 1_024));
    held.frame('done', 3, '[DONE]');

    // The line is logged when the connection closes. This client would hold it open for ever.
    await eventually(() => log.lines.some(({ message, fields }) => message === 'request' && fields.call_id === held.call.callId)).toBe(true);
    response.leave();
    expect(await response.ended).toBe(false);
  });
});
