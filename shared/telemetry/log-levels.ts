/** The contract's level names and pino's, mapped to pino's. */
export const logLevels = {
  TRACE: 'trace',
  DEBUG: 'debug',
  INFO: 'info',
  WARN: 'warn',
  WARNING: 'warn',
  ERROR: 'error',
  CRITICAL: 'fatal',
  FATAL: 'fatal',
  SILENT: 'silent',
} as const satisfies Record<string, string>;

/** @param name in any case @returns null: there is no such level */
export function logLevelOf(name: string): (typeof logLevels)[keyof typeof logLevels] | null {
  return Object.entries(logLevels).find(([each]) => each === name.toUpperCase())?.[1] ?? null;
}
