import type { ListedTool } from '#bus/messages/tool.ts';
import type { EngineDocuments } from '../engine/engine-documents.ts';
import { testPolicy } from '../engine/policies/test-support/test-policy.ts';
import { relationshipGraph } from '../engine/relationships/relationship-graph.ts';
import type { ToolOutcome } from '../tool-loop/types.ts';
import { EngineSession } from './engine-session.ts';

const listed = (name: string, repeatable = false): ListedTool => ({
  name,
  title: null,
  description: null,
  inputSchema: { type: 'object', properties: { id: { type: 'integer' } } },
  repeatable,
});
const TOOLS = { shop: [listed('order', true), listed('refund')] };
export const result = (data: unknown, metadata: Record<string, unknown> = {}): ToolOutcome => ({ type: 'result', data, metadata, isError: false });

function documentsOf(changes: Partial<EngineDocuments> = {}): EngineDocuments {
  const policies = [testPolicy('ask', { tools: ['shop:order', 'shop:refund'] }), testPolicy('late', { tools: ['shop:refund'] }), testPolicy('never')];
  const none = { evaluationSet: null, policyEvaluations: new Map(), search: null, likeness: null, reevaluationTools: [], trustedServers: new Set<string>() };
  const relationships = relationshipGraph({ policies, routines: [] }, null);
  const plain = {
    policies,
    routines: [],
    routineModels: [],
    relationships,
    batchSize: 5,
    maxIterations: 3,
    announcesTools: false,
    toolServers: new Set(['shop']),
  };
  return { ...plain, ...none, ...changes };
}

/** A turn whose policy `ask` applies: the call that infers its tools is open. `shop:order` may be called again, `shop:refund` not. */
export function matched(changes: Partial<EngineDocuments> = {}) {
  const session = new EngineSession(documentsOf(changes), TOOLS);
  session.say('Where is my order?');
  const { turnId } = session;
  session.judge(`${turnId}-1`, ['ask']);
  return { session, turnId, id: (number: number) => `${turnId}-${number}` };
}

export const toolCallsIn = ({ log }: EngineSession) => log.flatMap((event) => (event.kind === 'tool' ? [event.tool_calls] : []));
