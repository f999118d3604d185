import type { z } from 'zod';
import type { SettingsOf } from './setting-table.ts';
import { type TracingConfig, tracingConfigOf } from './tracing-settings.ts';

export interface ProcessConfig {
  /** Null: `runtime.log_level` of the manifest if the process reads one, else info. */
  logLevel: string | null;
  /** Null: text on a terminal, else JSON. */
  logFormat: string | null;
  drainTimeoutMs: number;
  management: { host: string; port: number };
  /** Null: none is written. */
  readyFile: string | null;
  tracing: TracingConfig;
}

/** Settings that every service has. */
type ProcessSettings = Omit<
  z.output<z.ZodObject<SettingsOf<'router-worker'>>>,
  'NATS_URL' | 'NATS_PASSWORD' | 'NATS_REPLICAS' | 'DATABASE_URL' | 'REDIS_URL' | 'ROUTER_CONFIG' | 'SCRIPTED_WORDS_PER_SECOND'
>;

export function processConfigOf(data: ProcessSettings): ProcessConfig {
  return {
    logLevel: data.LOG_LEVEL ?? null,
    logFormat: data.LOG_FORMAT ?? null,
    drainTimeoutMs: data.SHUTDOWN_DRAIN_TIMEOUT_SECONDS * 1_000,
    management: { host: data.MANAGEMENT_HOST, port: data.MANAGEMENT_PORT },
    readyFile: data.SWITCHYARD_READY_FILE ?? null,
    tracing: tracingConfigOf(data),
  };
}
