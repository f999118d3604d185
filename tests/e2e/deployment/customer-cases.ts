import { describe, expect, it } from 'vitest';
import { nthReady } from '../../helpers/events-of-a-session.ts';
import type { SharedDeployment } from './shared-deployment.ts';

export function customerCases(shared: () => SharedDeployment): void {
  describe('customers', () => {
    /** Each request goes to the next gateway. */
    async function request(method: string, path: string, body?: object, key?: string): Promise<{ status: number; body: Record<string, unknown> }> {
      const { deployment } = shared();
      const response = await fetch(`${deployment.nextAgentUrl()}${path}`, {
        method,
        headers: {
          authorization: `Bearer ${deployment.keys.agentKey}`,
          ...(body && { 'content-type': 'application/json' }),
          ...(key !== undefined && { 'idempotency-key': key }),
        },
        ...(body && { body: JSON.stringify(body) }),
      });
      const text = await response.text();
      return { status: response.status, body: text === '' ? {} : (JSON.parse(text) as Record<string, unknown>) };
    }
    const idsOf = (list: { body: Record<string, unknown> }) => (list.body['items'] as { id: string }[]).map(({ id }) => id);

    it('are registered once per key, have sessions that are listed, and are deleted with them, at any gateway', async () => {
      const { agent } = shared().deployment;
      const registered = { id: 'ada.b@example.com', name: 'Ada', tags: ['vip'] };
      const replies = await Promise.all([1, 2, 3].map(() => request('POST', '/customers', registered, 'register')));
      expect(replies.map(({ status }) => status).sort()).toEqual([200, 200, 201]);
      const path = `/customers/${encodeURIComponent(registered.id)}`;
      expect((await request('PATCH', path, { tags: { add: ['eu'] } })).body).toMatchObject({ ...registered, tags: ['vip', 'eu'] });

      expect((await request('POST', '/sessions', { customer_id: 'not-registered' })).status).toBe(400);
      const one = await agent.createSession({ customer_id: registered.id, labels: ['listed here'] });
      const two = await agent.createSession({ customer_id: registered.id });
      const guest = await agent.createSession();
      await agent.postMessage(one.id, 'How long is the warranty?');
      await agent.logUntil(one.id, nthReady(1));

      const ofCustomer = await request('GET', `/sessions?customer_id=${encodeURIComponent(registered.id)}&sort=asc`);
      expect(idsOf(ofCustomer)).toEqual([one.id, two.id]);
      expect(ofCustomer.body).toMatchObject({ total_count: 2, has_more: false });
      expect(idsOf(await request('GET', '/sessions?label=listed%20here'))).toEqual([one.id]);
      await agent.changeSession(one.id, { labels: { remove: ['listed here'] } });
      expect(idsOf(await request('GET', '/sessions?label=listed%20here'))).toEqual([]);
      expect((await request('GET', `/customers/${guest.customer_id}`)).body).toMatchObject({ name: 'Guest', ephemeral: false });

      expect((await request('DELETE', path)).status).toBe(409);
      expect((await request('DELETE', `${path}?cascade=true`, undefined, 'delete')).status).toBe(204);
      expect((await request('DELETE', `${path}?cascade=true`, undefined, 'delete')).status).toBe(204);
      for (const gone of [path, `/sessions/${one.id}`, `/sessions/${two.id}`]) expect((await request('GET', gone)).status).toBe(404);
      expect((await request('GET', `/sessions/${guest.id}`)).status).toBe(200);
    });
  });
}
