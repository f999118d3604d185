import { Cron } from 'croner';

/** Whether a time of the rule lies after one instant and not after the other, both in epoch milliseconds. Rules are in UTC. @throws for an invalid rule */
export function hasPassed(rule: string, sinceMs: number, nowMs: number): boolean {
  const next = new Cron(rule, { timezone: 'UTC', paused: true }).nextRun(new Date(sinceMs));
  return next !== null && next.getTime() <= nowMs;
}

/** Null: the rule is valid. */
export function problemOfCron(rule: string): string | null {
  try {
    new Cron(rule, { timezone: 'UTC', paused: true });
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
