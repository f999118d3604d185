import { describe, expect, it } from 'vitest';
import type { ConversationEvent } from '../../../shared/contracts/agent/conversation-event.ts';
import { nthReady } from '../../helpers/events-of-a-session.ts';
import { eventually } from '../../helpers/eventually.ts';
import type { SharedDeployment } from './shared-deployment.ts';

interface Graph {
  journey: { evaluation: string; conditions: string[] };
  nodes: { id: string; kind: string; metadata: Record<string, unknown> }[];
}

export function routineCases(shared: () => SharedDeployment): void {
  describe('a routine of the sample agent', () => {
    async function graph(): Promise<Graph> {
      const { deployment } = shared();
      const headers = { authorization: `Bearer ${deployment.keys.agentKey}` };
      const response = await fetch(`${deployment.nextAgentUrl()}/journeys/return-an-order/graph`, { headers });
      expect(response.status).toBe(200);
      return (await response.json()) as Graph;
    }

    it('EVAL_NODE_PARALLELISM: is evaluated after the start, which its graph shows at any gateway', async () => {
      const { nodes } = await eventually(async () => {
        const found = await graph();
        return found.journey.evaluation === 'done' && found;
      });

      const asked = nodes.find(({ id }) => id === 'ask-for-the-order');
      expect(asked?.metadata['internal_action']).toMatch(/^Ask for the order number/);
      const ways = asked?.metadata['journey_node.reachable_follow_ups'] as { path: string[] }[];
      expect(ways.map(({ path }) => path)).toEqual([
        ['is-it-in-time', 'ask-for-the-reason'],
        ['is-it-in-time', 'explain-the-warranty'],
        ['is-it-in-time', 'ask-for-the-order'],
      ]);
      expect((await graph()).nodes).toEqual(nodes);
    });

    it('is entered by its condition, and followed step by step over turns', async () => {
      const { agent } = shared().deployment;
      const { id } = await agent.createSession();
      const said = ['How can I return an order?', 'AC12345678. It was delivered 10 days ago.', 'It was too loud.'];
      for (const [turn, text] of said.entries()) {
        await agent.postMessage(id, text);
        await agent.logUntil(id, nthReady(turn + 1));
      }
      const replies = (await agent.poll(id)).flatMap((event: ConversationEvent) => (event.kind === 'assistant_message' ? [event.text] : []));

      expect(replies[0]).toContain('Ask for the order number');
      expect(replies[1]).toContain('Ask what was wrong with it');
      expect(replies[2]).toContain('Say that a return label comes by e-mail');
    });
  });
}
