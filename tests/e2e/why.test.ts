import { afterAll, beforeAll, expect, it } from 'vitest';
import { turnRecord } from '../../shared/contracts/agent/turn-record.ts';
import { type AgentClient, agentClient } from '../helpers/agent-client.ts';
import { eventually } from '../helpers/eventually.ts';
import { type Standalone, startStandalone } from '../helpers/start-standalone.ts';

let standalone: Standalone;
let agent: AgentClient;

beforeAll(async () => {
  standalone = await startStandalone({});
  agent = agentClient(standalone.agentUrl, standalone.keys.agentKey);
}, 180_000);
afterAll(() => standalone?.stop());

async function get(path: string) {
  const response = await fetch(`${standalone.agentUrl}${path}`, { headers: { authorization: `Bearer ${standalone.keys.agentKey}` } });
  return { status: response.status, body: await response.json() };
}

it('DESIGN 14: npm start answers for the leak rather than the refund, and the record of the turn says why and what each call has cost', async () => {
  const { id } = await agent.createSession({ allow_greeting: false });
  await agent.postMessage(id, 'My machine leaks, and I want to return an order and get a refund');
  const log = await agent.logUntil(id, (event) => event.kind === 'status' && event.status === 'ready');
  const traceId = log.find((event) => event.kind === 'status' && event.status === 'acknowledged')?.trace_id ?? '';
  // Usage records are written shortly after their calls.
  const record = await eventually(
    async () => {
      const read = turnRecord.parse((await get(`/sessions/${id}/turns/${traceId}`)).body);
      return read.calls.filter(({ kind }) => kind !== 'applied').every(({ model }) => model !== null) && read;
    },
    { timeoutMs: 60_000 },
  );

  expect(record).toMatchObject({ trace_id: traceId, outcome: 'replied', error: null });
  expect(record.policies.map((policy) => policy.id)).toContain('leaking-machine');
  expect(record.steps).toEqual([]);
  expect(record.evidence).toContainEqual(expect.objectContaining({ id: 'leaking-machine', applies: true }));
  expect(record.resolutions).toContainEqual(expect.objectContaining({ outcome: 'deprioritized', counterparts: ['policy:leaking-machine'] }));
  expect(record.calls.map(({ kind }) => kind)).toEqual(expect.arrayContaining(['match', 'compose']));
  for (const { prompt_tokens: tokens, ms } of record.calls.filter(({ kind }) => kind !== 'applied'))
    expect([tokens, ms]).toEqual([expect.any(Number), expect.any(Number)]);

  const list = (await get(`/sessions/${id}/turns`)).body as { items: { trace_id: string }[] };
  expect(list.items.map(({ trace_id }) => trace_id)).toEqual([traceId]);
  expect((await get(`/sessions/${id}/turns/${'0'.repeat(32)}`)).status).toBe(404);
});
