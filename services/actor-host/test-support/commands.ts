import { actorFields } from '#bus/messages/actor-fields.ts';
import type { CommandOf } from '#bus/messages/session.ts';
import { bundleBody, hashOf } from '#shared/config/bundle-body.ts';
import type { Bundle } from '#shared/config/load-bundle.ts';

const HEADER = { v: 1 as const, sentAtMs: 0, answerTo: 'gw1', traceparent: null };

const PROMPT = { id: 'support', version: 1, type: 'text', text: 'You are {{agent.name}}.', created_at: '2026-01-01T00:00:00Z' };

/** An agent with two routines: one with the model alone, one with the tools of a server. */
export const testBundle: Bundle = (() => {
  const body = bundleBody.parse({
    manifest: {
      name: 'Support',
      id: 'support',
      version: '1',
      agent_config: {
        runtime: { api_key: '${AGENT_API_KEY}' },
        platform: { public_key: '${PLATFORM_PUBLIC_KEY}', secret_key: '${PLATFORM_SECRET_KEY}' },
        llms: { default: 'switchyard/assistant', api_key: '${ROUTER_API_KEY}' },
        context: { system_prompt: { id: 'support', version: 1 }, language: 'match_user' },
        mcps: [{ id: 'shop', hostname: 'http://127.0.0.1', port: 1 }],
      },
    },
    documents: {
      prompts: [PROMPT],
      routines: [routine('triage', []), routine('refund', ['shop:*'])],
      policies: [],
      glossaries: [],
      macros: [],
      variable_sets: [],
    },
  });
  return { hash: hashOf(body), body };
})();

/** The same agent with a greeting that uses a macro with a text like another macro. */
export const greetingBundle: Bundle = (() => {
  const { manifest, documents } = testBundle.body;
  const { agent_config: config } = manifest;
  const body = bundleBody.parse({
    manifest: { ...manifest, agent_config: { ...config, context: { ...config.context, greeting: 'Welcome to ${shop}!' } } },
    documents: { ...documents, macros: [{ id: 'shop', version: 1, value: 'Acme ${shop}' }] },
  });
  return { hash: hashOf(body), body };
})();

function routine(id: string, tools: string[]) {
  return {
    id,
    version: 1,
    kind: 'autonomous',
    title: id,
    created_at: '2026-01-01T00:00:00Z',
    tools,
    instructions: 'Decide.',
    input_schema: { type: 'object', required: ['claim'], properties: { claim: { type: 'string' } } },
    output_schema: { type: 'object', required: ['verdict'], properties: { verdict: { type: 'string' } } },
  };
}

export function create(sessionId: string): CommandOf<'session.create'> {
  return {
    ...HEADER,
    type: 'session.create',
    sessionId,
    commandId: `${sessionId}-create`,
    customerId: 'cus_1',
    agentId: 'acme-support',
    title: null,
    mode: 'auto',
    metadata: {},
    labels: [],
    allowGreeting: true,
    bundleHash: testBundle.hash,
  };
}

let posts = 0;
export function post(sessionId: string, text: string): CommandOf<'message.post'> {
  posts += 1;
  return {
    ...HEADER,
    type: 'message.post',
    sessionId,
    commandId: `cmd_${posts}`,
    source: 'customer',
    text,
    metadata: {},
    triggersTurn: true,
    traceId: String(posts).padStart(32, '0'),
    bundleHash: testBundle.hash,
  };
}

/** A synthetic tool result under an idempotency key. */
export function toolEvent(sessionId: string, key: string, changes: Partial<CommandOf<'tool-event.post'>> = {}): CommandOf<'tool-event.post'> {
  const { traceId, bundleHash } = post(sessionId, '');
  return {
    ...{ ...HEADER, v: 3, type: 'tool-event.post', sessionId, commandId: `${sessionId}-tool-${key}`, traceId, bundleHash },
    ...{ toolId: 'crm:note', arguments: { key }, result: { noted: key }, resultMetadata: {}, metadata: { idempotency_key: key }, triggersTurn: false },
    ...changes,
  };
}

export function patch(sessionId: string, commandId: string, changes: Partial<CommandOf<'session.patch'>>): CommandOf<'session.patch'> {
  const nothing = { setMetadata: {}, unsetMetadata: [], upsertLabels: [], removeLabels: [] };
  return { ...HEADER, type: 'session.patch', sessionId, commandId, ...nothing, ...changes };
}

export function patchEvent(
  sessionId: string,
  commandId: string,
  eventId: string,
  setMetadata: Record<string, unknown>,
  unsetMetadata: string[] = [],
): CommandOf<'event.patch'> {
  return { ...HEADER, v: 3, type: 'event.patch', sessionId, commandId, eventId, setMetadata, unsetMetadata };
}

export function deleteEvents(sessionId: string, commandId: string, minOffset: number, force = false): CommandOf<'events.delete'> {
  return { ...HEADER, v: 3, type: 'events.delete', sessionId, commandId, minOffset, force };
}

export function remove(sessionId: string): CommandOf<'session.delete'> {
  return { ...HEADER, type: 'session.delete', sessionId, commandId: `${sessionId}-delete` };
}

export function completed(sessionId: string, callId: string, text: string): CommandOf<'call.completed'> {
  return {
    ...HEADER,
    answerTo: null,
    type: 'call.completed',
    sessionId,
    commandId: callId,
    ...actorFields(callId.slice(0, callId.lastIndexOf('-'))),
    callId,
    text,
    toolCalls: [],
    model: 'scripted/assistant',
    provider: 'Scripted',
    finishReason: 'stop',
    usage: null,
  };
}

/** A model's response with function calls. */
export function calledTools(sessionId: string, callId: string, calls: { id: string; name: string; arguments: object }[]): CommandOf<'call.completed'> {
  const toolCalls = calls.map((call) => ({ ...call, arguments: JSON.stringify(call.arguments) }));
  return { ...completed(sessionId, callId, ''), toolCalls, finishReason: 'tool_calls' };
}

export function cancel(sessionId: string, runId: string): CommandOf<'run.cancel'> {
  return { ...HEADER, v: 3, type: 'run.cancel', sessionId, commandId: `${runId}-cancel`, runId };
}

export function start(sessionId: string, runId: string): CommandOf<'run.start'> {
  return { ...HEADER, answerTo: null, type: 'run.start', sessionId, commandId: runId, runId };
}
