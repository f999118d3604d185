import type { FastifyInstance, LightMyRequestResponse } from 'fastify';
import { z } from 'zod';
import type { Bus } from '#bus/bus.ts';
import { systemClock } from '#shared/clock.ts';
import { checkAnswers } from '#shared/http-server/test-support/check-answers.ts';
import type { Cache } from '#shared/storage/cache.ts';
import type { Database } from '#shared/storage/database.ts';
import { migrate } from '#shared/storage/migrate.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import { buildApp } from '../app.ts';
import type { AgentGatewayDeps } from '../deps.ts';
import { BUNDLE_HASH, bundleWith } from './bundle.ts';
import { agentApi } from './openapi-document.ts';
import { OwnerDouble } from './owner-double.ts';
import { until } from './until.ts';

export const API_KEY = 'sk-test-agent';
export const BEARER = { authorization: `Bearer ${API_KEY}` };

/** What a gateway needs in tests: real embedded drivers and a double of the partitions' owner. */
export interface TestDeployment {
  bus: Bus;
  database: Database;
  cache: Cache;
  owner: OwnerDouble;
  /** Names of the gateways' statements, in order. */
  queries: string[];
  /** Clears the statements, runs the action, and waits until the gateways have read that many pages of logs. */
  afterPages<Done>(count: number, begin: () => Done): Promise<{ begun: Done }>;
  deps(
    changes?: Partial<Pick<AgentGatewayDeps, 'bus' | 'database' | 'cache' | 'bundle' | 'checkCallbackUrl' | 'secretNow' | 'clock' | 'waits' | 'log'>> & {
      streaming?: boolean;
      passesBaggage?: boolean;
    },
  ): AgentGatewayDeps;
  app(changes?: Parameters<TestDeployment['deps']>[0]): FastifyInstance;
  /** Between tests: a gateway that stays open would go on querying. @throws when an answer was not as the API's description says */
  closeApps(): Promise<void>;
  close(): Promise<void>;
}

/** @param drivers new ones, opened by the test and closed by the deployment */
export async function openTestDeployment({ database, bus, cache }: { database: Database; bus: Bus; cache: Cache }): Promise<TestDeployment> {
  await migrate(database);
  await database.query('insert into bundles (hash, body) values ($1, $2::json)', [BUNDLE_HASH, '{}']);
  const owner = new OwnerDouble({ bus, database });
  owner.start();
  const queries: string[] = [];
  let pagesRead = 0;
  const watched: Database = {
    ...database,
    transaction: (work) => database.transaction(work),
    close: () => database.close(),
    query: async (statement, parameters) => {
      const name = typeof statement === 'string' ? statement : statement.name;
      queries.push(name);
      try {
        return await database.query(statement, parameters);
      } finally {
        if (name.startsWith('agent-gateway-page')) pagesRead += 1;
      }
    },
  };
  const apps: FastifyInstance[] = [];
  const problems: string[] = [];
  const runs = { defaultTimeoutMs: 120_000, maxTimeoutMs: 600_000, requireCallbackAllowlist: false };
  const deps: TestDeployment['deps'] = (changes = {}) => ({
    config: { host: '127.0.0.1', port: 0, streaming: changes.streaming ?? false, passesBaggage: changes.passesBaggage ?? false, drainTimeoutMs: 5_000, runs },
    agent: { id: 'agent-1', apiKey: API_KEY, bundleHash: BUNDLE_HASH },
    modelCalls: { modelKey: 'sha256:none', maxTokens: 1_000, providerOrder: [] },
    bundle: changes.bundle ?? bundleWith(),
    checkCallbackUrl: changes.checkCallbackUrl ?? (() => {}),
    secretNow: changes.secretNow ?? (() => null),
    bus: changes.bus ?? bus,
    database: changes.database ?? watched,
    cache: changes.cache ?? cache,
    log: changes.log ?? silentLog,
    clock: changes.clock ?? systemClock,
    // Tests count queries, and may take longer than its interval.
    waits: { checkBegunFeedsMs: 3_600_000, ...changes.waits },
  });
  const closeApps = async () => {
    await Promise.all(apps.splice(0).map((app) => app.close()));
    const found = problems.splice(0);
    if (found.length > 0) throw new Error(`answers are not as published:\n${[...new Set(found)].join('\n')}`);
  };
  return {
    bus,
    database,
    cache,
    owner,
    queries,
    afterPages: async (count, begin) => {
      queries.length = 0;
      const before = pagesRead;
      // Wrapped: the action may return a promise that must not be awaited yet.
      const begun = begin();
      await until(() => pagesRead - before >= count, `${count} pages`);
      return { begun };
    },
    deps,
    app: (changes) => {
      const app = buildApp(deps(changes));
      checkAnswers(app, agentApi, problems);
      apps.push(app);
      return app;
    },
    closeApps,
    close: async () => {
      await closeApps();
      await owner.stop();
      await bus.close();
      await cache.close();
      await database.close();
    },
  };
}

/** A new session, through the API. */
export async function newSession(app: FastifyInstance): Promise<string> {
  const reply = await app.inject({ method: 'POST', url: '/sessions', headers: BEARER });
  return z.object({ id: z.string() }).parse(reply.json()).id;
}

export async function post(app: FastifyInstance, sessionId: string, body: unknown, headers: Record<string, string> = {}): Promise<LightMyRequestResponse> {
  const payload = JSON.stringify(body);
  return app.inject({ method: 'POST', url: `/sessions/${sessionId}/events`, headers: { ...BEARER, 'content-type': 'application/json', ...headers }, payload });
}

export async function read(app: FastifyInstance, sessionId: string, query = '', headers: Record<string, string> = {}): Promise<LightMyRequestResponse> {
  return app.inject({ method: 'GET', url: `/sessions/${sessionId}/events?${query}`, headers: { ...BEARER, ...headers } });
}

const texts = z.array(z.object({ offset: z.number(), text: z.string().optional() }));

export function offsetsOf(reply: LightMyRequestResponse): number[] {
  return texts.parse(reply.json()).map(({ offset }) => offset);
}
