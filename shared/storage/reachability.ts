import type { Log } from '../telemetry/log.ts';

/** Logs once that a server is unreachable, and once that it is back, however many calls notice. */
export interface Reachability {
  /** @param reason each new one is logged */
  lost(reason: string): void;
  found(): void;
}

/** Reasons logged per outage. More are usually one in varying words. */
const MAX_REASONS = 8;

/** @param name with the address, without credentials: `PostgreSQL at db:5432/switchyard` */
export function reachability(log: Log, name: string): Reachability {
  const reasons = new Set<string>();
  return {
    lost(reason) {
      if (reasons.has(reason) || reasons.size >= MAX_REASONS) return;
      reasons.add(reason);
      log.warn({ reason }, `${name} is unreachable`);
    },
    found() {
      if (reasons.size === 0) return;
      reasons.clear();
      log.info({}, `${name} is reachable again`);
    },
  };
}
