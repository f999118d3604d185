import { expect, vi } from 'vitest';
import type { Bus } from '#bus/bus.ts';
import { type Frame, readFrame } from '#bus/messages/frame.ts';
import type { RouterCall } from '#bus/messages/router.ts';
import { type UsageRecord, usageRecord } from '#bus/messages/usage.ts';
import { addresses, subjectOf } from '#bus/subjects.ts';
import { systemClock } from '#shared/clock.ts';
import { type RouterConfig, routerConfig } from '#shared/config/router-config.ts';
import { ulid } from '#shared/ids.ts';
import type { Cache } from '#shared/storage/cache.ts';
import type { Database } from '#shared/storage/database.ts';
import { type Log, silentLog } from '#shared/telemetry/log.ts';
import { startRouterWorker } from '../service.ts';

const WAIT = { timeout: 60_000 };
/** Kinds of frames that end an answer. */
const TERMINAL = ['d', 'e', 'b'];

const CONFIG = routerConfig.parse({
  providers: [{ slug: 'local', name: 'Local', kind: 'scripted' }],
  models: [
    {
      id: 'scripted/assistant',
      endpoints: ['primary', 'spare'].map((name) => ({ provider: 'local', upstream_model: name, prices: { prompt: '1', completion: '2' } })),
    },
    { id: 'scripted/unpriced', endpoints: [{ provider: 'local', upstream_model: 'unpriced' }] },
  ],
  keys: [{ id: 'k', key: '${KEY}' }],
});

/** A memory bus whose usage log keeps records here, and a worker on it once it is started. */
export class RecordedCalls {
  /** What was appended and what was published as a terminal frame, in order. */
  readonly events: string[] = [];
  readonly records: UsageRecord[] = [];
  /** Of the usage log, for each record. */
  append: (messageId: string) => Promise<void> = async () => {};
  readonly bus: Bus;
  readonly #database: Database;
  #worker: { stop(): Promise<void> } | null = null;

  /** @param real a memory bus on the database */
  constructor(real: Bus, database: Database) {
    this.#database = database;
    this.bus = {
      ...real,
      tokens: {
        subscribe: (...args) => real.tokens.subscribe(...args),
        replay: (...args) => real.tokens.replay(...args),
        publish: (subject, frame) => {
          if (TERMINAL.includes(String.fromCharCode(frame[0] as number).toLowerCase())) this.events.push('end');
          real.tokens.publish(subject, frame);
        },
      },
      usage: {
        consume: (...args) => real.usage.consume(...args),
        backlog: () => real.usage.backlog(),
        append: (messageId, body) => {
          const record = usageRecord.parse(JSON.parse(body));
          expect(messageId).toBe(record.generationId);
          this.records.push(record);
          this.events.push('record');
          return this.append(messageId);
        },
      },
    };
  }

  async start(cache: Cache | null = null, config: RouterConfig = CONFIG, log: Log = silentLog): Promise<void> {
    const { bus } = this;
    this.#worker = await startRouterWorker({ config, environment: {}, bus, database: this.#database, cache, log, clock: systemClock });
  }

  async close(): Promise<void> {
    await this.#worker?.stop();
    await this.bus.close();
  }

  /** A client's call, of the key `k`. */
  callOf(text: string, fields: Partial<RouterCall> = {}): RouterCall {
    const nowMs = systemClock.nowMs();
    return {
      ...{ v: 1, callId: `gen-gw-${ulid()}`, origin: 'gw', want: 'frames', surface: 'chat-completions', deadlineAtMs: nowMs + 30_000, createdAtMs: nowMs },
      ...{ detached: false, republished: false, keyId: 'k', traceparent: null, maxTokens: null, reply: null },
      request: { messages: [{ role: 'user', content: text }] },
      ...fields,
    };
  }

  async publish(call: RouterCall, earlierDeliveries = 0): Promise<void> {
    await this.bus.work.publish(call.reply === null ? 'router.call' : 'router.turn', call.callId, JSON.stringify(call), earlierDeliveries);
  }

  /** An earlier worker has published these frames and died: the call is delivered for the second time. */
  async diesAfter(call: RouterCall, frames: readonly Uint8Array[], cache: Cache | null = null): Promise<void> {
    for (const frame of frames) this.bus.tokens.publish(subjectOf(addresses.tokens, call.origin, call.callId), frame);
    await this.publish(call, 1);
    await this.start(cache);
  }

  /** Once there is one. */
  recordOf(call: RouterCall): Promise<UsageRecord> {
    return vi.waitFor(() => {
      const found = this.records.filter(({ generationId }) => generationId === call.callId);
      if (found.length === 0) throw new Error('there is no record yet');
      expect(found).toHaveLength(1);
      return found[0] as UsageRecord;
    }, WAIT);
  }

  isSettled(call: RouterCall): Promise<void> {
    return vi.waitFor(
      async () => expect((await this.#database.query('select 1 as one from bus_work where message_id = $1', [call.callId])).rows).toEqual([]),
      WAIT,
    );
  }

  async framesOf({ callId, origin }: RouterCall): Promise<Frame[]> {
    return (await this.bus.tokens.replay(subjectOf(addresses.tokens, origin, callId))).flatMap((bytes) => readFrame(callId, bytes) ?? []);
  }
}
