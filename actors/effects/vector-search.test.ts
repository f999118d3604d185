import { describe, expect, it } from 'vitest';
import type { RouterCall } from '#bus/messages/router.ts';
import { routerCall } from '#bus/messages/router.ts';
import { toolWork } from '#bus/messages/tool.ts';
import { bundleBody } from '#shared/config/bundle-body.ts';
import type { ConversationEvent } from '#shared/contracts/agent/conversation-event.ts';
import { noAgentState } from '../engine/agent-state.ts';
import { unknownCustomer } from '../inputs/customer-reader.ts';
import { Unrenderable } from '../runtime/publish/unrenderable.ts';
import { embed } from './embed.ts';
import { embedMessages } from './embed-messages.ts';
import type { RenderDeps } from './render-deps.ts';
import { rewriteQueryCall } from './rewrite-query.ts';
import { search } from './search.ts';

const v1 = { version: 1 };
const secret = '$' + '{SECRET}';
const VECTOR = 'AACAPwAAAAA=';
const table = { hostname: 'db', port: 5_432, password: secret, collection: 'docs', embedding_model: 'a/vectors', embedding_dimensions: 2 };
const query = (text: string | null) => ({
  kind: 'query',
  key: 'query',
  query: text,
  model: 'a/b',
  ms: 1,
  tokens: 2,
  failure: text === null ? 'malformed' : null,
});
const embedding = { kind: 'embedding', key: 'embedding', model: 'a/vectors', ms: 1, tokens: 2, vector: VECTOR };
const began = { kind: 'began', state: noAgentState };

describe('what a turn with a table of vectors asks for', () => {
  it('rule 77: a query of the agent’s models, with the further instructions of search.prompt', async () => {
    const inputs = rewriteQueryCall.inputs.parse({ ...common, template: 'rewrite-query@1', customerId: 'ada' });
    const call = (await rewriteQueryCall.render({ ...effect, inputs }, false, depsWith([began]))) as RouterCall;
    const [instructions, conversation] = messagesIn(call);

    expect(call).toMatchObject({ want: 'none', step: { name: 'rewrite-query' }, keyId: 'k', request: { model: 'a/b', models: ['a/c'] } });
    expect(call.request.response_format).toMatchObject({ json_schema: { name: 'rewrite_query', strict: true } });
    expect(instructions).toContain('# Further instructions for the query\nName the product line.');
    expect(conversation).toContain('{"from":"customer","text":"And its warranty?"}');
    expect(messagesIn((await rewriteQueryCall.render({ ...effect, inputs }, false, depsWith([began], { prompt: null }))) as RouterCall)[0]).not.toContain(
      '# Further',
    );
  });

  it('rule 77: is not rendered by the template of another release, and not for another configuration', async () => {
    const inputs = rewriteQueryCall.inputs.parse({ ...common, template: 'rewrite-query@0', customerId: 'ada' });
    await expect(rewriteQueryCall.render({ ...effect, inputs }, false, depsWith([began]))).rejects.toThrow(Unrenderable);
  });

  it.each([
    ['the query that a model has made', [began, query('warranty of hoses')], 'warranty of hoses'],
    ['the customer’s newest message, without one', [began, query(null)], 'And its warranty?'],
    ['the query since a message has joined', [began, query('of before'), began, query(null)], 'And its warranty?'],
  ])('rule 78: the vector of %s, under llms.api_key, of embedding_model and embedding_dimensions', async (_, rows, content) => {
    const inputs = embed.inputs.parse({ ...common, staged: rows.length });
    const call = (await embed.render({ ...effect, inputs }, false, depsWith(rows))) as RouterCall;

    expect(call).toMatchObject({ want: 'none', surface: 'embeddings', keyId: 'k', maxTokens: null, step: { name: 'embed' } });
    expect(call.embedding).toEqual({ format: 'base64', dimensions: 2, inputType: null, tokens: null });
    expect(call.request).toMatchObject({ model: 'a/vectors', messages: [{ role: 'user', content }] });
    expect(routerCall.safeParse(JSON.parse(JSON.stringify(call))).error).toBeUndefined();
  });

  it('rule 78: of a long message its beginning', async () => {
    const inputs = embed.inputs.parse({ ...common, staged: 2 });
    const call = (await embed.render({ ...effect, inputs }, false, depsWith([began, query(null)], {}, 'x'.repeat(100_000)))) as RouterCall;
    expect(messagesIn(call)).toEqual(['x'.repeat(8_000)]);
  });

  it('rule 78: nothing without a query and a message of the customer', async () => {
    const inputs = embed.inputs.parse({ ...common, staged: 2 });
    await expect(embed.render({ ...effect, inputs }, false, depsWith([began, query(null)], {}, ''))).rejects.toThrow(Unrenderable);
  });

  it('rules 12, 14, 82: vectors of what was said, in one call under the same key, model and dimensions', async () => {
    const inputs = embedMessages.inputs.parse({ ...common, texts: ['message', 'talk'] });
    const call = (await embedMessages.render({ ...effect, inputs }, true, depsWith([began]))) as RouterCall;

    expect(call).toMatchObject({ want: 'none', surface: 'embeddings', keyId: 'k', maxTokens: null, step: { name: 'embed-messages' }, republished: true });
    expect(call.embedding).toEqual({ format: 'base64', dimensions: 2, inputType: null, tokens: null });
    expect(call.request.model).toBe('a/vectors');
    expect(messagesIn(call)).toEqual(['And its warranty?', 'And its warranty?']);
    expect(call.request).not.toHaveProperty('provider');
    expect(routerCall.safeParse(JSON.parse(JSON.stringify(call))).error).toBeUndefined();
    await expect(embedMessages.render({ ...effect, inputs }, false, depsWith([began], {}, ' '))).rejects.toThrow(Unrenderable);
  });

  it('rule 79: a search by the recorded vector, without messages, which older workers leave to newer ones', async () => {
    const inputs = search.inputs.parse({ ...common, staged: 3 });
    const item = await search.render({ ...effect, inputs }, true, depsWith([began, query('warranty of hoses'), embedding]));
    expect(item).toMatchObject({ v: 4, type: 'search', query: 'warranty of hoses', messages: [], vector: VECTOR, republished: true });
    expect(toolWork.safeParse(item).error).toBeUndefined();
    // Rows of the turn that came later do not count: a host that takes over renders the same.
    await expect(search.render({ ...effect, inputs: { ...inputs, staged: 2 } }, true, depsWith([began, query('q'), embedding]))).rejects.toThrow('no vector');
  });
});

const common = { bundleHash: 'b', upToOffset: 0, deadlineAtMs: 1, traceparent: null };
const effect = { partition: 1, id: 'trn_1-1', sessionId: 's', actorId: 'trn_1', createdAtMs: 0, kind: '' };

function messagesIn({ request }: RouterCall): string[] {
  return (request.messages ?? []).map(({ content }) => String(content));
}

function depsWith(rows: readonly object[], fields: object = {}, text = 'And its warranty?'): RenderDeps {
  const context = { system_prompt: { id: 'p', ...v1 }, language: 'match_user' };
  const llms = { default: 'a/b', fallback: ['a/c'], api_key: secret };
  const keys = { runtime: { api_key: secret }, platform: { public_key: secret, secret_key: secret } };
  const body = bundleBody.parse({
    manifest: {
      ...{ id: 'shop', name: 'Shop', version: '1' },
      agent_config: { ...keys, llms, context, search: { ...table, prompt: { id: 'rewrite', ...v1 }, ...fields } },
    },
    documents: {
      ...{ routines: [], glossaries: [], macros: [], variable_sets: [], policies: [] },
      prompts: [
        { id: 'p', ...v1, text: 'You help.' },
        { id: 'rewrite', ...v1, text: 'Name the product line.' },
      ],
    },
  });
  const deps: Partial<RenderDeps> = {
    bundleOf: async () => ({ hash: 'b', body }),
    customers: { ofTurn: async () => unknownCustomer },
    histories: { upTo: async () => (text === '' ? [] : [said(text)]) },
    turns: { staged: async () => new Map([['trn_1', rows.map((row, seq) => ({ seq, body: row }))]]) },
    epochOf: () => 1,
    settings: { streaming: true, maxTokens: 10, modelKey: 'k', providerOrder: ['east'] },
  };
  return deps as RenderDeps;
}

function said(text: string): ConversationEvent {
  const head = { id: 'evt_1', offset: 0, created_at: '2026-01-01T00:00:00.000Z', trace_id: 'f'.repeat(32), metadata: {} };
  return { ...head, source: 'customer', kind: 'user_message', text };
}
