import { EPOCH_MS, type Scheduler, SimulatedTimer } from './scheduler.ts';

type Callback = (...args: unknown[]) => void;

/** In the timers of PGlite's server, which sets one or none by the real time that has passed since it wrote its counters. */
const OF_EMBEDDED_SERVER = '__emscripten_timeout';

/**
 * Replaces the machine's time by the scheduler's for code that runs inside its steps; other code in this process still has the
 * real one.
 * @param hasEmbeddedServer steps execute statements in PGlite, whose own timers stay real
 * @returns restores the globals
 */
export function useSimulatedTime(scheduler: Scheduler, { hasEmbeddedServer = false } = {}): () => void {
  const real = {
    setTimeout: globalThis.setTimeout,
    setInterval: globalThis.setInterval,
    setImmediate: globalThis.setImmediate,
    clearTimeout: globalThis.clearTimeout,
    clearInterval: globalThis.clearInterval,
    random: Math.random,
    now: Date.now,
    performanceNow: performance.now,
    abortAfter: AbortSignal.timeout,
  };
  const timer = (callback: Callback, delayMs: number, everyMs: number | null, args: unknown[]) => {
    const { current } = scheduler;
    if (current === null || (hasEmbeddedServer && String(callback).includes(OF_EMBEDDED_SERVER))) return null;
    return scheduler.setTimer(current, () => callback(...args), Math.max(0, delayMs), everyMs);
  };
  const clear = (handle: unknown) => {
    if (handle instanceof SimulatedTimer) scheduler.clear(handle);
    else real.clearTimeout(handle as NodeJS.Timeout);
  };
  const replacements = {
    setTimeout: (callback: Callback, ms = 0, ...args: unknown[]) => timer(callback, ms, null, args) ?? real.setTimeout(callback, ms, ...args),
    setInterval: (callback: Callback, ms = 0, ...args: unknown[]) => timer(callback, ms, Math.max(1, ms), args) ?? real.setInterval(callback, ms, ...args),
    setImmediate: (callback: Callback, ...args: unknown[]) => timer(callback, 0, null, args) ?? real.setImmediate(callback, ...args),
    clearTimeout: clear,
    clearInterval: clear,
  };
  Object.assign(globalThis, replacements);
  AbortSignal.timeout = (ms) => {
    if (scheduler.current === null) return real.abortAfter.call(AbortSignal, ms);
    const controller = new AbortController();
    scheduler.setTimer(scheduler.current, () => controller.abort(new DOMException('timed out', 'TimeoutError')), ms, null);
    return controller.signal;
  };
  Math.random = () => (scheduler.current === null ? real.random() : scheduler.chance.next());
  Date.now = () => (scheduler.current === null ? real.now() : scheduler.nowMs + scheduler.current.skewMs);
  performance.now = () => (scheduler.current === null ? real.performanceNow.call(performance) : scheduler.nowMs - EPOCH_MS);
  return () => {
    const { setTimeout, setInterval, setImmediate, clearTimeout, clearInterval } = real;
    Object.assign(globalThis, { setTimeout, setInterval, setImmediate, clearTimeout, clearInterval });
    AbortSignal.timeout = real.abortAfter;
    Math.random = real.random;
    Date.now = real.now;
    performance.now = real.performanceNow;
  };
}
