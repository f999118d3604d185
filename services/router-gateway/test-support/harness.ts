import type { FastifyInstance } from 'fastify';
import type { Bus } from '#bus/bus.ts';
import { type Clock, systemClock } from '#shared/clock.ts';
import { type GivenRouterConfig, livingRouterConfig } from '#shared/config/loaded-router-config.ts';
import { routerConfig } from '#shared/config/router-config.ts';
import type { Environment } from '#shared/config/secret-ref.ts';
import { Deadlines } from '#shared/deadlines.ts';
import { checkAnswers } from '#shared/http-server/test-support/check-answers.ts';
import type { KeyDirectory } from '#shared/keys/caller-key.ts';
import { openKeyDirectory } from '#shared/keys/open-key-directory.ts';
import type { Cache } from '#shared/storage/cache.ts';
import type { Database } from '#shared/storage/database.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { type Metrics, noMetrics } from '#shared/telemetry/metrics.ts';
import type { Tracing } from '#shared/telemetry/tracing.ts';
import type { AccountLimits } from '../account/limits.ts';
import { Admission } from '../admission.ts';
import { buildApp } from '../app.ts';
import { CallSender } from '../call-sender.ts';
import { gatewaySetup } from '../gateway-setup.ts';
import { type GatewayLimits, gatewayLimits } from '../limits.ts';
import type { PlatformKeys } from '../plugins/platform-auth.ts';
import { CallReaders } from '../relay/call-readers.ts';
import { answeredPath, routerApi } from './router-api.ts';

export const HOUSE_SECRET = 'the secret of a deployment under test';
export const KEY = 'sk-test-1';
export const environment = { KEY_ONE: KEY, KEY_TWO: 'sk-test-2', KEY_OFF: 'sk-test-off', KEY_MANAGEMENT: 'sk-test-management' };

/** A configuration with an example of everything that the gateway reads. */
export const testConfig = routerConfig.parse({
  providers: [{ slug: 'scripted', kind: 'scripted' }],
  models: [
    {
      id: 'acme/large',
      name: 'Acme Large',
      description: 'The large one',
      aliases: ['large', 'acme/latest'],
      endpoints: [
        {
          provider: 'scripted',
          upstream_model: 'large',
          prices: { prompt: '0.15', completion: '2.50', cached_prompt: '0.075', request: '0.01' },
          context_length: 8_000,
          max_completion_tokens: 1_000,
          supported_parameters: ['temperature', 'stop'],
        },
        { provider: 'scripted', upstream_model: 'large-b', context_length: 16_000, supported_parameters: ['tools'] },
      ],
    },
    { id: 'acme/small', endpoints: [{ provider: 'scripted', upstream_model: 'small' }] },
  ],
  keys: [
    { id: 'one', key: '${KEY_ONE}' },
    { id: 'two', key: '${KEY_TWO}' },
    { id: 'off', key: '${KEY_OFF}', disabled: true },
    { id: 'manager', key: '${KEY_MANAGEMENT}', management: true },
  ],
});

/** A real bus with fault injection. Stored messages are never lost. */
export interface FaultyBus {
  bus: Bus;
  faults: {
    /** Whether to lose a live frame. */
    loses(subject: string, frame: Uint8Array): boolean;
    /** False: the broker is unreachable. */
    ready: boolean;
    /** The log or queue is four fifths full. */
    crowded: boolean;
    /** Runs before an item is stored; its error rejects `publish`. @param messageId the call's id, which begins with `gen-<origin>-` */
    beforePublish(messageId: string): Promise<void>;
    /** Runs before a replay; its error rejects `replay`. */
    beforeReplay(): Promise<void>;
    /** Dispatches find no free worker. */
    refusesDispatches: boolean;
    /** Dispatches are lost silently. */
    losesDispatches: boolean;
    /** Number of replays. */
    replays: number;
  };
}

export function faultyBus(real: Bus): FaultyBus {
  const faults: FaultyBus['faults'] = {
    loses: () => false,
    ready: true,
    crowded: false,
    beforePublish: async () => {},
    beforeReplay: async () => {},
    refusesDispatches: false,
    losesDispatches: false,
    replays: 0,
  };
  const handlers = new Set<(messageId: string) => void>();
  const bus: Bus = {
    ...real,
    isReady: () => faults.ready && real.isReady(),
    hasCapacity: (kind) => !faults.crowded && real.hasCapacity(kind),
    work: {
      consume: (...args) => real.work.consume(...args),
      publish: async (...args) => {
        await faults.beforePublish(args[1]);
        return real.work.publish(...args);
      },
      dispatch: (...args) => {
        if (faults.refusesDispatches) for (const refused of handlers) refused(args[1]);
        else if (!faults.losesDispatches) real.work.dispatch(...args);
      },
      maxDispatchBytes: () => real.work.maxDispatchBytes(),
      onRefused: (handler) => {
        handlers.add(handler);
        const listening = real.work.onRefused(handler);
        return {
          stop: async () => {
            handlers.delete(handler);
            await listening.stop();
          },
        };
      },
      onStored: (handler) => real.work.onStored(handler),
      earliestDispatchAtMs: real.work.earliestDispatchAtMs,
      createdAtMs: () => real.work.createdAtMs(),
      onRestart: (handler) => real.work.onRestart(handler),
      depths: () => real.work.depths(),
    },
    tokens: {
      publish: (...args) => real.tokens.publish(...args),
      subscribe: (pattern, handler) =>
        real.tokens.subscribe(pattern, (subject, frame) => {
          if (!faults.loses(subject, frame)) handler(subject, frame);
        }),
      replay: async (...args) => {
        faults.replays += 1;
        await faults.beforeReplay();
        return real.tokens.replay(...args);
      },
    },
  };
  return { bus, faults };
}

/** Records log lines, so that tests can check that no secret is in them. */
export function recordingLog(): Log & { lines: { level: string; fields: Record<string, unknown>; message: string }[] } {
  const lines: { level: string; fields: Record<string, unknown>; message: string }[] = [];
  const at = (level: string) => (fields: Record<string, unknown>, message: string) => void lines.push({ level, fields, message });
  return { lines, trace: at('trace'), debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}

export interface TestApp {
  app: FastifyInstance;
  readers: CallReaders;
  admission: Admission;
  log: ReturnType<typeof recordingLog>;
  /** @throws when an answer was not as the API's description says */
  close(): Promise<void>;
}

/** The app without a port, on the given bus. */
export function openTestApp(
  bus: Bus,
  {
    limits = {},
    config = testConfig,
    variables = environment,
    origin = 'gtest',
    metrics = noMetrics,
    database = null,
    cache = null,
    senderNowMs,
    ...more
  }: TestAppOptions = {},
): TestApp {
  const log = recordingLog();
  const all = { ...gatewayLimits, ...limits };
  const admission = new Admission(all);
  const readers = new CallReaders({ bus, origin, log, limits: all });
  const sender = new CallSender({ bus, log, limits: all, ...(senderNowMs && { nowMs: senderNowMs }) });
  const setup = gatewaySetup(livingRouterConfig(config), variables);
  const app = buildApp({
    keys: openKeyDirectory({ fileKeys: setup.derive((one) => one.fileKeys), database, log }),
    setup,
    houseSecret: HOUSE_SECRET,
    bus,
    database,
    cache,
    readers,
    sender,
    admission,
    log,
    clock: systemClock,
    deadlines: new Deadlines(),
    limits: all,
    metrics,
    ...more,
  });
  const problems: string[] = [];
  checkAnswers(app, routerApi, problems, answeredPath);
  const close = async () => {
    await app.close();
    await Promise.all([readers.stop(), sender.stop()]);
    if (problems.length > 0) throw new Error(`answers are not as published:\n${[...new Set(problems)].join('\n')}`);
  };
  return { app, readers, admission, log, close };
}

interface TestAppOptions {
  /** Absent: those of the file and of the database. */
  keys?: KeyDirectory;
  limits?: Partial<GatewayLimits>;
  config?: GivenRouterConfig;
  variables?: Environment;
  origin?: string;
  metrics?: Metrics;
  database?: Database | null;
  cache?: Cache | null;
  clock?: Clock;
  accountLimits?: AccountLimits;
  platformKeys?: PlatformKeys | null;
  tracing?: Tracing;
  /** Clock of the call sender. */
  senderNowMs?: () => number;
}
