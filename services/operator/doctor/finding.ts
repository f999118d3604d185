import { maskUrl } from '#shared/telemetry/redact.ts';
import { within } from '#shared/within.ts';

/** What a check has found. `fix` says what to do; null: nothing is to be done. */
export interface Finding {
  check: string;
  status: 'ok' | 'warning' | 'failed';
  detail: string;
  fix: string | null;
}

/** A check gives at least one finding, or throws. `fix`: for a check that throws. */
export interface Check {
  name: string;
  fix: string;
  run(): Promise<Omit<Finding, 'check'>[]>;
}

const CHECK_MS = 15_000;

export function ok(detail: string): Omit<Finding, 'check'> {
  return { status: 'ok', detail, fix: null };
}

export function problem(status: 'warning' | 'failed', detail: string, fix: string): Omit<Finding, 'check'> {
  return { status, detail, fix };
}

/** Runs all checks side by side, each within 15 s. Findings are in the order of the checks. @param progress gets the names of those that go on */
export async function examine(checks: readonly Check[], progress: (text: string) => void = () => {}): Promise<Finding[]> {
  const open = new Set(checks.map(({ name }) => name));
  const all = await Promise.all(
    checks.map(async (check) => {
      const found = await findingsOf(check);
      open.delete(check.name);
      if (open.size > 0) progress(`looking at ${[...open].join(', ')}`);
      return found;
    }),
  );
  return all.flat();
}

async function findingsOf({ name: check, fix, run }: Check): Promise<Finding[]> {
  const late = () => [problem('failed', `gave no answer within ${CHECK_MS / 1_000} s`, fix)];
  const found = await within(CHECK_MS, run(), late).catch((error: unknown) => [
    problem('failed', maskUrl(error instanceof Error ? error.message : String(error)), fix),
  ]);
  return found.map((one) => ({ check, ...one }));
}
