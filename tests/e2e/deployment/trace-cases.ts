import { beforeAll, describe, expect, it } from 'vitest';
import type { CallbackReceiver } from '../../helpers/callback-receiver.ts';
import type { DeploymentUnderTest } from '../../helpers/deployment-under-test.ts';
import { eventually } from '../../helpers/eventually.ts';
import type { OtlpSink, ReceivedSpan } from '../../helpers/otlp-sink.ts';
import { COLLECTOR_KEY, type SharedDeployment } from './shared-deployment.ts';

const TIMEOUT = { timeoutMs: 60_000 };
const CALLER_SPAN = '00f067aa0ba902b7';
/** Words that occur only in messages and inputs. */
const SPOKEN = /xylophone|rhubarb|kazoo/i;

export function traceCases(shared: () => SharedDeployment): void {
  describe('traces', () => {
    let receiver: CallbackReceiver;
    let sink: OtlpSink;
    let deployment: DeploymentUnderTest;
    let isCluster: boolean;

    beforeAll(() => {
      ({ receiver, sink, deployment } = shared());
      isCluster = deployment.cluster !== null;
    });

    const from = (traceId: string) => ({ 'content-type': 'application/json', traceparent: `00-${traceId}-${CALLER_SPAN}-01` });
    const ofTrace = (traceId: string) => sink.spans.filter((span) => span.traceId === traceId);
    /** Waits until spans of these names have come. */
    const spansNamed = (traceId: string, names: RegExp[]) =>
      eventually(() => {
        const spans = ofTrace(traceId);
        return names.every((name) => spans.some((span) => name.test(span.name))) && spans;
      }, TIMEOUT);

    /** Names from a span up to its last recorded ancestor. */
    function chainTo(spans: readonly ReceivedSpan[], name: RegExp): string[] {
      return chainFrom(
        spans,
        spans.find((one) => name.test(one.name)),
      );
    }

    function chainFrom(spans: readonly ReceivedSpan[], last: ReceivedSpan | undefined): string[] {
      const chain: string[] = [];
      for (let span = last; span !== undefined; span = spans.find((one) => one.spanId === span?.parentSpanId)) {
        chain.unshift(isCluster ? `${span.resource['service.name']}: ${span.name}` : span.name);
      }
      return chain;
    }

    const named = (service: string, name: string) => (isCluster ? `${service}: ${name}` : name);

    it('DESIGN 12: a turn is one trace, from the request to the upstream, in the caller’s own', async () => {
      const traceId = 'c0ffee00c0ffee00c0ffee00c0ffee21';
      const { id } = await deployment.agent.createSession();
      const headers = { ...from(traceId), authorization: `Bearer ${deployment.keys.agentKey}` };
      const body = JSON.stringify({ kind: 'user_message', text: 'Is my xylophone covered?' });
      const response = await fetch(`${deployment.nextAgentUrl()}/sessions/${id}/events`, { method: 'POST', headers, body });
      expect(response.status).toBe(201);
      const callOf = (all: readonly ReceivedSpan[], kind: string) => all.find(({ attributes }) => attributes['switchyard.call.kind'] === kind);
      const below = (all: readonly ReceivedSpan[], parent: ReceivedSpan | undefined) => all.find(({ parentSpanId }) => parentSpanId === parent?.spanId);
      const spans = await eventually(() => {
        const all = ofTrace(traceId);
        const upstreams = ['match', 'compose'].map((kind) => callOf(all, kind) && below(all, callOf(all, kind)));
        return (
          upstreams.every((one) => one !== undefined) && [/^invoke_agent/, /^plan/, /^POST \/sessions/].every((name) => chainTo(all, name).length > 0) && all
        );
      }, TIMEOUT);

      const agent = spans.find(({ name }) => name.startsWith('invoke_agent'));
      const above = [
        named('agent-gateway', 'POST /sessions/:session_id/events'),
        named('agent-gateway', 'publish cmd'),
        named('actor-host', agent?.name ?? ''),
      ];
      const call = [named('router-worker', 'chat switchyard/assistant'), named('router-worker', 'upstream scripted')];
      const planning = spans.find(({ name }) => name.startsWith('plan '));
      expect(chainFrom(spans, below(spans, callOf(spans, 'compose')))).toEqual([...above, ...call]);
      // The questions before the reply are below their planning.
      expect(chainFrom(spans, below(spans, callOf(spans, 'match')))).toEqual([...above, named('actor-host', planning?.name ?? ''), ...call]);
      expect(planning).toMatchObject({ scope: 'switchyard.gen_ai', attributes: { 'gen_ai.operation.name': 'plan', 'switchyard.iteration': 1 } });
      expect(callOf(spans, 'match')?.attributes).toMatchObject({ 'switchyard.batch.class': expect.any(String), 'switchyard.batch.size': expect.any(Number) });
      expect(agent?.events.map(({ name }) => name)).toContain('ttfm');
      expect(spans.find(({ kind }) => kind === 2)).toMatchObject({ parentSpanId: CALLER_SPAN, attributes: { 'http.response.status_code': 201 } });
      expect(spans.map(({ status }) => status)).toEqual(spans.map(() => 0));
      expect(agent).toMatchObject({ scope: 'switchyard.gen_ai', schemaUrl: expect.stringContaining('schemas'), attributes: { 'gen_ai.conversation.id': id } });
      expect(agent?.attributes).toMatchObject({ 'gen_ai.operation.name': 'invoke_agent', 'switchyard.outcome': 'completed' });
      const chat = callOf(spans, 'compose');
      expect(chat?.attributes).toMatchObject({
        'gen_ai.operation.name': 'chat',
        'gen_ai.provider.name': 'scripted',
        'gen_ai.response.model': 'scripted/assistant',
        'gen_ai.response.finish_reasons': ['stop'],
        'gen_ai.usage.input_tokens': expect.any(Number),
        'gen_ai.usage.output_tokens': expect.any(Number),
      });
      // The turn's span contains those of what it waits for.
      expect((agent?.startNanos ?? 0n) <= (chat?.startNanos ?? 0n) && (agent?.endNanos ?? 0n) >= (chat?.startNanos ?? 0n)).toBe(true);
    });

    it('DESIGN 12: a run is one trace, from the trigger to the callback, which carries it on', async () => {
      const traceId = 'c0ffee00c0ffee00c0ffee00c0ffee22';
      const callback = receiver.address(500, 204);
      const headers = { ...from(traceId), authorization: `Bearer ${deployment.keys.agentKey}` };
      const input = { claim_id: 'C-1', model: 'Acme Duo', delivered_on: '2026-03-01', description: 'The rhubarb pump is loud.' };
      const body = JSON.stringify({ input, callback_url: callback.url, metadata: { from: 'kazoo' } });
      const response = await fetch(`${deployment.nextAgentUrl()}/routines/triage-warranty-claim/trigger`, { method: 'POST', headers, body });
      expect(await response.text()).toContain('accepted');
      await eventually(() => callback.received.length === 2, TIMEOUT);
      const spans = await eventually(() => {
        const found = ofTrace(traceId);
        return found.filter(({ name }) => name === 'POST callback').length === 2 && found.some(({ name }) => name.startsWith('invoke_agent')) && found;
      }, TIMEOUT);

      const agent = spans.find(({ name }) => name.startsWith('invoke_agent'));
      const above = [
        named('agent-gateway', 'POST /routines/:routine_id/trigger'),
        named('agent-gateway', 'publish cmd'),
        named('actor-host', agent?.name ?? ''),
      ];
      expect(chainTo(spans, /^upstream/)).toEqual([...above, named('router-worker', 'chat switchyard/assistant'), named('router-worker', 'upstream scripted')]);
      expect(chainTo(spans, /^POST callback/)).toEqual([...above, named('effect-worker', 'POST callback')]);
      const [refused, taken] = spans.filter(({ name }) => name === 'POST callback').sort((left, right) => Number(left.startNanos - right.startNanos));
      expect(refused).toMatchObject({ status: 2, links: [], attributes: { 'http.response.status_code': 500, 'error.type': '500' } });
      // A repeat is linked to the try before it.
      expect(taken).toMatchObject({ status: 0, links: [refused?.spanId], attributes: { 'http.response.status_code': 204 } });
      expect(callback.received.map(({ headers: received }) => received.traceparent)).toEqual(
        [refused, taken].map((span) => `00-${traceId}-${span?.spanId}-01`),
      );
    });

    it('DESIGN 12: a call of the router is one trace, and no trace is recorded that its caller does not record', async () => {
      const traceId = 'c0ffee00c0ffee00c0ffee00c0ffee23';
      const unsampled = 'c0ffee00c0ffee00c0ffee00c0ffee24';
      const ask = (traceparent: string) =>
        fetch(`${deployment.nextRouterUrl()}/api/v1/chat/completions`, {
          method: 'POST',
          headers: { 'content-type': 'application/json', authorization: `Bearer ${deployment.keys.routerKey}`, traceparent },
          body: JSON.stringify({ messages: [{ role: 'user', content: 'Play the kazoo' }] }),
        });
      expect((await ask(`00-${unsampled}-${CALLER_SPAN}-00`)).status).toBe(200);
      expect((await ask(`00-${traceId}-${CALLER_SPAN}-01`)).status).toBe(200);
      const spans = await spansNamed(traceId, [/^upstream/, /^POST/, /^chat/]);

      expect(chainTo(spans, /^upstream/)).toEqual([
        named('router-gateway', 'POST /api/v1/chat/completions'),
        named('router-gateway', 'publish router.call'),
        named('router-worker', 'chat'),
        named('router-worker', 'upstream scripted'),
      ]);
      expect(ofTrace(unsampled)).toEqual([]);
    });

    it('DESIGN 12: no secret and no word of a customer or a model is in what is exported', () => {
      const bytes = Buffer.concat(sink.posts.map(({ body }) => body)).toString('latin1');

      expect(sink.spans.length).toBeGreaterThan(10);
      expect(bytes).not.toMatch(SPOKEN);
      for (const secret of [deployment.keys.agentKey, deployment.keys.routerKey, COLLECTOR_KEY]) expect(bytes).not.toContain(secret);
      expect(bytes).not.toMatch(/Bearer|\/callbacks\//);
      for (const { url, headers } of sink.posts) expect([url, headers.authorization]).toEqual(['/v1/traces', `Bearer ${COLLECTOR_KEY}`]);
    });
  });
}
