import { z } from 'zod';
import { settings } from './settings.ts';
import { type TracingConfig, tracingConfigOf, tracingSettings } from './tracing-settings.ts';

/** Settings of every service process. */
export const processSettings = {
  ...tracingSettings,
  MANAGEMENT_PORT: settings.MANAGEMENT_PORT,
  MANAGEMENT_HOST: settings.MANAGEMENT_HOST,
  LOG_LEVEL: settings.LOG_LEVEL,
  LOG_FORMAT: settings.LOG_FORMAT,
  SHUTDOWN_DRAIN_TIMEOUT_SECONDS: settings.SHUTDOWN_DRAIN_TIMEOUT_SECONDS,
  SWITCHYARD_READY_FILE: settings.SWITCHYARD_READY_FILE,
};

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

const shape = z.object(processSettings);

export function processConfigOf(data: z.infer<typeof shape>): ProcessConfig {
  return {
    logLevel: data.LOG_LEVEL ?? null,
    logFormat: data.LOG_FORMAT ?? null,
    drainTimeoutMs: data.SHUTDOWN_DRAIN_TIMEOUT_SECONDS * 1_000,
    management: { host: data.MANAGEMENT_HOST, port: data.MANAGEMENT_PORT },
    readyFile: data.SWITCHYARD_READY_FILE ?? null,
    tracing: tracingConfigOf(data),
  };
}
