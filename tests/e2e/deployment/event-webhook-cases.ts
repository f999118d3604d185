import { describe, expect, it } from 'vitest';
import { nthReady } from '../../helpers/events-of-a-session.ts';
import { eventually } from '../../helpers/eventually.ts';
import type { SharedDeployment } from './shared-deployment.ts';

const TIMEOUT = { timeoutMs: 60_000 };

export function eventWebhookCases(shared: () => SharedDeployment): void {
  /** Each request goes to the next gateway. */
  async function ask(path: string, method: 'GET' | 'POST' | 'PUT', body?: object): Promise<Response> {
    const { deployment } = shared();
    const headers = { authorization: `Bearer ${deployment.keys.agentKey}`, 'content-type': 'application/json' };
    const init = { method, headers, signal: AbortSignal.timeout(60_000), ...(body && { body: JSON.stringify(body) }) };
    return fetch(`${deployment.nextAgentUrl()}${path}`, init);
  }

  describe('event webhooks', () => {
    it('post each event in order, as pollers read it, through refusals and broken connections', async () => {
      const { agent, keys } = shared().deployment;
      const events = shared().receiver.address(503, 'drop', 204, 204, 503, 204);
      const { id } = (await (await ask('/sessions', 'POST', { event_webhook_url: events.url })).json()) as { id: string };
      await agent.postMessage(id, 'How long is the warranty?');
      const log = await agent.logUntil(id, nthReady(1));
      const bodies = () => [...new Set(events.received.map(({ body }) => String(body)))];
      await eventually(() => bodies().length === log.length, TIMEOUT);

      const polled = await (await ask(`/sessions/${id}/events?min_offset=0&wait_for_data=0`, 'GET')).text();
      expect(`[${bodies().join(',')}]`).toBe(polled);
      expect(events.received.slice(0, 3).map(({ headers }) => headers['x-switchyard-attempt'])).toEqual(['1', '2', '3']);
      for (const { method, headers } of events.received) {
        expect({ method, ...headers }).toMatchObject({ method: 'POST', authorization: `Bearer ${keys.agentKey}`, 'x-session-id': id });
      }
    });

    it('are set later, from any past offset', async () => {
      const { agent } = shared().deployment;
      const { id } = await agent.createSession();
      await agent.postMessage(id, 'How do I descale the machine?');
      const log = await agent.logUntil(id, nthReady(1));
      const events = shared().receiver.address();
      const reply = await ask(`/sessions/${id}/event_webhook`, 'PUT', { url: events.url, from_offset: 1 });
      expect(await reply.json()).toEqual({ url: events.url, from_offset: 1 });
      await eventually(() => events.received.length >= log.length - 1, TIMEOUT);

      expect(events.received.map(({ body }) => JSON.parse(String(body)))).toEqual(log.slice(1));
    });
  });
}
