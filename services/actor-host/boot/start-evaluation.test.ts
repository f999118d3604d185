import { expect, it } from 'vitest';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { bodyFrame } from '#bus/messages/frame.ts';
import { routerCall } from '#bus/messages/router.ts';
import { addresses, subjectOf } from '#bus/subjects.ts';
import { systemClock } from '#shared/clock.ts';
import { bundleBody } from '#shared/config/bundle-body.ts';
import { manifest } from '#shared/contracts/manifest/manifest.ts';
import { migrate } from '#shared/storage/migrate.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import { startEvaluation } from './start-evaluation.ts';

const secret = '$' + '{SECRET}';

it('EVAL_NODE_PARALLELISM: rule 14: documents are evaluated, and vectors of texts made, by calls over the bus, with the key of the agent', async () => {
  const database = await openTestDatabase();
  await migrate(database);
  const bus = await openMemoryBus({ database, clock: systemClock });
  const calls: string[] = [];
  const answer = { continuous: true, customer_dependent: false, is_agent_intention: false, agent_intention_condition: '', instruction: 'say it with tax' };
  const worker = bus.work.consume('router.call', { concurrency: 8, ackWaitMs: 30_000 }, async (item) => {
    const { origin, callId, keyId, want, detached, request, surface, embedding } = routerCall.parse(JSON.parse(item.body));
    calls.push(`${surface} ${origin.slice(0, 4)} ${callId.slice(0, 4)} ${keyId} ${want} ${detached} ${request.model}`);
    const vectors = { data: request.messages.map(() => ({ object: 'embedding', embedding: Buffer.from(new Float32Array([1, 2]).buffer).toString('base64') })) };
    if (embedding !== undefined) expect(embedding).toEqual({ format: 'base64', dimensions: 2, inputType: null, tokens: null });
    const frame = embedding !== undefined ? vectors : { text: JSON.stringify(answer), finishReason: 'stop', usage: null, toolCalls: [], error: null };
    bus.tokens.publish(subjectOf(addresses.tokens, origin, callId), bodyFrame(200, JSON.stringify(frame)));
    await item.ack();
  });
  const agent_config = {
    runtime: { api_key: secret },
    platform: { public_key: secret, secret_key: secret },
    llms: { default: 'a/main', evaluation: 'a/eval', api_key: secret },
    context: { system_prompt: { id: 'prompt', version: 1 }, language: 'match_user', glossaries: [{ id: 'words', version: 1 }] },
    search: { hostname: 'db', port: 5_432, password: secret, collection: 'docs', embedding_model: 'a/vectors', embedding_dimensions: 2 },
  };
  const body = bundleBody.parse({
    manifest: manifest.parse({ id: 'a', name: 'A', version: '1', agent_config }),
    documents: {
      prompts: [],
      routines: [],
      policies: [{ id: 'price', version: 1, condition: 'you name a price', action: 'say it with tax' }],
      glossaries: [{ id: 'words', version: 1, terms: Array.from({ length: 60 }, (_, index) => ({ name: `name${index}`, description: 'd' })) }],
      macros: [],
      variable_sets: [],
    },
  });
  const config = { evaluationParallelism: 1, modelKey: 'sha256:key', maxTokens: 100, providerOrder: [] };
  const evaluation = startEvaluation({ config, bundle: { hash: 'h', body }, bus, database, clock: systemClock, log: silentLog });
  try {
    expect(await evaluation.done).toBe(0);
    expect(calls.toSorted()).toEqual([
      'embeddings act- evl- sha256:key body true a/vectors',
      'embeddings act- evl- sha256:key body true a/vectors',
      'parts act- evl- sha256:key body true a/eval',
    ]);
    expect((await database.query(`select kind, result->>'continuous' as continuous from evaluations where kind <> 'set' order by kind`)).rows).toEqual([
      { kind: 'policy', continuous: 'true' },
      { kind: 'vectors', continuous: null },
      { kind: 'vectors', continuous: null },
    ]);
  } finally {
    await evaluation.stop();
    await worker.stop();
    await bus.close();
    await database.close();
  }
});
