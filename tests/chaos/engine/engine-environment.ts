import pg from 'pg';
import { z } from 'zod';
import { openHttpDouble } from '../../../services/effect-worker/test-support/http-double.ts';
import { openSdkToolServer } from '../../../services/effect-worker/test-support/tool-server-doubles.ts';
import type { ConversationEvent } from '../../../shared/contracts/agent/conversation-event.ts';
import { type AgentClient, agentClient } from '../../helpers/agent-client.ts';
import { type Cluster, startCluster } from '../../helpers/start-cluster.ts';
import { writeEngineAgent } from './engine-agent.ts';
import { type LostLease, lostLeaseIn } from './lost-leases.ts';
import { Gates, keyIn, type Phase } from './phases.ts';
import { openPhasesModel, type PhasesModel } from './phases-model.ts';

export interface EngineEnvironment {
  cluster: Cluster;
  agent: AgentClient;
  gates: Gates;
  model: PhasesModel;
  /** Calls of each tool, of the search, and of moderation, by key. */
  booked: ReadonlyMap<string, number>;
  looked: ReadonlyMap<string, number>;
  searched: ReadonlyMap<string, number>;
  moderated: ReadonlyMap<string, number>;
  /** What the turn of a session has stored, without what differs between equal turns. @returns null: it is not over, with all that follows it */
  turnOf(sessionId: string): Promise<StoredTurn | null>;
  /** Whether the check of a session's reply was given up: then it need not have been repeated. */
  isUnchecked(sessionId: string): Promise<boolean>;
  /** Effects of a session whose results are not recorded. */
  openEffectsOf(sessionId: string): Promise<number>;
  /** Leases of a session's work items that living workers have lost so far, as a busy machine makes them: each may bring its item once more. */
  lostLeasesOf(sessionId: string): Promise<number>;
  close(): Promise<void>;
}

export interface StoredTurn {
  /** The events' kinds, and the words of statuses, without the one that depends on how long a search takes. */
  log: string[];
  results: unknown[];
  replies: string[];
  /** Of its rows, sorted. */
  rows: string[];
  /** Of its effects without the check of its message, sorted; with their states. */
  effects: string[];
}

/** A check that has no result in 20 s is given up, which a busy machine may take to notice a dead worker (rule 86). */
const CHECK = 'check-reply';
const RETRIEVING = 'processing retrieving';
const wordOf = (event: ConversationEvent) => (event.kind === 'status' ? `${event.status} ${event.stage ?? ''}`.trim() : event.kind);

/** A cluster with one process of each service, whose agent uses every part of the engine. */
export async function openEngineEnvironment(): Promise<EngineEnvironment> {
  const gates = new Gates();
  const [booked, looked, searched, moderated] = [new Map<string, number>(), new Map<string, number>(), new Map<string, number>(), new Map<string, number>()];
  const model = await openPhasesModel(gates);
  const counting =
    (times: Map<string, number>, word: string, phase: Phase) =>
    async ({ key }: { key: string }) => {
      times.set(key, (times.get(key) ?? 0) + 1);
      await gates.pass(phase, key);
      return { content: [{ type: 'text' as const, text: `${word} ${key}` }] };
    };
  const tools = await openSdkToolServer((mcp) => {
    const inputSchema = { key: z.string() };
    mcp.registerTool('book', { description: 'Books it', inputSchema }, counting(booked, 'booked', 'booking'));
    mcp.registerTool('look', { description: 'Looks it up', inputSchema, annotations: { readOnlyHint: true } }, counting(looked, 'looked', 'looking'));
  });
  const search = await openHttpDouble(async ({ body }, response) => {
    const key = keyIn(String(body));
    searched.set(key, (searched.get(key) ?? 0) + 1);
    await gates.pass('retrieving', key);
    if (!response.destroyed) response.writeHead(200).end(JSON.stringify({ results: [{ content: `found ${key}` }] }));
  });
  const moderation = await openHttpDouble(async ({ body }, response) => {
    const key = keyIn(String(body));
    moderated.set(key, (moderated.get(key) ?? 0) + 1);
    await gates.pass('moderating', key);
    const results = [{ flagged: false, categories: { violence: false } }];
    if (!response.destroyed) response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ results }));
  });
  const files = await writeEngineAgent({ toolPort: tools.port, searchPort: search.port, moderationPort: moderation.port, modelUrl: model.baseUrl });
  const lost: LostLease[] = [];
  const cluster = await startCluster({
    onLine: (line) => {
      const lease = lostLeaseIn(line);
      if (lease !== null) lost.push(lease);
    },
    roles: { 'agent-gateway': 1, 'actor-host': 1, 'router-gateway': 1, 'router-worker': 1, 'effect-worker': 1 },
    env: { ...files, PLATFORM_PUBLIC_KEY: 'pk', PLATFORM_SECRET_KEY: 'sk', SEARCH_API_KEY: 'sk-search', LOG_LEVEL: 'warn' },
  });
  const database = new pg.Pool({ connectionString: cluster.postgres.url, max: 2 });
  database.on('error', () => {});
  const agent = agentClient(() => cluster.agentUrls[0] ?? '', cluster.keys.agentKey);
  return {
    ...{ cluster, agent, gates, model, booked, looked, searched, moderated },
    async turnOf(sessionId) {
      const { rows: open } = await database.query(OPEN, [sessionId]);
      const log = await agent.poll(sessionId, 0, '&limit=1000&wait_for_data=0');
      if (open.length > 0 || !log.some((event) => wordOf(event) === 'ready')) return null;
      const rows = await database.query<{ word: string }>(`select body->>'kind' as word from turn_steps where session_id = $1`, [sessionId]);
      const effects = await database.query<{ word: string }>(EFFECTS, [sessionId]);
      return {
        log: log.map(wordOf).filter((word) => word !== RETRIEVING),
        results: log.flatMap((event) => (event.kind === 'tool' ? event.tool_calls.map(({ result }) => result.data) : [])),
        replies: log.flatMap((event) => (event.kind === 'assistant_message' ? [event.text] : [])),
        rows: rows.rows.map(({ word }) => (word === 'unchecked' ? CHECK : word)).sort(),
        effects: effects.rows.map(({ word }) => (word.includes(CHECK) ? CHECK : word)).sort(),
      };
    },
    isUnchecked: async (sessionId) => (await database.query(UNCHECKED, [sessionId])).rows.length > 0,
    openEffectsOf: async (sessionId) => (await database.query(OPEN, [sessionId])).rows.length,
    async lostLeasesOf(sessionId) {
      const { rows } = await database.query<{ id: string }>('select id from effects where session_id = $1', [sessionId]);
      const ids = new Set(rows.map(({ id }) => id));
      return lost.filter((lease) => ids.has(lease.message_id)).length;
    },
    async close() {
      gates.open();
      await database.end();
      await cluster.stop();
      await Promise.all([tools.close(), search.close(), moderation.close(), model.close()]);
    },
  };
}

const UNCHECKED = `select 1 from turn_steps where session_id = $1 and body->>'kind' = 'unchecked'`;
const OPEN = `select id from effects where session_id = $1 and state = 'open'`;
const EFFECTS = `select concat_ws(' ', kind, inputs->>'call', state) as word from effects where session_id = $1 and kind <> 'moderation'`;
