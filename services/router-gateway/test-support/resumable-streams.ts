import { expect } from 'vitest';
import type { Bus } from '#bus/bus.ts';
import { interestReply } from '#bus/messages/heartbeat.ts';
import { systemClock } from '#shared/clock.ts';
import { mintGenerationId } from '#shared/generation-id.ts';
import { type GatewayLimits, gatewayLimits } from '../limits.ts';
import { startRouterGateway } from '../service.ts';
import { environment, HOUSE_SECRET, KEY, recordingLog, testConfig } from './harness.ts';
import { get, post } from './http-client.ts';
import { type PendingCall, type ScriptedWorker, startScriptedWorker } from './scripted-worker.ts';

export const eventually = <Value>(probe: () => Value) => expect.poll(probe, { timeout: 60_000, interval: 5 });
export const streamed = { model: 'large', messages: [{ role: 'user', content: 'Hello' }], stream: true };
export const authorization = `Bearer ${KEY}`;
export const NOT_FOUND = { error: { code: 404, message: 'There is no generation with this id, or its frames are no longer retained', type: 'not_found' } };

/** A call id of a gateway that does not exist any more. */
export const oldCall = () => mintGenerationId({ houseSecret: HOUSE_SECRET, origin: 'gold', keyId: 'one', nowMs: Date.now() });

export function resume(url: string, callId: string, headers: Record<string, string> = {}) {
  return get(`${url}/generations/${callId}/stream`, { authorization, ...headers });
}

/** Gateways on one bus, and a worker whose frames a test sends. */
export class ResumableStreams {
  readonly gateways: { stop(): Promise<void> }[] = [];
  readonly log = recordingLog();
  readonly worker: ScriptedWorker;
  readonly #bus: Bus;

  constructor(bus: Bus) {
    this.#bus = bus;
    this.worker = startScriptedWorker(bus);
  }

  /** @returns the address of its routes */
  async gateway(limits: Partial<GatewayLimits> = {}): Promise<string> {
    const started = await startRouterGateway({
      config: { host: '127.0.0.1', port: 0, drainTimeoutMs: 0 },
      routerConfig: testConfig,
      environment,
      houseSecret: HOUSE_SECRET,
      bus: this.#bus,
      database: null,
      cache: null,
      log: this.log,
      clock: systemClock,
      limits: { ...gatewayLimits, ...limits },
    });
    this.gateways.push(started);
    return `${started.url}/api/v1`;
  }

  async stopGateways(): Promise<void> {
    await Promise.all(this.gateways.splice(0).map((gateway) => gateway.stop()));
  }

  /** A streaming client that has got `Hel`. */
  async begin(url: string, headers: Record<string, string> = {}) {
    const client = post(`${url}/chat/completions`, streamed, { authorization, ...headers });
    const held = await this.worker.next();
    held.frame('content', 1, 'Hel');
    const answer = await client.answer;
    await eventually(() => answer.text).toContain('Hel');
    return { answer, held, callId: held.call.callId };
  }

  /** Sends a worker's heartbeat. @returns the interest replies */
  beat({ call }: PendingCall): Promise<string[]> {
    return new Promise((resolve) => {
      const answers: string[] = [];
      const subscription = this.#bus.notices.subscribe('held.w1', (_subject, body) => {
        const { from, calls } = interestReply.parse(JSON.parse(body));
        answers.push(`${from === call.origin ? 'origin' : 'other'} ${calls.join()}`);
      });
      this.#bus.notices.publish(`hb.${call.origin}`, JSON.stringify({ v: 1, workerId: 'w1', question: 1, calls: [call.callId] }));
      // Notices take a few ticks.
      setTimeout(() => {
        void subscription.stop().then(() => resolve(answers.sort()));
      }, 50);
    });
  }
}
