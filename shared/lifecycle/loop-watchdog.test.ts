import { fastify } from 'fastify';
import { afterEach, describe, expect, it } from 'vitest';
import { markRequests } from '../http-server/mark-requests.ts';
import type { Log } from '../telemetry/log.ts';
import { openMetrics } from '../telemetry/open-metrics.ts';
import { WorkMarks } from '../telemetry/work-marks.ts';
import { BLOCKED_MS, LoopWatchdog } from './loop-watchdog.ts';

const watchdogs: LoopWatchdog[] = [];
afterEach(() => {
  for (const watchdog of watchdogs.splice(0)) watchdog.stop();
});

function recorded() {
  const lines: Record<string, unknown>[] = [];
  const quiet = () => {};
  const log: Log = { trace: quiet, debug: quiet, info: quiet, error: quiet, warn: (facts, message) => void lines.push({ ...facts, message }) };
  const metrics = openMetrics();
  const counted = async () => (await metrics.text()).split('\n').filter((line) => line.startsWith('switchyard_event_loop_held_total{'));
  return { lines, log, metrics, counted };
}

/** A watchdog with a fake clock and CPU time. */
function begin() {
  const times = { now: 0, cpu: 0 };
  const marks = new WorkMarks(() => times.now);
  const { lines, log, metrics, counted } = recorded();
  const watchdog = new LoopWatchdog({ log, metrics, marks, times: { nowMs: () => times.now, cpuMs: () => times.cpu } });
  watchdogs.push(watchdog);
  /** Advances the time, and the CPU time used in it. */
  const pass = (ms: number, cpuMs = ms) => {
    times.now += ms;
    times.cpu += cpuMs;
  };
  return { watchdog, marks, pass, lines, counted };
}

describe('LoopWatchdog', () => {
  it('DESIGN 13: work that holds the event loop for more than a second is named in the log and counted', async () => {
    const { watchdog, marks, pass, lines, counted } = begin();
    pass(250, 5);
    marks.mark('commands');
    pass(5_000);
    watchdog.sample();

    expect(lines).toEqual([
      {
        work: 'commands',
        held_ms: 5_000,
        work_ms: 5_000,
        cpu_ms: 5_005,
        last_marked: 'commands',
        message: 'the event loop was blocked for more than a second',
      },
    ]);
    expect(await counted()).toEqual(['switchyard_event_loop_held_total{work="commands"} 1']);
  });

  it('DESIGN 13: a process that was paused, or got no CPU, is not reported as a busy one', async () => {
    const { watchdog, marks, pass, lines, counted } = begin();
    marks.mark('commands');
    pass(200);
    pass(60_000, 0);
    pass(100);
    watchdog.sample();

    expect(lines).toEqual([]);
    expect(await counted()).toEqual([]);
  });

  it('reports nothing for much work in many ticks', () => {
    const { watchdog, marks, pass, lines } = begin();
    for (let look = 0; look < 20; look += 1) {
      marks.mark('commands');
      pass(1_100);
      watchdog.sample();
    }

    expect(lines).toEqual([]);
  });

  it('reports as unmarked what no mark covers', () => {
    const { watchdog, pass, lines } = begin();
    pass(3_000);
    watchdog.sample();

    expect(lines).toMatchObject([{ work: 'unmarked', last_marked: null }]);
  });

  it('names the route of a request that holds a real event loop, by its pattern', async () => {
    const { lines, log, metrics } = recorded();
    const app = fastify();
    markRequests(app);
    app.get('/busy/:id', async () => {
      await null;
      const beganAt = process.cpuUsage();
      const usedMs = () => {
        const { user, system } = process.cpuUsage(beganAt);
        return (user + system) / 1_000;
      };
      const startedAtMs = performance.now();
      while (usedMs() < 2 * BLOCKED_MS || performance.now() - startedAtMs < 2 * BLOCKED_MS) Math.sqrt(usedMs());
      return {};
    });
    watchdogs.push(new LoopWatchdog({ log, metrics }));

    await app.inject({ url: '/busy/7' });

    await expect.poll(() => lines, { timeout: 60_000 }).toMatchObject([{ work: 'GET /busy/:id' }]);
    await app.close();
  });
});
