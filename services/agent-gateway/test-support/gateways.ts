import { z } from 'zod';
import type { Serving } from '#shared/http-server/serve.ts';
import { startAgentGateway } from '../service.ts';
import { type EventClient, openEvents } from './event-source.ts';
import { BEARER, type TestDeployment } from './test-deployment.ts';

const newRecord = z.object({ id: z.string() });

/** Gateways that listen on ports, their clients, and one cleanup for all. */
export interface Gateways {
  start(changes?: Parameters<TestDeployment['deps']>[0]): Promise<Serving>;
  newSession(gateway: { url: string }): Promise<string>;
  stream(gateway: { url: string }, sessionId: string, query?: string, headers?: Record<string, string>): Promise<EventClient>;
  stopAll(): Promise<void>;
}

export function gatewaysOf(deployment: () => TestDeployment): Gateways {
  const gateways: Serving[] = [];
  const clients: EventClient[] = [];
  return {
    start: async (changes = {}) => {
      const gateway = await startAgentGateway(deployment().deps(changes));
      gateways.push(gateway);
      return gateway;
    },
    newSession: async ({ url }) => {
      const reply = await fetch(`${url}/sessions`, { method: 'POST', headers: BEARER });
      return newRecord.parse(await reply.json()).id;
    },
    stream: async ({ url }, sessionId, query = '', headers = {}) => {
      const client = await openEvents(`${url}/sessions/${sessionId}/events?${query}`, { ...BEARER, ...headers });
      clients.push(client);
      return client;
    },
    stopAll: async () => {
      for (const client of clients.splice(0)) client.close();
      await Promise.all(gateways.splice(0).map((gateway) => gateway.stop()));
    },
  };
}
