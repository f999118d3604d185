import { ItemAbortController } from '#services/work/item-signal.ts';
import type { CallSignal } from '../call-signal.ts';
import { type Attempt, type Attempting, beginAttempt, outrun, type RunDeps, runAttempt } from './attempt.ts';
import type { Candidate } from './candidates.ts';
import type { Health } from './health/health.ts';

/** Of endpoints that answer at once: their times are those of this machine. */
const MIN_AFTER_MS = 20;

/** A second attempt that begins when the first is late. */
export interface Hedge {
  candidate: Candidate;
  /** From the beginning of the first: the 95th percentile of its measured times to the first token. */
  afterMs: number;
}

/** Null: the model is not hedged, the endpoint's times are not known, or no other endpoint of the model is expected to answer. */
export function hedgeOf(first: Candidate, rest: readonly Candidate[], health: Pick<Health, 'of' | 'firstTokenP95Ms'>): Hedge | null {
  if (first.model.hedge !== true || first.vectors !== null) return null;
  const p95Ms = health.firstTokenP95Ms(first);
  if (p95Ms === null) return null;
  const candidate = rest.find((other) => other.model === first.model && !health.of(other).isOpen);
  return candidate === undefined ? null : { candidate, afterMs: Math.max(MIN_AFTER_MS, p95Ms) };
}

/** Of a running attempt. */
interface Runner extends Attempt {
  signal: ItemAbortController;
}

/**
 * Runs an attempt, and a second one beside it when it is late. The first content decides: from then on the other is aborted, and its end is not waited for. When
 * one fails before, the other goes on alone.
 *
 * @returns the attempts that were begun, in the order of their ends: the last one decides
 */
export function runRace(first: Attempt, hedge: Hedge, attempting: Attempting, signal: CallSignal, deps: RunDeps): Promise<readonly Attempt[]> {
  const { observer } = attempting;
  const running: Runner[] = [];
  const ended: Attempt[] = [];
  let isDecided = false;
  let timer: NodeJS.Timeout | null = null;
  return new Promise((resolve) => {
    const onAbort = () => {
      if (timer !== null) clearTimeout(timer);
      for (const runner of [...running]) runner.signal.abort(signal.reason);
    };
    const end = (runner: Runner) => {
      const index = running.indexOf(runner);
      if (index < 0) return;
      if (runner.tried.error === null) decide(runner);
      running.splice(running.indexOf(runner), 1);
      ended.push(runner);
      if (running.length > 0) return;
      if (timer !== null) clearTimeout(timer);
      signal.removeEventListener('abort', onAbort);
      count(ended, deps);
      resolve(ended);
    };
    const decide = (winner: Runner): boolean => {
      if (!running.includes(winner)) return false;
      if (isDecided) return true;
      isDecided = true;
      if (timer !== null) clearTimeout(timer);
      for (const loser of running.filter((runner) => runner !== winner)) lose(loser);
      if (winner.tried.hedge !== undefined) observer.chosen?.(winner.tried.candidate, winner.tried.answer);
      return true;
    };
    const lose = (loser: Runner) => {
      running.splice(running.indexOf(loser), 1);
      Object.assign(loser.tried, { outrun: true, endMs: Date.now(), error: outrun() });
      loser.health.outrun();
      ended.push(loser);
      loser.signal.abort(loser.tried.error);
    };
    const run = (attempt: Attempt) => {
      const runner: Runner = { ...attempt, signal: new ItemAbortController() };
      running.push(runner);
      void runAttempt(runner, { ...attempting, commits: () => decide(runner) }, runner.signal, deps).then(() => end(runner));
    };
    const startSecond = () => {
      const second = beginAttempt(hedge.candidate, observer, deps);
      first.tried.hedge = 'first';
      second.tried.hedge = 'second';
      run(second);
    };
    timer = setTimeout(startSecond, hedge.afterMs);
    signal.addEventListener('abort', onAbort);
    run(first);
  });
}

function count(ended: readonly Attempt[], { metrics }: RunDeps): void {
  if (ended.length < 2) return;
  const winner = ended.find(({ tried }) => tried.error === null || tried.firstMs !== null);
  const model = ended[0]?.tried.candidate.model.id ?? '';
  metrics.add('hedges', { model, outcome: winner?.tried.hedge ?? 'neither' });
}
