import type { Log } from '../telemetry/log.ts';

/** Says once that a server is away, and once that it is back, however many calls find out. */
export interface Reachability {
  /** @param reason why, in words that may be logged; a new reason is worth a new line */
  lost(reason: string): void;
  found(): void;
}

/** Different reasons told of one absence. More than a few are one reason in many words. */
const MAX_REASONS = 8;

/** @param name the server's and where it is, without credentials: `PostgreSQL at db:5432/switchyard` */
export function reachability(log: Log, name: string): Reachability {
  const reasons = new Set<string>();
  return {
    lost(reason) {
      if (reasons.has(reason) || reasons.size >= MAX_REASONS) return;
      reasons.add(reason);
      log.warn({ reason }, `${name} can not be reached`);
    },
    found() {
      if (reasons.size === 0) return;
      reasons.clear();
      log.info({}, `${name} is reached again`);
    },
  };
}
