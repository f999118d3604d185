import { vi } from 'vitest';
import { openMemoryBus } from '../../bus/memory/memory-bus.ts';
import type { ReadyFrame } from '../../bus/messages/frame.ts';
import type { RouterCall } from '../../bus/messages/router.ts';
import { readyFrames } from '../../bus/messages/test-support/ready-frames.ts';
import { abortOf } from '../../bus/received-aborts.ts';
import { addresses, subjectOf } from '../../bus/subjects.ts';
import { startRouterWorker } from '../../services/router-worker/service.ts';
import { systemClock } from '../../shared/clock.ts';
import { type RouterConfig, routerConfig } from '../../shared/config/router-config.ts';
import type { ChatRequest } from '../../shared/contracts/router/chat-request.ts';
import { ulid } from '../../shared/ids.ts';
import { openTestDatabase } from '../../shared/storage/pglite/test-support/open-test-database.ts';

const WAIT = { timeout: 60_000, interval: 5 };
const quiet = () => {};

interface WorkerSetup {
  providers: object[];
  models: object[];
  plugins: object;
  account?: object;
  environment?: Record<string, string>;
  outboundAllowHosts?: ReadonlySet<string>;
}

interface PluginWorker {
  config: RouterConfig;
  /** The whole answer, or the error, of a call. */
  whole(request: Partial<ChatRequest>): Promise<{ status: number; body: Record<string, unknown> }>;
  /** The chunks of a call. */
  stream(request: Partial<ChatRequest>): Promise<Record<string, unknown>[]>;
  /** What the ledger has of a call that a test has made last. */
  recordOfLast(): Promise<Record<string, unknown>>;
  /** Begins a call that may be aborted: as no gateway reads it, it is detached, and its abort says that it is withdrawn. */
  begin(request: Partial<ChatRequest>): Promise<{ abort(): void; ended(): Promise<ReadyFrame> }>;
  close(): Promise<void>;
}

/** A router worker on embedded stores, for plugins whose engines and providers are servers on loopback. */
export async function openPluginWorker({
  providers,
  models,
  plugins,
  account,
  environment = {},
  outboundAllowHosts = new Set(),
}: WorkerSetup): Promise<PluginWorker> {
  const database = await openTestDatabase();
  const bus = await openMemoryBus({ database, clock: systemClock });
  const config = routerConfig.parse({
    providers,
    models,
    plugins,
    account,
    keys: [{ id: 'k', key: '${KEY}' }],
    timeouts: { first_token_ms: 600_000, idle_ms: 600_000 },
  });
  const log = { trace: quiet, debug: quiet, info: quiet, warn: quiet, error: quiet };
  const worker = await startRouterWorker({ config, environment, bus, database, cache: null, log, clock: systemClock, outboundAllowHosts });
  let last = '';

  async function publish(fields: Partial<ChatRequest>, want: RouterCall['want']): Promise<RouterCall> {
    const nowMs = systemClock.nowMs();
    last = `gen-gw-${ulid()}`;
    const made: RouterCall = {
      v: 1,
      callId: last,
      origin: 'gw',
      want,
      surface: 'chat-completions',
      deadlineAtMs: nowMs + 600_000,
      createdAtMs: nowMs,
      detached: true,
      republished: false,
      keyId: 'k',
      traceparent: null,
      maxTokens: null,
      request: { messages: [{ role: 'user', content: 'hi' }], ...fields },
      reply: null,
    };
    await bus.work.publish('router.call', made.callId, JSON.stringify(made));
    return made;
  }

  const framesOf = ({ callId, origin }: RouterCall) =>
    vi.waitFor(async () => {
      const frames = readyFrames(callId, await bus.tokens.replay(subjectOf(addresses.tokens, origin, callId)));
      const end = frames.at(-1);
      if (end === undefined || end.kind === 'open' || end.kind === 'content') throw new Error(`only ${frames.map(({ kind }) => kind)}`);
      return { frames, end };
    }, WAIT);

  return {
    config,
    async whole(request) {
      const { end } = await framesOf(await publish(request, 'body'));
      if (end.kind !== 'body') throw new Error(`not a body: ${end.kind}`);
      return { status: end.status, body: JSON.parse(Buffer.from(end.body).toString('utf8')) };
    },
    async stream(request) {
      const { frames } = await framesOf(await publish({ ...request, stream: true }, 'frames'));
      const sse = frames.map((frame) => (frame.kind === 'body' ? '' : Buffer.from(frame.sse).toString('utf8'))).join('');
      return [...sse.matchAll(/^data: (\{.*)$/gm)].map((match) => JSON.parse(match[1] ?? ''));
    },
    recordOfLast: () =>
      vi.waitFor(async () => {
        const { rows } = await database.query<{ record: Record<string, unknown> }>('select record from usage_ledger where generation_id = $1', [last]);
        if (rows[0] === undefined) throw new Error('not in the ledger yet');
        return rows[0].record;
      }, WAIT),
    async begin(request) {
      const made = await publish(request, 'body');
      return {
        abort: () => bus.notices.publish(subjectOf(addresses.control, made.callId), abortOf({ isWithdrawn: true, from: null })),
        ended: async () => (await framesOf(made)).end,
      };
    },
    async close() {
      await worker.stop();
      await bus.close();
      await database.close();
    },
  };
}
