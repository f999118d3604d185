import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { Bus } from '#bus/bus.ts';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { systemClock } from '#shared/clock.ts';
import type { Database } from '#shared/storage/database.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { get, post } from '../test-support/http-client.ts';
import { authorization, eventually, oldCall, ResumableStreams, resume, streamed } from '../test-support/resumable-streams.ts';

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

describe('a call goes on while it has a reader', () => {
  it('as its gateway reports for as long as its client is connected, and then is aborted', async () => {
    const url = await streams.gateway();
    const { answer, held, callId } = await streams.begin(url);
    expect(await streams.beat(held)).toEqual([`origin ${callId}`]);
    answer.leave();
    await eventually(() => streams.worker.aborted).toContain(callId);
    expect(await streams.beat(held)).toEqual(['origin ']);
  });

  it('as another gateway reports, where its client has resumed', async () => {
    const [first, second] = [await streams.gateway(), await streams.gateway()];
    const { answer, held, callId } = await streams.begin(first, { 'x-detach': 'true' });
    answer.leave();
    const resumed = await resume(second, callId, { 'last-event-id': `${callId}.1.0` });
    await eventually(() => resumed.text).toContain('Hel');
    await eventually(() => streams.beat(held)).toEqual(['origin ', `other ${callId}`]);
    resumed.leave();
    await eventually(() => streams.worker.aborted).toContain(callId);
    await eventually(() => streams.beat(held)).toEqual(['origin ']);
  });

  it('and is not aborted while a second reader has it', async () => {
    const url = await streams.gateway();
    const { answer, held, callId } = await streams.begin(url);
    const second = await resume(url, callId);
    await eventually(() => second.text).toContain('Hel');
    answer.leave();
    await answer.ended;
    held.frame('done', 2, '[DONE]');

    expect(await second.ended).toBe(true);
    expect(second.text).toContain('[DONE]');
    expect(streams.worker.aborted).not.toContain(callId);
  });

  it('and when its client disconnects but had detached it', async () => {
    const url = await streams.gateway();
    const { answer, held, callId } = await streams.begin(url, { 'x-detach': 'true' });
    expect(held.call.detached).toBe(true);
    answer.leave();
    await eventually(() => streams.beat(held)).toEqual(['origin ']);
    expect(streams.worker.aborted).not.toContain(callId);
  });

  it('and when its gateway stops but its client had detached it', async () => {
    const url = await streams.gateway();
    const calls = [];
    for (const headers of [{ 'x-detach': 'true' }, {}]) {
      const client = post(`${url}/chat/completions`, { ...streamed, stream: false }, { authorization, ...headers });
      calls.push({ client, held: await streams.worker.next() });
    }
    await streams.gateways.pop()?.stop();

    const [detached, other] = calls.map(({ held }) => held.call.callId);
    // A gateway aborts the oldest first.
    await eventually(() => streams.worker.aborted).toContain(other);
    expect(streams.worker.aborted).not.toContain(detached);
    for (const { client } of calls) expect((await client.answer).status).toBe(503);
  });

  it('and when its client does not read and is disconnected, but had detached it', async () => {
    const url = await streams.gateway({ unsentBytes: 1_024, graceMs: 60_000 });
    const { answer, held } = await streams.begin(url, { 'x-detach': 'true' });
    answer.stopReading();
    const isCut = () =>
      streams.log.lines.some(
        ({ message, fields }) => message === 'a client was disconnected: it left too many bytes unread' && fields.call_id === held.call.callId,
      );
    let seq = 1;
    await eventually(() => {
      seq += 1;
      held.frame('content', seq, 'x'.repeat(256 * 1_024));
      return isCut();
    }).toBe(true);

    // Not kept as resumable: a kept call is aborted in the end.
    expect(await streams.beat(held)).toEqual(['origin ']);
    answer.leave();
  });

  it('DESIGN 7: a call goes on for a client that the gateway has disconnected, which can resume it', async () => {
    const url = await streams.gateway({ unsentBytes: 1_024, graceMs: 60_000 });
    const { answer, held, callId } = await streams.begin(url);
    answer.stopReading();
    const part = 'x'.repeat(256 * 1_024);
    let seq = 1;
    // The kernel's buffers take some megabytes first.
    await eventually(() => {
      seq += 1;
      held.frame('content', seq, part);
      return streams.log.lines.map(({ message }) => message);
    }).toContain('a client was disconnected: it left too many bytes unread');
    // A HEAD is no reader, with which the time to resume would end.
    const head = await get(`${url}/generations/${callId}/stream`, { authorization }, 'HEAD');
    expect([head.status, await head.ended]).toEqual([200, true]);
    expect(await streams.beat(held)).toEqual([`origin ${callId}`]);

    const again = await resume(url, callId, { 'last-event-id': `${callId}.1.1` });
    held.frame('done', seq + 1, '[DONE]');
    expect(await again.ended).toBe(true);
    expect(again.text.split('\n\n')).toHaveLength(seq + 1);
    expect(streams.worker.aborted).not.toContain(callId);
    answer.leave();
  });
});

describe('a worker without heartbeats', () => {
  it('DESIGN 7: after the last heartbeat of a worker its stream ends with the error chunk, and its call is aborted', async () => {
    const { answer, callId } = await streams.begin(await streams.gateway({ silenceMs: 30 }));

    expect(await answer.ended).toBe(true);
    expect(answer.text).toContain('"finish_reason":"error"');
    expect(answer.text).toContain('has stopped sending frames and heartbeats');
    await eventually(() => streams.worker.aborted).toContain(callId);
    // For another worker to bill what was shown.
    expect(await streams.worker.next()).toMatchObject({ delivery: 2, call: { callId } });
  });

  it('is waited for as long as it sends heartbeats', async () => {
    // A busy machine may stand still between two heartbeats.
    const { answer, held } = await streams.begin(await streams.gateway({ silenceMs: 1_500 }));
    const endsAtMs = performance.now() + 2_500;
    while (performance.now() < endsAtMs) await streams.beat(held);
    held.frame('done', 2, '[DONE]');

    expect(await answer.ended).toBe(true);
    expect(answer.text).not.toContain('error');
  });

  it('may have published the end: the retained frames count', async () => {
    const url = await streams.gateway({ silenceMs: 100 });
    const { answer, held } = await streams.begin(url, {});
    held.frame('done', 2, '[DONE]');

    expect(await answer.ended).toBe(true);
    expect(answer.text).toContain('[DONE]');
  });
});

describe('a resumed stream', () => {
  it('does not end its call when its client leaves and had asked for that', async () => {
    const [first, second] = [await streams.gateway(), await streams.gateway()];
    const { answer, held, callId } = await streams.begin(first, { 'x-detach': 'true' });
    answer.leave();
    const resumed = await resume(second, callId, { 'x-detach': 'true' });
    await eventually(() => resumed.text).toContain('Hel');
    resumed.leave();
    await eventually(() => streams.beat(held)).toEqual(['origin ']);
    expect(streams.worker.aborted).not.toContain(callId);
  });

  it('DESIGN 7: HEAD of a stream ends no call, and is no interest in it', async () => {
    const [first, second] = [await streams.gateway({ graceMs: 60_000 }), await streams.gateway()];
    const head = (url: string, callId: string) => get(`${url}/generations/${callId}/stream`, { authorization }, 'HEAD');
    const { answer, held, callId } = await streams.begin(first);
    for (const url of [first, second]) {
      const { status, headers, ended, text } = await head(url, callId);
      expect([status, headers['content-type'], headers['x-generation-id'], await ended, text]).toEqual([200, 'text/event-stream', callId, true, '']);
    }
    expect((await head(second, oldCall())).status).toBe(404);
    expect(await streams.beat(held)).toEqual([`origin ${callId}`]);
    expect(streams.worker.aborted).not.toContain(callId);

    held.frame('done', 2, '[DONE]');
    expect(await answer.ended).toBe(true);
    expect(answer.text).toContain('[DONE]');
  });

  it('of a call that is answered whole has the status and type of that answer for HEAD', async () => {
    const url = await streams.gateway();
    const client = post(`${url}/chat/completions`, { ...streamed, stream: false }, { authorization });
    const held = await streams.worker.next();
    held.body(402, { error: {} });
    await client.answer;
    const { status, headers } = await get(`${url}/generations/${held.call.callId}/stream`, { authorization }, 'HEAD');
    expect([status, headers['content-type']]).toEqual([402, expect.stringContaining('application/json')]);
  });

  it('has the time of its call, counted from its beginning', async () => {
    const url = await streams.gateway({ deadlineGraceMs: 20 });
    const { answer, held, callId } = await streams.begin(url, { 'x-detach': 'true' });
    answer.leave();
    const resumed = await resume(url, callId);
    await eventually(() => resumed.text).toContain('Hel');
    await new Promise((resolve) => setTimeout(resolve, 200));
    held.frame('done', 2, '[DONE]');
    expect(await resumed.ended).toBe(true);
    expect(resumed.text).toContain('[DONE]');
    expect(resumed.text).not.toContain('error');
  });
});
