import { vi } from 'vitest';
import type { Bus, Subscription } from '#bus/bus.ts';
import { actorFields } from '#bus/messages/actor-fields.ts';
import type { DeliveryWork } from '#bus/messages/delivery.ts';
import { type CommandOf, type SessionCommand, sessionCommand } from '#bus/messages/session.ts';
import { type ListedTool, SEARCH_VERSION, type ToolWork, VECTOR_SEARCH_VERSION } from '#bus/messages/tool.ts';
import { partitionOf } from '#bus/partition.ts';
import { systemClock } from '#shared/clock.ts';
import { hashOf } from '#shared/config/bundle-body.ts';
import { BundleCache } from '#shared/config/bundle-cache.ts';
import { bundleStore, storeBundle } from '#shared/config/bundle-store.ts';
import { canonicalJson } from '#shared/config/canonical-json.ts';
import type { Bundle } from '#shared/config/load-bundle.ts';
import { manifest } from '#shared/contracts/manifest/manifest.ts';
import { ulid } from '#shared/ids.ts';
import type { Database } from '#shared/storage/database.ts';
import { createLog } from '#shared/telemetry/log.ts';
import { type EffectWorkerConfig, type EffectWorkerDeps, startEffectWorker } from '../service.ts';

export const SESSION = 'ses_1';
export const WAIT = { timeout: 60_000, interval: 5 };
export const AGENT_KEY = 'sk-agent-0123456789';
export const TOOL_KEY = 'sk-tools-0123456789';
const ENVIRONMENT = { AGENT_API_KEY: AGENT_KEY, TOOL_API_KEY: TOOL_KEY };

/** An item, valid or not. */
type Work = { effectId: string } & Record<string, unknown>;

interface ServerEntry {
  id: string;
  port: number;
  hasKey?: boolean;
}

/** A configuration with these tool servers, all on this machine. */
function bundleWith(servers: readonly ServerEntry[], search: object | null): Bundle {
  const body = {
    manifest: manifest.parse({
      id: 'agent-1',
      name: 'Agent',
      version: '1',
      agent_config: {
        runtime: { api_key: '${AGENT_API_KEY}' },
        platform: { public_key: '${PUBLIC}', secret_key: '${SECRET}' },
        llms: { default: 'a/b', api_key: '${LLM}' },
        context: { system_prompt: { id: 'prompt', version: 1 }, language: 'match_user' },
        search,
        mcps: servers.map(({ id, port, hasKey = false }) => ({ id, hostname: 'http://127.0.0.1', port, ...(hasKey ? { api_key: '${TOOL_API_KEY}' } : {}) })),
      },
    }),
    documents: { prompts: [], routines: [], policies: [], glossaries: [], macros: [], variable_sets: [] },
  };
  return { hash: hashOf(body), body };
}

/** A worker's deployment: real embedded drivers, the owner's rows, and the commands to the owner. */
export class WorkerDeployment {
  readonly database: Database;
  readonly bus: Bus;
  /** Log of the workers. */
  readonly lines: string[] = [];
  /** Statements of the workers, by name. */
  readonly queries: string[] = [];
  readonly commands: SessionCommand[] = [];
  /** The texts of `commands`. */
  readonly bodies: string[] = [];
  readonly #reading: Subscription;
  readonly #workers: { stop(): Promise<void> }[] = [];

  /** @param drivers fresh ones, opened and closed by the test; earlier commands in the log are ignored */
  static async open({ database, bus }: { database: Database; bus: Bus }): Promise<WorkerDeployment> {
    return new WorkerDeployment({ database, bus }, (await bus.commands.state()).lastSequence);
  }

  private constructor({ database, bus }: { database: Database; bus: Bus }, sequence: number) {
    this.database = database;
    this.bus = bus;
    this.#reading = bus.commands.read(partitionOf(SESSION), { sequence, fingerprint: null }, async (commands) => {
      for (const { body } of commands) {
        this.bodies.push(body);
        this.commands.push(sessionCommand.parse(JSON.parse(body)));
      }
    });
  }

  /** Without a poster in `deps` the worker can't post. */
  async start(config: Partial<EffectWorkerConfig> = {}, deps: Partial<EffectWorkerDeps> = {}): Promise<{ stop(): Promise<void> }> {
    const watched: Database = {
      query: (statement, parameters) => {
        this.queries.push(typeof statement === 'string' ? statement : statement.name);
        return this.database.query(statement, parameters);
      },
      transaction: (work) => this.database.transaction(work),
      close: () => this.database.close(),
    };
    const worker = await startEffectWorker({
      config: { kinds: ['tool', 'delivery'], maxDeliveryAttempts: 5, drainTimeoutMs: 5_000, ...config },
      environment: ENVIRONMENT,
      bus: this.bus,
      database: watched,
      poster: { post: () => Promise.reject(new Error('this worker posts nothing')) },
      openKnowledgeBase: () => Promise.reject(new Error('this worker has no knowledge base')),
      clock: systemClock,
      log: createLog({ level: 'debug', service: 'effect-worker', output: { write: (line) => this.lines.push(line) } }),
      ...deps,
    });
    this.#workers.push(worker);
    return worker;
  }

  /** @param search as in a manifest */
  async bundle(servers: readonly ServerEntry[] = [], search: object | null = null): Promise<string> {
    const bundle = bundleWith(servers, search);
    await storeBundle(this.database, bundle);
    return bundle.hash;
  }

  /** A stored configuration, as a start reads it. */
  startingWith(hash: string): Promise<Bundle> {
    return new BundleCache(bundleStore(this.database)).read(hash);
  }

  /** Stores the effect's row as its owner would, unless it has one. */
  async effect(id: string, state: 'open' | 'done' | 'superseded'): Promise<void> {
    await this.database.query(
      `insert into effects (id, p, session_id, turn_id, kind, state, inputs, created_at) select $1, $2, $3, 'run_1', 'tool-call', $4, '{}', now()
        where not exists (select 1 from effects where id = $1)`,
      [id, partitionOf(SESSION), SESSION, state],
    );
  }

  async toolList(tools: readonly Partial<ListedTool>[]): Promise<string> {
    const body = canonicalJson(
      tools.map((tool) => ({ name: 'a', title: null, description: null, inputSchema: { type: 'object' }, repeatable: false, ...tool })),
    );
    const hash = `list-${ulid()}`;
    await this.database.query('insert into tool_lists (hash, tools) values ($1, $2::json)', [hash, body]);
    return hash;
  }

  async delivery(fields: { url: string; bundleHash: string; body?: string; attempts?: number; state?: string; traceparent?: string | null }): Promise<string> {
    const { url, bundleHash, body = '{"run_id":"run_1"}', attempts = 0, state = 'open', traceparent = null } = fields;
    const id = `dlv-${ulid()}`;
    await this.database.query(
      `insert into deliveries (id, p, session_id, run_id, url, host_allowlist, bundle_hash, idempotency_key, trace_id, traceparent, body, attempts, state, created_at)
       values ($1, $2, $3, 'run_1', $4, 'null', $5, 'key', 'trace', $6, $7, $8, $9, now())`,
      [id, partitionOf(SESSION), SESSION, url, bundleHash, traceparent, body, attempts, state],
    );
    return id;
  }

  async attemptsOf(deliveryId: string): Promise<number | undefined> {
    const { rows } = await this.database.query<{ attempts: number }>('select attempts from deliveries where id = $1', [deliveryId]);
    return rows[0]?.attempts;
  }

  /** With the row of an open effect, where a call has none yet: its owner stores it before it publishes. */
  async publish(kind: 'tool' | 'delivery', work: Work, { hasRow = work['type'] === 'call' } = {}): Promise<void> {
    if (hasRow) await this.effect(work.effectId, 'open');
    await this.bus.work.publish(kind, work.effectId, JSON.stringify(work));
  }

  /** Waits for the report of an effect. */
  async reportOf<Type extends 'tool.completed' | 'tools.listed' | 'delivery.reported' | 'event-webhook.reported'>(
    type: Type,
    effectId: string,
    wait = WAIT,
  ): Promise<CommandOf<Type>> {
    return vi.waitFor(() => {
      const found = this.commands.find((command) => command.commandId === effectId);
      if (found === undefined || !isOf(found, type)) throw new Error(`no ${type} of ${effectId} yet`);
      return found;
    }, wait);
  }

  /** Waits until the item is acked or terminated. */
  async gone(effectId: string): Promise<void> {
    await vi.waitFor(async () => {
      const { rows } = await this.database.query('select 1 as one from bus_work where message_id = $1', [effectId]);
      if (rows.length > 0) throw new Error(`the item ${effectId} is still there`);
    }, WAIT);
  }

  /** Takes an item and dies, `deaths` times: it is redelivered when its lease ends. */
  async crashWith(kind: 'tool' | 'delivery', work: Work, deaths = 1): Promise<void> {
    let taken = 0;
    const subscription = this.bus.work.consume(kind, { concurrency: 1, ackWaitMs: 20 }, async (item) => {
      if (item.messageId === work.effectId && taken < deaths) taken = item.deliveryCount;
    });
    await this.publish(kind, work);
    await vi.waitFor(() => {
      if (taken < deaths) throw new Error('not dead yet');
    }, WAIT);
    await subscription.stop();
  }

  async stopWorkers(): Promise<void> {
    await Promise.all(this.#workers.splice(0).map((worker) => worker.stop()));
  }

  async close(): Promise<void> {
    await this.stopWorkers();
    await this.#reading.stop();
  }
}

/** The next item of each kind, with a fresh effect id. */
export function deliveryItem(deliveryId: string, fields: Partial<DeliveryWork> = {}): DeliveryWork {
  return { v: 1, effectId: `eff-${ulid()}`, deliveryId, sessionId: SESSION, ...times(), traceparent: null, ...fields };
}

export function callItem(bundleHash: string, listHash: string, toolId: string, fields: Partial<Extract<ToolWork, { type: 'call' }>> = {}) {
  return { ...toolHeader(bundleHash), type: 'call' as const, toolId, listHash, arguments: {}, ...fields };
}

export function listItem(bundleHash: string, servers: string[], fields: Partial<Extract<ToolWork, { type: 'list' }>> = {}) {
  return { ...toolHeader(bundleHash), type: 'list' as const, servers, ...fields };
}

export function searchItem(bundleHash: string, fields: Partial<Extract<ToolWork, { type: 'search' }>> = {}) {
  return {
    ...toolHeader(bundleHash),
    v: fields.vector === undefined ? SEARCH_VERSION : VECTOR_SEARCH_VERSION,
    type: 'search' as const,
    query: 'warranty of hoses',
    messages: [],
    ...fields,
  } as const;
}

function toolHeader(bundleHash: string) {
  return { v: 1 as const, effectId: `eff-${ulid()}`, sessionId: SESSION, ...actorFields('run_1'), bundleHash, ...times(), traceparent: null };
}

function times() {
  const nowMs = systemClock.nowMs();
  return { deadlineAtMs: nowMs + 30_000, createdAtMs: nowMs, republished: false };
}

function isOf<Type extends SessionCommand['type']>(command: SessionCommand, type: Type): command is CommandOf<Type> {
  return command.type === type;
}
