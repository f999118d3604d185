import { describe, expect, it } from 'vitest';
import { calledTools, create, post, toolEvent } from './commands.ts';
import { VERDICT } from './run-helpers.ts';
import { eventually, type TestCluster } from './test-cluster.ts';

/** Cases of injected tool results, for any driver. */
export function toolEventCases(open: () => Promise<TestCluster>): void {
  describe('an injected tool result', () => {
    it('DESIGN 5: cancels the turn in progress, and the model of the next one sees it fenced, at its place in the log', async () => {
      const cluster = await open();
      await cluster.host();
      const first = cluster.nextCall();
      await cluster.send(create('ses_a'));
      await cluster.send(post('ses_a', 'Where is my order?'));
      const { callId } = await first;
      const next = cluster.nextCall();
      await cluster.send(toolEvent('ses_a', 'k1', { triggersTurn: true, resultMetadata: { internal: 'secret' } }));
      const call = await next;

      const contents = call.request.messages.slice(1).map((message) => String(message.content));
      expect(contents[0]).toBe('Where is my order?');
      expect(contents[1]).toContain(`=====${call.callId}=====\n{"tool_id":"crm:note","arguments":{"key":"k1"},"result":{"noted":"k1"}}\n`);
      expect(JSON.stringify(call.request)).not.toContain('secret');
      expect(call.callId).not.toBe(callId);
      expect((await cluster.log('ses_a')).slice(3, 6)).toMatchObject([{ status: 'cancelled' }, { status: 'ready' }, { kind: 'tool' }]);
    });

    it('DESIGN 5: is in the log once per key: a repeat gets the reply of the first, whatever it carries', async () => {
      const cluster = await open();
      await cluster.host();
      await cluster.send(create('ses_a'));
      await cluster.send(toolEvent('ses_a', 'k1'), 'first');
      await cluster.send(toolEvent('ses_a', 'k1', { result: 'another', triggersTurn: true }), 'long after the window of the bus');
      await eventually(() => cluster.replies.length === 3);

      expect(cluster.replies[2]).toEqual({ ...cluster.replies[1], repeat: true });
      expect(await cluster.log('ses_a')).toMatchObject([{ kind: 'tool', tool_calls: [{ result: { data: { noted: 'k1' } } }] }]);
    });

    it('waits during a run, and its turn begins when the run has settled', async () => {
      const cluster = await open();
      await cluster.host();
      await cluster.send(create('ses_a'));
      const ofRun = cluster.nextCall();
      await cluster.startRun({ id: 'run_1', sessionId: 'ses_a', ephemeral: false });
      const run = await ofRun;
      const ofTurn = cluster.nextCall();
      await cluster.send(toolEvent('ses_a', 'k1', { triggersTurn: true }));
      await eventually(() => cluster.replies.length === 2);
      expect((await cluster.log('ses_a')).map((event) => (event.kind === 'status' ? event.status : event.kind)).at(-1)).toBe('tool');
      await cluster.send(calledTools('ses_a', run.callId, VERDICT));

      expect((await ofTurn).callId).toMatch(/^trn_/);
      const words = (await cluster.log('ses_a')).map((event) => (event.kind === 'status' ? event.status : event.kind));
      expect(words).toEqual(['acknowledged', 'processing', 'tool', 'ready', 'acknowledged', 'typing']);
    });
  });
}
