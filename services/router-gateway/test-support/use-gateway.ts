import type { InjectOptions } from 'fastify';
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest';
import type { Bus } from '#bus/bus.ts';
import { type FaultyBus, faultyBus, KEY, openTestApp, type TestApp } from './harness.ts';
import { type ScriptedWorker, startScriptedWorker } from './scripted-worker.ts';

export const CHAT = '/api/v1/chat/completions';
export const hello = { messages: [{ role: 'user', content: 'Hello' }] };
export const authorization = `Bearer ${KEY}`;

/**
 * A gateway on its own bus with a scripted worker: one bus per file, one gateway per test.
 * @param openBus opened by the test: drivers may not be imported here
 */
export function useGateway(openBus: () => Promise<{ bus: Bus; close(): Promise<void> }>) {
  let served: { bus: Bus; close(): Promise<void> };
  let testBus: FaultyBus;
  let worker: ScriptedWorker;
  let opened: TestApp;
  let gateways = 0;
  /** Of the gateways of the running test. */
  let origins = new Set<string>();
  const open = (options?: Parameters<typeof openTestApp>[1]) => {
    gateways += 1;
    opened = openTestApp(testBus.bus, { origin: `gtest${gateways}`, ...options });
    origins.add(opened.readers.origin);
  };

  beforeAll(async () => {
    served = await openBus();
    testBus = faultyBus(served.bus);
    worker = startScriptedWorker(served.bus, ({ origin }) => origins.has(origin));
  });

  afterAll(async () => {
    await worker.stop();
    await served.close();
  });

  beforeEach(() => {
    origins = new Set();
    open();
  });

  afterEach(async () => {
    await opened.close();
    testBus.faults.ready = true;
    testBus.faults.crowded = false;
    testBus.faults.loses = () => false;
    testBus.faults.beforePublish = async () => {};
    testBus.faults.beforeReplay = async () => {};
    testBus.faults.refusesDispatches = false;
    testBus.faults.losesDispatches = false;
  });

  return {
    get opened(): TestApp {
      return opened;
    },
    get bus(): Bus {
      return testBus.bus;
    },
    get faults(): FaultyBus['faults'] {
      return testBus.faults;
    },
    get worker(): ScriptedWorker {
      return worker;
    },
    /** Reopens the app with other options. */
    async reopen(options: Parameters<typeof openTestApp>[1]): Promise<void> {
      await opened.close();
      open(options);
    },
    post: (payload: InjectOptions['payload'], headers: Record<string, string> = {}, url = CHAT) =>
      opened.app.inject({ method: 'POST', url, headers: { authorization, ...headers }, ...(payload !== undefined && { payload }) }),
    /** Answers the next call, so that its request ends. */
    async answerNext(status = 200, body: unknown = { id: 'x' }) {
      const held = await worker.next();
      held.body(status, body);
      return held.call;
    },
  };
}
