import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Bus } from '#bus/bus.ts';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { actorFields } from '#bus/messages/actor-fields.ts';
import { type Frame, readFrame, sseFrame, textFrame } from '#bus/messages/frame.ts';
import type { RouterCall } from '#bus/messages/router.ts';
import { type SessionCommand, sessionCommand } from '#bus/messages/session.ts';
import { asFirstVersion, asSecondVersion, firstCommand } from '#bus/messages/test-support/first-version.ts';
import { partitionOf } from '#bus/partition.ts';
import { addresses, subjectOf } from '#bus/subjects.ts';
import { steadyClock, systemClock } from '#shared/clock.ts';
import { routerConfig } from '#shared/config/router-config.ts';
import { ulid } from '#shared/ids.ts';
import type { Database } from '#shared/storage/database.ts';
import { migrate } from '#shared/storage/migrate.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { noMetrics } from '#shared/telemetry/metrics.ts';
import { type RouterWorkerDeps, startRouterWorker } from './service.ts';

const quiet = () => {};
const log: Log = { trace: quiet, debug: quiet, info: quiet, warn: quiet, error: quiet };
const config = routerConfig.parse({
  providers: [{ slug: 'local', name: 'Local', kind: 'scripted' }],
  models: [
    {
      id: 'scripted/assistant',
      endpoints: [
        { provider: 'local', upstream_model: 'primary', prices: { prompt: '1', completion: '2' } },
        { provider: 'local', upstream_model: 'spare', prices: { prompt: '1', completion: '2' } },
      ],
    },
  ],
  keys: [{ id: 'k', key: '${KEY}' }],
});
const WAIT = { timeout: 60_000 };
const SESSION = 'ses_1';

let database: Database;
let bus: Bus;
let worker: { stop(): Promise<void> } | null = null;

beforeAll(async () => {
  database = await openTestDatabase();
  await migrate(database);
});
afterAll(() => database.close());
beforeEach(async () => {
  bus = await openMemoryBus({ database, clock: systemClock });
});
afterEach(async () => {
  await worker?.stop();
  worker = null;
  await bus.close();
});

async function start(options: Partial<RouterWorkerDeps> = {}): Promise<void> {
  worker = await startRouterWorker({ config, environment: {}, bus, database, cache: null, log, clock: systemClock, ...options });
}

function callOf(text: string, fields: Partial<RouterCall> = {}): RouterCall {
  const nowMs = systemClock.nowMs();
  return {
    v: 1,
    callId: `gen-gw-${ulid()}`,
    origin: 'gw',
    want: 'frames',
    deadlineAtMs: nowMs + 30_000,
    createdAtMs: nowMs,
    detached: false,
    republished: false,
    keyId: 'k',
    traceparent: null,
    maxTokens: null,
    request: { messages: [{ role: 'user', content: text }] },
    reply: null,
    ...fields,
  };
}

const turnCall = (text: string, fields: Partial<RouterCall> = {}) =>
  callOf(text, { want: 'none', reply: { sessionId: SESSION, ...actorFields('trn_1') }, ...fields });

async function publish(call: RouterCall): Promise<void> {
  await bus.work.publish(call.reply === null ? 'router.call' : 'router.turn', call.callId, JSON.stringify(call));
}

async function framesOf({ callId, origin }: RouterCall): Promise<Frame[]> {
  const kept = await bus.tokens.replay(subjectOf(addresses.tokens, origin, callId));
  return kept.flatMap((bytes) => readFrame(callId, bytes) ?? []);
}

/** The frames of a call, once the terminal one is stored. */
async function framesUntilEnd(call: RouterCall): Promise<Frame[]> {
  return vi.waitFor(async () => {
    const frames = await framesOf(call);
    if (!['done', 'error', 'body'].includes(frames.at(-1)?.kind ?? '')) throw new Error(`the call has not ended: ${frames.map(({ kind }) => kind)}`);
    return frames;
  }, WAIT);
}

async function bodyOf(call: RouterCall): Promise<{ status: number; body: Record<string, unknown> }> {
  const [frame, ...more] = await framesUntilEnd(call);
  if (frame?.kind !== 'body' || more.length > 0) throw new Error(`not one body: ${frame?.kind}`);
  return { status: frame.status, body: JSON.parse(Buffer.from(frame.body).toString('utf8')) };
}

function errorOf(frames: readonly Frame[]): { status: number; body: unknown } {
  const frame = frames.at(-1);
  if (frame?.kind !== 'error') throw new Error(`the last frame is ${frame?.kind}`);
  return { status: frame.status, body: JSON.parse(Buffer.from(frame.body).toString('utf8')) };
}

/** Commands of the session, from all tests of this file. */
async function commandsOf(callId: string): Promise<SessionCommand[]> {
  return (await commandBodiesOf(callId)).map((body) => sessionCommand.parse(JSON.parse(body)));
}

async function commandBodiesOf(callId: string): Promise<string[]> {
  const found: string[] = [];
  const subscription = bus.commands.read(partitionOf(SESSION), { sequence: 0, fingerprint: null }, async (commands) => {
    for (const { messageId, body } of commands) if (messageId === callId) found.push(body);
  });
  await vi.waitFor(() => expect(found).not.toHaveLength(0), WAIT);
  await subscription.stop();
  return found;
}

/** Stores the effect's row of an actor's call. */
async function effectOf({ callId }: RouterCall, state: 'open' | 'done' | 'superseded'): Promise<void> {
  await database.query(
    `insert into effects (id, p, session_id, turn_id, kind, state, inputs, created_at) values ($1, $2, $3, 'trn_1', 'router-call', $4, '{}', now())`,
    [callId, partitionOf(SESSION), SESSION, state],
  );
}

/** Takes a call and stops: the item is redelivered when its lease expires. */
async function diesWith(call: RouterCall, before: (subject: string) => void, deaths = 1): Promise<void> {
  let taken = 0;
  const subscription = bus.work.consume(call.reply === null ? 'router.call' : 'router.turn', { concurrency: 1, ackWaitMs: 20 }, async (item) => {
    if (item.messageId !== call.callId || taken >= deaths) return;
    taken = item.deliveryCount;
    before(subjectOf(addresses.tokens, call.origin, call.callId));
  });
  await publish(call);
  await vi.waitFor(() => expect(taken).toBe(deaths), WAIT);
  await subscription.stop();
}

const abort = ({ callId }: RouterCall) => bus.notices.publish(subjectOf(addresses.control, callId), '{"abort":true}');
const isGone = async (call: RouterCall) => {
  const { rows } = await database.query('select 1 as one from bus_work where message_id = $1', [call.callId]);
  expect(rows).toEqual([]);
};

it('limits the rate of the scripted model for streamed calls, and for no others', async () => {
  await start({ scriptedWordsPerSecond: 1 });
  const streamed = callOf('!repeat 3600 word');
  await publish(streamed);
  await vi.waitFor(async () => expect(await framesOf(streamed)).not.toEqual([]), WAIT);

  const whole = callOf('!repeat 3600 word', { want: 'body' });
  await publish(whole);

  expect((await bodyOf(whole)).status).toBe(200);
  expect((await framesOf(streamed)).map(({ kind }) => kind)).not.toContain('done');
  abort(streamed);
  await framesUntilEnd(streamed);
});

describe('a call that fails', () => {
  it('ends with the error frame when no model of that name is served', async () => {
    await start();
    const call = callOf('hi', { request: { messages: [{ role: 'user', content: 'hi' }], model: 'x/none' } });
    await publish(call);
    expect(errorOf(await framesUntilEnd(call))).toMatchObject({
      status: 400,
      body: { error: { code: 400, message: 'x/none is not a valid model ID', param: 'model' } },
    });
  });

  it('ends with the error’s status as a body when there was no content', async () => {
    await start();
    const call = callOf('!fail 429 retry-after=7', { want: 'body' });
    await publish(call);
    expect(await bodyOf(call)).toMatchObject({
      status: 429,
      body: { error: { code: 429, metadata: { retry_after: 7, provider_name: 'Local', previous_errors: [{ status: 429 }] } } },
    });
  });

  it('has the content so far, with the error, when it fails in the middle', async () => {
    await start();
    const call = callOf('!fail cut after=2', { want: 'body' });
    await publish(call);
    expect(await bodyOf(call)).toMatchObject({
      status: 200,
      body: { choices: [{ finish_reason: 'error', message: { content: 'I am' }, error: { code: 502 } }], usage: { cost: 0.000_007 } },
    });
  });

  it('falls back to the next endpoint invisibly', async () => {
    await start();
    const call = callOf('!fail 500 on=primary');
    await publish(call);
    const kinds = (await framesUntilEnd(call)).map(({ kind }) => kind);
    expect(new Set(kinds)).toEqual(new Set(['content', 'text', 'done']));
  });

  it('DESIGN 6 rule 5: a call is not begun past its deadline', async () => {
    await start();
    const call = callOf('hi', { deadlineAtMs: systemClock.nowMs() - 1 });
    await publish(call);
    const frames = await framesUntilEnd(call);
    expect(frames).toHaveLength(1);
    expect(errorOf(frames)).toMatchObject({ status: 408, body: { error: { type: 'timeout' } } });
  });

  it('ends when its deadline passes while it runs', async () => {
    await start();
    const call = callOf('!slow 20 !repeat 1000 a b c', { deadlineAtMs: systemClock.nowMs() + 1_500 });
    await publish(call);
    const frames = await framesUntilEnd(call);
    expect(errorOf(frames).status).toBe(408);
    expect(frames[0]?.kind).toBe('content');
    await vi.waitFor(() => isGone(call), WAIT);
  });

  it('DESIGN 3: a call of another version is left for other workers, and an invalid one is dropped', async () => {
    const invalid = { ...callOf('hi'), request: {} };
    const later = { ...callOf('hi'), v: 3 };
    await bus.work.publish('router.call', invalid.callId, JSON.stringify(invalid));
    await bus.work.publish('router.call', later.callId, JSON.stringify(later));
    const after = callOf('hi');
    await start({ concurrency: { clientCalls: 1, turnCalls: 1 } });
    await publish(after);
    await framesUntilEnd(after);
    await vi.waitFor(() => isGone(callOf('', { callId: invalid.callId })), WAIT);
    await expect(isGone(callOf('', { callId: later.callId }))).rejects.toThrow();
  });

  it.each([{ origin: 'gw.*' }, { callId: 'gen 1' }])('is dropped when its frames have no address: %j', async (fields) => {
    const lost = callOf('hi', fields);
    await start();
    await publish(lost);
    await vi.waitFor(() => isGone(lost), WAIT);
  });
});

describe('a client’s call', () => {
  it('becomes frames in order, with one end, and its item is acked', async () => {
    await start();
    const call = callOf('Hello!');
    await publish(call);
    const frames = await framesUntilEnd(call);
    expect(frames.map((frame) => (frame.kind === 'body' ? null : [frame.attempt, frame.seq]))).toEqual(frames.map((_, index) => [1, index + 1]));
    expect(frames.slice(0, -1).every(({ kind }, index) => kind === (index === 0 ? 'content' : 'text'))).toBe(true);
    await vi.waitFor(() => isGone(call), WAIT);
  });

  it('DESIGN 7: a call for a whole answer becomes one frame', async () => {
    await start();
    const call = callOf('Hello!', { want: 'body' });
    await publish(call);
    expect(await bodyOf(call)).toMatchObject({
      status: 200,
      body: { id: call.callId, object: 'chat.completion', model: 'scripted/assistant', provider: 'Local', usage: { prompt_tokens: 1 } },
    });
  });

  it('opens with the upstream’s body for debug requests, once for each provider that is called', async () => {
    await start();
    const messages = [{ role: 'user' as const, content: '!fail 500 on=primary' }];
    const call = callOf('', { request: { messages, stream: true, debug: { echo_upstream_body: true } } });
    await publish(call);
    const frames = await framesUntilEnd(call);
    expect(frames.slice(0, 3).map(({ kind }) => kind)).toEqual(['open', 'open', 'content']);
  });

  it('ends at once when the client has disconnected, with its terminal frame', async () => {
    await start();
    const call = callOf('!slow 50 !repeat 1000 a b c');
    await publish(call);
    await vi.waitFor(async () => expect(await framesOf(call)).not.toHaveLength(0), WAIT);
    abort(call);
    expect(errorOf(await framesUntilEnd(call)).status).toBe(408);
    await vi.waitFor(() => isGone(call), WAIT);
  });

  it('is never begun when the client disconnected while it waited in the queue', async () => {
    await start({ concurrency: { clientCalls: 1, turnCalls: 1 } });
    const [running, waiting] = [callOf('!slow 50 !repeat 1000 a b c'), callOf('hi')];
    await publish(running);
    await vi.waitFor(async () => expect(await framesOf(running)).not.toHaveLength(0), WAIT);
    await publish(waiting);
    abort(waiting);
    abort(running);
    expect((await framesUntilEnd(waiting)).map(({ kind }) => kind)).toEqual(['error']);
  });
});

describe('a turn’s call', () => {
  it('DESIGN 5: a turn’s call is reported as a command, without frames when it requests none', async () => {
    await start();
    const call = turnCall('Hello!', { traceparent: '00-aa-bb-01' });
    await publish(call);
    expect(await commandsOf(call.callId)).toEqual([
      expect.objectContaining({
        type: 'call.completed',
        commandId: call.callId,
        callId: call.callId,
        sessionId: SESSION,
        ...actorFields('trn_1'),
        traceparent: '00-aa-bb-01',
        model: 'scripted/assistant',
        provider: 'Local',
        finishReason: 'stop',
        toolCalls: [],
        text: expect.stringMatching(/^Hello!/),
        usage: { promptTokens: 1, completionTokens: expect.any(Number) },
      }),
    ]);
    expect(await framesOf(call)).toEqual([]);
  });

  it.each([
    ['the release before', asFirstVersion],
    ['a later release', asSecondVersion],
  ])('DESIGN 3: a call that a host of %s published is made, and its result is one that the release before reads', async (_release, as) => {
    await start();
    const call = turnCall('Hello!');
    await bus.work.publish('router.turn', call.callId, JSON.stringify(as(call)));
    const [body = ''] = await commandBodiesOf(call.callId);
    expect(firstCommand.parse(JSON.parse(body))).toMatchObject({ type: 'call.completed', turnId: 'trn_1', callId: call.callId });
  });

  it('reports the functions that the model calls, with their unchanged arguments', async () => {
    await start();
    const parameters = { type: 'object', properties: { city: { type: 'string', enum: ['Oslo'] } }, required: ['city'] };
    const tools = [{ type: 'function' as const, function: { name: 'get_weather', parameters } }];
    const call = turnCall('', { request: { messages: [{ role: 'user', content: 'What is the weather?' }], tools, tool_choice: 'required' } });
    await publish(call);
    const [command] = await commandsOf(call.callId);
    if (command?.type !== 'call.completed') throw new Error(`the call has not completed: ${command?.type}`);
    expect(command).toMatchObject({ finishReason: 'tool_calls', toolCalls: [{ id: expect.any(String), name: 'get_weather' }] });
    expect(JSON.parse(command.toolCalls[0]?.arguments ?? '')).toEqual({ city: 'Oslo' });
  });

  it.each(['done', 'superseded'] as const)('DESIGN 6 rule 2: a turn’s call is not repeated after a take-over when its effect is %s', async (state) => {
    await start({ concurrency: { clientCalls: 1, turnCalls: 1 } });
    const [closed, next] = [turnCall('Hello!', { republished: true }), turnCall('Hello!')];
    await effectOf(closed, state);
    await publish(closed);
    await publish(next);
    await commandsOf(next.callId);
    await vi.waitFor(() => isGone(closed), WAIT);
    const { rows } = await database.query('select 1 as one from bus_log where message_id = $1', [closed.callId]);
    expect(rows).toEqual([]);
  });

  it('DESIGN 6 rule 2: a turn’s call reads no row at its first delivery, and is repeated after a take-over when its effect is open', async () => {
    const asked: string[] = [];
    const watched: Database = {
      query: (statement, parameters) => {
        const name = typeof statement === 'string' ? statement : statement.name;
        // Those of the ledger run beside the calls.
        if (!name.startsWith('ledger-')) asked.push(name);
        return database.query(statement, parameters);
      },
      transaction: (work) => database.transaction(work),
      close: () => database.close(),
    };
    await start({ database: watched });
    const [first, again] = [turnCall('Hello!'), turnCall('Hello!', { republished: true })];
    await publish(first);
    await commandsOf(first.callId);
    expect(asked).toEqual([]);
    await effectOf(again, 'open');
    await publish(again);
    expect(await commandsOf(again.callId)).toEqual([expect.objectContaining({ type: 'call.completed' })]);
    expect(asked).toEqual(['effect_state']);
  });

  it('DESIGN 6 rule 2: a turn’s call is not made when it has waited for over a minute and its effect is closed', async () => {
    const call = turnCall('Hello!');
    await effectOf(call, 'superseded');
    await publish(call);
    await start({ clock: { nowMs: () => systemClock.nowMs() + 61_000 } });
    await vi.waitFor(() => isGone(call), WAIT);
    const { rows } = await database.query('select 1 as one from bus_log where message_id = $1', [call.callId]);
    expect(rows).toEqual([]);
  });

  it('demotes an endpoint for as long as it asks, though the clock is set back by an hour meanwhile', async () => {
    let [setBackMs, aheadMs] = [0, 0];
    let down: () => unknown = () => [];
    const metrics = {
      ...noMetrics,
      watch: (name: string, read: () => unknown) => {
        if (name === 'endpointsDown') down = read;
        return quiet;
      },
    };
    const clock = { nowMs: () => systemClock.nowMs() - setBackMs };
    await start({ clock, actorClock: systemClock, intervalClock: { nowMs: () => steadyClock.nowMs() + aheadMs }, metrics });
    const call = turnCall('!fail 429 retry-after=60 on=primary');
    await publish(call);
    await commandsOf(call.callId);
    expect(await down()).toEqual([expect.objectContaining({ labels: expect.objectContaining({ reason: 'rate_limit' }) })]);
    setBackMs = 3_600_000;
    aheadMs = 61_000;

    expect(await down()).toEqual([]);
  });

  it('publishes its frames first, and then its command', async () => {
    await start();
    const call = turnCall('Hello!', { want: 'frames', surface: 'parts', origin: SESSION });
    const received: (string | undefined)[] = [];
    const listening = bus.tokens.subscribe(subjectOf(addresses.tokens, SESSION, call.callId), (_, bytes) => received.push(readFrame(call.callId, bytes)?.kind));
    await publish(call);
    await commandsOf(call.callId);
    expect(received.at(-1)).toBe('done');
    // Later readers use the log.
    expect((await framesOf(call)).map(({ kind }) => kind)).not.toContain('done');
    await listening.stop();
  });

  it('fails as a command that names the error', async () => {
    await start();
    const call = turnCall('!fail cut after=2');
    await publish(call);
    expect(await commandsOf(call.callId)).toEqual([
      expect.objectContaining({ type: 'call.failed', failure: expect.objectContaining({ code: 'router.provider_unavailable' }) }),
    ]);
  });

  it('sends no command when its actor has aborted it', async () => {
    await start();
    const [aborted, next] = [turnCall('!slow 50 !repeat 1000 a b c', { want: 'frames' }), turnCall('Hello!')];
    await publish(aborted);
    await vi.waitFor(async () => expect(await framesOf(aborted)).not.toHaveLength(0), WAIT);
    abort(aborted);
    await vi.waitFor(() => isGone(aborted), WAIT);
    await publish(next);
    await commandsOf(next.callId);
    const { rows } = await database.query('select 1 as one from bus_log where message_id = $1', [aborted.callId]);
    expect(rows).toEqual([]);
  });
});

describe('a call whose worker died', () => {
  const content = (call: RouterCall) => sseFrame('m', { callId: call.callId, attempt: 1, seq: 1 }, 'data: {}\n\n');

  it('DESIGN 7: a call is repeated for a client without content so far, under the number of its delivery', async () => {
    const call = callOf('Hello!');
    await diesWith(call, (subject) => bus.tokens.publish(subject, sseFrame('o', { callId: call.callId, attempt: 1, seq: 1 }, 'data: {}\n\n')));
    await start();
    const frames = await framesUntilEnd(call);
    const [first, second, third] = frames.map((frame) => (frame.kind === 'body' ? 0 : frame.attempt));
    expect(first).toBe(1);
    // On a busy machine the lease of a later delivery may pass, too.
    expect(second).toBeGreaterThan(1);
    expect(third).toBe(second);
    expect(frames.at(-1)?.kind).toBe('done');
  });

  it('DESIGN 7: a call is not repeated for a client that has received content: it ends with the error frame', async () => {
    const call = callOf('Hello!');
    await diesWith(call, (subject) => bus.tokens.publish(subject, content(call)));
    await start();
    const frames = await framesUntilEnd(call);
    expect(frames.map(({ kind }) => kind)).toEqual(['content', 'error']);
    expect(errorOf(frames)).toMatchObject({ status: 502, body: { error: { message: expect.stringContaining('the worker died') } } });
  });

  it('is not repeated when only texts of it are retained: its first frames are gone', async () => {
    const call = callOf('Hello!');
    await diesWith(call, (subject) => bus.tokens.publish(subject, textFrame({ callId: call.callId, attempt: 1, seq: 700 }, '"a"')));
    await start();
    expect((await framesUntilEnd(call)).map(({ kind }) => kind)).toEqual(['text', 'error']);
  });

  it('is not changed when its end was published already', async () => {
    const call = callOf('Hello!');
    await diesWith(call, (subject) => {
      bus.tokens.publish(subject, content(call));
      bus.tokens.publish(subject, sseFrame('d', { callId: call.callId, attempt: 1, seq: 2 }, 'data: [DONE]\n\n'));
    });
    await start();
    await vi.waitFor(() => isGone(call), WAIT);
    expect(await framesOf(call)).toHaveLength(2);
  });

  it('DESIGN 7: a call is repeated for an actor, whatever was published of it', async () => {
    const call = turnCall('Hello!', { want: 'frames' });
    await effectOf(call, 'open');
    await diesWith(call, (subject) => bus.tokens.publish(subject, content(call)));
    await start();
    expect(await commandsOf(call.callId)).toEqual([expect.objectContaining({ type: 'call.completed' })]);
  });

  it('DESIGN 6: a turn’s call fails after five deliveries, which is reported to its owner', async () => {
    const call = turnCall('Hello!');
    await effectOf(call, 'open');
    await diesWith(call, () => {}, 5);
    await start();
    expect(await commandsOf(call.callId)).toEqual([
      expect.objectContaining({ type: 'call.failed', failure: expect.objectContaining({ code: 'router.provider_unavailable' }) }),
    ]);
    expect(await deadLettersOf(call)).toEqual([
      { source: 'call', p: partitionOf(SESSION), reason: 'its worker died 5 times', body: expect.stringContaining('Hello!') },
    ]);
  });

  it('DESIGN 6: a client’s call fails after five deliveries with the error frame, and becomes a dead letter', async () => {
    const call = callOf('Hello!');
    await diesWith(call, () => {}, 5);
    await start();
    await vi.waitFor(() => isGone(call), WAIT);
    expect(errorOf(await framesOf(call))).toMatchObject({ status: 502, body: { error: { message: 'the call was given up after 5 tries' } } });
    expect(await deadLettersOf(call)).toEqual([expect.objectContaining({ source: 'call', p: null })]);
  });

  it('fails after five deliveries also when its frames can’t be replayed', async () => {
    const call = callOf('Hello!');
    await diesWith(call, () => {}, 4);
    const replay = () => Promise.reject(new Error('not permitted'));
    await start({ bus: { ...bus, tokens: { ...bus.tokens, replay } } });
    await vi.waitFor(() => isGone(call), WAIT);
    expect(errorOf(await framesOf(call))).toMatchObject({ status: 502, body: { error: { message: 'the call was given up after 5 tries' } } });
  });
});

async function deadLettersOf({ callId }: RouterCall) {
  return (await database.query('select source, p, reason, body from dead_letters where id = $1', [callId])).rows;
}

describe('stopping', () => {
  it('waits for calls in progress', async () => {
    await start();
    const call = callOf('!slow 20 !repeat 5 a b c');
    await publish(call);
    await vi.waitFor(async () => expect(await framesOf(call)).not.toHaveLength(0), WAIT);
    await worker?.stop();
    expect((await framesOf(call)).at(-1)?.kind).toBe('done');
  });

  it('naks calls that take too long, and another worker executes them', async () => {
    await start({ drainTimeoutMs: 50 });
    const call = turnCall('!slow 20 !repeat 10 a b c', { want: 'frames' });
    await effectOf(call, 'open');
    await publish(call);
    await vi.waitFor(async () => expect(await framesOf(call)).not.toHaveLength(0), WAIT);
    await worker?.stop();
    expect((await framesOf(call)).every(({ kind }) => kind === 'content' || kind === 'text')).toBe(true);
    await start();
    expect(await commandsOf(call.callId)).toEqual([expect.objectContaining({ type: 'call.completed', text: expect.stringMatching(/^a b c a b c/) })]);
  });
});
