import type { Log } from '#shared/telemetry/log.ts';

interface Line {
  level: string;
  message: string;
  fields: Record<string, unknown>;
}

/** A log that keeps its lines. */
export function recordedLog(): { log: Log; lines: Line[] } {
  const lines: Line[] = [];
  const at = (level: string) => (fields: Record<string, unknown>, message: string) => void lines.push({ level, message, fields });
  return { lines, log: { trace: at('trace'), debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') } };
}
